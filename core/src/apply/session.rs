//! Sessions as events change them.

use alloc::vec::Vec;

use crate::command::{Label, Ref};
use crate::event::{Adopted, Carried, Fenced, GrantSealed, Observed, Registered, Renamed, Retired};
use crate::generation::Epoch;
use crate::id::{DispatchNo, EnvelopeNo, SessionNo};
use crate::limits::{FORMER_PLACES_MAX, FORMERS_MAX, OBSERVED_SCOPES_MAX};
use crate::state::{
    CancelReason, DispatchState, Earlier, EnvelopeKind, EnvelopeRow, EnvelopeState, Former,
    GrantNote, Granted, History, NoticeKind, Place, Session, State, Tree, TreeStanding,
};
use crate::text::Symbol;
use crate::zoo::planted;

use super::{Fold, mail, role, tree, work};

pub(super) fn registered(fold: Fold<'_>, state: &mut State, e: &Registered) {
    let name = fold.symbol(state, e.name);
    let holder = fold.holder(state, &e.bearer);
    let checkout = e.checkout.as_ref().map(|c| fold.scope(state, c));
    let labels = labels(fold, state, Vec::new(), &e.labels);
    let note = GrantNote {
        generation: e.generation,
        how: Granted::Registered,
        at: fold.at,
        actor: Some(holder.actor),
        reason: None,
    };
    if state.session(e.session).is_some() {
        tree::uproot(state, e.session);
        let epoch = tree::granted(fold, state, e.session);
        let session = &mut state.sessions[e.session.index()];
        session.generation = e.generation;
        session.seal = None;
        session.epoch = epoch;
        session.retired = false;
        session.holder = Some(holder);
        session.labels = labels;
        session.checkout = checkout;
        session.observed.clear();
        session.told.clear();
        session.status = None;
        state.note_grant(e.session, note);
    } else {
        state.sessions.push(Session {
            name,
            aliases: Vec::new(),
            generation: e.generation,
            seal: None,
            retired: false,
            holder: Some(holder),
            root: e.session,
            parent: None,
            epoch: Epoch::FIRST,
            tree: Tree::new(),
            labels,
            registered_at: fold.at,
            last_seen: fold.at,
            status: None,
            checkout,
            observed: Vec::new(),
            formers: Vec::new(),
            grants: alloc::vec![note],
            earlier: Earlier(None),
            told: Vec::new(),
            open: Vec::new(),
            inbox: Vec::new(),
            cursor: None,
            history: History::default(),
        });
        state.index_name(name, e.session);
    }
}

/// The grant that the same frame made is current with that secret alone. Behind a loss it also says of the store, whose
/// first frame may be lost, that it is sealed.
pub(super) fn sealed(state: &mut State, e: &GrantSealed) {
    state.sealed = true;
    let session = state.sessions.get_mut(e.session.index());
    if let Some(session) = session.filter(|s| s.generation == e.generation) {
        session.seal = Some(e.seal);
    }
}

pub(super) fn renamed(fold: Fold<'_>, state: &mut State, e: &Renamed) {
    let name = fold.symbol(state, e.name);
    let Some(session) = state.sessions.get_mut(e.session.index()) else {
        return;
    };
    let former = core::mem::replace(&mut session.name, name);
    session.aliases.retain(|alias| *alias != name);
    session.aliases.push(former);
    state.index_name(name, e.session);
}

/// Sets labels over older ones; sorted by key, so that equal sets are equal lists.
fn labels(
    fold: Fold<'_>,
    state: &mut State,
    mut old: Vec<(Symbol, Symbol)>,
    new: &[Label],
) -> Vec<(Symbol, Symbol)> {
    for (key, value) in new {
        let (key, value) = (fold.symbol(state, *key), fold.symbol(state, *value));
        old.retain(|(k, _)| *k != key);
        old.push((key, value));
    }
    old.sort_by(|a, b| state.pool.get(a.0).cmp(state.pool.get(b.0)));
    old
}

pub(super) fn adopted(fold: Fold<'_>, state: &mut State, e: &Adopted) {
    let holder = fold.holder(state, &e.bearer);
    let reason = e.forced.map(|r| fold.symbol(state, r));
    let Some(old) = state
        .sessions
        .get_mut(e.session.index())
        .map(|s| core::mem::take(&mut s.labels))
    else {
        return;
    };
    let labels = labels(fold, state, old, &e.labels);
    let places = if e.former {
        places(state, e.session)
    } else {
        Vec::new()
    };
    let epoch = tree::granted(fold, state, e.session);
    let Some(session) = state.sessions.get_mut(e.session.index()) else {
        return;
    };
    session.epoch = epoch;
    if let Some(former) = session.holder.filter(|_| e.former) {
        if session.formers.len() == FORMERS_MAX {
            session.formers.remove(0);
        }
        session.formers.push(Former {
            generation: session.generation,
            holder: former,
            places,
        });
    }
    session.labels = labels;
    session.generation = e.generation;
    session.holder = Some(holder);
    session.told.clear();
    let note = GrantNote {
        generation: e.generation,
        how: if e.forced.is_some() {
            Granted::Forced
        } else {
            Granted::Adopted
        },
        at: fold.at,
        actor: Some(holder.actor),
        reason,
    };
    state.note_grant(e.session, note);
}

