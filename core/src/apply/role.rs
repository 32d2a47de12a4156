//! Roles as events change them.

use alloc::vec::Vec;

use crate::event::{RoleCleared, RoleLapsed, RoleReleased, RoleTaken};
use crate::id::{EnvelopeNo, RoleNo, SessionNo};
use crate::limits::ROLE_PAST_MAX;
use crate::state::{Holding, NoticeKind, Role, State};

use super::{Fold, mail};

pub(super) fn taken(fold: Fold<'_>, state: &mut State, e: &RoleTaken) {
    let holding = Some(Holding {
        session: e.session,
        since: fold.at,
        process: e.process,
    });
    if let Some(role) = state.roles.get_mut(e.role.index()) {
        role.generation = e.generation;
        role.holding = holding;
        return;
    }
    let name = fold.symbol(state, e.name);
    let scope = e.scope.map(|text| fold.symbol(state, *text));
    state.roles.push(Role {
        name,
        scope,
        generation: e.generation,
        holding,
        past: Vec::new(),
    });
    state.index_role(name, e.role);
}

pub(super) fn lapsed(fold: Fold<'_>, state: &mut State, e: &RoleLapsed) {
    if let Some(role) = state.roles.get_mut(e.role.index()) {
        role.generation = e.generation;
        end(role);
        tell(fold, state, e.session, e.notice, NoticeKind::RoleLapsed);
    }
}

pub(super) fn released(state: &mut State, e: &RoleReleased) {
    if let Some(role) = state.roles.get_mut(e.role.index()) {
        end(role);
    }
}

pub(super) fn cleared(fold: Fold<'_>, state: &mut State, e: &RoleCleared) {
    if let Some(role) = state.roles.get_mut(e.role.index()) {
        role.generation = e.generation;
        end(role);
        tell(fold, state, e.session, e.notice, NoticeKind::RoleCleared);
    }
}

/// The roles of a session that is over end with it.
pub(super) fn session_ended(state: &mut State, session: SessionNo) {
    let held: Vec<RoleNo> = state.roles_of(session).collect();
    for number in held {
        if let Some(role) = state.roles.get_mut(number.index()) {
            end(role);
        }
    }
}

/// The roles of a tree that is given back end with it.
pub(super) fn tree_ended(state: &mut State, root: SessionNo) {
    let sessions = &state.sessions;
    let of_tree = |holding: &Holding| {
        let session = sessions.get(holding.session.index());
        session.is_some_and(|s| s.root == root)
    };
    let roles = state.roles.iter_mut();
    for role in roles.filter(|role| role.holding.as_ref().is_some_and(of_tree)) {
        end(role);
    }
}

/// Nobody holds it; who did is remembered.
fn end(role: &mut Role) {
    let Some(holding) = role.holding.take() else {
        return;
    };
    role.past.retain(|session| *session != holding.session);
    if role.past.len() == ROLE_PAST_MAX {
        role.past.remove(0);
    }
    role.past.push(holding.session);
}

/// Whoever lost a role finds out who took it away, and why: the notice's frame says it.
fn tell(
    fold: Fold<'_>,
    state: &mut State,
    session: SessionNo,
    number: EnvelopeNo,
    notice: NoticeKind,
) {
    let Some(generation) = state.session(session).map(|s| s.generation) else {
        return;
    };
    let row = mail::notice(fold, (session, generation), notice, None, None);
    mail::open(state, number, row);
}
