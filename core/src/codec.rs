//! The parts of a frame, as `docs/format.md` specifies them: facts, texts, bodies.
//!
//! Everything that names bincode stands in this file and in [`v1`]; the bytes are the contract, the crate is
//! not.

use alloc::vec::Vec;

use bincode::config::{self, Configuration};
use bincode::error::{DecodeError, EncodeError};

pub mod v1;

fn standard() -> Configuration {
    config::standard()
}

/// Appends a value in bincode's standard encoding.
pub(crate) fn append<T: bincode::Encode>(out: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    out.extend_from_slice(&bincode::encode_to_vec(value, standard())?);
    Ok(())
}

/// Decodes a value that must fill `bytes` exactly. The slice bounds every allocation.
pub(crate) fn exact<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    match bincode::decode_from_slice(bytes, standard())? {
        (value, read) if read == bytes.len() => Ok(value),
        _ => Err(DecodeError::Other("bytes are left over")),
    }
}

/// Encodes a value on its own: snapshots and state digests.
///
/// # Errors
/// Whatever the encoder says; for types of this crate, never.
pub fn encode<T: bincode::Encode>(value: &T) -> Result<Vec<u8>, EncodeError> {
    bincode::encode_to_vec(value, standard())
}

/// Decodes what [`encode`] wrote.
///
/// # Errors
/// A fault for any other bytes; allocation is bounded by the length of `bytes` times the size of an element.
pub fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    exact(bytes)
}
