//! Idempotency keys: kept for ever, and read only when one is presented.

use std::collections::HashMap;

use tenure_core::codec::v1;
use tenure_core::id::Position;
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::position::Head;

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
pub(crate) struct Keys(HashMap<[u8; 16], Prior>);

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
        let mut keys = Self::default();
        let mut frames = source.read_from(tenure_log::position::Position::ZERO, Depth::Facts)?;
        while let Some(frame) = frames.next() {
            let frame = frame?;
            if frame.header.position > head.position {
                break;
            }
            keys.note(&frame)?;
        }
        Ok(keys)
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
        self.0.entry(key).or_insert(prior);
    }

    pub fn get(&self, key: [u8; 16]) -> Option<Prior> {
        self.0.get(&key).copied()
    }
}
