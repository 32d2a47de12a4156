//! The fence a second time, at fold time: honest writers are checked when they append, arbitrary bytes when
//! they are read (F2).

use crate::event::{Entry, Event, Fence, FenceKind};
use crate::id::SessionNo;
use crate::state::State;

/// Whether an entry may be honoured at its position: its fence names what is current there, and its events
/// are ones that such a fence carries. An entry that fails is applied by no projection.
#[must_use]
pub fn stands(state: &State, entry: &Entry) -> bool {
    fence_stands(state, &entry.fence)
        && entry.events.iter().all(|e| carried(state, &entry.fence, e))
}

fn fence_stands(state: &State, fence: &Fence) -> bool {
    match (fence.kind, fence.session, fence.named, fence.granted) {
        (FenceKind::None, None, None, None) => true,
        (FenceKind::Write, Some(session), Some(named), None) => state.check(session, named).is_ok(),
        (FenceKind::Grant, Some(session), named, Some(granted)) => {
            match (state.session(session), named) {
                (None, None) => session.index() == state.sessions.len() && granted.number == 1,
                (Some(known), Some(named)) => {
                    named == known.generation
                        && known.generation.next(state.incarnation) == Some(granted)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether an event is one that this fence can carry.
fn carried(state: &State, fence: &Fence, event: &Event) -> bool {
    let by = |session: SessionNo| fence.kind == FenceKind::Write && fence.session == Some(session);
    let by_or_operator = |session: Option<SessionNo>| match session {
        Some(session) => by(session),
        None => fence.kind == FenceKind::None,
    };
    let owner = |dispatch| state.dispatch(dispatch).map(|row| row.session);
    match event {
        Event::Registered(e) => granted(fence, e.session, e.generation),
        Event::Adopted(e) => granted(fence, e.session, e.generation),
        Event::Carried(e) => granted(fence, e.session, e.generation),
        Event::Fenced(e) => granted(fence, e.session, e.below),
        Event::Retired(e) => e.forced || by(e.session),
        Event::Dispatched(e) => by_or_operator(e.from),
        Event::Sent(e) => by_or_operator(e.from),
        Event::Accepted(e) => by(e.session),
        Event::Declined(e) => owner(e.dispatch).is_some_and(by),
        Event::Reported(e) => owner(e.dispatch).is_some_and(by),
        Event::Noted(e) => by(e.session),
        Event::Observed(e) => by(e.session),
        Event::Delivered(e) => state
            .envelope(e.envelope)
            .is_some_and(|row| by(row.session)),
        Event::Acknowledged(e) => state
            .envelope(e.envelope)
            .is_some_and(|row| by(row.session)),
        Event::Joined(_) => fence.kind == FenceKind::Write,
        // Whose work it is decides between token and operator; an audit judges that from the input.
        Event::Cancelled(_) | Event::AssignmentFailed(_) => fence.kind != FenceKind::Grant,
        Event::Refused(_)
        | Event::RefusalsCounted(_)
        | Event::IncarnationRaised(_)
        | Event::HomeAccepted(_)
        | Event::FindingAccepted(_) => fence.kind == FenceKind::None,
    }
}

fn granted(fence: &Fence, session: SessionNo, generation: crate::generation::Generation) -> bool {
    fence.kind == FenceKind::Grant
        && fence.session == Some(session)
        && fence.granted == Some(generation)
}
