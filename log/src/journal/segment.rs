//! The segment log: a journal in a directory that many threads and processes share without a daemon.

pub mod blobs;
pub mod home;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::{
    Appended, Blobs, CounterTag, Counters, Deadline, Decision, Frames, Identity, Journal, Landmark,
    Raising, RulesVersion, TransactError, reaches,
};
use crate::bundle;
use crate::control::place::HeadPlace;
use crate::control::{Control, Signal, Word};
use crate::error::Error;
use crate::format::{FORMAT_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader, writer_version};
use crate::frame::Depth;
use crate::lock::{LOCKS_FOLDER, Locks, PREPARE_LOCK, Patience};
use crate::position::{Chain, Epoch, Head, Incarnation, Position, Salt, StoreId};
use crate::reader::landmark::walk_behind;
use crate::reader::open::{find_head, overrun, walk_from};
use crate::recovery::Torn;
use crate::seal::{SEALS_FOLDER, Seal};
use crate::segment::line::{self, Segments};
use crate::segment::{self, NotMade, SEGMENTS_FOLDER};
use crate::storage::{self, Access, Directory, Opening, Storage, StoredFile, Trust};
use crate::writer::Writer;
use crate::writer::doubt::is_ahead;
use crate::writer::group::Group;
use crate::writer::site::{Site, Tuning};
use blobs::{FolderBlobs, SNAPSHOTS_FOLDER};

/// How a store is opened for writing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Make the store when there is none.
    pub create: bool,
    /// The rules by which this process decides; a segment of older ones is closed at the first append.
    pub rules: RulesVersion,
    /// Which machine this is, in the caller's words; compared with what the store remembers.
    pub host: Vec<u8>,
    /// Kinds of file system that are appended on although their locks or syncs may lie.
    pub allowed_file_systems: Vec<String>,
    /// Waits and sizes.
    pub tuning: Tuning,
}

/// A journal in a directory, open for writing. Share it between threads; open it anew after a fork.
pub struct SegmentLog {
    site: Site,
    group: Group,
    writer: Mutex<Writer>,
    snapshots: FolderBlobs,
    /// The word that the head beside it was looked up for.
    cached: Mutex<Option<(Word, Head)>>,
    outlives_reboot: bool,
}

impl fmt::Debug for SegmentLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentLog").field(&self.site).finish()
    }
}

impl SegmentLog {
    /// Opens the store in the directory `path`, or makes one where `options` say so.
    ///
    /// # Errors
    /// [`Error::NotAStore`], [`Error::ForeignOwner`], [`Error::RefusedFileSystem`],
    /// [`Error::ReadOnlyCopy`], [`Error::HomeChanged`], [`Error::Damaged`], and the system's answers.
    pub fn open(
        storage: Arc<dyn Storage>,
        path: &Path,
        options: Options,
    ) -> Result<SegmentLog, Error> {
        let dir = open_directory(&*storage, path, options.create)?;
        let file_system = dir
            .file_system()
            .map_err(|error| storage::failed("look at", path, error))?;
        if file_system.trust == Trust::Doubtful
            && !options.allowed_file_systems.contains(&file_system.kind)
        {
            return Err(Error::RefusedFileSystem {
                kind: file_system.kind,
            });
        }
        let newest = match list_or_none(&*dir)? {
            Some(newest) => newest,
            None if options.create => bear(&*storage, &dir, &options)?,
            None => {
                return Err(Error::NotAStore {
                    path: path.to_owned(),
                });
            }
        };
        bundle::is_no_copy(&*dir)?;
        let segments = Segments::new(dir.clone(), Access::Write);
        let store = segments.store(newest)?;
        // Before anything is written: what is wrong here keeps it so.
        segments.judge(store)?;
        for folder in [SNAPSHOTS_FOLDER, SEALS_FOLDER, LOCKS_FOLDER] {
            make_folder(&*dir, folder)?;
        }
        home::judge(&*storage, &*dir, &options.host)?;
        let snapshots = FolderBlobs::new(storage.clone(), dir.clone());
        let (rules, tuning) = (options.rules, options.tuning);
        let site = Site::open(storage, dir, store, rules, tuning, segments)?;
        let log = SegmentLog {
            site,
            group: Group::default(),
            writer: Mutex::new(Writer::default()),
            snapshots,
            cached: Mutex::new(None),
            outlives_reboot: file_system.trust != Trust::Memory,
        };
        // A poisoned epoch is passed here already: opening the store again is the way out that its error names.
        let control = log.site.control();
        let word = control.word();
        if word.in_doubt || control.poisoned(word.epoch) || is_ahead(&log.site, &control)? {
            log.settle(Deadline::NEVER)?;
        }
        Ok(log)
    }

