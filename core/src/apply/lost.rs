//! Behind a loss: what an entry takes for granted there, the state takes for granted too, so that every later number
//! means what it meant (`docs/recovery.md`). The raise at the end of a salvage then fences all of it.

use alloc::format;
use alloc::vec::Vec;

use crate::decide::{Named, named};
use crate::event::{Entry, Event, FenceKind, PositionLost, SessionRegained};
use crate::generation::Generation;
use crate::id::{DispatchNo, EnvelopeNo, Moment, RefusalNo, RoleNo, SessionNo};
use crate::role::RoleScope;
use crate::state::{
    CancelReason, DispatchRow, DispatchState, EnvelopeRow, EnvelopeState, RefusalRecord, Role,
    Session, State,
};
use crate::text::Symbol;

use super::{Fold, store, work};

pub(super) fn lost(fold: Fold<'_>, state: &mut State, e: &PositionLost) {
    state.lose(fold.at.position, e.life);
}

/// A session that a lost frame introduced is known by its name again.
pub(super) fn regained(fold: Fold<'_>, state: &mut State, e: &SessionRegained) {
    sessions(fold.at, state, e.session.0 + 1);
    let name = fold.symbol(state, e.name);
    call(state, e.session, name);
}

/// Brings the state to where the entry can have been decided: every number before its own is given, to a row that
/// stands for what is lost; its life has begun; its session has the generation that it names.
pub(super) fn make_room(fold: Fold<'_>, state: &mut State, entry: &Entry) {
    if entry.incarnation > state.incarnation {
        store::raise(fold, state, entry.incarnation, None);
    }
    if let Some(tree) = entry.fence.tree {
        sessions(fold.at, state, tree.root.0 + 1);
    }
    grant(fold.at, state, entry);
    for event in &entry.events {
        named(event, |number| match number {
            Named::Session(n) => sessions(fold.at, state, n.0 + 1),
            Named::NewDispatch(n) => dispatches(fold.at, state, n),
            Named::Dispatch(n) => dispatches(fold.at, state, DispatchNo(n.0 + 1)),
            Named::NewEnvelope(n) => envelopes(fold.at, state, n),
            Named::Envelope(n) => envelopes(fold.at, state, EnvelopeNo(n.0 + 1)),
            Named::NewRole(n) => roles(state, n),
            Named::Role(n) => roles(state, RoleNo(n.0 + 1)),
            Named::NewSession(n) => sessions(fold.at, state, n.0),
            Named::Refusal(n) => refusals(fold.at, state, n),
        });
        meet(fold, state, event);
    }
}

/// What stands in the way of an event ended in a frame that is lost.
fn meet(fold: Fold<'_>, state: &mut State, event: &Event) {
    match event {
        Event::Dispatched(e) => {
            if let Some(before) = state.live_dispatch_of(fold.texts.get(e.item)) {
                let reason = CancelReason::DispatchEnded;
                work::close(fold, state, before, DispatchState::Fenced, reason);
            }
        }
        Event::Registered(e) => {
            let name = fold.symbol(state, e.name);
            if state.session(e.session).is_none() {
                free(state, name, e.session);
            } else {
                call(state, e.session, name);
            }
        }
        Event::Renamed(e) => {
            let name = fold.symbol(state, e.name);
            free(state, name, e.session);
        }
        _ => {}
    }
}

/// The session of the fence is there, and at the generation that the fence names.
fn grant(at: Moment, state: &mut State, entry: &Entry) {
    let Some(number) = entry.fence.session else {
        return;
    };
    let is_new = entry.fence.kind == FenceKind::Grant && entry.fence.named.is_none();
    sessions(at, state, number.0 + u64::from(!is_new));
    let (Some(session), Some(named)) = (state.sessions.get_mut(number.index()), entry.fence.named)
    else {
        return;
    };
    if session.generation < named {
        // Whoever it was granted to stands in a frame that is lost.
        session.generation = named;
        session.holder = None;
        session.retired = false;
    }
}

