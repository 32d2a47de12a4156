//! What can be said of entries behind a loss: nothing of their fence, and of their numbers only that they can be.

use crate::event::{Entry, Event};
use crate::id::{DispatchNo, EnvelopeNo, RefusalNo, RoleNo, SessionNo};
use crate::limits::PEERS_MAX;
use crate::state::State;

use super::Look;

/// Whether an entry stands behind a loss, where its fence cannot be proven: lost frames may have granted what it
/// names. The life that a salvage begins is proven again.
#[must_use]
pub fn is_unproven(state: &State, entry: &Entry) -> bool {
    let Some(open) = state.unproven.last().filter(|u| u.until.is_none()) else {
        return false;
    };
    !matches!(entry.events.first(), Some(Event::IncarnationRaised(e)) if e.incarnation >= open.life)
}

/// A number that an event has.
#[derive(Clone, Copy)]
pub(crate) enum Named {
    Session(SessionNo),
    /// It gives this number to a session, unless it has it.
    NewSession(SessionNo),
    Dispatch(DispatchNo),
    /// It gives this number to a new dispatch.
    NewDispatch(DispatchNo),
    /// It gives this number, and those behind it as far as it needs them.
    NewEnvelope(EnvelopeNo),
    Envelope(EnvelopeNo),
    Role(RoleNo),
    NewRole(RoleNo),
    /// It names a record, or begins it.
    Refusal(RefusalNo),
}

/// Calls `f` with the numbers that an event gives or that have to be there for it to do what it says.
pub(crate) fn named(event: &Event, mut f: impl FnMut(Named)) {
    use Named as N;
    match event {
        Event::Registered(e) => f(N::NewSession(e.session)),
        Event::Dispatched(e) => {
            f(N::Session(e.session));
            f(N::NewDispatch(e.dispatch));
            f(N::NewEnvelope(e.envelope));
        }
        Event::Sent(e) => {
            f(N::Session(e.session));
            f(N::NewEnvelope(e.envelope));
        }
        Event::Fenced(e) => f(N::NewEnvelope(e.first_review)),
        Event::Accepted(e) => f(N::Dispatch(e.dispatch)),
        Event::Joined(e) => f(N::NewEnvelope(e.first_notice)),
        Event::Declined(e) => f(N::Dispatch(e.dispatch)),
        Event::Reported(e) => f(N::Dispatch(e.dispatch)),
        Event::Cancelled(e) => f(N::Dispatch(e.dispatch)),
        Event::AssignmentFailed(e) => {
            f(N::Dispatch(e.dispatch));
            f(N::NewEnvelope(e.notice));
        }
        Event::Delivered(e) => f(N::Envelope(e.envelope)),
        Event::Acknowledged(e) => f(N::Envelope(e.envelope)),
        Event::Refused(e) => f(N::Refusal(e.refusal)),
        Event::Delegated(e) => {
            f(N::Session(e.root));
            f(N::Session(e.parent));
        }
        Event::Claimed(e) => f(N::Session(e.root)),
        Event::Branched(e) => {
            f(N::Session(e.source));
            f(N::NewEnvelope(e.first_envelope));
        }
        Event::RoleTaken(e) => f(N::NewRole(e.role)),
        Event::RoleLapsed(e) => {
            f(N::Session(e.session));
            f(N::Role(e.role));
            f(N::NewEnvelope(e.notice));
        }
        Event::RoleReleased(e) => f(N::Role(e.role)),
        Event::RoleCleared(e) => {
            f(N::Session(e.session));
            f(N::Role(e.role));
            f(N::NewEnvelope(e.notice));
        }
        Event::HandedOver(e) => {
            f(N::Session(e.session));
            f(N::Dispatch(e.dispatch));
            f(N::NewEnvelope(e.envelope));
        }
        Event::Shown(e) => f(N::NewEnvelope(e.first_notice)),
        Event::Warned(e) => f(N::NewEnvelope(e.first_notice)),
        Event::SessionRegained(e) => f(N::Session(e.session)),
        Event::GrantSealed(e) => f(N::Session(e.session)),
        _ => {}
    }
}

impl Look<'_> {
    /// Whether so many sessions can have been introduced up to here: each has a frame of its own.
    pub(super) fn is_within(self, session: SessionNo) -> bool {
        session.0 < self.entry.at.position.0
    }

    /// Whether the entry can have been written here, whatever was lost: its life is not older than the one before
    /// it, and no number is greater than the frames up to here can have given.
    pub(super) fn is_plausible(self) -> bool {
        let frames = self.entry.at.position.0;
        let fence = self.entry.fence;
        let sessions = fence.session.into_iter().chain(fence.tree.map(|t| t.root));
        let mut all = self.entry.incarnation >= self.state.incarnation;
        all &= sessions.into_iter().all(|session| self.is_within(session));
        for event in &self.entry.events {
            named(event, |number| {
                all &= match number {
                    Named::Session(n) | Named::NewSession(n) => self.is_within(n),
                    Named::Dispatch(DispatchNo(n)) | Named::NewDispatch(DispatchNo(n)) => {
                        n <= frames
                    }
                    // A frame has at most one notice for each of those who are shown; reviews are of envelopes
                    // that were.
                    Named::Envelope(EnvelopeNo(n)) | Named::NewEnvelope(EnvelopeNo(n)) => {
                        n <= frames.saturating_mul(PEERS_MAX as u64)
                    }
                    Named::Role(RoleNo(n)) | Named::NewRole(RoleNo(n)) => n < frames,
                    Named::Refusal(RefusalNo(n)) => n <= frames,
                };
            });
        }
        all
    }
}