    /// Accepts that the store in `path` now lives here: it was moved, or the machine was renamed. Who
    /// copied or restored it has to [raise](Journal::raise) too, so that the two lives differ.
    ///
    /// # Errors
    /// When the store cannot be opened or the fact not be written.
    pub fn accept_home(storage: &dyn Storage, path: &Path, host: &[u8]) -> Result<(), Error> {
        let dir = open_directory(storage, path, false)?;
        if list_or_none(&*dir)?.is_none() {
            return Err(Error::NotAStore {
                path: path.to_owned(),
            });
        }
        bundle::is_no_copy(&*dir)?;
        home::accept(storage, &*dir, host)
    }

    /// Whether what is acknowledged outlives a reboot; on tmpfs it does not.
    #[must_use]
    pub fn outlives_reboot(&self) -> bool {
        self.outlives_reboot
    }

    /// Makes the file that the next segment begins as, if there is none: appends then never wait for
    /// zeros to be written. For a thread of the embedder's that has nothing else to do.
    ///
    /// # Errors
    /// When it cannot be made; nothing depends on it.
    pub fn prepare_next(&self) -> Result<bool, Error> {
        let Site {
            storage,
            dir,
            tuning,
            ..
        } = &self.site;
        let lock = dir.open(PREPARE_LOCK, Access::CreateOrOpen);
        let lock = lock.map_err(|error| self.site.failed("open", PREPARE_LOCK, error))?;
        let (place, _) = self.place()?;
        segment::prepare(
            &**storage,
            &**dir,
            &*lock,
            tuning.target_bytes(Some(place.end)),
        )
    }

    /// Makes the control page's marks durable: at the end of work, or after a second without any.
    ///
    /// # Errors
    /// The system's answer; nothing but a warning about lost frames depends on it.
    pub fn rest(&self) -> Result<(), Error> {
        self.site
            .control()
            .sync()
            .map_err(|error| self.site.failed("sync", "control", error))
    }

    /// Seals every closed segment that has no seal yet.
    fn seal_closed(&self) -> Result<(), Error> {
        let Site { dir, store, .. } = &self.site;
        let Some(place) = self.page()?.place() else {
            // Somebody writes faster than this looks; there is no hurry.
            return Ok(());
        };
        let newest = self.site.segments.get(place.segment, *store)?;
        let sealed = dir.list(SEALS_FOLDER);
        let sealed = sealed.map_err(|error| self.site.failed("list", SEALS_FOLDER, error))?;
        for link in self.site.segments.line(newest, Position::ZERO)? {
            let name = Seal::file_name(link.header.name());
            let Some(closed) = link.closed.filter(|_| !sealed.contains(&name)) else {
                continue;
            };
            let segment = link.segment()?;
            let file: &dyn StoredFile = &**segment.file();
            let start = link.header.start().position;
            let failed = |error| self.site.failed("seal", &name, error);
            let seal = Seal::of(
                link.header.name(),
                start,
                closed.end,
                closed.end_offset,
                &file,
            )
            .map_err(failed)?;
            let mut random = [0; 8];
            self.site.storage.random(&mut random).map_err(failed)?;
            let (unique, text) = (u64::from_le_bytes(random), seal.to_string());
            storage::replace_file(&**dir, SEALS_FOLDER, &name, unique, text.as_bytes())
                .map_err(failed)?;
        }
        Ok(())
    }

    fn settle(&self, deadline: Deadline) -> Result<(), Error> {
        let mut writer = self.lock_writer(deadline)?;
        writer.settle_doubt(&self.site, deadline)
    }

