//! The fence a second time, at fold time: honest writers are checked when they append, arbitrary bytes when
//! they are read (F2).
//!
//! What is checked is whether `decide` could have written the entry here: its fence names what is current, its
//! events are those of one decision under such a fence, and each is about something that stands so that it can
//! happen. What people may do by which right (evidence, force, keys) is not: an audit judges that from the
//! input.

use crate::event::{
    Accepted, Adopted, AssignmentFailed, Branched, Cancelled, Carried, Dispatched, Entry, Event,
    Fence, FenceKind, Fenced, Joined, Recorded, Refused, Registered, ReleaseCause, Renamed,
    Retired, Reverted, Sent,
};
use crate::generation::Generation;
use crate::history::Activity;
use crate::id::{DispatchNo, EnvelopeNo, Name, SessionNo};
use crate::state::{DispatchRow, DispatchState, EnvelopeRow, EnvelopeState, State, TreeStanding};

mod lost;
mod tree;

pub use lost::is_unproven;
pub(crate) use lost::{Named, named};

use super::branch::can_be_cut;
use super::history::depth_after;

mod role;

/// Whether an entry may be honoured at its position: its fence names what is current there, and its events
/// are ones that such a fence carries. An entry that fails is applied by no projection. Behind a loss nobody can say so:
/// there an entry is honoured as long as its numbers can be.
#[must_use]
pub fn stands(state: &State, entry: &Entry) -> bool {
    let look = Look { state, entry };
    if lost::is_unproven(state, entry) {
        return look.is_plausible();
    }
    look.life()
        && look.fence()
        && look.tree_is_meant()
        && look.decision()
        && entry.events.iter().all(|e| look.event(e))
}

/// An entry in front of the state that it would be applied to.
#[derive(Clone, Copy)]
struct Look<'a> {
    state: &'a State,
    entry: &'a Entry,
}

impl<'a> Look<'a> {
    /// Written in the life of the log that the state is in, or in the one that it begins.
    fn life(self) -> bool {
        match self.entry.events.first() {
            Some(Event::IncarnationRaised(e)) => {
                e.incarnation == self.entry.incarnation && e.incarnation > self.state.incarnation
            }
            _ => self.entry.incarnation == self.state.incarnation,
        }
    }

