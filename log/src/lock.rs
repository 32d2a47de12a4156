//! Numbered locks: `locks/N` for appending, N being the writer epoch, and `locks/sN` for syncing.
//!
//! The greatest number among the append locks is the newest epoch. Two processes must never lock two
//! files of one name. So an append lock is made only by raising the epoch, and never removed; where
//! somebody else removed one, its epoch is over: whoever misses it goes on in the next. A sync lock
//! only spares work, and is made by whoever asks for it. All are `flock` locks: a record lock would be
//! lost at any close of the file.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::control::{Control, Signal};
use crate::error::Error;
use crate::journal::Deadline;
use crate::position::Epoch;
use crate::storage::{self, Access, Directory, Storage, StoredFile};

/// The folder of the locks.
pub const LOCKS_FOLDER: &str = "locks";

/// The lock under which the next segment's file of zeros is made.
pub const PREPARE_LOCK: &str = "locks/prepare";

/// The lock under which a snapshot is written, so that of many processes that find one due a single one does.
pub const SNAPSHOT_LOCK: &str = "locks/snapshot";

/// How long a process looks at the page for a taken lock to be given back before it sleeps, in pauses of the processor: some
/// twenty microseconds. A holder is done after ten; while it does not run, nobody gains by looking longer.
const SPINS: u32 = 400;

/// The longest sleep before a lock is asked for again: what a wake-up lost with a killed holder costs.
const NAP: Duration = Duration::from_millis(2);

/// Which lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// For appending; numbered by epoch.
    Append,
    /// For syncing; numbered by turn.
    Sync,
}

impl Kind {
    fn file(self, number: u64) -> String {
        match self {
            Kind::Append => format!("{LOCKS_FOLDER}/{number}"),
            Kind::Sync => format!("{LOCKS_FOLDER}/s{number}"),
        }
    }
}

/// An open lock file.
#[derive(Clone, Debug)]
pub struct LockFile {
    /// The file.
    pub file: Arc<dyn StoredFile>,
    /// Its inode number, which tells it from another file of its name.
    pub inode: u64,
}

type Opened = (Kind, u64, LockFile);

/// The lock files of a store.
pub struct Locks {
    dir: Arc<dyn Directory>,
    /// The files in use, so that taking a lock is one system call.
    open: Mutex<Vec<Opened>>,
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locks({})", self.dir.path_of(LOCKS_FOLDER).display())
    }
}

impl Locks {
    /// The locks in `dir`.
    #[must_use]
    pub fn new(dir: Arc<dyn Directory>) -> Locks {
        Locks {
            dir,
            open: Mutex::new(Vec::new()),
        }
    }

    fn failed(&self, op: &'static str, name: &str, error: io::Error) -> Error {
        storage::failed(op, self.dir.path_of(name), error)
    }

    /// The newest epoch; none when there is no append lock.
    ///
    /// # Errors
    /// When the locks cannot be listed.
    pub fn newest(&self) -> Result<Option<Epoch>, Error> {
        let names = match self.dir.list(LOCKS_FOLDER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            listed => listed.map_err(|error| self.failed("list", LOCKS_FOLDER, error))?,
        };
        Ok(names
            .iter()
            .filter_map(|name| crate::position::decimal(name))
            .max()
            .map(Epoch))
    }

