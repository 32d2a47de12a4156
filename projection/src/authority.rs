//! Who held a session, an item, or a role, from where to where (BND-5, AUD-1).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tenure_core::command::Bearer;
use tenure_core::decide::is_unproven;
use tenure_core::event::{Entry, Event, HandedOver, RoleTaken};
use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, Moment, Position, RoleNo, SessionNo, Time};
use tenure_core::state::{Holder, State};
use tenure_core::text::{Pool, Symbol, Texts};

use crate::projection::Projection;

use lasts::Lasts;

pub(crate) mod kept;
mod lasts;
pub(crate) mod over;
pub(crate) mod resume;
mod row;
mod tree;

pub use kept::{Held, Resolved};
pub use over::Over;
pub use row::About;

/// Where something began or ended, and by which event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// When.
    pub at: Moment,
    /// The word of the event.
    pub event: &'static str,
}

/// One stretch of authority over a session or an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The session that held it: itself, the one with the binding of an item, or the root of a tree.
    pub session: SessionNo,
    /// The generation it was held under.
    pub generation: Generation,
    /// Who held that session, with texts of [`Authority::pool`]; `None` for an item whose session nobody has
    /// adopted since its tree changed hands or the incarnation was raised.
    pub holder: Option<Holder>,
    /// The frame that granted the session to that holder, or the tree.
    pub granted: Option<Position>,
    /// The dispatch, for an item.
    pub dispatch: Option<DispatchNo>,
    /// Where it began; it holds at this position.
    pub since: Point,
    /// Where it ended; it no longer holds at this position.
    pub until: Option<Point>,
}

impl Interval {
    fn holds_at(&self, position: Position) -> bool {
        self.since.at.position <= position && self.until.is_none_or(|u| position < u.at.position)
    }

    fn holds_at_time(&self, time: Time) -> bool {
        self.since.at.time <= time && self.until.is_none_or(|u| time < u.at.time)
    }
}

/// A place in the log to ask about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// The newest position seen.
    Now,
    /// A position: what is true once its frame is applied.
    At(Position),
    /// A time. Clocks only inform: where one went back, the newest stretch that covers the time is the answer.
    Time(Time),
}

/// A projection that keeps every stretch of authority.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    pool: Pool,
    sessions: HashMap<SessionNo, Vec<Interval>>,
    /// By the number of the root.
    trees: HashMap<SessionNo, Vec<Interval>>,
    names: HashMap<Symbol, SessionNo>,
    items: HashMap<Symbol, Vec<Interval>>,
    /// Active bindings: the item of each accepted dispatch.
    bound: BTreeMap<DispatchNo, Symbol>,
    by_session: BTreeSet<(SessionNo, DispatchNo)>,
    /// The dispatches among those that were accepted which declare write scopes.
    scoped: BTreeSet<DispatchNo>,
    roles: BTreeMap<RoleNo, Vec<Interval>>,
    /// What lasted where this projection was taken up. What is said of a subject is taken from there when it is first
    /// needed, without its holder.
    lasts: Lasts,
    /// The bindings that were taken from there.
    taken: BTreeSet<DispatchNo>,
}

impl Authority {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The texts of the holders in the intervals.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Every stretch in which the session of that name was held, oldest first.
    #[must_use]
    pub fn of_session(&self, name: &[u8]) -> &[Interval] {
        self.pool
            .find(name)
            .and_then(|symbol| self.names.get(&symbol))
            .and_then(|number| self.sessions.get(number))
            .map_or(&[], Vec::as_slice)
    }

    /// Every stretch in which the item had an active binding, oldest first.
    #[must_use]
    pub fn of_item(&self, item: &[u8]) -> &[Interval] {
        self.pool
            .find(item)
            .and_then(|symbol| self.items.get(&symbol))
            .map_or(&[], Vec::as_slice)
    }

    /// Who held the session then.
    #[must_use]
    pub fn session_at(&self, name: &[u8], when: When) -> Option<&Interval> {
        find(self.of_session(name), when)
    }

