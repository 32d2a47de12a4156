//! Trees as events change them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::event::{
    Claimed, Delegated, Reconciled, Reconciliation, Released, RolledBack, Unreserved,
};
use crate::generation::Epoch;
use crate::id::SessionNo;
use crate::state::{
    CancelReason, Claimer, DispatchState, Granted, State, Tree, TreeNote, TreeStanding,
};

use super::{Fold, role, session, work};

fn tree_of(state: &mut State, root: SessionNo) -> Option<&mut Tree> {
    state.sessions.get_mut(root.index()).map(|s| &mut s.tree)
}

pub(super) fn enter(state: &mut State, root: SessionNo, standing: TreeStanding) {
    if let Some(tree) = tree_of(state, root) {
        tree.standing = standing;
    }
}

/// A registered session is a root until something says that it was delegated: it leaves the tree it was in.
pub(super) fn uproot(state: &mut State, number: SessionNo) {
    let Some(old) = state.session(number).map(|s| s.root) else {
        return;
    };
    if old == number {
        return;
    }
    if let Some(tree) = tree_of(state, old) {
        tree.members.retain(|member| *member != number);
    }
    let record = &mut state.sessions[number.index()];
    record.root = number;
    record.parent = None;
}

/// A session was granted: of a root, the grant carries the tree. Gives the epoch it was granted under. A root
/// from which nothing was delegated goes to its next epoch; of any other the fence says which one it is.
pub(super) fn granted(fold: Fold<'_>, state: &mut State, number: SessionNo) -> Epoch {
    let root = state.session(number).map_or(number, |s| s.root);
    let Some(tree) = tree_of(state, root) else {
        return Epoch::FIRST;
    };
    match fold.tree.filter(|fence| fence.root == root) {
        Some(fence) => tree.epoch = fence.epoch,
        None => tree.epoch = tree.epoch.next().unwrap_or(tree.epoch),
    }
    if tree.standing != TreeStanding::PendingPublish {
        tree.standing = TreeStanding::Owned;
    }
    if root == number {
        tree.claimer = None;
    }
    tree.epoch
}

pub(super) fn delegated(state: &mut State, e: &Delegated) {
    let Some(tree) = tree_of(state, e.root) else {
        return;
    };
    tree.grown = true;
    tree.members.push(e.session);
    // The branch for which the same frame claimed the tree: it can be written at once (TRE-9).
    if tree.standing == TreeStanding::Adopting {
        tree.standing = TreeStanding::Owned;
    }
    let epoch = tree.epoch;
    if let Some(record) = state.sessions.get_mut(e.session.index()) {
        record.root = e.root;
        record.parent = Some(e.parent);
        record.epoch = epoch;
        record.tree.standing = TreeStanding::Unowned;
    }
}

/// Every token in the tree lapses by this one number.
pub(super) fn claimed(fold: Fold<'_>, state: &mut State, e: &Claimed) {
    let holder = fold.holder(state, &e.bearer);
    let reason = e.forced.map(|r| fold.symbol(state, r));
    let note = TreeNote {
        epoch: e.epoch,
        how: Granted::Claimed,
        at: fold.at,
        actor: Some(holder.actor),
        reason,
    };
    let Some(tree) = tree_of(state, e.root) else {
        return;
    };
    tree.epoch = e.epoch;
    tree.grown = true;
    tree.standing = TreeStanding::Adopting;
    tree.claimer = Some(Box::new(Claimer {
        holder,
        since: fold.at,
    }));
    tree.notes.push(note);
}

pub(super) fn rolled_back(fold: Fold<'_>, state: &mut State, e: &RolledBack) {
    let note = TreeNote {
        epoch: e.epoch,
        how: Granted::RolledBack,
        at: fold.at,
        actor: None,
        reason: None,
    };
    drop_tree(state, e.root, note);
}

pub(super) fn released(fold: Fold<'_>, state: &mut State, e: &Released) {
    let note = TreeNote {
        epoch: e.epoch,
        how: Granted::Released,
        at: fold.at,
        actor: None,
        reason: e.reason.map(|r| fold.symbol(state, r)),
    };
    role::tree_ended(state, e.root);
    let sessions = state.sessions_of_tree(e.root);
    let running = sessions.filter(|(_, s)| !s.history.open.is_empty());
    let running: Vec<_> = running.map(|(number, _)| number).collect();
    for number in running {
        state.sessions[number.index()].history.end_open();
    }
    drop_tree(state, e.root, note);
}

fn drop_tree(state: &mut State, root: SessionNo, note: TreeNote) {
    let Some(tree) = tree_of(state, root) else {
        return;
    };
    tree.epoch = note.epoch;
    tree.standing = TreeStanding::Unowned;
    tree.claimer = None;
    tree.notes.push(note);
}

/// A reservation that nobody will publish: its names are free, at the next generation.
pub(super) fn unreserved(fold: Fold<'_>, state: &mut State, e: &Unreserved) {
    let sessions = state.sessions_of_tree(e.root);
    let active: Vec<_> = sessions
        .filter(|(_, s)| !s.retired)
        .map(|(number, _)| number)
        .collect();
    for number in active {
        session::retire(fold, state, number, None);
    }
    if let Some(tree) = tree_of(state, e.root) {
        tree.epoch = e.epoch;
        tree.standing = TreeStanding::Unowned;
        tree.claimer = None;
    }
}

/// What was left running has ended; with a retired parent, what the session was given to do ends too.
pub(super) fn reconciled(fold: Fold<'_>, state: &mut State, e: &Reconciled) {
    if let Some(session) = state.sessions.get_mut(e.session.index()) {
        session.history.end_open();
    }
    if e.how != Reconciliation::ParentCancelled {
        return;
    }
    let reason = CancelReason::ParentRetired;
    session::ending(state, e.session, |state, open, _| {
        for number in open {
            work::close(fold, state, *number, DispatchState::Cancelled, reason);
        }
    });
}
