//! `apply`: folds an entry into a state. Refuses nothing: what does not stand is noted as a finding and
//! changes nothing else (F2), and what events say about numbers never given is ignored.

use crate::command::Bearer;
use crate::decide::{is_unproven, stands};
use crate::event::{Entry, Event, TreeFence};
use crate::history::BodyDigest;
use crate::id::{Moment, SessionNo};
use crate::path::Scope;
use crate::state::{Holder, State, TreeStanding};
use crate::text::{BodyId, Symbol, Text, TextId, Texts};

mod history;
mod lost;
mod mail;
mod policy;
mod role;
mod session;
mod store;
mod tree;
mod work;

/// What became of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// It stands, and the state shows it.
    Honoured,
    /// It stands behind a loss, where no fence can be proven: the state shows what it says (`docs/recovery.md`).
    Unproven,
    /// Its fence does not stand at its position: noted, not applied.
    Finding,
    /// It holds a deciding kind that this program does not know.
    Unknown,
}

/// Folds one entry. Entries come in the order of positions, each once.
pub fn apply(state: &mut State, entry: &Entry) -> Applied {
    apply_seen(state, entry, |_| {})
}

/// Folds one entry; if it stands, the state that it was decided on is shown before.
pub fn apply_seen(state: &mut State, entry: &Entry, seen: impl FnOnce(&State)) -> Applied {
    let before = core::mem::replace(&mut state.at, entry.at);
    if entry.unknown.is_some() {
        state.unknown = state.unknown.or(entry.unknown);
        return Applied::Unknown;
    }
    if !stands(state, entry) {
        state.findings.push(entry.at.position);
        state.dishonoured.push(entry.at.position);
        return Applied::Finding;
    }
    state.at = before;
    seen(state);
    state.at = entry.at;
    let fold = Fold {
        texts: &entry.texts,
        bodies: &entry.bodies,
        at: entry.at,
        tree: entry.fence.tree,
    };
    let unproven = is_unproven(state, entry);
    if unproven {
        lost::make_room(fold, state, entry);
    }
    for event in &entry.events {
        fold.event(state, event);
    }
    if let Some(session) = entry.fence.session {
        touch(state, session, entry.at);
    }
    if unproven {
        Applied::Unproven
    } else {
        Applied::Honoured
    }
}

/// What the events of one entry are read with.
#[derive(Clone, Copy)]
struct Fold<'a> {
    texts: &'a Texts,
    bodies: &'a [BodyDigest],
    at: Moment,
    /// The tree that the fence is about.
    tree: Option<TreeFence>,
}

impl Fold<'_> {
    fn event(self, state: &mut State, event: &Event) {
        match event {
            Event::Registered(e) => session::registered(self, state, e),
            Event::Adopted(e) => session::adopted(self, state, e),
            Event::Carried(e) => session::carried(state, e),
            Event::Fenced(e) => session::fenced(self, state, e),
            Event::Retired(e) => session::retired(self, state, e),
            Event::Dispatched(e) => work::dispatched(self, state, e),
            Event::Accepted(e) => work::accepted(self, state, e),
            Event::Joined(e) => work::joined(self, state, e),
            Event::Declined(e) => work::declined(self, state, e),
            Event::Reported(e) => work::reported(self, state, e),
            Event::Cancelled(e) => work::cancelled(self, state, e),
            Event::AssignmentFailed(e) => work::assignment_failed(self, state, e),
            Event::Noted(e) => touch(state, e.session, self.at),
            Event::Observed(e) => session::observed(self, state, e),
            Event::Sent(e) => mail::sent(self, state, e),
            Event::Delivered(e) => mail::delivered(state, e),
            Event::Acknowledged(e) => mail::acknowledged(state, e),
            Event::Refused(e) => store::refused(self, state, e),
            Event::RefusalsCounted(e) => store::counted(self, state, e),
            Event::IncarnationRaised(e) => store::raised(self, state, e),
            Event::PositionLost(e) => lost::lost(self, state, e),
            Event::SessionRegained(e) => lost::regained(self, state, e),
            Event::HomeAccepted(_) | Event::LockRemoved(_) => {}
            Event::StoreSealed(_) => state.sealed = true,
            Event::GrantSealed(e) => session::sealed(state, e),
            Event::TailSetAside(e) => {
                let file = self.symbol(state, e.file);
                state.set_aside.insert(file);
            }
            Event::GuardBypassed(e) => {
                if let Some(session) = e.session {
                    touch(state, session, self.at);
                }
            }
            Event::FindingAccepted(e) => state.findings.retain(|p| *p != e.position),
            Event::Recorded(e) => history::recorded(self, state, e),
            Event::Reverted(e) => history::reverted(self, state, e),
            Event::Branched(e) => history::branched(self, state, e),
            Event::Renamed(e) => session::renamed(self, state, e),
            Event::Imported(e) => history::imported(self, state, e),
            Event::Delegated(e) => tree::delegated(state, e),
            Event::Reserved(e) => tree::enter(state, e.root, TreeStanding::PendingPublish),
            Event::Published(e) => tree::enter(state, e.root, TreeStanding::Owned),
            Event::Claimed(e) => tree::claimed(self, state, e),
            Event::RolledBack(e) => tree::rolled_back(self, state, e),
            Event::Recovered(e) => touch(state, e.session, self.at),
            Event::Released(e) => tree::released(self, state, e),
            Event::Unreserved(e) => tree::unreserved(self, state, e),
            Event::Reconciled(e) => tree::reconciled(self, state, e),
            other => self.rights(state, other),
        }
    }

    fn rights(self, state: &mut State, event: &Event) {
        match event {
            Event::RoleTaken(e) => role::taken(self, state, e),
            Event::RoleLapsed(e) => role::lapsed(self, state, e),
            Event::RoleReleased(e) => role::released(state, e),
            Event::RoleCleared(e) => role::cleared(self, state, e),
            Event::HandedOver(e) => work::handed_over(self, state, e),
            Event::PolicySet(e) => policy::set(self, state, e),
            Event::Shown(e) => policy::shown(self, state, e.session, &e.peers, e.first_notice),
            Event::Warned(e) => policy::shown(self, state, e.session, &e.peers, e.first_notice),
            Event::Attended(e) => drop(state.blocked.remove(&e.dispatch)),
            _ => unreachable!("the other events were applied before"),
        }
    }

    fn text(self, text: TextId) -> Text {
        Text::from(self.texts.get(text))
    }

    /// The digest of a body; zeros for one that the frame does not have.
    fn body(self, body: BodyId) -> BodyDigest {
        let digest = self.bodies.get(body.0 as usize);
        digest.copied().unwrap_or_default()
    }

    fn symbol(self, state: &mut State, text: TextId) -> Symbol {
        state.pool.intern(self.texts.get(text))
    }

    fn scope(self, state: &mut State, scope: &Scope<TextId>) -> Scope<Symbol> {
        scope.map(|text| self.symbol(state, *text))
    }

    fn holder(self, state: &mut State, bearer: &Bearer) -> Holder {
        Holder {
            bearing: bearer.bearing,
            actor: self.symbol(state, bearer.actor),
            host_name: self.symbol(state, bearer.host_name),
            engine: bearer.engine.map(|e| self.symbol(state, e)),
        }
    }
}

/// The session was heard of.
fn touch(state: &mut State, session: SessionNo, at: Moment) {
    if let Some(session) = state.sessions.get_mut(session.index()) {
        session.last_seen = at;
    }
}

#[cfg(test)]
mod tests;
