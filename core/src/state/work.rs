//! Dispatches: a fixed row for each that ever was, and the rest while it is live.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::codec::plain::{self, fields};
use crate::generation::Generation;
use crate::id::{EnvelopeNo, Moment, Position, SessionNo, Time};
use crate::path::Scope;
use crate::text::{BodyId, Symbol, Text};

use super::paged::Item;
use super::table::{Row, pack_words, unpack_words};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
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
    pub item: Text,
    /// A line about it.
    pub title: Option<Text>,
    /// By which session; `None`: by an operator.
    pub from: Option<SessionNo>,
    /// Declared write scopes.
    pub writes: Vec<Scope<Symbol>>,
    /// By which session it was handed over, if it was.
    pub handed_by: Option<SessionNo>,
    /// Its work envelope.
    pub envelope: EnvelopeNo,
    /// What to do.
    pub body: Option<Located>,
}

fields! {
    DispatchRow {
        session: SessionNo,
        generation: Generation,
        state: DispatchState,
        opened: Moment,
        since: Moment,
    }
}

impl Item for DispatchRow {
    const ROWS: usize = 32;

    fn read_page(bytes: &[u8]) -> Option<Vec<Self>> {
        plain::page(bytes)
    }

    fn blank() -> Self {
        Self::UNUSED
    }
}

impl Row for DispatchRow {
    const BYTES: usize = 64;

    fn pack(&self, out: &mut Vec<u8>) {
        let words = [
            self.session.0,
            self.generation.incarnation,
            self.generation.number,
            u64::from(self.state.number()),
            self.opened.position.0,
            self.opened.time.0.cast_unsigned(),
            self.since.position.0,
            self.since.time.0.cast_unsigned(),
        ];
        pack_words(&words, out);
    }

    fn unpack(bytes: &[u8]) -> Option<Self> {
        let [session, incarnation, number, state, op, ot, sp, st] = unpack_words(bytes);
        Some(Self {
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
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::command::Ref;
    use crate::id::{DispatchNo, GrantNo};
    use crate::state::grants::GrantRow;
    use crate::state::{EnvelopeRow, GrantNote, Granted};

    fn held<T: Item + PartialEq + core::fmt::Debug>(page: Vec<T>) {
        let bytes = crate::codec::encode(&page).expect("it encodes");
        assert_eq!(T::read_page(&bytes).as_ref(), Some(&page));
        assert_eq!(crate::codec::decode(&bytes), Ok(page));
        assert!((0..bytes.len()).all(|cut| T::read_page(&bytes[..cut]).is_none()));
        assert!(T::read_page(&[&bytes[..], &[0]].concat()).is_none());
    }

    /// Both ways of reading a page of rows read the same; bytes cut short are none.
    #[test]
    fn a_page_of_rows_is_read_as_any_other_value_is() {
        let at = Moment {
            position: Position(1 << 40),
            time: Time(-300),
        };
        let generation = Generation {
            incarnation: 1 << 20,
            number: 70_000,
        };
        let dispatch = DispatchRow {
            session: SessionNo(300),
            generation,
            state: DispatchState::Blocked,
            opened: at,
            since: at,
        };
        held(vec![DispatchRow::UNUSED, dispatch]);
        let envelope = EnvelopeRow {
            from: Some(SessionNo(1)),
            dispatch: Some(DispatchNo(251)),
            re: Some(Ref::Envelope(EnvelopeNo(65_536))),
            position: at.position,
            body: Some(BodyId(3)),
            ..EnvelopeRow::UNUSED
        };
        let re = Some(Ref::Dispatch(DispatchNo(7)));
        held(vec![
            EnvelopeRow::UNUSED,
            envelope,
            EnvelopeRow { re, ..envelope },
        ]);
        let note = GrantNote {
            generation,
            how: Granted::RolledBack,
            at,
            actor: Some(Symbol::of(9)),
            reason: None,
        };
        let before = Some(GrantNo(0));
        held(vec![GrantRow { note, before }, GrantRow::blank()]);
        held(vec![None, Some(SessionNo(u64::MAX)), Some(SessionNo(0))]);
    }
}