    /// Who had the active binding of the item then.
    #[must_use]
    pub fn item_at(&self, item: &[u8], when: When) -> Option<&Interval> {
        find(self.of_item(item), when)
    }

    /// Every stretch in which the role was held, oldest first.
    #[must_use]
    pub fn of_role(&self, role: RoleNo) -> &[Interval] {
        self.roles.get(&role).map_or(&[], Vec::as_slice)
    }

    /// Who held the role then.
    #[must_use]
    pub fn role_at(&self, role: RoleNo, when: When) -> Option<&Interval> {
        find(self.of_role(role), when)
    }

    fn open(&mut self, number: SessionNo, generation: Generation, holder: Holder, since: Point) {
        begin(&mut self.sessions, number, generation, holder, since);
    }

    fn close(&mut self, number: SessionNo, until: Point) {
        end(&mut self.sessions, number, until);
    }

    /// Who holds the session now, as far as this projection has folded the entry in hand.
    fn holding(&self, number: SessionNo) -> Option<&Interval> {
        self.sessions
            .get(&number)?
            .last()
            .filter(|i| i.until.is_none())
    }

    /// Who holds the session now, and where that was granted.
    fn bearing(&self, number: SessionNo) -> (Option<Holder>, Option<Position>) {
        let held = self.holding(number);
        (held.and_then(|i| i.holder), held.and_then(|i| i.granted))
    }

    fn bind(&mut self, dispatch: DispatchNo, item: Symbol, binding: Interval) {
        self.bound.insert(dispatch, item);
        self.by_session.insert((binding.session, dispatch));
        self.items.entry(item).or_default().push(binding);
    }

    fn unbind(&mut self, dispatch: DispatchNo, until: Point) -> Option<Interval> {
        let item = self.bound.remove(&dispatch)?;
        let last = self.items.get_mut(&item)?.last_mut()?;
        last.until = Some(until);
        self.by_session.remove(&(last.session, dispatch));
        Some(*last)
    }

    /// The active bindings of a session.
    fn bindings_of(&self, session: SessionNo) -> Vec<DispatchNo> {
        self.by_session
            .range((session, DispatchNo(0))..=(session, DispatchNo(u64::MAX)))
            .map(|(_, dispatch)| *dispatch)
            .collect()
    }

    /// Bindings that go on under another generation: one stretch ends and the next begins.
    fn restamp(&mut self, session: SessionNo, generation: Generation, at: Point) {
        let (holder, granted) = self.bearing(session);
        for dispatch in self.bindings_of(session) {
            let Some(item) = self.bound.get(&dispatch).copied() else {
                continue;
            };
            if let Some(old) = self.unbind(dispatch, at) {
                let new = Interval {
                    generation,
                    holder,
                    granted,
                    since: at,
                    until: None,
                    ..old
                };
                self.bind(dispatch, item, new);
            }
        }
    }
}

fn begin(
    table: &mut HashMap<SessionNo, Vec<Interval>>,
    number: SessionNo,
    generation: Generation,
    holder: Holder,
    since: Point,
) {
    end(table, number, since);
    let interval = Interval {
        session: number,
        generation,
        holder: Some(holder),
        granted: Some(since.at.position),
        dispatch: None,
        since,
        until: None,
    };
    table.entry(number).or_default().push(interval);
}

fn end(table: &mut HashMap<SessionNo, Vec<Interval>>, number: SessionNo, until: Point) {
    let newest = table.get_mut(&number).and_then(|s| s.last_mut());
    if let Some(newest) = newest {
        newest.until = newest.until.or(Some(until));
    }
}

fn find(intervals: &[Interval], when: When) -> Option<&Interval> {
    match when {
        When::Now => intervals.last().filter(|i| i.until.is_none()),
        When::At(position) => {
            let began = intervals.partition_point(|i| i.since.at.position <= position);
            intervals[..began].last().filter(|i| i.holds_at(position))
        }
        When::Time(time) => intervals.iter().rev().find(|i| i.holds_at_time(time)),
    }
}

