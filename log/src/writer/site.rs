//! What every part of one handle shares: the directory, the locks, the control page, and the way to
//! the append lock.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::control::{Birth, CONTROL_NAME, Control, Page, Signal, WORD_EPOCH_MAX, Word};
use crate::error::Error;
use crate::format::{RulesVersion, SEGMENT_HEADER_BYTES};
use crate::journal::Deadline;
use crate::lock::{Kind, LockFile, Locks, Patience, Wait};
use crate::position::{Epoch, Position, StoreId};
use crate::reader::open::find_head;
use crate::recovery::{Torn, torn_tails};
use crate::segment;
use crate::segment::line::Segments;
use crate::storage::{self, Access, Directory, ProcessId, Storage, StoredFile};
use crate::zoo::planted;

/// What a writer can be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// How long a holder of the append lock may stand still before the epoch is raised past it.
    pub append_wait: Duration,
    /// How long a sync may take before another one is begun beside it.
    pub sync_wait: Duration,
    /// The sizes of segments in bytes, each following segment one step greater.
    pub segment_bytes: Vec<u64>,
    /// How many bytes of zeros are written ahead of the frames.
    pub fill_bytes: u64,
    /// The most bytes of frames that one transaction is shown: with more, its caller reads them first.
    pub tail_bytes_max: u64,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            append_wait: Duration::from_secs(2),
            sync_wait: Duration::from_secs(2),
            segment_bytes: [1, 4, 16, 64].map(|mib| mib << 20).to_vec(),
            fill_bytes: 1 << 20,
            tail_bytes_max: 64 << 20,
        }
    }
}

impl Tuning {
    /// How long the segment grows that follows one of `before` bytes: the next step when that one was
    /// filled, the same when it was closed early.
    #[must_use]
    pub fn target_bytes(&self, before: Option<u64>) -> u64 {
        let mut sizes = self
            .segment_bytes
            .iter()
            .copied()
            .filter(|size| *size > SEGMENT_HEADER_BYTES as u64);
        let fallback = 1 << 20;
        match before {
            None => sizes.next().unwrap_or(fallback),
            Some(before) => {
                let greatest = self.segment_bytes.iter().copied().max().unwrap_or(fallback);
                sizes.find(|size| before < size / 2).unwrap_or(greatest)
            }
        }
    }
}

/// What every part of one handle shares.
pub struct Site {
    /// The machine.
    pub storage: Arc<dyn Storage>,
    /// The store's directory.
    pub dir: Arc<dyn Directory>,
    /// The store.
    pub store: StoreId,
    /// The rules by which this process decides.
    pub rules: RulesVersion,
    /// What the writer was told.
    pub tuning: Tuning,
    /// The open segments.
    pub segments: Segments,
    /// The locks.
    pub locks: Locks,
    /// The torn tails in quarantine, as found when the store was opened, and those put away since.
    pub torn: Mutex<Vec<Torn>>,
    process: ProcessId,
    control: RwLock<Arc<Control>>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("dir", &self.dir.path())
            .field("store", &self.store)
            .finish()
    }
}

/// The append lock of the newest epoch, held. Gives it back when dropped.
pub struct Held<'s> {
    storage: &'s dyn Storage,
    lock: LockFile,
    /// The page it was taken on.
    pub control: Arc<Control>,
    /// The word under the lock.
    pub word: Word,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // An unlock that fails leaves a holder that stands still, and there is a way past that.
        let _ = self.lock.file.unlock();
        self.storage.step();
        self.control.ring(Signal::Released, 1);
    }
}

impl Site {
    /// A handle's view on the store in `dir`; builds the control page when it is missing or void.
    ///
    /// # Errors
    /// When the page has to be built and cannot be.
    pub fn open(
        storage: Arc<dyn Storage>,
        dir: Arc<dyn Directory>,
        store: StoreId,
        rules: RulesVersion,
        tuning: Tuning,
        segments: Segments,
    ) -> Result<Site, Error> {
        let locks = Locks::new(dir.clone());
        let mut patience = Patience::new(&*storage, Deadline::NEVER, tuning.append_wait);
        let place = PageBuilder {
            storage: &storage,
            dir: &*dir,
            store,
            locks: &locks,
            segments: &segments,
        };
        let control = RwLock::new(Arc::new(place.page(&mut patience, tuning.append_wait)?));
        let process = storage.process();
        let torn = Mutex::new(torn_tails(&*dir)?);
        Ok(Site {
            storage,
            dir,
            store,
            rules,
            tuning,
            segments,
            locks,
            torn,
            process,
            control,
        })
    }

