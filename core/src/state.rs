//! What replaying the log gives, and nothing else: who is current, who holds, what is open.
//!
//! The state keeps what decisions need. Finished work and closed envelopes shrink to fixed-size rows, and
//! free text stays in the log: a state is as large as the open work plus a few dozen bytes for everything
//! that ever was.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use bincode::{Decode, Encode};
use hashbrown::HashMap;

use crate::disclosure::Presence;
use crate::generation::{self, Generation, Lapse};
use crate::id::{DispatchNo, EnvelopeNo, Moment, Position, RefusalNo, RoleNo, SessionNo};
use crate::limits::{REFUSAL_OPEN_FRAMES, REFUSALS_OPEN_MAX};
use crate::seal::Seal;
use crate::text::{Pool, Symbol, Text};

pub mod grants;
pub mod history;
pub mod layout;
pub mod live;
pub mod lost;
pub mod mail;
mod names;
pub mod paged;
pub mod policy;
pub mod role;
pub mod session;
pub mod table;
pub mod tree;
pub mod work;

pub use history::{History, ImportNote, OpenActivity, Origin, Stretch};
pub use live::Live;
pub use lost::Unproven;
pub use mail::{CancelReason, Envelope, EnvelopeKind, EnvelopeRow, EnvelopeState, NoticeKind};
pub use paged::Paged;
pub use policy::{Policy, Told};
pub use role::{Holding, Role};
pub use session::{Earlier, Former, GrantNote, Granted, Holder, Place, Session};
pub use table::Table;
pub use tree::{Claimer, Tree, TreeNote, TreeStanding};
pub use work::{Dispatch, DispatchRow, DispatchState, Located};

use crate::path::Scope;

use grants::GrantRow;
use names::Names;
use paged::Item;

/// A record of refused commands that are alike.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct RefusalRecord {
    /// Number of `refusal::Code`.
    pub code: u16,
    /// The session concerned; `None` for the record that further keys share.
    pub session: Option<SessionNo>,
    /// The generation that was presented.
    pub presented: Option<Generation>,
    /// The generation that was current.
    pub current: Option<Generation>,
    /// Kind number of the command.
    pub command: u16,
    /// What it was about.
    pub subject: Symbol,
    /// When it was first refused.
    pub first: Moment,
    /// The newest frame about it.
    pub last: Moment,
    /// How often, as far as the log says.
    pub count: u64,
    /// Digests of the bodies kept, with the frame that holds each.
    pub bodies: Vec<([u8; 16], Position)>,
    /// Bytes of the bodies kept.
    pub body_bytes: u64,
    /// Which counter counts its repeats, from 1; its own while the record is open. Zero: none was free.
    pub slot: u16,
}

impl Item for RefusalRecord {
    const ROWS: usize = 32;
    const AWAY_PAGES: usize = 64;

    fn blank() -> Self {
        Self {
            code: 0,
            session: None,
            presented: None,
            current: None,
            command: 0,
            subject: Symbol::default(),
            first: Moment::default(),
            last: Moment::default(),
            count: 0,
            bodies: Vec::new(),
            body_bytes: 0,
            slot: 0,
        }
    }
}

/// The records that a frame was about not long ago, so that none of the others is looked at: the open ones, and some
/// that closed since. Which of these is no part of the state.
#[derive(Clone, Default, Debug)]
struct Touched(Vec<Recent>);

/// A record that was touched. They stand in the order of their numbers.
#[derive(Clone, Copy, Debug)]
struct Recent {
    number: RefusalNo,
    /// The newest frame about it and its counter, as the record has them, so that a new record need not look at all
    /// others; `None` until that was looked up.
    seen: Option<(Position, u16)>,
}

impl Touched {
    fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let recent = |number| Recent {
            number: RefusalNo(number),
            seen: None,
        };
        Self(numbers.map(recent).collect())
    }
}

/// At most so many are kept before those that closed are let go.
const TOUCHED_MAX: usize = 2 * (REFUSALS_OPEN_MAX + 1);

/// What makes refusals alike: coalesced by session, presented generation, command and subject.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RefusalKey {
    /// The session of the token presented; without one, the session concerned.
    pub session: Option<SessionNo>,
    /// The generation presented.
    pub presented: Option<Generation>,
    /// Kind number of the command.
    pub command: u16,
    /// What it was about.
    pub subject: Vec<u8>,
}