impl Authority {
    /// Every stretch of one subject, oldest first.
    #[must_use]
    pub fn of(&self, about: &About) -> &[Interval] {
        match about {
            About::Session(number) => self.sessions.get(number).map_or(&[], Vec::as_slice),
            About::Tree(root) => self.of_tree(*root),
            About::Item(item) => self.of_item(item),
            About::Role(role) => self.of_role(*role),
        }
    }
}

impl Projection for Authority {
    fn apply(&mut self, entry: &Entry, state: &State) {
        self.take_up(entry, state);
        let delegated = entry
            .events
            .iter()
            .any(|e| matches!(e, Event::Delegated(_)));
        if is_unproven(state, entry) {
            self.lost_grant(entry, state);
        }
        for event in &entry.events {
            let point = Point {
                at: entry.at,
                event: event.word(),
            };
            self.event(event, point, &entry.texts, state);
            self.tree(event, point, &entry.texts, state, delegated);
        }
    }
}

impl Authority {
    fn event(&mut self, event: &Event, point: Point, texts: &Texts, state: &State) {
        match event {
            Event::Registered(e) => {
                let name = self.pool.intern(texts.get(e.name));
                self.names.entry(name).or_insert(e.session);
                let holder = self.holder(&e.bearer, texts);
                self.open(e.session, e.generation, holder, point);
            }
            Event::Adopted(e) if state.session(e.session).is_some() => {
                let holder = self.holder(&e.bearer, texts);
                self.open(e.session, e.generation, holder, point);
                self.roles_follow(e.session, e.generation, point);
            }
            Event::Carried(e) => self.restamp(e.session, e.generation, point),
            Event::Fenced(e) => {
                for dispatch in self.bindings_of(e.session) {
                    if self.generation_of(dispatch).is_some_and(|g| g < e.below) {
                        self.unbind(dispatch, point);
                    }
                }
            }
            Event::Retired(e) => {
                self.close(e.session, point);
                for dispatch in self.bindings_of(e.session) {
                    self.unbind(dispatch, point);
                }
                for role in self.roles_of(e.session) {
                    self.role_ended(role, point);
                }
            }
            Event::Accepted(e) => self.accepted(e.dispatch, point, state),
            Event::Dispatched(e) => {
                // Only behind a loss: what had the item ended in a frame that is lost.
                if let Some(before) = state.live_dispatch_of(texts.get(e.item)) {
                    self.unbind(before, point);
                }
            }
            Event::HandedOver(e) => self.handed_over(e, point),
            Event::Released(e) => {
                for (session, _) in state.sessions_of_tree(e.root) {
                    for role in self.roles_of(session) {
                        self.role_ended(role, point);
                    }
                }
            }
            Event::RoleTaken(e) => self.role_taken(e, point),
            Event::RoleLapsed(e) => self.role_ended(e.role, point),
            Event::RoleReleased(e) => self.role_ended(e.role, point),
            Event::RoleCleared(e) => self.role_ended(e.role, point),
            Event::Declined(e) => drop(self.unbind(e.dispatch, point)),
            Event::Reported(e) => drop(self.unbind(e.dispatch, point)),
            Event::Cancelled(e) => drop(self.unbind(e.dispatch, point)),
            Event::AssignmentFailed(e) => drop(self.unbind(e.dispatch, point)),
            Event::IncarnationRaised(e) if e.incarnation > state.incarnation => {
                for (number, session) in state.sessions.iter().enumerate() {
                    let number = SessionNo(number as u64);
                    let generation = Generation {
                        incarnation: e.incarnation,
                        ..session.generation
                    };
                    self.close(number, point);
                    self.restamp(number, generation, point);
                    self.roles_follow(number, generation, point);
                }
            }
            _ => {}
        }
    }

