//! Envelopes as events change them.

use crate::event::{Acknowledged, Delivered, Sent};
use crate::id::EnvelopeNo;
use crate::state::{CancelReason, EnvelopeKind, EnvelopeRow, EnvelopeState, NoticeKind, State};

use super::Fold;
use super::work::GAP_MAX;

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

/// Puts an envelope into its session's inbox under a number not given yet.
pub(super) fn open(state: &mut State, number: EnvelopeNo, row: EnvelopeRow) {
    let index = number.index();
    let taken = state.envelope(number).is_some() || index > state.envelopes.len() + GAP_MAX;
    if number.0 == 0 || taken || state.session(row.session).is_none() {
        return;
    }
    if state.envelopes.len() <= index {
        state.envelopes.resize(index + 1, EnvelopeRow::GAP);
    }
    state.envelopes[index] = row;
    state.sessions[row.session.index()].inbox.push(number);
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
        .filter(|r| r.is_open())
    else {
        return;
    };
    row.state = to;
    row.reason = reason;
    let owner = row.session;
    if let Some(session) = state.sessions.get_mut(owner.index()) {
        session.inbox.retain(|e| *e != number);
    }
}
