//! What a message or a note is about.

use bincode::{Decode, Encode};

use crate::id::{DispatchNo, EnvelopeNo};

/// A dispatch or an envelope that something is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ref {
    /// A dispatch.
    Dispatch(DispatchNo),
    /// An envelope.
    Envelope(EnvelopeNo),
}

impl core::fmt::Display for Ref {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Dispatch(d) => d.fmt(f),
            Self::Envelope(e) => e.fmt(f),
        }
    }
}

impl Encode for Ref {
    fn encode<E: bincode::enc::Encoder>(
        &self,
        encoder: &mut E,
    ) -> Result<(), bincode::error::EncodeError> {
        let (kind, number): (u8, u64) = match self {
            Self::Dispatch(d) => (1, d.0),
            Self::Envelope(e) => (2, e.0),
        };
        kind.encode(encoder)?;
        number.encode(encoder)
    }
}

impl<C> Decode<C> for Ref {
    fn decode<D: bincode::de::Decoder<Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let kind = <u8 as Decode<C>>::decode(decoder)?;
        let number = <u64 as Decode<C>>::decode(decoder)?;
        match kind {
            1 => Ok(Self::Dispatch(DispatchNo(number))),
            2 => Ok(Self::Envelope(EnvelopeNo(number))),
            _ => Err(bincode::error::DecodeError::Other("unknown reference")),
        }
    }
}

impl<'de, C> bincode::BorrowDecode<'de, C> for Ref {
    fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        Decode::decode(decoder)
    }
}
