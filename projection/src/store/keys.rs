//! Idempotency keys: kept for ever, and read only when one is presented.

pub(super) mod runs;

use std::collections::HashMap;

use tenure_core::codec::v1;
use tenure_core::id::Position;
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::position::{self, Head};

use crate::call::IdempotencyKey;
use crate::error::Error;
use crate::source::Source;

/// Where a key was used, and for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prior {
    /// The frame.
    pub position: Position,
    /// Digest of the call.
    pub payload: [u8; 16],
}

/// Every key in the log up to some position.
#[derive(Default)]
pub(crate) struct Keys {
    /// Those that stand beside the snapshot.
    runs: Vec<runs::Run>,
    /// Those of the frames behind.
    fresh: HashMap<[u8; 16], Prior>,
}

/// How a key is recorded.
pub(crate) fn digest(key: &IdempotencyKey) -> [u8; 16] {
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
    /// Reads the keys of every frame up to `head`.
    pub fn read(source: &dyn Source, head: Head) -> Result<Self, Error> {
        let runs = runs::load(source, head)?;
        let covered = runs::covered(&runs).position;
        let mut keys = Self {
            runs,
            fresh: HashMap::new(),
        };
        keys.read_on(source, covered, head)?;
        Ok(keys)
    }

    /// Takes in the keys of the frames behind `after`, up to `head`.
    fn read_on(
        &mut self,
        source: &dyn Source,
        after: position::Position,
        head: Head,
    ) -> Result<(), Error> {
        let mut frames = source.read_from(after, Depth::Facts)?;
        while let Some(frame) = frames.next() {
            let frame = frame?;
            if frame.header.position > head.position {
                break;
            }
            self.note(&frame)?;
        }
        Ok(())
    }

    /// Takes in the key of one frame, if it has one that was appended as done. A refusal binds no key.
    pub fn note(&mut self, frame: &FrameRef<'_>) -> Result<(), Error> {
        let position = Position(frame.header.position.0);
        let key = v1::decode_key(frame.facts).map_err(|fault| Error::Facts { position, fault })?;
        if let Some(key) = key.filter(|key| key.taken.is_none()) {
            self.insert(
                key.digest,
                Prior {
                    position,
                    payload: key.payload,
                },
            );
        }
        Ok(())
    }

    pub fn insert(&mut self, key: [u8; 16], prior: Prior) {
        self.fresh.entry(key).or_insert(prior);
    }

    pub fn get(&self, key: [u8; 16]) -> Option<Prior> {
        let known = self.runs.iter().find_map(|run| run.get(key));
        known.or_else(|| self.fresh.get(&key).copied())
    }
}
