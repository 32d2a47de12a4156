//! What a history is made of: digests, points and activities. How it is kept stands in `docs/histories.md`.

use core::fmt;

use bincode::{Decode, Encode};

use crate::id::{Position, SessionNo};
use crate::text::TextId;

/// The digest of a body as its frame's table has it: the first 16 bytes of BLAKE3(nonce, content). It cannot be
/// guessed from a short content, and stands in the frame whether or not the body was redacted.
pub type BodyDigest = [u8; 16];

/// The digest of a history up to one of its records; zero for a history without one.
///
/// After a record it is the first 16 bytes of BLAKE3 over the digest before it, its index, its kind, and the
/// digest of its body. Equal digests mean equal histories, record by record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Encode, Decode)]
pub struct HistoryHash(pub [u8; 16]);

impl HistoryHash {
    /// The digest after one more record, the one of that index.
    #[must_use]
    pub fn with(self, index: u64, kind: &[u8], body: &BodyDigest) -> Self {
        let mut lead = [0; 32];
        lead[..16].copy_from_slice(&self.0);
        lead[16..24].copy_from_slice(&index.to_le_bytes());
        lead[24..].copy_from_slice(&(kind.len() as u64).to_le_bytes());
        // In one piece where it fits, as nearly every kind does: at half the cost of several.
        let mut room = [0; 128];
        let hash = match room.get_mut(..lead.len() + kind.len() + body.len()) {
            Some(piece) => {
                let (first, rest) = piece.split_at_mut(lead.len());
                let (second, third) = rest.split_at_mut(kind.len());
                first.copy_from_slice(&lead);
                second.copy_from_slice(kind);
                third.copy_from_slice(body);
                blake3::hash(piece)
            }
            None => {
                let mut hasher = blake3::Hasher::new();
                hasher.update(&lead).update(kind).update(body).finalize()
            }
        };
        let mut short = [0; 16];
        short.copy_from_slice(&hash.as_bytes()[..16]);
        Self(short)
    }
}

impl fmt::Display for HistoryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A place in a history: behind one of its records.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct Point {
    /// The frame of that record.
    pub position: Position,
    /// Its index in the history, from 1.
    pub index: u64,
    /// The digest of the history up to and with it.
    pub hash: HistoryHash,
}

wire_enum! {
    /// What is opened by one record and closed by another.
    pub enum ActivityKind {
        /// A run: of an agent, a build, a test. A history may be branched while one is open.
        Run = 1 "run",
        /// A call of a tool: it and its result are parts of one turn.
        Call = 2 "call",
        /// An approval that was asked for: it and its answer are parts of one turn.
        Approval = 3 "approval",
    }
}

impl ActivityKind {
    /// Whether what lies between its opening and its closing is one turn, which no branch takes apart (BRN-14).
    #[must_use]
    pub fn is_part_of_a_turn(self) -> bool {
        matches!(self, Self::Call | Self::Approval)
    }
}

/// An activity as a record names it, `run:ID`, `call:ID` or `approval:ID`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct Activity {
    /// What it is.
    pub kind: ActivityKind,
    /// Its id within the session: a name.
    pub id: TextId,
}

/// Which part of a history is hidden: what stands behind `to` and before `marker`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Hidden {
    /// The last record that stays visible; zero when none does.
    pub to: Position,
    /// The frame of the revert.
    pub marker: Position,
}

impl Hidden {
    /// Whether it hides the record at `position`.
    #[must_use]
    pub fn hides(self, position: Position) -> bool {
        self.to < position && position < self.marker
    }
}

/// A record that was found in the log: what a decision about a place in a history is given, since records are no
/// part of a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct FoundRecord {
    /// Who recorded it.
    pub session: SessionNo,
    /// Its place.
    pub point: Point,
    /// How many calls and approvals were open behind it.
    pub depth: u32,
}

#[cfg(test)]
mod tests {
    use super::HistoryHash;

    /// However long a kind is, the digest is that of the same bytes.
    #[test]
    fn a_digest_is_one_hash_over_all_parts() {
        for length in [0, 1, 79, 80, 81, 200] {
            let (kind, body) = (alloc::vec![b'k'; length], [3; 16]);
            let mut bytes = alloc::vec![7; 16];
            bytes.extend(9_u64.to_le_bytes());
            bytes.extend((length as u64).to_le_bytes());
            bytes.extend(&kind);
            bytes.extend(body);
            let hash = HistoryHash([7; 16]).with(9, &kind, &body);
            assert_eq!(hash.0, blake3::hash(&bytes).as_bytes()[..16]);
        }
    }
}
