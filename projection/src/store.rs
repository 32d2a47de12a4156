//! The store: a state kept at the head of a journal, and the only way to append to it.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tenure_core::disclosure::{Shared, instruction, shared};
use tenure_core::event::Entry;
use tenure_core::holder::{Evidence, judge};
use tenure_core::id::{Moment, Position, SessionNo, Time};
use tenure_core::state::{Located, State};
use tenure_log::frame::Depth;
use tenure_log::journal::{Deadline, Journal};
use tenure_log::position::{Head, Receipt, StoreId};

use crate::call::{Call, IdempotencyKey};
use crate::entry;
use crate::error::{Error, Failure};
use crate::host::Host;

mod answer;
mod group;
mod keys;
mod live;
mod payload;
mod prepare;
mod refuse;
mod snapshot;

pub use answer::{Answer, Done, Grant};
pub use group::Ticket;

use group::Group;
use live::Live;

/// A store, shared by any number of threads; clones are handles of one.
///
/// Every write goes through [`Store::execute`]: it is decided against the state at the head of the log, under
/// the log's append lock, and appended only if the presented generation is current there.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    journal: Arc<dyn Journal>,
    host: Arc<dyn Host>,
    live: RwLock<Live>,
    group: Mutex<Group>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.id())
    }
}

/// What is known about a command whose answer was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// It is in the log.
    Done {
        /// Where.
        receipt: Receipt,
        /// When.
        at: Moment,
    },
    /// It is not in the log up to this position, and whatever is not there now was not acknowledged.
    Absent {
        /// How far was looked.
        searched: Position,
    },
}

