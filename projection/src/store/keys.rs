//! Idempotency keys: kept for ever, and read only when one is presented.

use std::collections::HashMap;

use tenure_core::codec::v1;
use tenure_core::id::Position;
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::journal::{Blobs, Landmark};
use tenure_log::position::{self, Head};

use crate::call::IdempotencyKey;
use crate::error::Error;
use crate::source::Source;

use super::files::Files;
use super::marks;
use super::runs::{Gathered, Rows, Runs};

/// Where a key was used, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prior {
    /// The frame.
    pub position: Position,
    /// Digest of the call.
    pub payload: [u8; 16],
}

/// A key's digest, its payload's, and the position.
struct KeyRows;

impl Rows for KeyRows {
    const PREFIX: &'static str = "keys-";
    const MAGIC: &'static [u8; 8] = b"tnrkey02";
    const ROW_BYTES: usize = 16 + 16 + 8;
}

/// The most keys that are kept in memory beyond a snapshot.
const KNOWN_MAX: usize = 1 << 16;

/// The digest of a key, as it is recorded.
pub(crate) type KeyDigest = [u8; 16];

/// The keys of a log up to some position: those of the newest frames, and of older ones those asked for.
pub(crate) struct Keys {
    runs: Runs<KeyRows>,
    known: HashMap<KeyDigest, Option<Prior>>,
}

/// How a key is recorded.
pub(crate) fn digest(key: &IdempotencyKey) -> KeyDigest {
    short(blake3::Hasher::new_derive_key("tenure idempotency key v1").update(key.0.as_bytes()))
}

/// The first 16 bytes of a hash.
pub(crate) fn short(hasher: &blake3::Hasher) -> [u8; 16] {
    *hasher
        .finalize()
        .as_bytes()
        .first_chunk()
        .expect("a BLAKE3 hash has 32 bytes")
}

impl Keys {
    /// Reads the keys up to `head` that stand in no file beside the snapshot.
    pub fn read(source: &dyn Source, head: Head) -> Result<Self, Error> {
        Self::behind(source, Runs::load(source, head)?, head)
    }

    fn behind(source: &dyn Source, runs: Runs<KeyRows>, head: Head) -> Result<Self, Error> {
        let mut known = HashMap::new();
        each(source, runs.covered().position, head, |key, prior| {
            known.entry(key).or_insert(Some(prior));
        })?;
        Ok(Self { runs, known })
    }

    /// Makes sure that it is known where a key was used, up to `head`.
    pub fn look_up(
        &mut self,
        source: &dyn Source,
        key: KeyDigest,
        head: Head,
    ) -> Result<(), Error> {
        if self.known.contains_key(&key) {
            return Ok(());
        }
        match self.runs.find(&key) {
            Some(rows) => {
                self.known
                    .insert(key, rows.first().and_then(|row| prior(row)));
            }
            None => *self = Self::behind(source, Runs::none(), head)?,
        }
        Ok(())
    }

    /// Takes in the key of one frame.
    pub fn note(&mut self, frame: &FrameRef<'_>) -> Result<(), Error> {
        if let Some((key, prior)) = of(frame)? {
            self.insert(key, prior);
        }
        Ok(())
    }

    /// Takes in a key that was used now. The first use is the one that counts.
    pub fn insert(&mut self, key: KeyDigest, prior: Prior) {
        self.known.entry(key).or_default().get_or_insert(prior);
    }

    /// Whether they are more than a process that lives long should keep.
    pub fn are_many(&self) -> bool {
        self.known.len() > KNOWN_MAX
    }

    /// Where a key was used; `None` when it was not looked up.
    pub fn get(&self, key: KeyDigest) -> Option<Option<Prior>> {
        self.known.get(&key).copied()
    }
}

/// Keys that stand in no file yet.
pub(crate) struct Fresh {
    runs: Runs<KeyRows>,
    rows: Gathered<KeyRows>,
}

impl Fresh {
    /// None, behind what is written up to `head`.
    pub fn load(source: &dyn Source, head: Head) -> Result<Self, Error> {
        Ok(Self {
            runs: Runs::load(source, head)?,
            rows: Gathered::default(),
        })
    }

    /// Up to where keys are written.
    pub fn covered(&self) -> position::Position {
        self.runs.covered().position
    }

    /// Takes in the key of one frame, if it is behind them.
    pub fn take(&mut self, frame: &FrameRef<'_>, blobs: &dyn Blobs) -> Result<(), Error> {
        if frame.header.position <= self.covered() {
            return Ok(());
        }
        if let Some((key, prior)) = of(frame)? {
            self.put(key, prior, blobs);
        }
        Ok(())
    }

    /// Those of every frame up to `head` were taken in, which may be known to stand at `mark`: begins another file where
    /// they fill one.
    pub fn pass(&mut self, head: Head, mark: Option<Landmark>) {
        if self.rows.is_full() {
            self.rows.end_at(head, mark);
        }
    }

    /// Takes in a key that was noted when its frame was appended, if it is behind them.
    pub fn take_noted(&mut self, key: KeyDigest, prior: Prior, blobs: &dyn Blobs) {
        if prior.position.0 > self.covered().0 {
            self.put(key, prior, blobs);
        }
    }

    fn put(&mut self, key: KeyDigest, prior: Prior, blobs: &dyn Blobs) {
        let mut row = Vec::with_capacity(KeyRows::ROW_BYTES);
        row.extend_from_slice(&key);
        row.extend_from_slice(&prior.payload);
        row.extend_from_slice(&prior.position.0.to_le_bytes());
        self.rows.push(&row, blobs);
    }

    /// Has them written down. Those of every frame up to `head`, which has to be durable, were taken in; it may be known to
    /// stand at `mark`.
    pub fn save(
        mut self,
        source: &dyn Source,
        (head, mark): (Head, Option<Landmark>),
        into: &mut Files,
    ) -> Result<(), Error> {
        if self.covered() >= head.position {
            return Ok(());
        }
        self.rows.end_at(head, mark);
        self.runs.extend(source, self.rows, into)
    }
}

fn prior(row: &[u8]) -> Option<Prior> {
    Some(Prior {
        payload: *row.get(16..)?.first_chunk()?,
        position: Position(u64::from_le_bytes(*row.last_chunk()?)),
    })
}

/// The keys of the frames behind `after` and up to `head`.
fn each(
    source: &dyn Source,
    after: position::Position,
    head: Head,
    mut take: impl FnMut(KeyDigest, Prior),
) -> Result<(), Error> {
    let mut frames = marks::read_from(source, after, Depth::Facts)?;
    while let Some(frame) = frames.next() {
        let frame = frame?;
        if frame.header.position > head.position {
            break;
        }
        if let Some((key, prior)) = of(&frame)? {
            take(key, prior);
        }
    }
    Ok(())
}

/// The key of a frame that was appended as done. A refusal binds no key.
fn of(frame: &FrameRef<'_>) -> Result<Option<(KeyDigest, Prior)>, Error> {
    let position = Position(frame.header.position.0);
    let key = v1::decode_key(frame.facts).map_err(|fault| Error::Facts { position, fault })?;
    let key = key.filter(|key| key.taken.is_none());
    Ok(key.map(|key| {
        let payload = key.payload;
        (key.digest, Prior { position, payload })
    }))
}