    /// Threads of one process wait here for each other, before the lock between processes.
    fn lock_writer(&self, deadline: Deadline) -> Result<MutexGuard<'_, Writer>, Error> {
        self.site.same_process()?;
        let began = self.site.storage.now();
        match deadline.remaining(began) {
            None => Ok(self.writer.lock()),
            Some(left) => self.writer.try_lock_for(left).ok_or_else(|| Error::Busy {
                waited: self.site.storage.now().saturating_duration_since(began),
                holder: "another thread of this process".to_owned(),
            }),
        }
    }

    /// Where the newest published frame stands. Takes no lock: while the holder of a raised epoch has
    /// not settled, the frame is looked up.
    fn place(&self) -> Result<(HeadPlace, Arc<Control>), Error> {
        let Site {
            dir,
            segments,
            store,
            ..
        } = &self.site;
        for _ in 0..10 {
            let control = self.page()?;
            if let Some(place) = control.place() {
                return Ok((place, control));
            }
            match find_head(&**dir, segments, *store, Some(control.word().head), None) {
                Err(Error::Busy { .. }) => {}
                found => return Ok((found?, control)),
            }
        }
        Err(overrun(&**dir))
    }

    /// The page that has its name: a page replaced meanwhile says nothing new for ever.
    fn page(&self) -> Result<Arc<Control>, Error> {
        let mut patience = Patience::new(
            &*self.site.storage,
            Deadline::NEVER,
            self.site.tuning.append_wait,
        );
        self.site.current_control(&mut patience)
    }
}

impl Drop for SegmentLog {
    fn drop(&mut self) {
        // Marks only warn; what is acknowledged is durable without them. Not after a fork: the page
        // is the parent's to sync.
        if self.site.same_process().is_ok() {
            let _ = self.rest();
        }
    }
}

fn open_directory(
    storage: &dyn Storage,
    path: &Path,
    create: bool,
) -> Result<Arc<dyn Directory>, Error> {
    let opening = if create {
        Opening::Create
    } else {
        Opening::Existing
    };
    storage
        .directory(path, opening)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NotAStore {
                path: path.to_owned(),
            },
            _ => storage::failed("open", path, error),
        })
}

fn make_folder(dir: &dyn Directory, name: &str) -> Result<(), Error> {
    dir.make_directory(name)
        .map_err(|error| storage::failed("make", dir.path_of(name), error))
}