    /// Whether this is the process that opened the handle.
    ///
    /// # Errors
    /// [`Error::ForkedHandle`] when it is not.
    pub fn same_process(&self) -> Result<(), Error> {
        let now = self.storage.process();
        if now == self.process {
            return Ok(());
        }
        Err(Error::ForkedHandle {
            opened_by: self.process.0,
            used_by: now.0,
        })
    }

    /// The control page, as it was last seen to be the current one.
    #[must_use]
    pub fn control(&self) -> Arc<Control> {
        self.control.read().clone()
    }

    /// The control page, which has its name at the time of the call.
    ///
    /// # Errors
    /// When it has to be built and cannot be.
    pub fn current_control(&self, patience: &mut Patience) -> Result<Arc<Control>, Error> {
        let control = self.control();
        if control
            .is_current()
            .map_err(|error| self.failed("look at", CONTROL_NAME, error))?
        {
            return Ok(control);
        }
        let Site {
            storage,
            dir,
            store,
            locks,
            segments,
            ..
        } = self;
        let builder = PageBuilder {
            storage,
            dir: &**dir,
            store: *store,
            locks,
            segments,
        };
        let control = Arc::new(builder.page(patience, self.tuning.append_wait)?);
        *self.control.write() = control.clone();
        Ok(control)
    }

    /// The error for what `op` on `name` was answered.
    #[must_use]
    pub fn failed(&self, op: &'static str, name: &str, source: io::Error) -> Error {
        storage::failed(op, self.dir.path_of(name), source)
    }

    /// Takes the append lock of the newest epoch; raises the epoch past a holder that stands still, a
    /// sync that failed, or a lock file that somebody removed.
    ///
    /// # Errors
    /// [`Error::Busy`] at the deadline, or when the next holder stands still too.
    pub fn hold(&self, patience: &mut Patience) -> Result<Held<'_>, Error> {
        let mut control = self.control();
        loop {
            let epoch = control.word().epoch;
            let over = match self.try_hold(&control, epoch, patience)? {
                Tried::Held(held) => return Ok(held),
                Tried::Again => None,
                Tried::Over(past) => Some(past),
            };
            let before = control;
            control = self.current_control(patience)?;
            if let Some(past) = over
                && Arc::ptr_eq(&before, &control)
            {
                self.pass_epoch(&control, epoch.max(past), patience)?;
            }
        }
    }

    /// One wait for the append lock of `epoch`.
    fn try_hold(
        &self,
        control: &Arc<Control>,
        epoch: Epoch,
        patience: &Patience,
    ) -> Result<Tried<'_>, Error> {
        if control.poisoned(epoch) {
            return Ok(Tried::Over(epoch));
        }
        let Some(lock) = self.locks.file(Kind::Append, epoch.0)? else {
            return Ok(Tried::Over(self.newest_known()?));
        };
        match patience.wait_for(&*self.storage, control, epoch, &*lock.file)? {
            Wait::Taken => self.check_held(lock, control, epoch),
            Wait::Outdated => Ok(Tried::Again),
            Wait::StoodStill => Ok(Tried::Over(epoch)),
        }
    }

    /// The newest epoch that a lock or a segment shows. Where a lock was removed, its number is not given
    /// to a second one.
    fn newest_known(&self) -> Result<Epoch, Error> {
        let locks = self.locks.newest()?.unwrap_or_default();
        let segments = segment::list(&*self.dir)?;
        Ok(segments.last().map_or(locks, |name| locks.max(name.epoch)))
    }

    /// The lock that was just taken, unless its epoch was raised or its page replaced before that, or it is
    /// not the epoch's own.
    fn check_held(
        &self,
        lock: LockFile,
        control: &Arc<Control>,
        epoch: Epoch,
    ) -> Result<Tried<'_>, Error> {
        let (control, word) = (control.clone(), control.word());
        let held = Held {
            storage: &*self.storage,
            lock,
            control,
            word,
        };
        let current = held
            .control
            .is_current()
            .map_err(|error| self.failed("look at", CONTROL_NAME, error))?;
        if !current || word.epoch != epoch || held.control.poisoned(epoch) {
            return Ok(Tried::Again);
        }
        if !held.control.is_lock_of(epoch, held.lock.inode) && !planted("lock-of-a-removed-file") {
            return Ok(Tried::Over(self.newest_known()?));
        }
        held.control.count_acquisition();
        Ok(Tried::Held(held))
    }

    /// Raises the epoch by one, unless somebody has; once per caller.
    fn pass_epoch(
        &self,
        control: &Control,
        epoch: Epoch,
        patience: &mut Patience,
    ) -> Result<(), Error> {
        if std::mem::replace(&mut patience.raised, true) {
            return Err(patience.busy(self.storage.now(), control.describe_holder()));
        }
        raise_to(&self.locks, control, Epoch(epoch.0 + 1))
    }
}

