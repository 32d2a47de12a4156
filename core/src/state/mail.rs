//! Envelopes: a fixed row for each that ever was.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::codec::plain::{self, fields};
use crate::command::Ref;
use crate::generation::Generation;
use crate::id::{DispatchNo, EnvelopeNo, Position, SessionNo};
use crate::text::BodyId;

use super::paged::Item;
use super::table::{Row, pack_words, unpack_words};
use super::work::Located;

wire_enum! {
    /// What an envelope carries.
    pub enum EnvelopeKind {
        /// A dispatch.
        Work = 1 "work",
        /// Something to know; asks only for acknowledgement.
        Notice = 2 "notice",
        /// A message, or a reply.
        Message = 3 "message",
        /// A reply to an earlier generation, to be looked at again.
        Review = 4 "review",
    }
}

wire_enum! {
    /// Where an envelope stands.
    pub enum EnvelopeState {
        /// Waiting to be delivered.
        Pending = 1 "pending",
        /// Reached its session, not yet read.
        Delivered = 2 "delivered",
        /// Read.
        Acknowledged = 3 "acknowledged",
        /// Over, for a reason.
        Cancelled = 4 "cancelled",
    }
}

wire_enum! {
    /// Why an envelope was cancelled.
    pub enum CancelReason {
        /// Not cancelled.
        None = 0 "",
        /// A register fenced its generation.
        FencedGeneration = 1 "fenced-generation",
        /// Its session was retired.
        SessionRetired = 2 "session-retired",
        /// Its dispatch ended.
        DispatchEnded = 3 "dispatch-ended",
        /// The session that delegated its session was retired.
        ParentRetired = 4 "parent-retired",
        /// Its dispatch was handed over to another session.
        HandedOver = 10 "handed-over",
    }
}

wire_enum! {
    /// What a notice says.
    pub enum NoticeKind {
        /// Not a notice.
        None = 0 "",
        /// An assignment failed; nothing was claimed.
        AssignmentFailed = 1 "assignment-failed",
        /// Another session began to write where this one does.
        Newcomer = 2 "newcomer",
        /// Another session was branched from this one.
        Branched = 3 "branched",
        /// An operator took a role away.
        RoleCleared = 10 "role-cleared",
        /// A role was taken off a holder that was provably dead.
        RoleLapsed = 11 "role-lapsed",
    }
}

/// An envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct EnvelopeRow {
    /// To whom.
    pub session: SessionNo,
    /// The generation it is of: where it was issued, or carried to.
    pub generation: Generation,
    /// What it carries.
    pub kind: EnvelopeKind,
    /// Where it stands.
    pub state: EnvelopeState,
    /// Why it was cancelled.
    pub reason: CancelReason,
    /// What it says, if it is a notice.
    pub notice: NoticeKind,
    /// By which session.
    pub from: Option<SessionNo>,
    /// The dispatch it is about.
    pub dispatch: Option<DispatchNo>,
    /// What it answers, or the reply that it asks to review.
    pub re: Option<Ref>,
    /// The frame that issued it.
    pub position: Position,
    /// Its body in that frame.
    pub body: Option<BodyId>,
}

/// An envelope under its number.
pub type Envelope<'a> = (EnvelopeNo, &'a EnvelopeRow);

impl EnvelopeRow {
    /// What stands under number 0, which is not used.
    pub(crate) const UNUSED: Self = Self {
        session: SessionNo(u64::MAX),
        generation: Generation {
            incarnation: 0,
            number: 0,
        },
        kind: EnvelopeKind::Notice,
        state: EnvelopeState::Cancelled,
        reason: CancelReason::None,
        notice: NoticeKind::None,
        from: None,
        dispatch: None,
        re: None,
        position: Position(0),
        body: None,
    };

    /// Neither acknowledged nor cancelled.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(
            self.state,
            EnvelopeState::Pending | EnvelopeState::Delivered
        )
    }

    /// A message that answers something.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        self.kind == EnvelopeKind::Message && self.re.is_some()
    }

    /// Where its body stands in the log.
    #[must_use]
    pub fn located(&self) -> Option<Located> {
        self.body.map(|body| Located {
            position: self.position,
            body,
        })
    }
}

const ABSENT: u64 = u64::MAX;

fields! {
    EnvelopeRow {
        session: SessionNo,
        generation: Generation,
        kind: EnvelopeKind,
        state: EnvelopeState,
        reason: CancelReason,
        notice: NoticeKind,
        from: Option<SessionNo>,
        dispatch: Option<DispatchNo>,
        re: Option<Ref>,
        position: Position,
        body: Option<BodyId>,
    }
}

impl Item for EnvelopeRow {
    const ROWS: usize = 32;

    fn read_page(bytes: &[u8]) -> Option<Vec<Self>> {
        plain::page(bytes)
    }

    fn blank() -> Self {
        Self::UNUSED
    }
}

impl Row for EnvelopeRow {
    const BYTES: usize = 72;

    fn pack(&self, out: &mut Vec<u8>) {
        let (re_kind, re) = match self.re {
            None => (0, 0),
            Some(Ref::Dispatch(d)) => (1, d.0),
            Some(Ref::Envelope(e)) => (2, e.0),
        };
        let small = u64::from_le_bytes([
            self.kind.number(),
            self.state.number(),
            self.reason.number(),
            self.notice.number(),
            re_kind,
            0,
            0,
            0,
        ]);
        let words = [
            self.session.0,
            self.generation.incarnation,
            self.generation.number,
            small,
            self.from.map_or(ABSENT, |s| s.0),
            self.dispatch.map_or(ABSENT, |d| d.0),
            re,
            self.position.0,
            self.body.map_or(ABSENT, |b| u64::from(b.0)),
        ];
        pack_words(&words, out);
    }

    fn unpack(bytes: &[u8]) -> Option<Self> {
        let [
            session,
            incarnation,
            number,
            small,
            from,
            dispatch,
            re,
            position,
            body,
        ] = unpack_words(bytes);
        let [kind, state, reason, notice, re_kind, ..] = small.to_le_bytes();
        let given = |word: u64| (word != ABSENT).then_some(word);
        Some(Self {
            session: SessionNo(session),
            generation: Generation {
                incarnation,
                number,
            },
            kind: EnvelopeKind::from_number(kind)?,
            state: EnvelopeState::from_number(state)?,
            reason: CancelReason::from_number(reason)?,
            notice: NoticeKind::from_number(notice)?,
            from: given(from).map(SessionNo),
            dispatch: given(dispatch).map(DispatchNo),
            re: match re_kind {
                0 => None,
                1 => Some(Ref::Dispatch(DispatchNo(re))),
                2 => Some(Ref::Envelope(EnvelopeNo(re))),
                _ => return None,
            },
            position: Position(position),
            body: match given(body) {
                None => None,
                Some(number) => Some(BodyId(u32::try_from(number).ok()?)),
            },
        })
    }
}
