//! Dispatches: a fixed row for each that ever was, and the rest while it is live.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::generation::Generation;
use crate::id::{EnvelopeNo, Moment, Position, SessionNo, Time};
use crate::path::Scope;
use crate::text::{BodyId, Symbol};

/// Where a body stands in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Located {
    /// The frame.
    pub position: Position,
    /// The body in it.
    pub body: BodyId,
}

wire_enum! {
    /// The state of a dispatch.
    pub enum DispatchState {
        /// Given, not yet accepted.
        Queued = 1 "queued",
        /// Accepted: its binding is active.
        Accepted = 2 "accepted",
        /// Turned down.
        Declined = 3 "declined",
        /// Reported done.
        Done = 4 "done",
        /// Reported failed, or failed before it was claimed.
        Failed = 5 "failed",
        /// Reported blocked.
        Blocked = 6 "blocked",
        /// Withdrawn, or its session was retired.
        Cancelled = 7 "cancelled",
        /// Ended by a register that fenced its generation.
        Fenced = 8 "fenced",
    }
}

impl DispatchState {
    /// Queued or accepted: it blocks its item.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::Queued | Self::Accepted)
    }
}

/// What stays of every dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DispatchRow {
    /// Its session.
    pub session: SessionNo,
    /// The generation it is of: where it was given, or carried to.
    pub generation: Generation,
    /// Its state.
    pub state: DispatchState,
    /// When it was given.
    pub opened: Moment,
    /// When it came into its state.
    pub since: Moment,
}

impl DispatchRow {
    /// What stands under number 0, which is not used.
    pub(crate) const UNUSED: Self = Self {
        session: SessionNo(u64::MAX),
        generation: Generation {
            incarnation: 0,
            number: 0,
        },
        state: DispatchState::Cancelled,
        opened: Moment {
            position: Position(0),
            time: Time(0),
        },
        since: Moment {
            position: Position(0),
            time: Time(0),
        },
    };
}

/// A live dispatch.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Dispatch {
    /// The item it gives.
    pub item: Symbol,
    /// A line about it.
    pub title: Option<Symbol>,
    /// By which session; `None`: by an operator.
    pub from: Option<SessionNo>,
    /// Declared write scopes.
    pub writes: Vec<Scope<Symbol>>,
    /// Its work envelope.
    pub envelope: EnvelopeNo,
    /// What to do.
    pub body: Option<Located>,
}

/// Rows are written at fixed width, so that a snapshot with millions of them loads at the speed of a copy.
pub(super) const ROW_BYTES: usize = 64;

fn to_bytes(row: &DispatchRow) -> [u8; ROW_BYTES] {
    let mut out = [0; ROW_BYTES];
    let words = [
        row.session.0,
        row.generation.incarnation,
        row.generation.number,
        u64::from(row.state.number()),
        row.opened.position.0,
        row.opened.time.0.cast_unsigned(),
        row.since.position.0,
        row.since.time.0.cast_unsigned(),
    ];
    for (slot, word) in out.chunks_exact_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn from_bytes(bytes: &[u8]) -> Option<DispatchRow> {
    let mut words = [0_u64; ROW_BYTES / 8];
    for (word, slot) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*slot);
    }
    let [session, incarnation, number, state, op, ot, sp, st] = words;
    Some(DispatchRow {
        session: SessionNo(session),
        generation: Generation {
            incarnation,
            number,
        },
        state: DispatchState::from_number(u8::try_from(state).ok()?)?,
        opened: Moment {
            position: Position(op),
            time: Time(ot.cast_signed()),
        },
        since: Moment {
            position: Position(sp),
            time: Time(st.cast_signed()),
        },
    })
}

pub(super) fn encode_rows<E: bincode::enc::Encoder>(
    rows: &[DispatchRow],
    encoder: &mut E,
) -> Result<(), bincode::error::EncodeError> {
    super::mail::encode_table(rows.iter().map(to_bytes), encoder)
}

pub(super) fn decode_rows<D: bincode::de::Decoder>(
    decoder: &mut D,
) -> Result<Vec<DispatchRow>, bincode::error::DecodeError> {
    super::mail::decode_table(ROW_BYTES, from_bytes, decoder)
}
