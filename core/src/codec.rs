//! The parts of a frame, as `docs/format.md` specifies them: facts, texts, bodies.
//!
//! Everything that names bincode stands in this file and in [`v1`]; the bytes are the contract, the crate is
//! not.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bincode::Decode;
use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use bincode::de::DecoderImpl;
use bincode::de::read::SliceReader;
use bincode::error::{DecodeError, EncodeError};

pub(crate) mod plain;
pub mod v1;

/// Why a value does not encode, or bytes do not decode as one. What the encoder said is for people only.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value does not encode.
    #[error("the value does not encode: {0}")]
    Unencodable(String),
    /// The bytes are not the encoding of such a value.
    #[error("the bytes do not decode: {0}")]
    Undecodable(String),
}

// No `From`: what the encoder's errors are is nobody's business outside.
impl Error {
    pub(crate) fn encoding(error: EncodeError) -> Self {
        Self::Unencodable(error.to_string())
    }

    fn decoding(error: DecodeError) -> Self {
        Self::Undecodable(error.to_string())
    }
}

fn standard() -> Configuration {
    config::standard()
}

/// Appends a value in bincode's standard encoding.
pub(crate) fn append<T: bincode::Encode>(out: &mut Vec<u8>, value: &T) -> Result<(), EncodeError> {
    bincode::encode_into_writer(value, Appending(out), standard())
}

/// A length in bincode's standard encoding, and how many of these bytes it takes.
pub(crate) fn length(bytes: usize) -> Result<([u8; LENGTH_BYTES_MAX], usize), EncodeError> {
    let mut number = [0; LENGTH_BYTES_MAX];
    let used = bincode::encode_into_slice(bytes as u64, &mut number, standard())?;
    Ok((number, used))
}

/// The most bytes of a length: a mark, and 64 bits.
const LENGTH_BYTES_MAX: usize = 9;

/// Writes behind what is there, without a buffer between.
struct Appending<'o>(&'o mut Vec<u8>);

impl bincode::enc::write::Writer for Appending<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// What decoding one payload may allocate, in bytes. A dispatch with every scope and anchor takes a twentieth.
const PAYLOAD_MEMORY_MAX: usize = 4 << 20;

/// Decodes a payload, which must fill `bytes` exactly. A length in the bytes is not believed beyond
/// [`PAYLOAD_MEMORY_MAX`].
pub(crate) fn exact<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    within::<T, PAYLOAD_MEMORY_MAX>(bytes)
}

fn within<T: bincode::Decode<()>, const LIMIT: usize>(bytes: &[u8]) -> Result<T, DecodeError> {
    match bincode::decode_from_slice(bytes, standard().with_limit::<LIMIT>())? {
        (value, read) if read == bytes.len() => Ok(value),
        _ => Err(DecodeError::Other("bytes are left over")),
    }
}

/// Splits a variable-length number off the front, as bincode reads one: what a replay meets some ten times a
/// frame. `None` where bincode reports a fault.
#[inline]
pub(crate) fn split_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first {
        0..=250 => Some((u64::from(first), rest)),
        251 => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((u64::from(u16::from_le_bytes(*number)), rest))
        }
        252 => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((u64::from(u32::from_le_bytes(*number)), rest))
        }
        253 => {
            let (number, rest) = rest.split_first_chunk()?;
            Some((u64::from_le_bytes(*number), rest))
        }
        254..=255 => None,
    }
}

/// Splits a value off the front of a page of a snapshot. `None` where there is none.
pub(crate) fn split<T: bincode::Decode<()>>(bytes: &[u8]) -> Option<(T, &[u8])> {
    // A page has its checksum, so that a length in it is one that was written.
    let config = standard().with_limit::<0x4000_0000>();
    let (value, read) = bincode::decode_from_slice(bytes, config).ok()?;
    Some((value, bytes.get(read..)?))
}

/// Encodes a value on its own: snapshots and state digests.
///
/// # Errors
/// [`Error::Unencodable`]; for types of this crate, never.
pub fn encode<T: bincode::Encode>(value: &T) -> Result<Vec<u8>, Error> {
    bincode::encode_to_vec(value, standard()).map_err(Error::encoding)
}

/// The BLAKE3 hash of a value's encoding: equal states of one log have equal digests.
///
/// # Errors
/// As [`encode`].
pub fn digest<T: bincode::Encode>(value: &T) -> Result<[u8; 32], Error> {
    Ok(*blake3::hash(&encode(value)?).as_bytes())
}

/// Decodes what [`encode`] wrote.
///
/// A length in the bytes is believed only as far as that many bytes could hold it, with room: an element of a
/// list takes up to a few hundred bytes in memory and a dozen or more when encoded. bincode takes such a limit
/// as a constant, hence the steps.
///
/// # Errors
/// [`Error::Undecodable`] for any other bytes. What is allocated is bounded by the length of `bytes`.
pub fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, Error> {
    let decoded = match bytes.len() {
        0..=0xffff => within::<T, 0x40_0000>(bytes),
        0x1_0000..=0xf_ffff => within::<T, 0x400_0000>(bytes),
        0x10_0000..=0xff_ffff => within::<T, 0x4000_0000>(bytes),
        0x100_0000..=0xfff_ffff => within::<T, { usize::MAX >> 30 }>(bytes),
        _ => within::<T, { usize::MAX >> 25 }>(bytes),
    };
    decoded.map_err(Error::decoding)
}

/// Reads values one after the other, which must fill `bytes` exactly. What is allocated is bounded as in
/// [`decode`].
pub(crate) fn read_with<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut Reading<'_>) -> Result<T, DecodeError>,
) -> Result<T, Error> {
    let config = standard().with_limit::<{ usize::MAX >> 25 }>();
    let mut decoder = DecoderImpl::new(SliceReader::new(bytes), config, ());
    let value = read(&mut decoder).map_err(Error::decoding)?;
    match u8::decode(&mut decoder) {
        Err(DecodeError::UnexpectedEnd { .. }) => Ok(value),
        _ => Err(Error::Undecodable("bytes are left over".into())),
    }
}

/// What [`read_with`] reads from.
pub(crate) type Reading<'a> = DecoderImpl<
    SliceReader<'a>,
    Configuration<LittleEndian, Varint, Limit<{ usize::MAX >> 25 }>>,
    (),
>;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{Error, decode, encode, split_number, standard};

    #[test]
    fn what_does_not_decode_is_told_in_words_of_this_crate() {
        let bytes = encode(&300_u64).expect("a number encodes");
        assert_eq!(decode::<u64>(&bytes), Ok(300));
        for wrong in [&bytes[..2], &[bytes.as_slice(), &[0]].concat()] {
            let error = decode::<u64>(wrong).expect_err("too few or too many");
            assert!(matches!(error, Error::Undecodable(_)), "{error:?}");
        }
    }

    #[test]
    fn numbers_are_split_off_as_bincode_reads_them() {
        let mut cases: Vec<Vec<u8>> = Vec::new();
        for first in 0..=u8::MAX {
            for fill in [0, 1, 0xff] {
                cases.extend((0..12).map(|len| {
                    let mut bytes = alloc::vec![first];
                    bytes.resize(1 + len, fill);
                    bytes
                }));
            }
        }
        cases.push(Vec::new());
        for bytes in cases {
            let theirs = bincode::decode_from_slice::<u64, _>(&bytes, standard());
            let theirs = theirs.ok().map(|(number, read)| (number, &bytes[read..]));
            assert_eq!(split_number(&bytes), theirs, "{bytes:?}");
        }
    }
}
