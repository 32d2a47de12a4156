//! Where frames of the log were lost, as far as the log says so.

use alloc::vec::Vec;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use crate::id::Position;

use super::State;

/// A stretch of the log in which no fence can be proven: what a lost frame granted or ended is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Unproven {
    /// The first position that was lost.
    pub since: Position,
    /// The incarnation that ends the stretch: that of the newest salvage which lost a position in it.
    pub life: u64,
    /// Where it ended; what stands there is proven again.
    pub until: Option<Position>,
}

impl State {
    /// Whether the newest position stands behind a loss, and the incarnation was not raised since.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        self.unproven.last().is_some_and(|u| u.until.is_none())
    }

    /// Whether who held what at that position can be proven from the log.
    #[must_use]
    pub fn is_proven_at(&self, position: Position) -> bool {
        let covers =
            |u: &Unproven| u.since <= position && u.until.is_none_or(|until| position < until);
        !self.unproven.iter().any(covers)
    }

    /// A position was lost; the stretch behind it ends with the life `life`.
    pub(crate) fn lose(&mut self, position: Position, life: u64) {
        match self.unproven.last_mut().filter(|u| u.until.is_none()) {
            Some(open) => open.life = open.life.max(life),
            None => self.unproven.push(Unproven {
                since: position,
                life,
                until: None,
            }),
        }
    }

    /// A life began: it ends the stretch that it was begun for.
    pub(crate) fn prove(&mut self, incarnation: u64, at: Position) {
        if let Some(open) = self.unproven.last_mut()
            && open.until.is_none()
            && open.life <= incarnation
        {
            open.until = Some(at);
        }
    }
}

/// Says that stretches follow. What else can stand here is the 0 or 1 of an option.
const FOLLOWS: u8 = 2;

/// Writes the stretches, or nothing where there is none: the state of a log that lost nothing is written as it
/// always was.
pub(super) fn encode<E: Encoder>(list: &[Unproven], encoder: &mut E) -> Result<(), EncodeError> {
    if list.is_empty() {
        return Ok(());
    }
    FOLLOWS.encode(encoder)?;
    list.encode(encoder)
}

/// Reads the stretches and the option behind them.
pub(super) fn decode<D: Decoder>(
    decoder: &mut D,
) -> Result<(Vec<Unproven>, Option<u16>), DecodeError> {
    let mut list = Vec::new();
    let mut tag = u8::decode(decoder)?;
    if tag == FOLLOWS {
        list = Vec::decode(decoder)?;
        tag = u8::decode(decoder)?;
    }
    match tag {
        0 => Ok((list, None)),
        1 => Ok((list, Some(Decode::decode(decoder)?))),
        _ => Err(DecodeError::Other("neither a list of losses nor an option")),
    }
}
