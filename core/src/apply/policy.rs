//! Policies and disclosures as events change them.

use crate::disclosure::{Peer, Shared};
use crate::event::PolicySet;
use crate::generation::Generation;
use crate::id::{EnvelopeNo, SessionNo};
use crate::limits::{POLICIES_MAX, TOLD_MAX};
use crate::path::same_place;
use crate::state::{NoticeKind, Policy, State, Told};

use super::{Fold, mail};

pub(super) fn set(fold: Fold<'_>, state: &mut State, e: &PolicySet) {
    let scope = fold.scope(state, &e.scope);
    let pool = &state.pool;
    let new = scope.map(|s| pool.get(*s));
    let policies = &mut state.policies;
    policies.retain(|known| !same_place(&known.scope.map(|s| pool.get(*s)), &new));
    if policies.len() == POLICIES_MAX {
        policies.remove(0);
    }
    policies.push(Policy {
        scope,
        rule: e.rule,
        shared: e.shared,
        at: fold.at,
    });
}

/// The holder of a session was shown others. Those of them who are there now and were not shown this one are told
/// that it came.
pub(super) fn shown(
    fold: Fold<'_>,
    state: &mut State,
    session: SessionNo,
    peers: &[Peer],
    first_notice: EnvelopeNo,
) {
    let mut notice = first_notice;
    for peer in peers {
        tell(fold, state, session, peer.session, peer.generation);
        let Some(own) = state.session(session).map(|s| s.generation) else {
            return;
        };
        let unaware = state.session(peer.session).is_some_and(|s| {
            !s.retired && s.generation == peer.generation && !s.knows(session, own)
        });
        if !unaware || peer.session == session {
            continue;
        }
        let (to, kind) = ((peer.session, peer.generation), NoticeKind::Newcomer);
        let row = mail::notice(fold, to, kind, Some(session), None);
        mail::open(state, notice, row);
        notice = EnvelopeNo(notice.0.saturating_add(1));
    }
}

/// The holder of a session was shown a list with an acceptance.
pub(super) fn shown_list(fold: Fold<'_>, state: &mut State, session: SessionNo, list: &[Shared]) {
    for shared in list {
        let former = shared.former.map(|(generation, _)| generation);
        let current = state.session(shared.session).map(|s| s.generation);
        if let Some(generation) = former.or(current) {
            tell(fold, state, session, shared.session, generation);
        }
    }
}

fn tell(
    fold: Fold<'_>,
    state: &mut State,
    session: SessionNo,
    peer: SessionNo,
    generation: Generation,
) {
    let Some(session) = state.sessions.get_mut(session.index()) else {
        return;
    };
    if session.knows(peer, generation) {
        return;
    }
    if session.told.len() == TOLD_MAX {
        session.told.remove(0);
    }
    session.told.push(Told {
        peer,
        generation,
        at: fold.at,
    });
}
