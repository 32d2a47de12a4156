//! Dispatches as events change them.

use alloc::vec::Vec;

use crate::command::Outcome;
use crate::disclosure::shared;
use crate::event::{
    Accepted, AssignmentFailed, Cancelled, Declined, Dispatched, HandedOver, Joined, Reported,
};
use crate::id::{DispatchNo, EnvelopeNo, SessionNo};
use crate::state::{
    CancelReason, Dispatch, DispatchRow, DispatchState, EnvelopeKind, EnvelopeRow, EnvelopeState,
    Located, NoticeKind, State,
};

use super::{Fold, mail, policy};

pub(super) fn dispatched(fold: Fold<'_>, state: &mut State, e: &Dispatched) {
    let dispatch = Dispatch {
        item: fold.text(e.item),
        title: e.title.map(|t| fold.text(t)),
        from: e.from,
        writes: e.writes.iter().map(|w| fold.scope(state, w)).collect(),
        handed_by: None,
        envelope: e.envelope,
        body: e.body.map(|body| Located {
            position: fold.at.position,
            body,
        }),
    };
    let row = DispatchRow {
        session: e.session,
        generation: e.generation,
        state: DispatchState::Queued,
        opened: fold.at,
        since: fold.at,
    };
    let number = e.dispatch;
    if number != state.next_dispatch() {
        return;
    }
    if state.dispatches.is_empty() {
        // Number 0 is not used.
        state.dispatches.push(DispatchRow::UNUSED);
    }
    state.dispatches.push(row);
    // Who gives the item again has seen to what was in its way.
    state.blocked.retain(|_, item| *item != dispatch.item);
    state.index_item(dispatch.item.clone(), number);
    let envelope = EnvelopeRow {
        session: e.session,
        generation: e.generation,
        kind: EnvelopeKind::Work,
        state: EnvelopeState::Pending,
        reason: CancelReason::None,
        notice: NoticeKind::None,
        from: e.from,
        dispatch: Some(number),
        re: None,
        position: fold.at.position,
        body: e.body,
    };
    state.live.insert(number, dispatch);
    if let Some(session) = state.sessions.get_mut(e.session.index()) {
        session.open.push(number);
    }
    mail::open(state, e.envelope, envelope);
}

pub(super) fn accepted(fold: Fold<'_>, state: &mut State, e: &Accepted) {
    enter(fold, state, e.dispatch, DispatchState::Accepted);
}

fn enter(fold: Fold<'_>, state: &mut State, number: DispatchNo, to: DispatchState) {
    if !state.live.contains_key(&number) {
        return;
    }
    if let Some(row) = state.dispatches.get_mut(number.index()) {
        row.state = to;
        row.since = fold.at;
    }
}

/// Each session that was disclosed to the newcomer gets a notice.
pub(super) fn joined(fold: Fold<'_>, state: &mut State, e: &Joined) {
    let (Some(dispatch), Some(row)) = (state.live.get(&e.dispatch), state.dispatch(e.dispatch))
    else {
        return;
    };
    let newcomer = row.session;
    let list = shared(state, Some(newcomer), &dispatch.writes);
    let incumbents: Vec<SessionNo> = list
        .iter()
        .filter(|s| s.former.is_none())
        .map(|s| s.session)
        .collect();
    policy::shown_list(fold, state, newcomer, &list);
    for (number, session) in (e.first_notice.0..).zip(incumbents) {
        let Some(generation) = state.session(session).map(|s| s.generation) else {
            continue;
        };
        let (to, kind) = ((session, generation), NoticeKind::Newcomer);
        let row = mail::notice(fold, to, kind, Some(newcomer), Some(e.dispatch));
        mail::open(state, EnvelopeNo(number), row);
    }
}

pub(super) fn declined(fold: Fold<'_>, state: &mut State, e: &Declined) {
    close(
        fold,
        state,
        e.dispatch,
        DispatchState::Declined,
        CancelReason::None,
    );
}

pub(super) fn reported(fold: Fold<'_>, state: &mut State, e: &Reported) {
    let to = match e.outcome {
        Outcome::Done => DispatchState::Done,
        Outcome::Failed => DispatchState::Failed,
        Outcome::Blocked => DispatchState::Blocked,
    };
    if e.outcome == Outcome::Blocked
        && let Some(dispatch) = state.live.get(&e.dispatch)
    {
        state.blocked.insert(e.dispatch, dispatch.item.clone());
    }
    close(fold, state, e.dispatch, to, CancelReason::None);
}

/// A dispatch goes over to another session as it is, with an envelope of its own there.
pub(super) fn handed_over(fold: Fold<'_>, state: &mut State, e: &HandedOver) {
    let Some(dispatch) = state.live.get_mut(&e.dispatch) else {
        return;
    };
    dispatch.handed_by = Some(e.from);
    let old = core::mem::replace(&mut dispatch.envelope, e.envelope);
    if let Some(row) = state.dispatches.get_mut(e.dispatch.index()) {
        row.session = e.session;
        row.generation = e.generation;
        row.since = fold.at;
    }
    for (session, has) in [(e.from, false), (e.session, true)] {
        if let Some(session) = state.sessions.get_mut(session.index()) {
            session.open.retain(|d| *d != e.dispatch);
            session.open.extend(has.then_some(e.dispatch));
        }
    }
    mail::close(
        state,
        old,
        EnvelopeState::Cancelled,
        CancelReason::HandedOver,
    );
    let row = EnvelopeRow {
        session: e.session,
        generation: e.generation,
        kind: EnvelopeKind::Work,
        state: EnvelopeState::Pending,
        reason: CancelReason::None,
        notice: NoticeKind::None,
        from: Some(e.from),
        dispatch: Some(e.dispatch),
        re: None,
        position: fold.at.position,
        body: None,
    };
    mail::open(state, e.envelope, row);
}

pub(super) fn cancelled(fold: Fold<'_>, state: &mut State, e: &Cancelled) {
    close(
        fold,
        state,
        e.dispatch,
        DispatchState::Cancelled,
        CancelReason::DispatchEnded,
    );
}

pub(super) fn assignment_failed(fold: Fold<'_>, state: &mut State, e: &AssignmentFailed) {
    let Some(row) = state.dispatch(e.dispatch) else {
        return;
    };
    if !row.state.is_live() {
        return;
    }
    close(
        fold,
        state,
        e.dispatch,
        DispatchState::Failed,
        CancelReason::DispatchEnded,
    );
    let (to, kind) = ((row.session, row.generation), NoticeKind::AssignmentFailed);
    let notice = mail::notice(fold, to, kind, None, Some(e.dispatch));
    mail::open(state, e.notice, notice);
}

/// Ends a live dispatch: its item is free and its binding over. Its work envelope ends with it: read, when
/// its session answered (no reason), else cancelled.
pub(super) fn close(
    fold: Fold<'_>,
    state: &mut State,
    number: DispatchNo,
    to: DispatchState,
    reason: CancelReason,
) {
    let Some(dispatch) = state.live.remove(&number) else {
        return;
    };
    state.free_item(&dispatch.item);
    if let Some(row) = state.dispatches.get_mut(number.index()) {
        row.state = to;
        row.since = fold.at;
        if let Some(session) = state.sessions.get_mut(row.session.index()) {
            session.open.retain(|d| *d != number);
        }
    }
    let envelope = match reason {
        CancelReason::None => EnvelopeState::Acknowledged,
        _ => EnvelopeState::Cancelled,
    };
    mail::close(state, dispatch.envelope, envelope, reason);
}