impl RefusalKey {
    /// The key that everything shares which has none of its own: names nobody was given, calls without a
    /// token, and whatever comes while [`REFUSALS_OPEN_MAX`] other records are open.
    #[must_use]
    pub fn other() -> Self {
        Self {
            session: None,
            presented: None,
            command: 0,
            subject: b"other".to_vec(),
        }
    }

    /// Whether it is the shared one.
    #[must_use]
    pub fn is_other(&self) -> bool {
        self.session.is_none()
    }
}

/// The state at one position.
#[derive(Clone, Default, Debug)]
pub struct State {
    /// The newest position applied.
    pub at: Moment,
    /// The incarnation of the log, from 1; zero before the first frame.
    pub incarnation: u64,
    /// Whether every grant is made with a secret.
    pub sealed: bool,
    /// Texts.
    pub pool: Pool,
    /// Sessions by number.
    pub sessions: Paged<Session>,
    by_name: Names,
    /// Every dispatch by number; number 0 is not used.
    pub dispatches: Table<DispatchRow>,
    /// The dispatches that are queued or accepted.
    pub live: Live,
    /// Every envelope by number; number 0 is not used.
    pub envelopes: Table<EnvelopeRow>,
    /// Refusal records by number; number 0 is not used.
    pub refusals: Paged<RefusalRecord>,
    touched: Touched,
    /// What newer grants pushed out of their sessions, by number.
    pub grants: Table<GrantRow>,
    /// Roles by number.
    pub roles: Vec<Role>,
    by_role: HashMap<Symbol, Vec<RoleNo>>,
    /// What applies in which places, each once.
    pub policies: Vec<Policy>,
    /// Work that was reported blocked, with its item, until somebody has seen to it: says so, or gives the item
    /// again.
    pub blocked: BTreeMap<DispatchNo, Text>,
    /// Frames that this state does not honour: their fence did not stand at their position.
    pub findings: Vec<Position>,
    /// Every frame that was ever found so, also once somebody has looked at it: it stays without effect.
    pub dishonoured: Vec<Position>,
    /// The files in quarantine that hold the torn tails of which the log says so.
    pub set_aside: BTreeSet<Symbol>,
    /// Where frames were lost, oldest first: stretches in which no fence can be proven.
    pub unproven: Vec<Unproven>,
    /// A deciding kind that this program does not know; while set, nothing may be appended.
    pub unknown: Option<u16>,
}

impl State {
    /// The state before the first frame.
    #[must_use]
    pub fn new() -> Self {
        Self {
            incarnation: 1,
            ..Self::default()
        }
    }