/// Where a session is at work, to be remembered of a holder that loses it.
fn places(state: &State, session: SessionNo) -> Vec<Place> {
    let places = state.presence(session).take(FORMER_PLACES_MAX);
    places
        .map(|(source, dispatch, scope)| Place {
            source,
            dispatch,
            scope: scope.clone(),
        })
        .collect()
}

/// What is unfinished belongs to the same conversation: it is stamped with the new generation, and what was
/// delivered and not read is pending again under the same id.
pub(super) fn carried(state: &mut State, e: &Carried) {
    let Some(session) = state.sessions.get(e.session.index()) else {
        return;
    };
    for number in session
        .inbox
        .iter()
        .skip(planted("envelope-dropped").into())
    {
        if let Some(row) = state.envelopes.get_mut(number.index()) {
            row.generation = e.generation;
            row.state = EnvelopeState::Pending;
        }
    }
    for number in &session.open {
        if let Some(row) = state.dispatches.get_mut(number.index()) {
            row.generation = e.generation;
        }
    }
}

/// What is unfinished under an older generation is over; each unread reply becomes a review.
pub(super) fn fenced(fold: Fold<'_>, state: &mut State, e: &Fenced) {
    let reason = CancelReason::FencedGeneration;
    let mut unread: Vec<EnvelopeNo> = Vec::new();
    ending(state, e.session, |state, open, inbox| {
        for number in open {
            if state
                .dispatch(*number)
                .is_some_and(|row| row.generation < e.below)
            {
                work::close(fold, state, *number, DispatchState::Fenced, reason);
            }
        }
        for number in inbox {
            let Some(row) = state.envelope(*number) else {
                continue;
            };
            if row.generation >= e.below || !row.is_open() {
                continue;
            }
            mail::close(state, *number, EnvelopeState::Cancelled, reason);
            match (row.kind, row.re) {
                (EnvelopeKind::Message, Some(_)) => unread.push(*number),
                // A review that nobody read: the reply that it names is unread still.
                (EnvelopeKind::Review, Some(Ref::Envelope(reply))) => unread.push(reply),
                _ => {}
            }
        }
    });
    for (number, reply) in (e.first_review.0..).zip(unread) {
        let row = EnvelopeRow {
            session: e.session,
            generation: e.below,
            kind: EnvelopeKind::Review,
            state: EnvelopeState::Pending,
            reason: CancelReason::None,
            notice: NoticeKind::None,
            from: None,
            dispatch: None,
            re: Some(Ref::Envelope(reply)),
            position: fold.at.position,
            body: None,
        };
        mail::open(state, EnvelopeNo(number), row);
    }
}

/// Lets `end` close open dispatches and envelopes of a session, and makes its lists anew once: taking each
/// off by itself would cost the square of their number.
pub(super) fn ending(
    state: &mut State,
    session: SessionNo,
    end: impl FnOnce(&mut State, &[DispatchNo], &[EnvelopeNo]),
) {
    let Some(record) = state.sessions.get_mut(session.index()) else {
        return;
    };
    let mut open = core::mem::take(&mut record.open);
    let mut inbox = core::mem::take(&mut record.inbox);
    end(state, &open, &inbox);
    open.retain(|d| state.live.contains_key(d));
    inbox.retain(|e| state.envelope(*e).is_some_and(|row| row.is_open()));
    if let Some(record) = state.sessions.get_mut(session.index()) {
        (record.open, record.inbox) = (open, inbox);
    }
}

/// Open work is cancelled and its items are free; notices are cancelled; other mail stays visible until a
/// register fences it.
pub(super) fn retired(fold: Fold<'_>, state: &mut State, e: &Retired) {
    let why = e.reason.map(|r| fold.symbol(state, r));
    retire(fold, state, e.session, why);
}

/// What a retire does, by whatever event.
pub(super) fn retire(fold: Fold<'_>, state: &mut State, number: SessionNo, why: Option<Symbol>) {
    let Some(session) = state.sessions.get_mut(number.index()) else {
        return;
    };
    session.retired = true;
    session.history.end_open();
    if session.root == number {
        session.tree.standing = TreeStanding::Unowned;
        session.tree.claimer = None;
    }
    let note = GrantNote {
        generation: session.generation,
        how: Granted::Retired,
        at: fold.at,
        actor: None,
        reason: why,
    };
    state.note_grant(number, note);
    role::session_ended(state, number);
    let reason = CancelReason::SessionRetired;
    ending(state, number, |state, open, inbox| {
        for number in open {
            work::close(fold, state, *number, DispatchState::Cancelled, reason);
        }
        for number in inbox {
            if state
                .envelope(*number)
                .is_some_and(|row| row.kind == EnvelopeKind::Notice)
            {
                mail::close(state, *number, EnvelopeState::Cancelled, reason);
            }
        }
    });
}

pub(super) fn observed(fold: Fold<'_>, state: &mut State, e: &Observed) {
    let status = fold.text(e.status);
    let wrote: Vec<_> = e.wrote.iter().map(|w| fold.scope(state, w)).collect();
    let Some(session) = state.sessions.get_mut(e.session.index()) else {
        return;
    };
    session.status = Some(status);
    for scope in wrote {
        session
            .observed
            .retain(|known| known.path != scope.path || known.host != scope.host);
        if session.observed.len() == OBSERVED_SCOPES_MAX {
            session.observed.remove(0);
        }
        session.observed.push(scope);
    }
}