    /// An entry behind a loss that names a newer generation than is known: whoever held the session before holds it no
    /// more, and who does stands in a frame that is lost.
    fn lost_grant(&mut self, entry: &Entry, state: &State) {
        let (Some(session), Some(named)) = (entry.fence.session, entry.fence.named) else {
            return;
        };
        if state.session(session).is_some_and(|s| s.generation < named) {
            let point = Point {
                at: entry.at,
                event: "position-lost",
            };
            self.close(session, point);
        }
    }

    fn generation_of(&self, dispatch: DispatchNo) -> Option<Generation> {
        let item = self.bound.get(&dispatch)?;
        self.items.get(item)?.last().map(|i| i.generation)
    }

    fn accepted(&mut self, dispatch: DispatchNo, point: Point, state: &State) {
        let (Some(live), Some(row)) = (state.live.get(&dispatch), state.dispatch(dispatch)) else {
            return;
        };
        if self.bound.contains_key(&dispatch) {
            return;
        }
        let item = self.pool.intern(live.item.as_bytes());
        let (holder, granted) = self.bearing(row.session);
        let binding = Interval {
            session: row.session,
            generation: row.generation,
            holder,
            granted,
            dispatch: Some(dispatch),
            since: point,
            until: None,
        };
        self.scoped
            .extend(Some(dispatch).filter(|_| !live.writes.is_empty()));
        self.bind(dispatch, item, binding);
    }

    /// A binding that goes over to another session: one stretch ends and the next begins.
    fn handed_over(&mut self, e: &HandedOver, point: Point) {
        let Some(item) = self.bound.get(&e.dispatch).copied() else {
            return;
        };
        if self.unbind(e.dispatch, point).is_none() {
            return;
        }
        let (holder, granted) = self.bearing(e.session);
        let binding = Interval {
            session: e.session,
            generation: e.generation,
            holder,
            granted,
            dispatch: Some(e.dispatch),
            since: point,
            until: None,
        };
        self.bind(e.dispatch, item, binding);
    }

    fn role_taken(&mut self, e: &RoleTaken, point: Point) {
        self.role_ended(e.role, point);
        let (of_session, granted) = self.bearing(e.session);
        let holder = of_session.map(|holder| Holder {
            bearing: e.process.unwrap_or(holder.bearing),
            ..holder
        });
        self.roles.entry(e.role).or_default().push(Interval {
            session: e.session,
            generation: e.under,
            holder,
            granted,
            dispatch: None,
            since: point,
            until: None,
        });
    }

    fn role_ended(&mut self, role: RoleNo, point: Point) {
        let last = self.roles.get_mut(&role).and_then(|held| held.last_mut());
        if let Some(last) = last {
            last.until = last.until.or(Some(point));
        }
    }

    fn roles_of(&self, session: SessionNo) -> Vec<RoleNo> {
        let held = |i: &Interval| i.session == session && i.until.is_none();
        let all = self.roles.iter();
        all.filter(|(_, intervals)| intervals.last().is_some_and(held))
            .map(|(role, _)| *role)
            .collect()
    }

    /// Roles go on with their session under another generation: one stretch ends and the next begins.
    fn roles_follow(&mut self, session: SessionNo, generation: Generation, point: Point) {
        let (holder, granted) = self.bearing(session);
        for role in self.roles_of(session) {
            self.role_ended(role, point);
            self.roles.entry(role).or_default().push(Interval {
                session,
                generation,
                holder,
                granted,
                dispatch: None,
                since: Point {
                    event: "carried",
                    ..point
                },
                until: None,
            });
        }
    }

    fn holder(&mut self, bearer: &Bearer, texts: &Texts) -> Holder {
        Holder {
            bearing: bearer.bearing,
            actor: self.pool.intern(texts.get(bearer.actor)),
            host_name: self.pool.intern(texts.get(bearer.host_name)),
            engine: bearer.engine.map(|e| self.pool.intern(texts.get(e))),
        }
    }
}