    fn fence(self) -> bool {
        let Fence {
            kind,
            session,
            named,
            granted,
            tree,
        } = self.entry.fence;
        if !tree.is_none_or(|tree| self.names_a_tree(tree)) {
            return false;
        }
        match (kind, session, named, granted) {
            (FenceKind::None, None, None, None) => tree.is_none(),
            (FenceKind::Claim, None, None, None) => tree.is_some(),
            (FenceKind::Write, Some(session), Some(named), None) => {
                self.state.check(session, named).is_ok()
            }
            (FenceKind::Grant, Some(session), named, Some(granted)) => {
                match (self.state.session(session), named) {
                    (None, None) => {
                        session.index() == self.state.sessions.len()
                            && granted == Generation::first(self.state.incarnation)
                    }
                    (Some(known), Some(named)) => {
                        named == known.generation
                            && known.generation.next(self.state.incarnation) == Some(granted)
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// The events without the seal of the grant, which is there if and only if the frame is a grant of a sealed store,
    /// and then of that grant; `None` where it is not so.
    fn without_seal(self) -> Option<&'a [Event]> {
        let (events, fence) = (&self.entry.events[..], &self.entry.fence);
        if !self.state.sealed || fence.kind != FenceKind::Grant {
            let seals = |event: &Event| matches!(event, Event::GrantSealed(_));
            return (!events.iter().any(seals)).then_some(events);
        }
        match events.split_last()? {
            (Event::GrantSealed(e), before) => {
                let own = fence.session == Some(e.session) && fence.granted == Some(e.generation);
                own.then_some(before)
            }
            _ => None,
        }
    }

    /// The events are those of one decision. A replay of fences alone relies on a grant being in the events if
    /// and only if it is in the fence. Events that touch no decision may stand anywhere, and are not seen here.
    fn decision(self) -> bool {
        use Event as E;
        let Some(events) = self.without_seal() else {
            return false;
        };
        match (self.entry.fence.kind, events) {
            (
                FenceKind::Grant,
                [E::Registered(_)]
                | [E::Registered(_), E::Branched(_)]
                | [E::Registered(_), E::Delegated(_)]
                | [E::Registered(_), E::Delegated(_), E::Branched(_)]
                | [
                    E::Claimed(_),
                    E::Registered(_),
                    E::Delegated(_),
                    E::Branched(_),
                ]
                | [E::Registered(_), E::Reserved(_)],
            ) => self.entry.fence.named.is_none(),
            (
                FenceKind::Grant,
                [E::Registered(_), E::Fenced(_)]
                | [
                    E::Registered(_),
                    E::Delegated(_) | E::Reserved(_),
                    E::Fenced(_),
                ]
                | [E::Unreserved(_), E::Registered(_), E::Fenced(_)]
                | [
                    E::Unreserved(_),
                    E::Registered(_),
                    E::Reserved(_),
                    E::Fenced(_),
                ]
                | [E::Adopted(_), E::Carried(_)]
                | [E::Adopted(_), E::Carried(_), E::Reconciled(_)]
                | [E::Claimed(_), E::Adopted(_), E::Carried(_)]
                | [
                    E::Claimed(_),
                    E::Adopted(_),
                    E::Carried(_),
                    E::Reconciled(_),
                ],
            ) => self.entry.fence.named.is_some(),
            (FenceKind::Grant, _) => false,
            (FenceKind::Write, [E::Accepted(a), E::Joined(j)]) => a.dispatch == j.dispatch,
            (FenceKind::Write, [E::HandedOver(h), E::Joined(j)]) => h.dispatch == j.dispatch,
            (FenceKind::Write, [E::RoleLapsed(l), E::RoleTaken(t)]) => l.role == t.role,
            (FenceKind::Write, [E::Observed(_), E::Shown(_)]) => true,
            (FenceKind::None, [E::RoleLapsed(_)]) => true,
            (_, [E::Joined(_) | E::RoleLapsed(_) | E::Branched(_)]) => false,
            (FenceKind::Write | FenceKind::Claim, [E::Retired(_), E::Released(r)]) => {
                r.how == ReleaseCause::RootRetired
            }
            (_, [E::Released(r)]) => r.how != ReleaseCause::RootRetired,
            (FenceKind::None, [E::IncarnationRaised(_), E::HomeAccepted(_)])
            | (FenceKind::None, [E::PositionLost(_), E::SessionRegained(_)]) => true,
            (_, [E::SessionRegained(_)]) => false,
            (_, events) => events.len() <= 1,
        }
    }

    /// Whether an event can happen here, and under this fence.
    fn event(self, event: &Event) -> bool {
        match event {
            Event::Registered(e) => self.registered(e) && self.rooted(e.session),
            Event::Adopted(e) => self.adopted(e) && self.adopted_in_tree(e.session),
            Event::Carried(e) => self.carried(e),
            Event::Fenced(e) => self.fenced(e),
            Event::Retired(e) => self.retired(e),
            Event::Dispatched(e) => self.dispatched(e),
            Event::Sent(e) => self.sent(e),
            Event::Accepted(e) => self.accepted(e),
            Event::Joined(e) => self.joined(e),
            Event::Declined(e) => self.bound(e.dispatch, DispatchState::Queued),
            Event::Reported(e) => self.bound(e.dispatch, DispatchState::Accepted),
            Event::Cancelled(e) => self.cancelled(e),
            Event::AssignmentFailed(e) => self.assignment_failed(e),
            Event::Noted(e) => self.by(e.session),
            Event::Observed(e) => self.by(e.session),
            Event::Delivered(e) => self
                .own(e.envelope)
                .is_some_and(|row| row.state == EnvelopeState::Pending),
            Event::Acknowledged(e) => self.own(e.envelope).is_some_and(|row| row.is_open()),
            Event::Recorded(e) => self.recorded(e),
            Event::Reverted(e) => self.reverted(e),
            Event::Branched(e) => self.branched(e),
            Event::Renamed(e) => self.renamed(e),
            Event::Imported(e) => self.by(e.session),
            Event::Refused(e) => self.by_nobody() && self.refused(e),
            Event::RefusalsCounted(e) => {
                self.by_nobody() && self.state.refusal(e.refusal).is_some()
            }
            Event::GuardBypassed(e) => {
                let known = e.session.is_none_or(|s| self.state.session(s).is_some());
                self.by_nobody() && known && e.session.is_some() == e.presented.is_some()
            }
            // Whether it raises was asked first of all.
            Event::IncarnationRaised(_)
            | Event::HomeAccepted(_)
            | Event::FindingAccepted(_)
            | Event::LockRemoved(_)
            | Event::PositionLost(_) => self.by_nobody(),
            // Where it stands was asked before.
            Event::GrantSealed(_) => true,
            Event::StoreSealed(_) => self.by_nobody() && self.entry.at.position.0 == 1,
            Event::SessionRegained(e) => self.is_within(e.session),
            Event::TailSetAside(e) => {
                self.by_nobody() && !self.state.has_set_aside(self.entry.texts.get(e.file))
            }
            other => self.rights(other),
        }
    }

    fn rights(self, event: &Event) -> bool {
        match event {
            Event::RoleTaken(e) => self.role_taken(e),
            Event::RoleLapsed(e) => self.role_lapsed(e),
            Event::RoleReleased(e) => self.role_released(e),
            Event::RoleCleared(e) => self.role_cleared(e),
            Event::HandedOver(e) => self.handed_over(e),
            Event::PolicySet(_) => self.by_anybody(),
            Event::Shown(e) => self.shown(e.session, &e.peers, e.first_notice),
            Event::Warned(e) => self.shown(e.session, &e.peers, e.first_notice),
            Event::Attended(e) => self.attended(e),
            tree => self.tree_event(tree),
        }
    }

    /// Under a token of that session.
    fn by(self, session: SessionNo) -> bool {
        self.entry.fence.kind == FenceKind::Write && self.entry.fence.session == Some(session)
    }

    /// The store itself, or an operator.
    fn by_nobody(self) -> bool {
        self.entry.fence.kind == FenceKind::None
    }

    fn by_giver(self, from: Option<SessionNo>) -> bool {
        from.map_or(self.by_nobody(), |session| self.by(session))
    }

    fn granted(self, session: SessionNo, generation: Generation) -> bool {
        let fence = &self.entry.fence;
        fence.kind == FenceKind::Grant
            && fence.session == Some(session)
            && fence.granted == Some(generation)
    }

    fn registered(self, e: &Registered) -> bool {
        let text = self.entry.texts.get(e.name);
        let free = match self.state.session(e.session) {
            None => {
                let name = core::str::from_utf8(text).is_ok_and(|t| Name::parse(t).is_ok());
                name && self.state.find(text).is_none()
            }
            // Under any name that it has or had.
            Some(known) => {
                (known.retired || self.unreserves(e.session))
                    && self.state.find(text) == Some(e.session)
            }
        };
        free && self.granted(e.session, e.generation)
    }

    fn adopted(self, e: &Adopted) -> bool {
        self.state.is_active(e.session) && self.granted(e.session, e.generation)
    }

    fn carried(self, e: &Carried) -> bool {
        self.granted(e.session, e.generation)
    }

    fn fenced(self, e: &Fenced) -> bool {
        self.granted(e.session, e.below) && e.first_review == self.state.next_envelope()
    }

    fn retired(self, e: &Retired) -> bool {
        let drops = self.drops_a_tree();
        let allowed = match (e.forced, drops) {
            (true, true) => self.entry.fence.kind == FenceKind::Claim,
            (true, false) => self.by_nobody(),
            (false, _) => self.by(e.session),
        };
        let stands = self.state.session(e.session).is_some_and(|s| {
            let tree = &s.tree;
            let whole = s.root == e.session
                && (tree.grown || tree.standing == TreeStanding::PendingPublish);
            !s.retired && s.generation == e.generation && whole == drops
        });
        allowed && stands
    }

    /// Whether something can be put into the inbox of `session` at `generation` under that number.
    fn addressed(self, session: SessionNo, generation: Generation, number: EnvelopeNo) -> bool {
        let stands = self
            .state
            .session(session)
            .is_some_and(|s| !s.retired && s.generation == generation);
        stands && number == self.state.next_envelope()
    }

    fn dispatched(self, e: &Dispatched) -> bool {
        self.by_giver(e.from)
            && self.addressed(e.session, e.generation, e.envelope)
            && e.dispatch == self.state.next_dispatch()
            && self
                .state
                .live_dispatch_of(self.entry.texts.get(e.item))
                .is_none()
    }

    fn sent(self, e: &Sent) -> bool {
        self.by_giver(e.from) && self.addressed(e.session, e.generation, e.envelope)
    }

    /// A live dispatch in `state`, of the session and generation that the fence names.
    fn bound(self, number: DispatchNo, state: DispatchState) -> bool {
        let fence = &self.entry.fence;
        let theirs = |row: DispatchRow| {
            self.by(row.session) && fence.named == Some(row.generation) && row.state == state
        };
        self.state.dispatch(number).is_some_and(theirs)
    }

    fn accepted(self, e: &Accepted) -> bool {
        self.by(e.session)
            && self.entry.fence.named == Some(e.generation)
            && self.bound(e.dispatch, DispatchState::Queued)
    }

    fn joined(self, e: &Joined) -> bool {
        if let Some(Event::HandedOver(handed)) = self.entry.events.first() {
            return self.joined_behind(handed, e.first_notice);
        }
        self.bound(e.dispatch, DispatchState::Queued)
            && e.first_notice == self.state.next_envelope()
    }

    /// Whether the fence may end a live dispatch that another session was given.
    fn over(self, number: DispatchNo, forced: bool) -> bool {
        let Some(live) = self.state.live.get(&number) else {
            return false;
        };
        match (live.from, self.entry.fence.kind) {
            (Some(giver), FenceKind::Write) => self.by(giver) && !forced,
            (Some(_), FenceKind::None) => forced,
            (None, FenceKind::Write) => !forced,
            (None, FenceKind::None) => true,
            (_, FenceKind::Grant | FenceKind::Claim) => false,
        }
    }

    fn cancelled(self, e: &Cancelled) -> bool {
        self.over(e.dispatch, e.forced)
    }

    fn assignment_failed(self, e: &AssignmentFailed) -> bool {
        let queued = self
            .state
            .dispatch(e.dispatch)
            .is_some_and(|row| row.state == DispatchState::Queued);
        queued && self.over(e.dispatch, e.forced) && e.notice == self.state.next_envelope()
    }

    /// An envelope of the session and generation that the fence names.
    fn own(self, number: EnvelopeNo) -> Option<EnvelopeRow> {
        let row = self.state.envelope(number)?;
        let theirs = self.by(row.session) && self.entry.fence.named == Some(row.generation);
        theirs.then_some(row)
    }

    /// A record continues the history as it stands here: index, record before, digest and depth are what they
    /// have to be, and what it opens is closed and what it closes open.
    fn recorded(self, e: &Recorded) -> bool {
        let Some(session) = self.state.session(e.session) else {
            return false;
        };
        let history = &session.history;
        let is_open = |a: Activity| {
            let id = self.entry.texts.get(a.id);
            history.open_activity(a.kind, id).is_some()
        };
        self.by(e.session)
            && e.index == history.count() + 1
            && e.previous == history.tip.map(|tip| tip.position)
            && e.before == history.hash()
            && e.depth == depth_after(history, e.opens, e.closes)
            && !e.opens.is_some_and(is_open)
            && e.closes.is_none_or(is_open)
            && (e.body.0 as usize) < self.entry.bodies.len()
    }

    fn reverted(self, e: &Reverted) -> bool {
        let idle = self
            .state
            .session(e.session)
            .is_some_and(|s| s.history.open.is_empty() && s.history.tip.is_some());
        self.by(e.session) && idle && (e.to.is_none() || can_be_cut(self.state, e.session, e.to))
    }

    /// The source was there before the session that the same frame grants.
    fn branched(self, e: &Branched) -> bool {
        self.granted(e.session, Generation::first(self.state.incarnation))
            && can_be_cut(self.state, e.source, e.at)
            && e.first_envelope == self.state.next_envelope()
    }

    fn renamed(self, e: &Renamed) -> bool {
        let name = self.entry.texts.get(e.name);
        let parses = core::str::from_utf8(name).is_ok_and(|t| Name::parse(t).is_ok());
        let free = self.state.find(name).is_none_or(|taken| taken == e.session);
        self.by(e.session) && parses && free
    }

    fn refused(self, e: &Refused) -> bool {
        e.refusal == self.state.next_refusal() || self.state.refusal(e.refusal).is_some()
    }
}