/// The newest segment, if there is any.
fn list_or_none(dir: &dyn Directory) -> Result<Option<crate::format::SegmentName>, Error> {
    match segment::list(dir) {
        Ok(names) => Ok(names.last().copied()),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the first segment; of several that try, one does.
fn bear(
    storage: &dyn Storage,
    dir: &Arc<dyn Directory>,
    options: &Options,
) -> Result<crate::format::SegmentName, Error> {
    for folder in [SEGMENTS_FOLDER, LOCKS_FOLDER] {
        make_folder(&**dir, folder)?;
    }
    dir.sync("")
        .map_err(|error| storage::failed("sync", dir.path(), error))?;
    Locks::new(dir.clone()).create(Epoch(1))?;
    let mut random = [[0; 16]; 2];
    for bytes in &mut random {
        storage
            .random(bytes)
            .map_err(|error| storage::failed("draw random numbers for", dir.path(), error))?;
    }
    let (store, salt) = (StoreId(random[0]), Salt(random[1]));
    let header = SegmentHeader {
        format: FORMAT_VERSION,
        writer: writer_version(),
        rules: options.rules,
        store,
        salt,
        incarnation: Incarnation(1),
        epoch: Epoch(1),
        first: Position(1),
        chain: Chain::born(store, salt),
        predecessor: None,
    };
    let bytes = options
        .tuning
        .target_bytes(None)
        .min(SEGMENT_HEADER_BYTES as u64 + options.tuning.fill_bytes);
    match segment::make(storage, &**dir, &header, &[], bytes) {
        Ok(_) | Err(NotMade::Taken) => Ok(header.name()),
        Err(NotMade::Failed(error) | NotMade::Removed(error) | NotMade::Doubtful(error)) => {
            Err(error)
        }
    }
}

impl Journal for SegmentLog {
    fn identity(&self) -> Identity {
        let Site { store, rules, .. } = self.site;
        // The newest segment says; when it cannot be asked, the caller's next step fails and says why.
        let newest = self.place().ok();
        let newest =
            newest.and_then(|(place, _)| self.site.segments.get(place.segment, store).ok());
        let header = newest.as_ref().map(|segment| segment.header());
        Identity {
            store,
            incarnation: header.map_or(Incarnation(1), |header| header.incarnation),
            rules: header.map_or(rules, |header| header.rules),
        }
    }

    fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error> {
        let (place, _) = self.place()?;
        let newest = self.site.segments.get(place.segment, self.site.store)?;
        let line = self.site.segments.line(newest, Position::ZERO)?;
        Ok(line::rules(&line))
    }

    fn head(&self) -> Result<Head, Error> {
        self.site.same_process()?;
        let control = self.site.control();
        let word = control.word();
        let mut cached = self.cached.lock();
        if let Some((of, head)) = *cached
            && of == word
        {
            return Ok(head);
        }
        let (place, control) = self.place()?;
        let word = control.word();
        if place.head.position == word.head {
            *cached = Some((word, place.head));
        }
        Ok(place.head)
    }

    fn durable(&self) -> Result<Position, Error> {
        self.site.same_process()?;
        Ok(self.page()?.durable())
    }

    fn transact(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Decision<'_>,
    ) -> Result<Appended, TransactError> {
        let mut writer = self.lock_writer(deadline)?;
        let mut appended = writer.transact(&self.site, known, deadline, decide)?;
        let place = writer.place().filter(|place| place.head == appended.head);
        appended.mark = place.map(Landmark::from);
        Ok(appended)
    }

    fn wait_durable(&self, position: Position, deadline: Deadline) -> Result<(), Error> {
        self.site.same_process()?;
        while !self.group.wait(&self.site, position, deadline)? {
            self.settle(deadline)?;
        }
        Ok(())
    }

    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        self.site.same_process()?;
        let (place, control) = self.place()?;
        Ok(Box::new(walk_from(
            &*self.site.dir,
            &self.site.segments,
            self.site.store,
            &place,
            Some(&control),
            after,
            depth,
        )?))
    }

    fn landmark(&self, head: Head) -> Result<Option<Landmark>, Error> {
        self.site.same_process()?;
        let (place, control) = self.place()?;
        if place.head == head {
            return Ok(Some(place.into()));
        }
        let after = head.position.before();
        let (dir, segments, store) = (&*self.site.dir, &self.site.segments, self.site.store);
        let depth = Depth::Facts;
        let mut frames = walk_from(dir, segments, store, &place, Some(&control), after, depth)?;
        let found = frames.next().transpose()?.map(|frame| frame.header.head());
        Ok(frames.landmark().filter(|_| found == Some(head)))
    }

    fn read_behind(
        &self,
        landmark: &Landmark,
        depth: Depth,
    ) -> Result<Option<Box<dyn Frames + '_>>, Error> {
        self.site.same_process()?;
        let (place, control) = self.place()?;
        let (dir, segments, store) = (&*self.site.dir, &self.site.segments, self.site.store);
        let what = (landmark, depth);
        let walker = walk_behind(dir, segments, store, &place, Some(&control), what)?;
        Ok(walker.map(|walker| Box::new(walker) as Box<dyn Frames>))
    }

    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<Head, Error> {
        self.site.same_process()?;
        loop {
            let control = self.page()?;
            let seen = control.seen(Signal::Published);
            let head = self.head()?;
            reaches(head, position)?;
            let now = self.site.storage.now();
            if head.position > position || deadline.passed(now) {
                return Ok(head);
            }
            // A wake-up can be lost with the process that owed it, and a page with its name.
            control.wait(
                Signal::Published,
                seen,
                deadline.bound(std::time::Duration::from_millis(100), now),
            );
        }
    }

    fn raise(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Raising<'_>,
    ) -> Result<Appended, TransactError> {
        let mut writer = self.lock_writer(deadline)?;
        writer.raise(&self.site, known, deadline, decide)
    }

    fn counters(&self) -> &dyn Counters {
        self
    }

    fn snapshots(&self) -> &dyn Blobs {
        &self.snapshots
    }

    fn torn(&self) -> Vec<Torn> {
        self.site.torn.lock().clone()
    }

    fn tend(&self) -> Result<(), Error> {
        self.site.same_process()?;
        self.seal_closed()
    }
}

impl Counters for SegmentLog {
    fn add(&self, tag: CounterTag, n: u64) -> Option<u64> {
        self.site.control().counters().add(tag, n)
    }

    fn get(&self, tag: CounterTag) -> u64 {
        self.site.control().counters().get(tag)
    }

    fn take(&self, tag: CounterTag) -> u64 {
        self.site.control().counters().take(tag)
    }

    fn for_each(&self, f: &mut dyn FnMut(CounterTag, u64)) {
        self.site.control().counters().for_each(f);
    }
}