/// What came of a wait for the append lock.
enum Tried<'s> {
    Held(Held<'s>),
    /// There is a newer epoch, or a newer page.
    Again,
    /// Nobody may go on in an epoch up to this one.
    Over(Epoch),
}

/// Raises the epoch to `to`, unless it is there already.
///
/// # Errors
/// When the lock of that epoch cannot be made, or the word has no room for it.
pub(super) fn raise_to(locks: &Locks, control: &Control, to: Epoch) -> Result<(), Error> {
    raise_past(locks, control, to, Position::ZERO)
}

/// As [`raise_to`], where frames up to `found` are in the log whatever the page says.
fn raise_past(locks: &Locks, control: &Control, to: Epoch, found: Position) -> Result<(), Error> {
    if to.0 > WORD_EPOCH_MAX {
        let (what, offered, max) = ("writer epoch", to.0, WORD_EPOCH_MAX);
        return Err(Error::LimitExceeded { what, offered, max });
    }
    // A lock of an epoch that has begun is not made a second time.
    if control.word().epoch < to {
        locks.create(to)?;
    }
    loop {
        let word = control.word();
        let raised = Word {
            epoch: to,
            head: word.head.max(found),
            in_doubt: true,
        };
        if word.epoch >= to || control.swap(word, raised) {
            break;
        }
    }
    // Whoever waits for the old lock would wait for ever.
    control.ring(Signal::Released, u32::MAX);
    Ok(())
}

/// Finds or builds the control page.
struct PageBuilder<'s> {
    storage: &'s Arc<dyn Storage>,
    dir: &'s dyn Directory,
    store: StoreId,
    locks: &'s Locks,
    segments: &'s Segments,
}

