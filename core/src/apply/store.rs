//! The store's own records.

use alloc::vec::Vec;

use crate::event::{IncarnationRaised, RefusalsCounted, Refused};
use crate::id::SessionNo;
use crate::state::{GrantNote, Granted, RefusalRecord, State, TreeStanding};

use super::{Fold, touch};

pub(super) fn refused(fold: Fold<'_>, state: &mut State, e: &Refused) {
    let subject = fold.symbol(state, e.subject);
    if e.refusal == state.next_refusal() {
        let record = RefusalRecord {
            code: e.code,
            session: e.session,
            presented: e.presented,
            current: e.current,
            command: e.command,
            subject,
            first: fold.at,
            last: fold.at,
            count: 0,
            bodies: Vec::new(),
            body_bytes: 0,
            slot: state.free_slot(),
        };
        if state.refusals.is_empty() {
            // Number 0 is not used.
            state.refusals.push(record.clone());
        }
        state.refusals.push(record);
    }
    let Some(record) = state.refusals.get_mut(e.refusal.index()) else {
        return;
    };
    record.count = record.count.saturating_add(1);
    record.last = fold.at;
    if let Some(digest) = e.body {
        record.bodies.push((digest, fold.at.position));
        record.body_bytes = record.body_bytes.saturating_add(e.body_bytes);
    }
    state.touch_record(e.refusal);
    // Whoever presented a token of the session was in contact with it; others were only after it.
    if let (Some(session), Some(_)) = (e.session, e.presented) {
        touch(state, session, fold.at);
    }
}

pub(super) fn counted(fold: Fold<'_>, state: &mut State, e: &RefusalsCounted) {
    if let Some(record) = state.refusals.get_mut(e.refusal.index()) {
        record.count = record.count.max(e.count);
        record.last = fold.at;
        state.touch_record(e.refusal);
    }
}

/// Every session is left at the same number in the new incarnation, with nobody holding it or its tree: whoever
/// adopts gets the next one, and every older token is stale.
pub(super) fn raised(fold: Fold<'_>, state: &mut State, e: &IncarnationRaised) {
    if e.incarnation <= state.incarnation {
        return;
    }
    let reason = fold.symbol(state, e.reason);
    raise(fold, state, e.incarnation, Some(reason));
    state.prove(e.incarnation, fold.at.position);
}

/// Begins a life of the log in the state.
pub(super) fn raise(
    fold: Fold<'_>,
    state: &mut State,
    incarnation: u64,
    reason: Option<crate::text::Symbol>,
) {
    state.incarnation = incarnation;
    for number in 0..state.sessions.len() {
        let session = &mut state.sessions[number];
        session.generation.incarnation = incarnation;
        session.holder = None;
        session.tree.claimer = None;
        session.tree.standing = TreeStanding::Unowned;
        session.tree.epoch = session.tree.epoch.next().unwrap_or(session.tree.epoch);
        let (open, inbox) = (session.open.clone(), session.inbox.clone());
        let generation = session.generation;
        let note = GrantNote {
            generation,
            how: Granted::Raised,
            at: fold.at,
            actor: None,
            reason,
        };
        state.note_grant(SessionNo(number as u64), note);
        for dispatch in open {
            if let Some(row) = state.dispatches.get_mut(dispatch.index()) {
                row.generation = generation;
            }
        }
        for envelope in inbox {
            if let Some(row) = state.envelopes.get_mut(envelope.index()) {
                row.generation = generation;
            }
        }
    }
}
