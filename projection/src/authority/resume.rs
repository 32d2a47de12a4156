//! A projection of authority written down and taken up again: what has ended apart from what lasts.

use std::sync::Arc;

use tenure_core::apply::{Applied, apply_seen};
use tenure_core::decide::is_unproven;
use tenure_core::event::{Entry, Event};
use tenure_core::id::{DispatchNo, SessionNo};
use tenure_core::state::{Holder, State};
use tenure_core::text::Pool;
use tenure_log::frame::Depth;
use tenure_log::position::{Head, Position};

use crate::entry;
use crate::error::Error;
use crate::source::Source;
use crate::store::marks;
use crate::store::shelf::Shelf;

use super::kept::Pages;
use super::lasts::Lasts;
use super::row::About;
use super::{Authority, Interval};

/// A projection that runs along with a state, from where something was last written down.
pub(crate) struct Along {
    pub(super) authority: Authority,
    /// What has ended since then is in it.
    pub(super) since: Position,
    /// Where it was taken up from.
    pub(super) pages: Option<Arc<Pages>>,
}

/// What became of authority since some position.
pub(crate) struct Settled {
    /// Behind which everything that ended is here.
    pub(super) since: Position,
    /// What ended, and whether it declared write scopes.
    pub(super) ended: Vec<(About, Interval, bool)>,
    /// What lasts.
    pub(super) lasts: Lasts,
}

impl Along {
    /// From before the first frame.
    pub(crate) fn new() -> Self {
        Self {
            authority: Authority::new(),
            since: Position::ZERO,
            pages: None,
        }
    }

    /// Whether everything that was taken up was what was written.
    pub(crate) fn is_sound(&self) -> bool {
        self.pages.as_ref().is_none_or(|pages| pages.is_sound())
    }

    /// Takes in an entry that stands, with the state that it was decided on.
    pub(crate) fn apply(&mut self, entry: &Entry, state: &State) {
        crate::projection::Projection::apply(&mut self.authority, entry, state);
    }

    /// Lets go of what has ended; everything up to `head` was taken in.
    pub(crate) fn settle(&mut self, head: Position) -> Settled {
        let since = std::mem::replace(&mut self.since, head);
        Settled {
            since,
            ..self.authority.settle()
        }
    }
}

/// A projection that was settled by reading the log, and the state there: it can run along with another state of the log
/// once it has read on to where that stands.
pub(crate) struct Rested {
    pub(super) along: Along,
    /// The state that it has read up to.
    pub(super) state: State,
    /// Where rows are that the state was opened without.
    pub(super) shelf: Option<Arc<Shelf>>,
    /// Where both stand.
    pub(super) head: Head,
}

impl Rested {
    /// Reads on to `head`.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) fn read_on(&mut self, source: &dyn Source, head: Head) -> Result<(), Error> {
        if self.head.position >= head.position {
            return Ok(());
        }
        let mut frames = marks::read_from(source, self.head.position, Depth::Whole)?;
        while self.head.position < head.position
            && let Some(frame) = frames.next()
        {
            let frame = frame?;
            let entry = entry::decode(&frame)?;
            let along = &mut self.along;
            let seen = |state: &State| along.apply(&entry, state);
            let _: Applied = apply_seen(&mut self.state, &entry, seen);
            self.head = frame.header.head();
        }
        Ok(())
    }

    /// What runs along with a state at `head`, if it stands there and everything that was read was what was written.
    pub(crate) fn at(self, head: Head) -> Option<Along> {
        let shelf = self.shelf.as_ref();
        let sound = self.along.is_sound() && shelf.is_none_or(|shelf| shelf.sound().is_ok());
        (sound && self.head == head).then_some(self.along)
    }
}

