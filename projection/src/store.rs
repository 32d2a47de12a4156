//! The store: a state kept at the head of a journal, and the only way to append to it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tenure_core::decide::decide;
use tenure_core::id::Time;
use tenure_core::refusal::Refusal;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Journal, RulesVersion};
use tenure_log::position::{Head, Receipt, StoreId};
use tenure_log::storage::disk::Disk;

use crate::call::Call;
use crate::entry::Supplies;
use crate::error::{Error, Failure};
use crate::host::Host;
use crate::reader::Reader;
use crate::sync::Mutex;

pub(crate) mod answer;
mod aside;
pub(crate) mod files;
mod gate;
mod group;
mod judge;
pub(crate) mod keys;
pub(crate) mod live;
pub(crate) mod marks;
mod payload;
mod prepare;
mod refuse;
pub(crate) mod runs;
pub(crate) mod scratch;
mod settle;
pub(crate) mod shelf;
pub(crate) mod snapshot;
pub(crate) mod trail;
mod wait;

pub use answer::{Answer, Done, Grant};
pub use group::Ticket;
pub use settle::settle;

use aside::Aside;
use group::Group;

/// The version of the rules in `tenure-core`: segment headers name it, and a change of rules raises it.
pub const RULES: RulesVersion = RulesVersion(1);

/// A store, shared by any number of threads; clones are handles of one. Everything a [`Reader`] can do, it can.
///
/// Every write goes through [`Store::execute`]: it is decided against the state at the head of the log, under
/// the log's append lock, and appended only if the presented generation is current there.
#[derive(Clone)]
pub struct Store(Arc<Inner>, Option<Arc<Aside>>);

struct Inner {
    journal: Arc<dyn Journal>,
    reader: Reader,
    group: Mutex<Group>,
    /// Set when a snapshot should be written, cleared by the thread that does.
    snapshot_due: AtomicBool,
    /// Held by the thread that writes one.
    snapshotting: Mutex<()>,
    supplies: Mutex<Supplies>,
    id: StoreId,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.0.reader)
    }
}

impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.0.reader
    }
}

/// How a store in a directory is opened for writing.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    dir: PathBuf,
    create: bool,
    aside: bool,
    log: Options,
}

impl OpenOptions {
    /// The store in `dir`, which must be there.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            create: false,
            aside: false,
            log: Options::default(),
        }
    }

    /// Makes the store if there is none.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether a snapshot that is due is written by a thread of its own, beside the work: once nothing was appended for a
    /// moment, or when the tail is several times as long as it may be. Whoever drops the last handle waits for it. If not,
    /// the call that finds it due writes it before it is answered. For a program that lives long: where a process may end
    /// at any time, another one has to begin anew.
    #[must_use]
    pub fn snapshots_aside(mut self, aside: bool) -> Self {
        self.aside = aside;
        self
    }

    /// Appends also on a file system of this kind, whose locks or syncs may not be what the log relies on.
    #[must_use]
    pub fn allow_file_system(mut self, kind: impl Into<String>) -> Self {
        self.log.allowed_file_systems.push(kind.into());
        self
    }

    /// Waits and sizes of the log.
    #[must_use]
    pub fn tuning(mut self, tuning: tenure_log::writer::site::Tuning) -> Self {
        self.log.tuning = tuning;
        self
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn open(&self, host: &dyn Host) -> Result<SegmentLog, Error> {
        if !self.create {
            crate::source::is_a_store(&self.dir)?;
        }
        let mut options = self.log.clone();
        options.create = self.create;
        options.rules = RULES;
        options.host = host.this().id.0.to_vec();
        Ok(SegmentLog::open(Arc::new(Disk), &self.dir, options)?)
    }
}

impl Store {
    /// Opens a store in a directory.
    ///
    /// # Errors
    /// When it cannot be opened for writing; the error says what to do.
    pub fn open(options: &OpenOptions, host: Arc<dyn Host>) -> Result<Self, Error> {
        let log = options.open(&*host)?;
        let Self(inner, _) = Self::over(Arc::new(log), host)?;
        Ok(Self(inner, options.aside.then(|| Arc::new(Aside::new()))))
    }

    /// A store over any journal. The call that finds a snapshot due writes it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn over(journal: Arc<dyn Journal>, host: Arc<dyn Host>) -> Result<Self, Error> {
        let reader = Reader::over(Arc::new(Arc::clone(&journal)), host, live::Purpose::Writing)?;
        let inner = Inner {
            id: journal.identity().store,
            journal,
            reader,
            group: Mutex::new(Group::default()),
            snapshot_due: AtomicBool::new(false),
            snapshotting: Mutex::default(),
            supplies: Mutex::default(),
        };
        Ok(Self(Arc::new(inner), None))
    }

    /// The journal it stands on.
    #[must_use]
    pub fn journal(&self) -> &dyn Journal {
        &*self.0.journal
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
        if call.verb.records_a_holder() {
            // Without it, holders of this boot are merely unknowable after the next one.
            let _ = self.host().remember_boot();
        }
        Ok(group::submit(self, prepare::prepare(self, call)?))
    }

    /// The refusal that a call would meet now; nothing is written, whatever the answer.
    pub(crate) fn refuses(&self, call: Call) -> Result<Option<Refusal>, Failure> {
        let order = prepare::prepare(self, call)?;
        let prepared = order.prepared.lock();
        let judged = self.view(|state| decide(state, &prepared.request).err())?;
        Ok(judged)
    }

    fn proof(&self, head: Head) -> Receipt {
        Receipt {
            store: self.0.id,
            position: head.position,
            chain: head.chain,
        }
    }

    fn now(&self) -> Time {
        self.host().now()
    }
}