impl Store {
    /// A store over a journal. Replays what no snapshot covers.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn over(journal: Arc<dyn Journal>, host: Arc<dyn Host>) -> Result<Self, Error> {
        let live = Live::open(&*journal)?;
        Ok(Self(Arc::new(Inner {
            journal,
            host,
            live: RwLock::new(live),
            group: Mutex::new(Group::default()),
        })))
    }

    /// The store's own id.
    #[must_use]
    pub fn id(&self) -> StoreId {
        self.0.journal.identity().store
    }

    /// The journal it stands on.
    #[must_use]
    pub fn journal(&self) -> &dyn Journal {
        &*self.0.journal
    }

    /// The clock and process probe it uses.
    #[must_use]
    pub fn host(&self) -> &dyn Host {
        &*self.0.host
    }

    /// Decides a call at the head of the log and, if it stands, appends it. Blocks until the answer depends on
    /// nothing that a crash could take back.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn execute(&self, call: Call) -> Result<Done, Failure> {
        self.submit(call)?.wait()
    }

    /// As [`Store::execute`], without waiting: one thread can have many calls on their way, and they share
    /// writes and syncs. Calls are decided in the order in which they were submitted.
    ///
    /// # Errors
    /// Only what is found before anything is decided: limits, paths, the process to be recorded.
    pub fn submit(&self, call: Call) -> Result<Ticket, Failure> {
        let prepared = prepare::prepare(self, call)?;
        Ok(group::submit(self, prepared))
    }

    /// Looks at the state at the head of the log. Takes no append lock; what is shown is durable.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn view<R>(&self, look: impl FnOnce(&State) -> R) -> Result<R, Error> {
        self.catch_up()?;
        let live = self.0.live.read();
        let (head, result) = (live.head, look(&live.state));
        drop(live);
        self.0.journal.wait_durable(head.position, Deadline::NEVER)?;
        Ok(result)
    }

    /// The newest head that this handle has seen after catching up.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn head(&self) -> Result<Head, Error> {
        self.catch_up()?;
        Ok(self.0.live.read().head)
    }

    /// Catches up, and loads the keys if the next decision asks for them.
    fn ready(&self, keyed: bool) -> Result<Head, Error> {
        self.catch_up()?;
        if keyed {
            let mut live = self.0.live.write();
            live.load_keys(&*self.0.journal)?;
            return Ok(live.head);
        }
        Ok(self.0.live.read().head)
    }

    /// Reads what others appended.
    fn catch_up(&self) -> Result<(), Error> {
        let newest = self.0.journal.head()?;
        let live = self.0.live.read();
        if !live.tainted && live.head.position >= newest.position {
            return Ok(());
        }
        drop(live);
        self.0.live.write().catch_up(&*self.0.journal)
    }

    /// The state after the entry at `position`, by replay from the start.
    ///
    /// # Errors
    /// [`Error::BeyondHead`], or when the log cannot be read.
    pub fn state_at(&self, position: Position) -> Result<State, Error> {
        let mut state = State::new();
        self.replay(position, |state_before, entry| {
            tenure_core::apply::apply(state_before, entry);
        }, &mut state)?;
        Ok(state)
    }

    fn replay(
        &self,
        to: Position,
        mut each: impl FnMut(&mut State, &Entry),
        state: &mut State,
    ) -> Result<(), Error> {
        let head = self.0.journal.head()?;
        if head.position.0 < to.0 {
            return Err(Error::BeyondHead { head: Position(head.position.0), asked: to });
        }
        let mut frames = self.0.journal.read_from(tenure_log::position::Position::ZERO, Depth::Facts)?;
        while let Some(frame) = frames.next() {
            let frame = frame?;
            if frame.header.position.0 > to.0 {
                break;
            }
            each(state, &entry::decode(&frame)?);
        }
        Ok(())
    }

    /// A body by where it stands; `None` when it was redacted or never there.
    ///
    /// # Errors
    /// When the frame cannot be read.
    pub fn body(&self, at: Located) -> Result<Option<Vec<u8>>, Error> {
        let before = tenure_log::position::Position(at.position.0.saturating_sub(1));
        let mut frames = self.0.journal.read_from(before, Depth::Whole)?;
        let Some(frame) = frames.next() else { return Ok(None) };
        let frame = frame?;
        let body = tenure_core::codec::v1::decode_body(
            frame.facts,
            frame.texts,
            frame.bodies,
            at.body.0 as usize,
        );
        let fault = |fault| Error::Facts { position: at.position, fault };
        Ok(body.map_err(fault)?.map(<[u8]>::to_vec))
    }

    /// What a host's probe says about the current holder of a session.
    #[must_use]
    pub fn evidence(&self, state: &State, session: SessionNo) -> Option<Evidence> {
        let record = state.session(session)?;
        let bearing = record.holder?.bearing;
        let (verdict, proofs) = judge(&bearing, &self.0.host.sight(&bearing));
        Some(Evidence { session, generation: record.generation, verdict, proofs })
    }

    /// Who is at work where `paths` are, as `asker` would be told.
    ///
    /// # Errors
    /// When a path cannot be located or the log cannot be read.
    pub fn shared_at(
        &self,
        asker: Option<SessionNo>,
        paths: &[std::path::PathBuf],
    ) -> Result<(Vec<Shared>, Option<&'static str>), Error> {
        let scopes = prepare::locate_all(self, paths)?;
        self.view(|state| {
            let mut pool = state.clone();
            let scopes: Vec<_> =
                scopes.iter().map(|s| s.map(|p| pool.pool.intern(p))).collect();
            let list = shared(&pool, asker, &scopes);
            let said = instruction(&list);
            (list, said)
        })
    }

    /// Whether the command with that key, or at that receipt, is in the log.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn outcome(&self, trace: &crate::error::Trace) -> Result<Known, Error> {
        match trace {
            crate::error::Trace::Key(key) => self.outcome_of_key(key),
            crate::error::Trace::Receipt(receipt) => self.outcome_of_receipt(receipt),
        }
    }

    fn outcome_of_key(&self, key: &IdempotencyKey) -> Result<Known, Error> {
        let head = self.ready(true)?;
        let prior = self.0.live.read().known_prior(keys::digest(key));
        self.0.journal.wait_durable(head.position, Deadline::NEVER)?;
        match prior {
            None => Ok(Known::Absent { searched: Position(head.position.0) }),
            Some(prior) => {
                let (at, head) = self.frame_head(prior.position)?;
                Ok(Known::Done { receipt: self.receipt(head), at })
            }
        }
    }

    fn outcome_of_receipt(&self, receipt: &Receipt) -> Result<Known, Error> {
        let head = self.head()?;
        self.0.journal.wait_durable(head.position, Deadline::NEVER)?;
        let absent = Known::Absent { searched: Position(head.position.0) };
        if receipt.store != self.id() || receipt.position > head.position || receipt.position.0 == 0 {
            return Ok(absent);
        }
        let (at, found) = self.frame_head(Position(receipt.position.0))?;
        Ok(if found.chain == receipt.chain { Known::Done { receipt: *receipt, at } } else { absent })
    }

    /// When a frame was written, and its head.
    fn frame_head(&self, position: Position) -> Result<(Moment, Head), Error> {
        let before = tenure_log::position::Position(position.0.saturating_sub(1));
        let mut frames = self.0.journal.read_from(before, Depth::Facts)?;
        match frames.next() {
            Some(frame) => {
                let frame = frame?;
                Ok((entry::moment(&frame.header), frame.header.head()))
            }
            None => Err(Error::BeyondHead {
                head: Position(self.0.journal.head()?.position.0),
                asked: position,
            }),
        }
    }

    fn receipt(&self, head: Head) -> Receipt {
        Receipt { store: self.id(), position: head.position, chain: head.chain }
    }

    fn now(&self) -> Time {
        self.0.host.now()
    }
}