impl Authority {
    /// Every stretch of every subject that is in memory.
    fn all(&self) -> impl Iterator<Item = (About, &Interval)> {
        let sessions = self.sessions.iter();
        let sessions = sessions.map(|(number, all)| (About::Session(*number), all));
        let trees = self.trees.iter();
        let trees = trees.map(|(root, all)| (About::Tree(*root), all));
        let items = self.items.iter();
        let items = items.map(|(item, all)| (About::Item(self.pool.get(*item).to_vec()), all));
        let roles = self
            .roles
            .iter()
            .map(|(role, all)| (About::Role(*role), all));
        let subjects = sessions.chain(trees).chain(items).chain(roles);
        subjects.flat_map(|(about, all)| all.iter().map(move |i| (about.clone(), i)))
    }

    /// The stretches that have ended, and whether they declared write scopes.
    fn ended(&self) -> Vec<(About, Interval, bool)> {
        let ended = self.all().filter(|(_, interval)| interval.until.is_some());
        let scoped = |dispatch: DispatchNo| self.scoped.contains(&dispatch);
        ended
            .map(|(about, interval)| (about, *interval, interval.dispatch.is_some_and(scoped)))
            .collect()
    }

    /// Notes what lasts, and forgets everything else: a projection taken up again here.
    pub(super) fn settle(&mut self) -> Settled {
        let ended = self.ended();
        let mut lasts = std::mem::take(&mut self.lasts);
        let last = |all: &[Interval]| all.last().filter(|i| i.until.is_none()).copied();
        for (number, all) in &self.sessions {
            Lasts::set(&mut lasts.sessions, *number, last(all).as_ref());
        }
        for (root, all) in &self.trees {
            Lasts::set(&mut lasts.trees, *root, last(all).as_ref());
        }
        // So that what is written does not depend on when: a session that is no root has no tree either way.
        lasts.even();
        for dispatch in &self.taken {
            lasts.set_binding(*dispatch, None);
        }
        for (dispatch, item) in &self.bound {
            let last = self.items.get(item).and_then(|all| last(all));
            let last = last.as_ref().map(|last| (last, self.pool.get(*item)));
            lasts.set_binding(*dispatch, last);
        }
        let roles = self.roles.iter();
        let held = roles
            .filter_map(|(role, all)| Some((*role, all.last().filter(|i| i.until.is_none())?)));
        lasts.set_roles(held);
        lasts.share();
        *self = Self::resumed(lasts.clone());
        Settled {
            since: Position::ZERO,
            ended,
            lasts,
        }
    }

    fn own_texts(&self, holder: Holder, pool: &mut Pool) -> Holder {
        Holder {
            actor: pool.intern(self.pool.get(holder.actor)),
            host_name: pool.intern(self.pool.get(holder.host_name)),
            engine: holder.engine.map(|e| pool.intern(self.pool.get(e))),
            ..holder
        }
    }

    /// Gives the holders of some intervals the texts of a pool of their own.
    pub(super) fn with_own_texts(&self, intervals: &mut [Interval]) -> Pool {
        let mut pool = Pool::default();
        for interval in intervals {
            interval.holder = interval.holder.map(|h| self.own_texts(h, &mut pool));
        }
        pool
    }

    /// A projection that goes on where that was all that lasted. It has nothing of what had ended by then.
    pub(super) fn resumed(lasts: Lasts) -> Self {
        Self {
            roles: lasts.roles(),
            lasts,
            ..Self::default()
        }
    }

