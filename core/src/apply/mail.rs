//! Envelopes as events change them.

use crate::event::{Acknowledged, Delivered, Sent};
use crate::generation::Generation;
use crate::id::{DispatchNo, EnvelopeNo, SessionNo};
use crate::state::{CancelReason, EnvelopeKind, EnvelopeRow, EnvelopeState, NoticeKind, State};
use crate::zoo::planted;

use super::Fold;

pub(super) fn sent(fold: Fold<'_>, state: &mut State, e: &Sent) {
    let row = EnvelopeRow {
        session: e.session,
        generation: e.generation,
        kind: EnvelopeKind::Message,
        state: EnvelopeState::Pending,
        reason: CancelReason::None,
        notice: NoticeKind::None,
        from: e.from,
        dispatch: None,
        re: e.re,
        position: fold.at.position,
        body: Some(e.body),
    };
    open(state, e.envelope, row);
}

/// A notice to a session under one of its generations. `from`: the session that it is about.
pub(super) fn notice(
    fold: Fold<'_>,
    (session, generation): (SessionNo, Generation),
    notice: NoticeKind,
    from: Option<SessionNo>,
    dispatch: Option<DispatchNo>,
) -> EnvelopeRow {
    EnvelopeRow {
        session,
        generation,
        kind: EnvelopeKind::Notice,
        state: EnvelopeState::Pending,
        reason: CancelReason::None,
        notice,
        from,
        dispatch,
        re: None,
        position: fold.at.position,
        body: None,
    }
}

/// Puts an envelope into its session's inbox under the next number.
pub(super) fn open(state: &mut State, number: EnvelopeNo, row: EnvelopeRow) {
    if number < state.next_envelope() && state.is_unproven() {
        return replace(state, number, row);
    }
    if number != state.next_envelope() || state.session(row.session).is_none() {
        return;
    }
    if let Some(session) = state.sessions.get_mut(row.session.index()) {
        session.inbox.push(number);
    }
    if state.envelopes.is_empty() {
        // Number 0 is not used.
        state.envelopes.push(EnvelopeRow::UNUSED);
    }
    state.envelopes.push(row);
}

/// Behind a loss, a notice may have been derived for a session that was in truth told nothing: what a frame says of its
/// number counts.
fn replace(state: &mut State, number: EnvelopeNo, row: EnvelopeRow) {
    let Some(known) = state.envelopes.get_mut(number.index()) else {
        return;
    };
    let former = core::mem::replace(known, row).session;
    if let Some(session) = state.sessions.get_mut(former.index()) {
        session.inbox.retain(|envelope| *envelope != number);
    }
    if let Some(session) = state.sessions.get_mut(row.session.index()) {
        session.inbox.push(number);
    }
}

pub(super) fn delivered(state: &mut State, e: &Delivered) {
    if let Some(row) = state
        .envelopes
        .get_mut(e.envelope.index())
        .filter(|r| r.is_open())
    {
        row.state = EnvelopeState::Delivered;
    }
}

pub(super) fn acknowledged(state: &mut State, e: &Acknowledged) {
    close(
        state,
        e.envelope,
        EnvelopeState::Acknowledged,
        CancelReason::None,
    );
}

/// Ends an open envelope.
pub(super) fn close(
    state: &mut State,
    number: EnvelopeNo,
    to: EnvelopeState,
    reason: CancelReason,
) {
    let Some(row) = state
        .envelopes
        .get_mut(number.index())
        .filter(|r| r.is_open() || planted("cancelled-again"))
    else {
        return;
    };
    row.state = to;
    row.reason = reason;
    let owner = row.session;
    if let Some(session) = state.sessions.get_mut(owner.index()) {
        session.inbox.retain(|e| *e != number);
        if to == EnvelopeState::Acknowledged {
            session.cursor = session.cursor.max(Some(number));
        }
    }
}
