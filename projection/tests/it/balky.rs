//! A journal that does as it is told: it pauses, fails, loses answers, or keeps syncs waiting.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tenure_log::error::Error;
use tenure_log::frame::Depth;
use tenure_log::journal::memory::MemoryLog;
use tenure_log::journal::{
    Appended, Blobs, Counters, Deadline, Decision, Frames, Identity, Journal, Raising,
    TransactError,
};
use tenure_log::position::{Head, Position};

/// What happens to the next appends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// No space: nothing is appended, and that is said.
    NoSpace,
    /// Appended, and the answer is that nobody knows.
    AnswerLost,
    /// Not appended, and the answer is that nobody knows.
    FrameLost,
    /// Only the first so many drafts are appended: the log was raised meanwhile.
    Moved(usize),
}

type Hook = Box<dyn FnOnce() + Send>;

/// A journal in front of another one.
pub struct Balky {
    inner: MemoryLog,
    next: Mutex<Option<(Trouble, u32)>>,
    before: Mutex<Option<Hook>>,
    syncs: Mutex<Syncs>,
    released: Condvar,
    reads: Mutex<Vec<(Position, Depth)>>,
    asked: Mutex<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Syncs {
    Done,
    Waiting,
    Failing,
}

fn no_space() -> Error {
    Error::NoSpace {
        path: PathBuf::from("segments/1"),
    }
}

impl Balky {
    pub fn new(inner: &MemoryLog) -> Self {
        Self {
            inner: inner.clone(),
            next: Mutex::default(),
            before: Mutex::default(),
            syncs: Mutex::new(Syncs::Done),
            released: Condvar::new(),
            reads: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// The next `times` appends meet this.
    pub fn meets(&self, trouble: Trouble, times: u32) {
        *self.next.lock() = Some((trouble, times));
    }

    /// Runs before the next append takes the lock, when everything has been read.
    pub fn pauses_for(&self, hook: impl FnOnce() + Send + 'static) {
        *self.before.lock() = Some(Box::new(hook));
    }

    /// From now on nothing becomes durable, until [`Balky::syncs`].
    pub fn holds_syncs(&self) {
        *self.syncs.lock() = Syncs::Waiting;
    }

    /// From now on syncs fail.
    pub fn fails_syncs(&self) {
        *self.syncs.lock() = Syncs::Failing;
    }

    /// Everything becomes durable.
    pub fn syncs(&self) {
        *self.syncs.lock() = Syncs::Done;
        self.released.notify_all();
    }

    /// Behind which positions was read since this was last asked.
    pub fn reads(&self) -> Vec<Position> {
        let reads = self.reads_of_depth();
        reads.into_iter().map(|(after, _)| after).collect()
    }

    /// The same, and how much of each frame.
    pub fn reads_of_depth(&self) -> Vec<(Position, Depth)> {
        std::mem::take(&mut *self.reads.lock())
    }

    /// How many transactions were asked for, and how often somebody waited for a sync.
    pub fn asked(&self) -> (u32, u32) {
        *self.asked.lock()
    }

    fn trouble(&self) -> Option<Trouble> {
        let mut next = self.next.lock();
        let (trouble, times) = (*next)?;
        *next = (times > 1).then(|| (trouble, times - 1));
        Some(trouble)
    }
}

impl Journal for Balky {
    fn identity(&self) -> Identity {
        self.inner.identity()
    }

    fn head(&self) -> Result<Head, Error> {
        self.inner.head()
    }

    fn durable(&self) -> Result<Position, Error> {
        if *self.syncs.lock() == Syncs::Done {
            self.inner.durable()
        } else {
            Ok(Position::ZERO)
        }
    }

    fn transact(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Decision<'_>,
    ) -> Result<Appended, TransactError> {
        self.asked.lock().0 += 1;
        if let Some(hook) = self.before.lock().take() {
            hook();
        }
        let appended = match self.trouble() {
            None => return self.inner.transact(known, deadline, decide),
            Some(Trouble::NoSpace) => {
                let decided = |tail: tenure_log::journal::Tail<'_>| {
                    decide(tail);
                    Vec::new()
                };
                self.inner.transact(known, deadline, &mut { decided })?;
                return Err(no_space().into());
            }
            Some(Trouble::AnswerLost) => self.inner.transact(known, deadline, decide)?,
            Some(Trouble::FrameLost) => {
                let other = MemoryLog::new(self.inner.identity().rules);
                let mut drafts = Vec::new();
                self.inner.transact(known, deadline, &mut |tail| {
                    drafts = decide(tail);
                    Vec::new()
                })?;
                let head = Journal::head(&other)?;
                other.transact(head, deadline, &mut |_| drafts.clone())?
            }
            Some(Trouble::Moved(kept)) => {
                let appended = self.inner.transact(known, deadline, &mut |tail| {
                    let mut drafts = decide(tail);
                    drafts.truncate(kept);
                    drafts
                })?;
                let appended = appended.heads;
                return Err(TransactError::Moved { appended });
            }
        };
        Err(TransactError::Unknown {
            position: appended.head.position,
            chain: appended.head.chain,
            source: no_space(),
        })
    }

    fn wait_durable(&self, position: Position, deadline: Deadline) -> Result<(), Error> {
        self.asked.lock().1 += 1;
        let mut syncs = self.syncs.lock();
        while *syncs == Syncs::Waiting {
            match deadline.remaining(Instant::now()) {
                None => self.released.wait(&mut syncs),
                Some(Duration::ZERO) => {
                    let holder = "this test".to_owned();
                    let waited = Duration::ZERO;
                    return Err(Error::Busy { waited, holder });
                }
                Some(left) => drop(self.released.wait_for(&mut syncs, left)),
            }
        }
        if *syncs == Syncs::Failing {
            return Err(no_space());
        }
        drop(syncs);
        self.inner.wait_durable(position, deadline)
    }

    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        self.reads.lock().push((after, depth));
        self.inner.read_from(after, depth)
    }

    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<Head, Error> {
        self.inner.wait_beyond(position, deadline)
    }

    fn raise(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Raising<'_>,
    ) -> Result<Appended, TransactError> {
        self.inner.raise(known, deadline, decide)
    }

    fn counters(&self) -> &dyn Counters {
        self.inner.counters()
    }

    fn snapshots(&self) -> &dyn Blobs {
        self.inner.snapshots()
    }
}