    /// Takes up what lasts of all that an entry may be about.
    pub(super) fn take_up(&mut self, entry: &Entry, state: &State) {
        if self.lasts.is_empty() {
            return;
        }
        let raises = |event: &Event| matches!(event, Event::IncarnationRaised(_));
        if is_unproven(state, entry) || entry.events.iter().any(raises) {
            return self.take_up_all(state);
        }
        for event in &entry.events {
            match event {
                Event::Registered(e) => self.take_up_session(e.session, state),
                Event::Adopted(e) => self.take_up_session(e.session, state),
                Event::Carried(e) => self.take_up_session(e.session, state),
                Event::Fenced(e) => self.take_up_session(e.session, state),
                Event::Retired(e) => self.take_up_session(e.session, state),
                Event::RoleTaken(e) => self.take_up_session(e.session, state),
                Event::Reconciled(e) => self.take_up_session(e.session, state),
                Event::Claimed(e) => self.take_up_tree(e.root, state),
                Event::RolledBack(e) => self.take_up_tree(e.root, state),
                Event::Released(e) => self.take_up_tree(e.root, state),
                Event::Unreserved(e) => self.take_up_tree(e.root, state),
                Event::Accepted(e) => {
                    if let Some(row) = state.dispatch(e.dispatch) {
                        self.take_up_session(row.session, state);
                    }
                }
                Event::Dispatched(e) if !state.unproven.is_empty() => {
                    if let Some(before) = state.live_dispatch_of(entry.texts.get(e.item)) {
                        self.take_up_binding(before, state);
                    }
                }
                Event::HandedOver(e) => {
                    self.take_up_binding(e.dispatch, state);
                    self.take_up_session(e.session, state);
                }
                Event::Declined(e) => self.take_up_binding(e.dispatch, state),
                Event::Reported(e) => self.take_up_binding(e.dispatch, state),
                Event::Cancelled(e) => self.take_up_binding(e.dispatch, state),
                Event::AssignmentFailed(e) => self.take_up_binding(e.dispatch, state),
                _ => {}
            }
        }
    }

    fn take_up_tree(&mut self, root: SessionNo, state: &State) {
        for (number, _) in state.sessions_of_tree(root) {
            self.take_up_session(number, state);
        }
    }

    /// A session, the tree that it may be the root of, and its bindings.
    pub(super) fn take_up_session(&mut self, number: SessionNo, state: &State) {
        let Some(record) = state.session(number) else {
            return;
        };
        if self.sessions.contains_key(&number) {
            return;
        }
        let of_session = Lasts::one(&self.lasts.sessions, number);
        let of_tree = Lasts::one(&self.lasts.trees, number);
        self.sessions
            .insert(number, of_session.into_iter().collect());
        self.trees.insert(number, of_tree.into_iter().collect());
        for dispatch in &record.open {
            self.take_up_binding(*dispatch, state);
        }
    }

    pub(super) fn take_up_binding(&mut self, dispatch: DispatchNo, state: &State) {
        if self.taken.contains(&dispatch) || self.bound.contains_key(&dispatch) {
            return;
        }
        let Some((binding, item)) = self.lasts.binding(dispatch) else {
            return;
        };
        let item = self.pool.intern(item);
        let live = state.live.get(&dispatch);
        self.scoped.extend(
            live.filter(|live| !live.writes.is_empty())
                .map(|_| dispatch),
        );
        self.bind(dispatch, item, binding);
        self.taken.insert(dispatch);
    }

    pub(super) fn take_up_all(&mut self, state: &State) {
        let numbers = self.lasts.sessions.len().max(self.lasts.trees.len());
        for number in 0..numbers {
            self.take_up_session(SessionNo(number as u64), state);
        }
        self.take_up_bindings(state);
    }

    pub(super) fn take_up_bindings(&mut self, state: &State) {
        for dispatch in self.lasts.dispatches() {
            self.take_up_binding(dispatch, state);
        }
    }

    /// Takes up what lasts of one subject.
    pub(super) fn take_up_subject(&mut self, about: &About, state: &State) {
        match about {
            About::Session(number) | About::Tree(number) => self.take_up_session(*number, state),
            About::Item(item) => match state.live_dispatch_of(item) {
                Some(dispatch) => self.take_up_binding(dispatch, state),
                // What a lost frame ended lasts for all that anybody can say.
                None if !state.unproven.is_empty() => self.take_up_bindings(state),
                None => {}
            },
            About::Role(_) => {}
        }
    }
}