/// Fills up to `count` sessions.
fn sessions(at: Moment, state: &mut State, count: u64) {
    while (state.sessions.len() as u64) < count {
        let number = SessionNo(state.sessions.len() as u64);
        let name = nameless(state, number);
        let session = Session::unheld(name, number, at, state.incarnation);
        state.sessions.push(session);
        state.index_name(name, number);
    }
}

/// A name for a session whose own is lost, that no other has.
fn nameless(state: &mut State, number: SessionNo) -> Symbol {
    let mut name = format!("lost:{number}");
    while state.find(name.as_bytes()).is_some() {
        name.push('+');
    }
    state.pool.intern(name.as_bytes())
}

/// A session gets the name that a frame has for it, unless it has one that was not made up.
fn call(state: &mut State, number: SessionNo, name: Symbol) {
    let Some(session) = state.session(number) else {
        return;
    };
    let made_up = format!("lost:{number}");
    let made_up = state.pool.get(session.name).starts_with(made_up.as_bytes());
    if !made_up || session.name == name {
        return;
    }
    free(state, name, number);
    let old = core::mem::replace(&mut state.sessions[number.index()].name, name);
    state.forget_name(old);
    state.index_name(name, number);
}

/// Takes a name off the session that has it still: it lost it in a frame that is lost.
fn free(state: &mut State, name: Symbol, to: SessionNo) {
    let Some(holder) = state.find_symbol(name).filter(|holder| *holder != to) else {
        return;
    };
    state.forget_name(name);
    let session = &mut state.sessions[holder.index()];
    session.aliases.retain(|alias| *alias != name);
    if session.name == name {
        let other = nameless(state, holder);
        state.sessions[holder.index()].name = other;
        state.index_name(other, holder);
    }
}

/// Gives every number before `next` to a dispatch.
fn dispatches(at: Moment, state: &mut State, next: DispatchNo) {
    while state.next_dispatch() < next {
        let row = DispatchRow {
            state: DispatchState::Fenced,
            opened: at,
            since: at,
            ..DispatchRow::UNUSED
        };
        if state.dispatches.is_empty() {
            state.dispatches.push(DispatchRow::UNUSED);
        }
        state.dispatches.push(row);
    }
}

fn envelopes(at: Moment, state: &mut State, next: EnvelopeNo) {
    while state.next_envelope() < next {
        let row = EnvelopeRow {
            state: EnvelopeState::Cancelled,
            reason: CancelReason::FencedGeneration,
            position: at.position,
            ..EnvelopeRow::UNUSED
        };
        if state.envelopes.is_empty() {
            state.envelopes.push(EnvelopeRow::UNUSED);
        }
        state.envelopes.push(row);
    }
}

/// Gives every number before `next` to a record.
fn refusals(at: Moment, state: &mut State, next: RefusalNo) {
    let subject = state.pool.intern(b"");
    while state.next_refusal() < next {
        let number = state.next_refusal();
        let record = RefusalRecord {
            code: 0,
            session: None,
            presented: None,
            current: None,
            command: u16::MAX,
            subject,
            first: at,
            last: at,
            count: 0,
            bodies: Vec::new(),
            body_bytes: 0,
            slot: 0,
        };
        if state.refusals.is_empty() {
            state.refusals.push(record.clone());
        }
        state.refusals.push(record);
        state.touch_record(number);
    }
}

fn roles(state: &mut State, next: RoleNo) {
    while state.next_role() < next {
        let number = state.next_role();
        let name = state.pool.intern(format!("lost:{number}").as_bytes());
        let text = state.pool.intern(b"lost");
        state.roles.push(Role {
            name,
            scope: RoleScope { text, place: None },
            generation: Generation::first(state.incarnation),
            holding: None,
            past: Vec::new(),
        });
        state.index_role(name, number);
    }
}