    /// The session of that name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<SessionNo> {
        self.by_name.get(self.pool.find(name)?)
    }

    /// The session of that number.
    #[must_use]
    pub fn session(&self, number: SessionNo) -> Option<&Session> {
        self.sessions.get(number.index())
    }

    /// Name of a session, for people; empty for a number never given.
    #[must_use]
    pub fn name(&self, number: SessionNo) -> String {
        self.session(number)
            .map(|s| self.pool.string(s.name))
            .unwrap_or_default()
    }

    /// The live dispatch of an item.
    #[must_use]
    pub fn live_dispatch_of(&self, item: &[u8]) -> Option<DispatchNo> {
        self.live.of_item(item)
    }

    /// The row of a dispatch that was issued.
    #[must_use]
    pub fn dispatch(&self, number: DispatchNo) -> Option<DispatchRow> {
        if number.0 == 0 {
            None
        } else {
            self.dispatches.get(number.index())
        }
    }

    /// The row of an envelope that was issued.
    #[must_use]
    pub fn envelope(&self, number: EnvelopeNo) -> Option<EnvelopeRow> {
        if number.0 == 0 {
            None
        } else {
            self.envelopes.get(number.index())
        }
    }

    /// A refusal record.
    #[must_use]
    pub fn refusal(&self, number: RefusalNo) -> Option<&RefusalRecord> {
        if number.0 == 0 {
            None
        } else {
            self.refusals.get(number.index())
        }
    }

    /// Number of the open refusal record that `key` falls under: its own or, where it can have none, the one
    /// that everything else shares. `None`: the next such refusal opens one.
    #[must_use]
    pub fn refusal_record(&self, key: &RefusalKey) -> Option<RefusalNo> {
        match self.own_record(key) {
            Some(number) => Some(number),
            None if self.shares_record(key) => self.own_record(&RefusalKey::other()),
            None => None,
        }
    }

    /// Whether refusals of `key` go to the shared record: too many others are open.
    #[must_use]
    pub fn shares_record(&self, key: &RefusalKey) -> bool {
        key.is_other()
            || self.own_record(key).is_none()
                && self
                    .open_records()
                    .filter(|(_, r)| r.session.is_some())
                    .count()
                    >= REFUSALS_OPEN_MAX
    }

    fn own_record(&self, key: &RefusalKey) -> Option<RefusalNo> {
        let subject = self.pool.find(&key.subject)?;
        self.open_records()
            .find(|(_, r)| {
                r.session == key.session
                    && r.presented == key.presented
                    && r.command == key.command
                    && r.subject == subject
            })
            .map(|(number, _)| number)
    }

    /// The lowest counter that no open record uses; zero when all do.
    pub(crate) fn free_slot(&mut self) -> u16 {
        const SLOTS: usize = REFUSALS_OPEN_MAX + 1;
        let mut taken = [false; SLOTS + 1];
        let newest = self.at.position;
        for recent in &mut self.touched.0 {
            if recent.seen.is_none() {
                let record = self.refusals.get(recent.number.index());
                recent.seen = record.map(|record| (record.last.position, record.slot));
            }
            let open = recent.seen.filter(|(last, _)| is_open(*last, newest));
            if let Some(slot) = open.and_then(|(_, slot)| taken.get_mut(usize::from(slot))) {
                *slot = true;
            }
        }
        taken[0] = true;
        let free = taken.iter().position(|taken| !taken).unwrap_or(0);
        u16::try_from(free).unwrap_or(0)
    }

    /// Records that were touched within the last [`REFUSAL_OPEN_FRAMES`] frames.
    fn open_records(&self) -> impl Iterator<Item = (RefusalNo, &RefusalRecord)> {
        let touched = self.touched.0.iter().map(|recent| recent.number);
        let records = touched.filter_map(|n| Some((n, self.refusals.get(n.index())?)));
        records.filter(|(_, record)| self.is_open(record))
    }

    fn is_open(&self, record: &RefusalRecord) -> bool {
        is_open(record.last.position, self.at.position)
    }

    /// Notes that a frame was about that record.
    pub(crate) fn touch_record(&mut self, number: RefusalNo) {
        let record = self.refusals.get(number.index());
        let recent = Recent {
            number,
            seen: record.map(|record| (record.last.position, record.slot)),
        };
        let touched = &mut self.touched.0;
        match touched.binary_search_by_key(&number, |recent| recent.number) {
            Ok(at) => touched[at] = recent,
            Err(at) => {
                touched.insert(at, recent);
                if touched.len() > TOUCHED_MAX {
                    let newest = self.at.position;
                    let refusals = &self.refusals;
                    touched.retain(|recent| {
                        let record = refusals.get(recent.number.index());
                        let open = |record: &RefusalRecord| is_open(record.last.position, newest);
                        recent.number == number || record.is_some_and(open)
                    });
                }
            }
        }
    }

    /// Number the next dispatch gets.
    #[must_use]
    pub fn next_dispatch(&self) -> DispatchNo {
        DispatchNo(self.dispatches.len().max(1) as u64)
    }

    /// Number the next envelope gets.
    #[must_use]
    pub fn next_envelope(&self) -> EnvelopeNo {
        EnvelopeNo(self.envelopes.len().max(1) as u64)
    }

    /// Number the next role gets.
    #[must_use]
    pub fn next_role(&self) -> RoleNo {
        RoleNo(self.roles.len() as u64)
    }

    /// Number the next refusal record gets.
    #[must_use]
    pub fn next_refusal(&self) -> RefusalNo {
        RefusalNo(self.refusals.len().max(1) as u64)
    }

    /// The check of every write: does `session` stand at `presented`?
    ///
    /// # Errors
    /// The [`Lapse`]; for a session number never given, [`Lapse::NeverIssued`].
    pub fn check(&self, session: SessionNo, presented: Generation) -> Result<(), Lapse> {
        let record = self.session(session).ok_or(Lapse::NeverIssued)?;
        let standing = self.standing_of(session, record);
        generation::check(record.generation, standing, presented)
    }

    /// Whether a secret with that digest is the one that the session's current generation was granted with, and
    /// `presented` is that generation.
    #[must_use]
    pub fn is_sealed_with(&self, session: SessionNo, presented: Generation, seal: Seal) -> bool {
        self.session(session)
            .is_some_and(|s| s.generation == presented && s.seal == Some(seal))
    }

    /// Whether a token may count of which that is known about its secret: with its own in a sealed store, and with none
    /// in any other.
    #[must_use]
    pub fn opens(&self, secret_matched: Option<bool>) -> bool {
        secret_matched == self.sealed.then_some(true)
    }

    /// The dispatches of a session that are live.
    pub fn live_of(&self, session: SessionNo) -> impl Iterator<Item = (DispatchNo, &Dispatch)> {
        let open = self.session(session).map_or(&[][..], |s| &s.open);
        open.iter()
            .filter_map(|d| self.live.get(d).map(|live| (*d, live)))
    }

    /// The places where a session is at work: where its accepted dispatches say, where it was seen to write,
    /// and the checkout it said it works in, which only speaks for it while it has no such dispatch.
    pub fn presence(
        &self,
        session: SessionNo,
    ) -> impl Iterator<Item = (Presence, Option<DispatchNo>, &Scope<Symbol>)> {
        let working = move |n: &DispatchNo| {
            self.dispatch(*n)
                .is_some_and(|r| r.state == DispatchState::Accepted)
        };
        let declared = self
            .live_of(session)
            .filter(move |(n, _)| working(n))
            .flat_map(|(n, d)| {
                d.writes
                    .iter()
                    .map(move |w| (Presence::Declared, Some(n), w))
            });
        let record = self.session(session);
        let observed = record.into_iter().flat_map(|s| s.observed.iter());
        let idle = !self.live_of(session).any(|(n, _)| working(&n));
        let present = record
            .filter(|_| idle)
            .into_iter()
            .flat_map(|s| s.checkout.iter());
        declared
            .chain(observed.map(|w| (Presence::Observed, None, w)))
            .chain(present.map(|w| (Presence::Present, None, w)))
    }

    /// The sessions that may be at work somewhere, or whose former holders may be, and some others.
    pub fn sessions_at_work(&self) -> impl Iterator<Item = (SessionNo, &Session)> {
        let unquiet = self.sessions.unquiet();
        unquiet.map(|(number, session)| (SessionNo(number as u64), session))
    }

    /// What a session would have to be changed for, to be at work somewhere: the scopes of a dispatch never change.
    fn may_be_at_work(&self, session: &Session) -> bool {
        let declares = |d: &DispatchNo| self.live.get(d).is_some_and(|d| !d.writes.is_empty());
        !session.formers.is_empty()
            || !session.observed.is_empty()
            || session.checkout.is_some()
            || session.open.iter().any(declares)
    }

    pub(crate) fn find_symbol(&self, name: Symbol) -> Option<SessionNo> {
        self.by_name.get(name)
    }

    pub(crate) fn forget_name(&mut self, name: Symbol) {
        self.by_name.set(name, None);
    }

    pub(crate) fn index_name(&mut self, name: Symbol, session: SessionNo) {
        self.by_name.set(name, Some(session));
    }

    /// The roles of that name, in all scopes.
    pub(crate) fn roles_named(&self, name: &[u8]) -> &[RoleNo] {
        let numbers = self.pool.find(name).and_then(|n| self.by_role.get(&n));
        numbers.map_or(&[], Vec::as_slice)
    }

    pub(crate) fn index_role(&mut self, name: Symbol, role: RoleNo) {
        self.by_role.entry(name).or_default().push(role);
    }

    pub(crate) fn index_item(&mut self, item: Text, dispatch: DispatchNo) {
        self.live.index_item(item, dispatch);
    }

    /// Whether the log says of a file in quarantine that a torn tail is kept in it.
    #[must_use]
    pub fn has_set_aside(&self, file: &[u8]) -> bool {
        self.pool
            .find(file)
            .is_some_and(|symbol| self.set_aside.contains(&symbol))
    }

    pub(crate) fn free_item(&mut self, item: &Text) {
        self.live.free_item(item);
    }

    /// Whether the session is active, so that it has a token, or can have one by an adopt.
    #[must_use]
    pub fn is_active(&self, session: SessionNo) -> bool {
        self.session(session).is_some_and(|s| !s.retired)
    }
}

/// Whether a record that a frame was last about at `last` is open at `newest`.
fn is_open(last: Position, newest: Position) -> bool {
    let closed = newest.0.checked_sub(REFUSAL_OPEN_FRAMES);
    closed.is_none_or(|closed| last.0 > closed)
}
