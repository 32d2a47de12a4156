//! What lost frames may have said of roles, trees and idempotency keys, as far as the kept ones tell.

use std::collections::BTreeMap;

use tenure_core::event::{Entry, Event};
use tenure_core::generation::{Epoch, Generation};
use tenure_core::id::{Position, RoleNo, SessionNo};
use tenure_core::state::State;
use tenure_log::salvage::Lost;

use super::{KeyLoss, LostKey, RoleLoss, TreeLoss, lossy};

/// What was known before a loss, and what a frame behind it says.
type Known<N> = (Option<N>, Option<N>);

/// Notes about roles, trees and keys.
#[derive(Default)]
pub(super) struct Rights {
    roles: BTreeMap<RoleNo, Known<Generation>>,
    /// Names and scopes that frames behind a loss have for roles.
    called: BTreeMap<RoleNo, (Vec<u8>, Vec<u8>)>,
    /// By the root.
    trees: BTreeMap<SessionNo, Known<Epoch>>,
    keys_kept: u64,
    /// Keys that a frame behind a loss found taken, and where.
    taken: BTreeMap<[u8; 16], Position>,
}

impl Rights {
    /// Where positions are lost, every role that is held and every tree that grew may have changed.
    pub(super) fn loses(&mut self, state: &State) {
        for number in (0..state.next_role().0).map(RoleNo) {
            let role = state.role(number).filter(|role| role.holding.is_some());
            if let Some(role) = role {
                let known = (Some(role.generation), None);
                self.roles.entry(number).or_insert(known);
            }
        }
        for (number, session) in state.sessions.iter().enumerate() {
            let number = SessionNo(number as u64);
            if session.root == number && session.tree.grown {
                let known = (Some(session.tree.epoch), None);
                self.trees.entry(number).or_insert(known);
            }
        }
    }

    /// A key of a kept frame; `taken` is where it had been used before.
    pub(super) fn key(&mut self, digest: [u8; 16], taken: Option<Position>) {
        match taken {
            None => self.keys_kept += 1,
            Some(position) => drop(self.taken.insert(digest, position)),
        }
    }

    /// An entry behind a loss, before it is applied. What follows the known number tells that nothing was lost in
    /// between; any other number was given in a lost frame.
    pub(super) fn meet(&mut self, state: &State, entry: &Entry) {
        let mut moves = false;
        for event in &entry.events {
            match event {
                Event::RoleTaken(e) => {
                    let scope = entry.texts.get(e.scope.text);
                    let called = (entry.texts.get(e.name).to_vec(), scope.to_vec());
                    self.called.insert(e.role, called);
                    self.role(state, entry, e.role, None, Some(e.generation));
                }
                Event::RoleLapsed(e) => {
                    self.role(state, entry, e.role, Some(e.session), Some(e.generation));
                }
                Event::RoleCleared(e) => {
                    self.role(state, entry, e.role, Some(e.session), Some(e.generation));
                }
                Event::RoleReleased(e) => self.role(state, entry, e.role, Some(e.session), None),
                Event::Claimed(_) | Event::RolledBack(_) => moves = true,
                _ => {}
            }
        }
        let Some(fence) = entry.fence.tree else {
            return;
        };
        let known = state.session(fence.root).map(|root| root.tree.epoch);
        let expected = known.and_then(|epoch| if moves { epoch.next() } else { Some(epoch) });
        if expected == Some(fence.epoch) {
            stands(&mut self.trees, fence.root);
        } else {
            self.trees.entry(fence.root).or_insert((known, None)).1 = Some(fence.epoch);
        }
    }

    /// An event of a role: who held it before by its word, and the generation that it gives.
    fn role(
        &mut self,
        state: &State,
        entry: &Entry,
        number: RoleNo,
        by: Option<SessionNo>,
        gives: Option<Generation>,
    ) {
        let Some(role) = state.role(number) else {
            return;
        };
        let held = role.holding.as_ref().map(|holding| holding.session);
        let next = role.generation.next(entry.incarnation);
        if held == by && (gives.is_none() || gives == next) {
            stands(&mut self.roles, number);
        } else {
            let known = (Some(role.generation), None);
            self.roles.entry(number).or_insert(known).1 = gives.or(next);
        }
    }

    /// Roles that stand for lost ones: those from `before` on that `entry`, which was applied, did not bring itself.
    pub(super) fn filled(&mut self, state: &State, before: RoleNo, entry: &Entry) {
        let is_new = |event: &&Event| matches!(event, Event::RoleTaken(e) if e.role >= before);
        let new = entry.events.iter().filter(is_new).count() as u64;
        for number in before.0..state.next_role().0.saturating_sub(new) {
            self.roles.insert(RoleNo(number), (None, None));
        }
    }

    pub(super) fn roles(&self, state: &State) -> Vec<RoleLoss> {
        let loss = |(number, (before, seen)): (&RoleNo, &Known<Generation>)| {
            let row = state.role(*number);
            let text = |symbol| lossy(state.pool.get(symbol));
            let known = row.map(|role| (text(role.name), text(role.scope.text)));
            let known = known.filter(|_| before.is_some());
            let called = self.called.get(number);
            let called = called.map(|(name, scope)| (lossy(name), lossy(scope)));
            let holding = row.and_then(|role| role.holding.as_ref());
            let (role, scope) = known.or(called).unzip();
            RoleLoss {
                number: *number,
                role,
                scope,
                session: holding.map(|holding| state.name(holding.session)),
                before: *before,
                seen: *seen,
            }
        };
        self.roles.iter().map(loss).collect()
    }

    /// `name` says what a session is called.
    pub(super) fn trees(&self, state: &State, name: impl Fn(SessionNo) -> String) -> Vec<TreeLoss> {
        let loss = |(root, (before, seen)): (&SessionNo, &Known<Epoch>)| TreeLoss {
            root: *root,
            name: name(*root),
            standing: state.session(*root).map(|root| root.tree.standing),
            before: *before,
            seen: *seen,
        };
        self.trees.iter().map(loss).collect()
    }

    pub(super) fn keys(&self, lost: &[Lost]) -> KeyLoss {
        let is_lost = |position: &Position| {
            lost.iter().any(|lost| {
                let first = lost.positions.first;
                (first.0..=lost.positions.last.unwrap_or(first).0).contains(&position.0)
            })
        };
        let taken = self.taken.iter().filter(|(_, at)| is_lost(at));
        KeyLoss {
            kept: self.keys_kept,
            lost: taken
                .map(|(digest, position)| LostKey {
                    digest: *digest,
                    position: *position,
                })
                .collect(),
        }
    }
}

/// It is what it was before the loss: nothing about it is lost so far.
fn stands<K: Ord, N>(notes: &mut BTreeMap<K, Known<N>>, number: K) {
    if matches!(notes.get(&number), Some((Some(_), None))) {
        notes.remove(&number);
    }
}
