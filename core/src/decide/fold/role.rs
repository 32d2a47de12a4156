//! Whether events about roles, hand-overs and disclosures can happen where they stand.

use crate::disclosure::Peer;
use crate::event::{
    Attended, Event, FenceKind, HandedOver, RoleCleared, RoleLapsed, RoleReleased, RoleTaken,
};
use crate::generation::Generation;
use crate::id::{EnvelopeNo, SessionNo};
use crate::limits::PEERS_MAX;
use crate::state::{DispatchState, Holding, Role};

use super::Look;

impl<'a> Look<'a> {
    /// What the frame's lapse leaves of a role, for a take behind it.
    fn lapse(self) -> Option<&'a RoleLapsed> {
        match self.entry.events.first() {
            Some(Event::RoleLapsed(e)) => Some(e),
            _ => None,
        }
    }

    fn next(self, after: Generation, to: Generation) -> bool {
        after.next(self.state.incarnation) == Some(to)
    }

    fn held(self, role: &'a Role, session: SessionNo) -> Option<&'a Holding> {
        role.holding.as_ref().filter(|h| h.session == session)
    }

    pub(super) fn role_taken(self, e: &RoleTaken) -> bool {
        if !self.by(e.session) || self.entry.fence.named != Some(e.under) {
            return false;
        }
        let text = |t: &crate::text::TextId| self.entry.texts.get(*t);
        let name = text(&e.name);
        let parsed = core::str::from_utf8(name).is_ok_and(|t| crate::id::Name::parse(t).is_ok());
        let known = self.state.find_role(name, &e.scope.map(text));
        let free = match (self.state.role(e.role), self.lapse()) {
            (None, None) => {
                let first = Generation::first(self.state.incarnation);
                e.role == self.state.next_role() && known.is_none() && e.generation == first
            }
            (Some(role), None) => {
                role.holding.is_none() && self.next(role.generation, e.generation)
            }
            (Some(_), Some(lapse)) => {
                lapse.role == e.role && self.next(lapse.generation, e.generation)
            }
            (None, Some(_)) => false,
        };
        parsed
            && free
            && known.is_none_or(|known| known == e.role)
            && (known.is_some() || self.state.role(e.role).is_none())
    }

    pub(super) fn role_lapsed(self, e: &RoleLapsed) -> bool {
        let role = self.state.role(e.role);
        role.is_some_and(|role| {
            self.held(role, e.session).is_some() && self.next(role.generation, e.generation)
        }) && e.notice == self.state.next_envelope()
            && !self.by(e.session)
    }

    pub(super) fn role_released(self, e: &RoleReleased) -> bool {
        let role = self.state.role(e.role);
        self.by(e.session) && role.is_some_and(|role| self.held(role, e.session).is_some())
    }

    pub(super) fn role_cleared(self, e: &RoleCleared) -> bool {
        let role = self.state.role(e.role);
        self.by_nobody()
            && e.notice == self.state.next_envelope()
            && role.is_some_and(|role| {
                self.held(role, e.session).is_some() && self.next(role.generation, e.generation)
            })
    }

    pub(super) fn handed_over(self, e: &HandedOver) -> bool {
        let theirs = self.bound(e.dispatch, DispatchState::Queued)
            || self.bound(e.dispatch, DispatchState::Accepted);
        theirs
            && self.by(e.from)
            && e.session != e.from
            && self.addressed(e.session, e.generation, e.envelope)
    }

    /// The newcomer to an accepted dispatch that was handed over in the same frame.
    pub(super) fn joined_behind(self, e: &HandedOver, first_notice: EnvelopeNo) -> bool {
        self.bound(e.dispatch, DispatchState::Accepted)
            && self.state.next_envelope().0.checked_add(1) == Some(first_notice.0)
    }

    /// By whoever gave a command that needs no token: somebody who presented one, or an operator.
    pub(super) fn by_anybody(self) -> bool {
        self.entry.fence.kind != FenceKind::Grant
    }

    /// Others that a session can have been shown: in order, each once, and none that never was.
    pub(super) fn shown(self, session: SessionNo, peers: &[Peer], first: EnvelopeNo) -> bool {
        let known = |p: &Peer| {
            let peer = self.state.session(p.session);
            peer.is_some_and(|peer| match p.session == session {
                true => p.generation < peer.generation,
                false => p.generation <= peer.generation,
            })
        };
        self.by(session)
            && !peers.is_empty()
            && peers.len() <= PEERS_MAX
            && peers.is_sorted_by(|a, b| (a.session, a.generation) < (b.session, b.generation))
            && peers.iter().all(known)
            && first == self.state.next_envelope()
    }

    pub(super) fn attended(self, e: &Attended) -> bool {
        self.by_anybody() && self.state.blocked.contains_key(&e.dispatch)
    }
}
