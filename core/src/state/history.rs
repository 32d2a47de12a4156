//! The history of a session: of fixed size beside what is open and what was reverted, however many records there
//! are. The records stay in the log.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::history::{ActivityKind, Hidden, HistoryHash, Point};
use crate::id::{Moment, Position, SessionNo};
use crate::text::{Symbol, Text};

use super::State;

/// Something that a record opened and none has closed.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct OpenActivity {
    /// What it is.
    pub kind: ActivityKind,
    /// Its id within the session.
    pub id: Text,
    /// When it was opened.
    pub since: Moment,
}

/// Where a branched history comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Origin {
    /// Whose history it begins with.
    pub source: SessionNo,
    /// Up to which point; `None`: it began empty.
    pub at: Option<Point>,
    /// When it was branched: what the source reverts later reaches no branch.
    pub taken: Moment,
}

/// Where an imported history came from: for people, since nothing of it is in this log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct ImportNote {
    /// What the session was called there.
    pub from: Symbol,
    /// What it was branched or delegated from there; not attached to anything here (DIS-12).
    pub parent: Option<Symbol>,
    /// The digest of its history there.
    pub hash: HistoryHash,
    /// When it was imported.
    pub at: Moment,
}

/// A history as decisions need it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub struct History {
    /// The newest visible record; `None` in an empty history.
    pub tip: Option<Point>,
    /// The newest point outside every call and approval: where a branch begins when nobody says where. `None`
    /// before the first record.
    pub cut: Option<Point>,
    /// What is open, in the order of opening.
    pub open: Vec<OpenActivity>,
    /// What is hidden, oldest first.
    pub reverts: Vec<Hidden>,
    /// Where it comes from, if it is a branch.
    pub origin: Option<Origin>,
    /// Where it came from, if it was imported.
    pub imported: Option<ImportNote>,
}

impl History {
    /// How many records are visible.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tip.map_or(0, |tip| tip.index)
    }

    /// The position of the newest visible record; zero in an empty history.
    #[must_use]
    pub fn tip_position(&self) -> Position {
        self.tip.map_or(Position(0), |tip| tip.position)
    }

    /// The digest of everything visible.
    #[must_use]
    pub fn hash(&self) -> HistoryHash {
        self.tip.map_or_else(HistoryHash::default, |tip| tip.hash)
    }

    /// The open activity of that kind and id.
    #[must_use]
    pub fn open_activity(&self, kind: ActivityKind, id: &[u8]) -> Option<&OpenActivity> {
        let named = |a: &&OpenActivity| a.kind == kind && a.id.as_bytes() == id;
        self.open.iter().find(named)
    }

    /// How many calls and approvals are open.
    #[must_use]
    pub fn depth(&self) -> u32 {
        let within = self.open.iter().filter(|a| a.kind.is_part_of_a_turn());
        u32::try_from(within.count()).unwrap_or(u32::MAX)
    }

    /// Ends everything that is open: nothing is in the middle of a turn any more.
    pub(crate) fn end_open(&mut self) {
        self.open.clear();
        self.cut = self.tip;
    }
}

/// The part of a history that one session recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Who recorded it.
    pub session: SessionNo,
    /// It stands behind this position: that of the frame in which the session began.
    pub after: Position,
    /// The last position that was taken over of it.
    pub taken: Position,
    /// The last position that may be visible: what a branch reverted of its ancestor is not.
    pub to: Position,
    /// Reverts of that session count up to this position.
    pub until: Position,
}

impl State {
    /// Who recorded what is visible in the history of a session, as it stood behind `until`: the session itself
    /// first, then each ancestor with what its branch took over.
    #[must_use]
    pub fn lineage(&self, session: SessionNo, until: Position) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let (mut number, mut taken, mut to, mut counted) = (session, until, until, until);
        while let Some(record) = self.session(number) {
            stretches.push(Stretch {
                session: number,
                after: record.registered_at.position,
                taken,
                to,
                until: counted,
            });
            let history = &record.history;
            let Some(origin) = history.origin else {
                break;
            };
            // What is reverted to a point of an ancestor hides the ancestor's records behind that.
            let reverts = history.reverts.iter().filter(|r| r.marker <= counted);
            to = reverts.map(|r| r.to).fold(to, Position::min);
            taken = taken.min(origin.at.map_or(Position(0), |at| at.position));
            to = to.min(taken);
            counted = origin.taken.position;
            number = origin.source;
        }
        stretches
    }

    /// Who would have recorded what stands at `position`, if it is a record that is visible in that lineage.
    #[must_use]
    pub fn shown_in(&self, lineage: &[Stretch], position: Position) -> Option<SessionNo> {
        let within = |s: &&Stretch| s.after < position && position <= s.to;
        let stretch = lineage.iter().find(within)?;
        let reverts = &self.session(stretch.session)?.history.reverts;
        let mut made = reverts.iter().filter(|r| r.marker <= stretch.until);
        let shown = !made.any(|r| r.hides(position)) && !self.dishonoured.contains(&position);
        shown.then_some(stretch.session)
    }
}