    /// Makes the append lock of `epoch`; it may exist. Durable on return.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self, epoch: Epoch) -> Result<(), Error> {
        let name = Kind::Append.file(epoch.0);
        match self.open_in_folder(&name, Access::CreateNew) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(self.failed("make", &name, error)),
        }
        self.dir
            .sync(LOCKS_FOLDER)
            .map_err(|error| self.failed("sync", LOCKS_FOLDER, error))
    }

    /// Opens a lock file; makes the folder where somebody removed it.
    fn open_in_folder(&self, name: &str, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        match self.dir.open(name, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.dir.make_directory(LOCKS_FOLDER)?;
                self.dir.sync("")?;
                self.dir.open(name, access)
            }
            opened => opened,
        }
    }

    /// A lock file opened for this call alone: its lock excludes other threads of this process too. None
    /// when it is an append lock that is not there: it is not made again, since somebody may still hold
    /// the one that was removed.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_apart(&self, kind: Kind, number: u64) -> Result<Option<LockFile>, Error> {
        let name = kind.file(number);
        let opened = match kind {
            Kind::Append => self.dir.open(&name, Access::Write),
            Kind::Sync => self.open_in_folder(&name, Access::CreateOrOpen),
        };
        let opened = opened.and_then(|file| {
            let inode = file.identity()?.inode;
            Ok(LockFile { file, inode })
        });
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", &name, error)),
        }
    }

    /// The lock file, opened once per process. Its lock does not exclude other threads. None as for
    /// [`Locks::open_apart`].
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn file(&self, kind: Kind, number: u64) -> Result<Option<LockFile>, Error> {
        let mut open = self.open.lock();
        if let Some((.., file)) = open.iter().find(|(k, n, _)| (*k, *n) == (kind, number)) {
            return Ok(Some(file.clone()));
        }
        let Some(file) = self.open_apart(kind, number)? else {
            return Ok(None);
        };
        // A stopped process may come back to a lower number once; then it opens the file again.
        open.retain(|(k, n, _)| *k != kind || *n > number);
        open.push((kind, number, file.clone()));
        Ok(Some(file))
    }
}

/// How a wait for the append lock ended.
#[derive(Debug)]
pub enum Wait {
    /// The lock is held.
    Taken,
    /// The epoch was raised meanwhile: there is a newer lock.
    Outdated,
    /// Nobody took the lock for as long as a holder may stand still.
    StoodStill,
}

/// How long one caller waits, and whether it has gone past a holder already.
#[derive(Debug)]
pub struct Patience {
    began: Instant,
    deadline: Deadline,
    bound: Duration,
    /// One caller raises the epoch once: if the next holder stands still too, the fault is elsewhere.
    pub raised: bool,
}

impl Patience {
    /// Until `deadline`; a holder that stands still is waited for no longer than `bound`.
    #[must_use]
    pub fn new(storage: &dyn Storage, deadline: Deadline, bound: Duration) -> Patience {
        Patience {
            began: storage.now(),
            deadline,
            bound,
            raised: false,
        }
    }

    /// The answer when the wait was in vain.
    #[must_use]
    pub fn busy(&self, now: Instant, holder: String) -> Error {
        Error::Busy {
            waited: now.saturating_duration_since(self.began),
            holder,
        }
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.deadline.passed(now)
    }

    /// Waits for the append lock of `epoch`.
    ///
    /// # Errors
    /// [`Error::Busy`] at the deadline, or the system's answer.
    pub fn wait_for(
        &self,
        storage: &dyn Storage,
        control: &Control,
        epoch: Epoch,
        lock: &dyn StoredFile,
    ) -> Result<Wait, Error> {
        let failed = |error| storage::failed("lock", Kind::Append.file(epoch.0), error);
        let mut last = (control.acquisitions(), storage.now());
        let mut spins = 0;
        loop {
            if control.word().epoch != epoch {
                return Ok(Wait::Outdated);
            }
            let seen = control.seen(Signal::Released);
            if lock.try_lock().map_err(failed)? {
                return Ok(Wait::Taken);
            }
            // Looking costs no system call, unlike asking: that counts as ten looks.
            spins += 10;
            while spins < SPINS && control.seen(Signal::Released) == seen {
                std::hint::spin_loop();
                spins += 1;
            }
            if spins < SPINS {
                continue;
            }
            let now = storage.now();
            if self.is_over(now) {
                return Err(self.busy(now, control.describe_holder()));
            }
            let acquisitions = control.acquisitions();
            if acquisitions != last.0 {
                last = (acquisitions, now);
            } else if now.saturating_duration_since(last.1) >= self.bound {
                return Ok(Wait::StoodStill);
            }
            control.wait(
                Signal::Released,
                seen,
                self.deadline.bound(NAP.min(self.bound), now),
            );
        }
    }
}