impl PageBuilder<'_> {
    fn failed(&self, op: &'static str, error: io::Error) -> Error {
        storage::failed(op, self.dir.path_of(CONTROL_NAME), error)
    }

    /// The page as it is there, whatever boot it is of.
    fn existing(&self) -> Result<Option<Page>, Error> {
        match self.dir.open(CONTROL_NAME, Access::Write) {
            Ok(file) => {
                let page = Page::map(self.storage.clone(), file, Access::Write);
                let page = page.map_err(|error| self.failed("map", error))?;
                Ok(page.filter(|page| page.store() == self.store))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", error)),
        }
    }

    fn of_this_boot(&self, page: Option<Page>) -> Result<Option<Control>, Error> {
        let boot = self
            .storage
            .boot()
            .map_err(|error| self.failed("ask for the boot of", error))?;
        Ok(page.filter(|page| page.boot() == boot).map(Control::new))
    }

    /// The page of this boot. Built under the newest append lock, so that no two are built, and no
    /// holder with an older page goes unnoticed.
    fn page(&self, patience: &mut Patience, bound: Duration) -> Result<Control, Error> {
        loop {
            let newest = self.locks.newest()?;
            if let Some(control) = self.of_this_boot(self.existing()?)? {
                // A builder that was stopped, and gone past, may have put its page in place of a newer
                // one: then it is behind the locks, nobody may append by it, and its head is old.
                if let Some(newest) = newest
                    && newest > control.word().epoch
                {
                    let found = find_head(self.dir, self.segments, self.store, None, None)?;
                    raise_past(self.locks, &control, newest, found.head.position)?;
                }
                return Ok(control);
            }
            let segments = segment::list(self.dir)?
                .last()
                .map_or(0, |name| name.epoch.0);
            let Some(epoch) = newest.filter(|epoch| epoch.0 >= segments) else {
                // Copied without its locks, or somebody removed them: the number of the newest segment is
                // not given to a second lock.
                self.locks.create(Epoch(segments + 1))?;
                continue;
            };
            let Some(lock) = self.locks.open_apart(Kind::Append, epoch.0)? else {
                continue;
            };
            if !self.wait_for(&*lock.file, patience, bound)? {
                self.locks.create(Epoch(epoch.0 + 1))?;
                continue;
            }
            let built = self.build_once(epoch);
            lock.file
                .unlock()
                .map_err(|error| self.failed("unlock", error))?;
            built?;
        }
    }

    /// Without a page there is no counter that moves: the bound is all there is.
    fn wait_for(
        &self,
        lock: &dyn StoredFile,
        patience: &mut Patience,
        bound: Duration,
    ) -> Result<bool, Error> {
        let began = self.storage.now();
        let word = std::sync::atomic::AtomicU32::new(0);
        loop {
            if lock
                .try_lock()
                .map_err(|error| self.failed("lock for", error))?
            {
                return Ok(true);
            }
            let now = self.storage.now();
            if patience.is_over(now) {
                return Err(patience.busy(
                    now,
                    "another process, while the control page is missing".to_owned(),
                ));
            }
            if now.saturating_duration_since(began) >= bound {
                let again = std::mem::replace(&mut patience.raised, true);
                let holder = "two processes, while the control page is missing".to_owned();
                return if again {
                    Err(patience.busy(now, holder))
                } else {
                    Ok(false)
                };
            }
            self.storage
                .wait(&word, 0, bound.min(Duration::from_millis(5)));
        }
    }

    /// Under the lock of `epoch`: builds the page unless somebody has, or there is a newer epoch.
    fn build_once(&self, epoch: Epoch) -> Result<(), Error> {
        let old = self.existing()?;
        if self.locks.newest()? != Some(epoch) || self.of_this_boot(old.clone())?.is_some() {
            return Ok(());
        }
        if epoch.0 > WORD_EPOCH_MAX {
            return Err(Error::LimitExceeded {
                what: "writer epoch",
                offered: epoch.0,
                max: WORD_EPOCH_MAX,
            });
        }
        let Some(newest) = segment::list(self.dir)?.last().copied() else {
            return Err(Error::NotAStore {
                path: self.dir.path().to_owned(),
            });
        };
        if newest.epoch > epoch {
            // Made meanwhile by an epoch whose lock was removed.
            return Ok(());
        }
        // What is whole now is not cut off by whoever settles next, so that readers never see the head
        // go back. Durable is only what stands before the newest segment: that was synced before it
        // got its name.
        let place = find_head(self.dir, self.segments, self.store, None, None)?;
        let newest = self.segments.get(place.segment, self.store)?;
        let birth = Birth {
            boot: self
                .storage
                .boot()
                .map_err(|error| self.failed("ask for the boot of", error))?,
            store: self.store,
            word: Word {
                epoch,
                head: place.head.position,
                in_doubt: true,
            },
            place,
            durable: newest.header().start().position,
            mark: old.and_then(|page| page.mark()),
        };
        let mut random = [0; 8];
        self.storage
            .random(&mut random)
            .map_err(|error| self.failed("draw random numbers for", error))?;
        let unique = u64::from_le_bytes(random);
        storage::replace_file(self.dir, "", CONTROL_NAME, unique, &birth.bytes())
            .map_err(|error| self.failed("write", error))
    }
}
