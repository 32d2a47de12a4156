//! The reader: a handle that cannot write, takes no lock and changes no byte.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::landmark::{Landmark, line_to, walk_behind};
use super::{From, Point, Walker};
use crate::bundle::{self, Heading};
use crate::control::place::HeadPlace;
use crate::control::{CONTROL_NAME, Page, Signal};
use crate::error::Error;
use crate::format::{RulesVersion, SEGMENT_HEADER_BYTES, SegmentName};
use crate::frame::{Depth, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, decode};
use crate::journal::{CounterTag, Deadline, Frames, Identity, reaches};
use crate::lock::Locks;
use crate::position::{Epoch, Head, Position, StoreId};
use crate::scan::{Checks, Cursor, Step, Walk, Window, Zeros, survey};
use crate::segment::line::{self, Link, Segments};
use crate::segment::{self, Segment, file_name};
use crate::storage::{self, Access, Directory, Opening, Storage};

/// How long a reader sleeps before it looks again: it leaves no mark for a writer to wake it by.
const NAP: Duration = Duration::from_millis(10);

/// How often a reader looks for the head while the page changes or an epoch is raised: half a second.
const LOOKS_MAX: u32 = 50;

/// The frames behind `after`, up to the one at `place`.
pub(crate) fn walk_from<'d>(
    dir: &'d dyn Directory,
    segments: &'d Segments,
    store: StoreId,
    place: &HeadPlace,
    page: Option<&Page>,
    after: Position,
    depth: Depth,
) -> Result<Walker<'d>, Error> {
    let newest = segments.get(place.segment, store)?;
    let until = Point {
        segment: place.segment,
        head: place.head,
        offset: place.end,
    };
    let after = after.min(place.head.position);
    let line = segments.line(newest, after)?;
    Walker::new(dir, line, From::Position(after), until, depth, page)
}

/// Looks the head up in the newest segment: the frame at the position that was published, or the last
/// whole one where no page says. The published frames are the same in whatever segment is the newest.
/// Begins at a place known before, if it is in that segment.
pub(crate) fn find_head(
    dir: &dyn Directory,
    segments: &Segments,
    store: StoreId,
    published: Option<Position>,
    known: Option<HeadPlace>,
) -> Result<HeadPlace, Error> {
    let name = newest_segment(dir)?;
    let newest = segments.get(name, store)?;
    let failed = |error| storage::failed("read", dir.path_of(&file_name(name)), error);
    let window = Window::new(&**newest.file()).map_err(failed)?;
    let start = SEGMENT_HEADER_BYTES as u64;
    let known = known.filter(|known| {
        known.segment == name && published.is_none_or(|published| known.head.position <= published)
    });
    let mut place = known.unwrap_or(HeadPlace {
        head: newest.header().start(),
        segment: name,
        offset: start,
        end: start,
    });
    let cursor = Cursor::resume(newest.header(), Checks::ALL, place.head, place.end);
    let mut walk = Walk::resume(window, cursor, None).with_zeros(Zeros::Trust);
    let mut whole = true;
    survey(newest.header(), &mut walk, &mut |span, step| {
        whole &= matches!(step, Step::Frame(..));
        if let Step::Frame(frame, _) = step
            && whole
            && published.is_none_or(|published| frame.header.position <= published)
        {
            let (head, offset, end) = (frame.header.head(), span.offset, span.end());
            place = HeadPlace {
                head,
                segment: name,
                offset,
                end,
            };
        }
    })
    .map_err(failed)?;
    if published.is_some_and(|published| place.head.position != published) {
        // Between the page and the file, a new holder settled.
        return Err(overrun(dir));
    }
    Ok(place)
}

/// Writers were faster than this reader, again and again; there is no better answer than to ask again.
pub(crate) fn overrun(dir: &dyn Directory) -> Error {
    Error::Busy {
        waited: Duration::ZERO,
        holder: format!("writers on {}", dir.path().display()),
    }
}

/// A segment as far as it counts.
pub(crate) struct Part {
    pub segment: Arc<Segment>,
    /// Its last frame; the one before its first where it has none.
    pub last: Position,
    /// The offset behind that.
    pub end: u64,
}

/// A store opened for reading.
pub struct SegmentReader {
    storage: Arc<dyn Storage>,
    dir: Arc<dyn Directory>,
    store: StoreId,
    /// The newest segment when this was opened.
    newest: SegmentName,
    segments: Segments,
    locks: Locks,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    page: Option<Page>,
    /// Whether there is a page of an earlier boot, or one that is older than the log or ahead of it: then nobody has
    /// written since.
    is_void: bool,
    /// The newest head, so that none is answered that lies before an earlier answer.
    place: Option<HeadPlace>,
}

impl Seen {
    /// The newest head seen, which may be `found`: a page that was just rebuilt knows less than this reader
    /// for a moment.
    fn raise(&mut self, found: HeadPlace) -> HeadPlace {
        let newer = self
            .place
            .filter(|place| place.head.position > found.head.position);
        let place = newer.unwrap_or(found);
        self.place = Some(place);
        place
    }
}

impl fmt::Debug for SegmentReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentReader")
            .field("dir", &self.dir.path())
            .field("store", &self.store)
            .finish()
    }
}

impl SegmentReader {
    /// Opens the store in `path` for reading.
    ///
    /// # Errors
    /// [`Error::NotAStore`], and what the newest segment's header shows.
    pub fn open(storage: Arc<dyn Storage>, path: &Path) -> Result<SegmentReader, Error> {
        let dir = storage
            .directory(path, Opening::Existing)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NotAStore {
                    path: path.to_owned(),
                },
                _ => storage::failed("open", path, error),
            })?;
        let newest = newest_segment(&*dir)?;
        let segments = Segments::new(dir.clone(), Access::Read);
        let store = segments.store(newest)?;
        let locks = Locks::new(dir.clone());
        Ok(SegmentReader {
            storage,
            dir,
            store,
            newest,
            segments,
            locks,
            seen: Mutex::new(Seen::default()),
        })
    }

    fn failed(&self, op: &'static str, name: &str, error: io::Error) -> Error {
        storage::failed(op, self.dir.path_of(name), error)
    }

    /// The page, when there is one of this boot.
    fn page(&self, seen: &mut Seen) -> Result<Option<Page>, Error> {
        if let Some(page) = &seen.page
            && page
                .is_current()
                .map_err(|error| self.failed("look at", CONTROL_NAME, error))?
        {
            return Ok(Some(page.clone()));
        }
        seen.page = match self.dir.open(CONTROL_NAME, Access::Read) {
            Ok(file) => Page::map(self.storage.clone(), file, Access::Read)
                .map_err(|error| self.failed("map", CONTROL_NAME, error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.failed("open", CONTROL_NAME, error)),
        };
        let boot = self
            .storage
            .boot()
            .map_err(|error| self.failed("ask for the boot of", CONTROL_NAME, error))?;
        let page = seen.page.take().filter(|page| page.store() == self.store);
        seen.is_void = match &page {
            Some(page) => page.boot() != boot || self.is_ahead(page)? || self.is_older(page)?,
            None => false,
        };
        seen.page = page.filter(|_| !seen.is_void);
        Ok(seen.page.clone())
    }

    /// Whether a page of this boot is older than the log: a file system that is shut down and mounted again within one
    /// boot, or somebody who puts an old copy of it back, leaves one. Without doubt nothing stands behind what it says
    /// was published.
    fn is_older(&self, page: &Page) -> Result<bool, Error> {
        let word = page.word();
        let Some(place) = page.place().filter(|_| !word.in_doubt) else {
            return Ok(false);
        };
        let is_older = self.newest > place.segment || {
            let segment = self.segments.get(place.segment, self.store)?;
            let mut behind = [0; FRAME_HEADER_BYTES];
            let read = storage::read_full(&**segment.file(), &mut behind, place.end);
            let read = read.map_err(|e| self.failed("read", &file_name(place.segment), e))?;
            behind[..read].iter().any(|byte| *byte != 0)
        };
        // Somebody may have published meanwhile.
        Ok(is_older && page.word() == word)
    }

    /// Whether a page of this boot is ahead of the log: a file system that is shut down and mounted again within one boot
    /// leaves one, where it had written the page and not the newest frames. Everything that the page says was durable
    /// stands, else it is damage.
    fn is_ahead(&self, page: &Page) -> Result<bool, Error> {
        let (word, mark) = (page.word(), page.mark());
        let durable = page
            .durable()
            .max(mark.map_or(Position::ZERO, |mark| mark.head.position));
        let Some(place) = page.place().filter(|place| place.head.position > durable) else {
            return Ok(false);
        };
        if self.holds(&place)? {
            return Ok(false);
        }
        let found = match find_head(&*self.dir, &self.segments, self.store, None, None) {
            Err(Error::Busy { .. }) => return Ok(false),
            found => found?.head.position,
        };
        // Somebody may have published, or raised the epoch, meanwhile.
        Ok((durable..place.head.position).contains(&found) && page.word() == word)
    }

    /// Whether the frame of that head stands at its place.
    fn holds(&self, place: &HeadPlace) -> Result<bool, Error> {
        let segment = match self.segments.get(place.segment, self.store) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(false);
            }
            segment => segment?,
        };
        let bytes = place.end.saturating_sub(place.offset);
        let Some(len) = usize::try_from(bytes)
            .ok()
            .filter(|len| *len <= FRAME_BYTES_MAX)
        else {
            return Ok(false);
        };
        let mut bytes = vec![0; len];
        let read = storage::read_full(&**segment.file(), &mut bytes, place.offset)
            .map_err(|e| self.failed("read", &file_name(place.segment), e))?;
        let frame = decode(
            &segment.place().at(place.offset),
            &bytes[..read],
            Depth::Whole,
        );
        Ok(len == 0 || frame.is_ok_and(|(frame, _)| frame.header.head() == place.head))
    }

    /// Where the newest head stands. Without a page nobody has written in this boot, or somebody removed
    /// it: then it is looked up in the newest segment; what is incomplete there is not in the log.
    fn place(&self) -> Result<(HeadPlace, Option<Page>), Error> {
        let mut seen = self.seen.lock();
        let mut unsettled = None;
        for _ in 0..LOOKS_MAX {
            let page = match self.page(&mut seen)? {
                Some(page) if self.is_behind(&page)? => None,
                page => page,
            };
            let found = match page.as_ref().and_then(Page::place) {
                Some(place) => place,
                None => {
                    let published = page.as_ref().map(|page| page.word().head);
                    let (dir, segments) = (&*self.dir, &self.segments);
                    match find_head(dir, segments, self.store, published, seen.place) {
                        Err(Error::Busy { .. }) => continue,
                        found => found?,
                    }
                }
            };
            if self.stands(&mut seen, page.as_ref(), found.segment.epoch)? {
                return Ok((seen.raise(found), page));
            }
            unsettled = page.is_none().then_some(found);
            self.nap();
        }
        // Whoever raised the epoch has died, and nobody has written since.
        match unsettled {
            Some(found) => Ok((seen.raise(found), None)),
            None => Err(overrun(&*self.dir)),
        }
    }

    /// Whether what was just found is the head, for whoever looks later too. What a page says counts
    /// while it has its name. What was looked up without one counts when there still is none, since a frame
    /// that was not published yet may have been found; and then while nobody has written in this boot, or
    /// while the epoch of the newest segment is the newest: who raised it may have looked already, and not
    /// seen a frame that came late.
    fn stands(&self, seen: &mut Seen, page: Option<&Page>, epoch: Epoch) -> Result<bool, Error> {
        if let Some(page) = page {
            let current = page.is_current();
            return current.map_err(|error| self.failed("look at", CONTROL_NAME, error));
        }
        let was_void = seen.is_void;
        if self.page(seen)?.is_some() {
            return Ok(false);
        }
        if was_void && seen.is_void {
            return Ok(true);
        }
        Ok(self.locks.newest()?.is_none_or(|newest| newest <= epoch))
    }

    fn nap(&self) {
        let nothing = std::sync::atomic::AtomicU32::new(0);
        self.storage.wait(&nothing, 0, NAP);
    }

    /// Whether a page is behind the locks: then a newer one had its name before, and knew more. Only a
    /// page in doubt can be.
    fn is_behind(&self, page: &Page) -> Result<bool, Error> {
        let word = page.word();
        Ok(word.in_doubt
            && self
                .locks
                .newest()?
                .is_some_and(|newest| newest > word.epoch))
    }

    /// Store, life and rules version.
    ///
    /// # Errors
    /// When the newest segment cannot be read.
    pub fn identity(&self) -> Result<Identity, Error> {
        let newest = self.newest(&mut self.seen.lock())?;
        let newest = self.segments.get(newest, self.store)?;
        let header = newest.header();
        Ok(Identity {
            store: self.store,
            incarnation: header.incarnation,
            rules: header.rules,
        })
    }

    /// From which position on which version of the rules decided: one entry for each change, oldest first.
    ///
    /// # Errors
    /// When a segment's header cannot be read.
    pub fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error> {
        let newest = self.newest(&mut self.seen.lock())?;
        let newest = self.segments.get(newest, self.store)?;
        Ok(line::rules(&self.segments.line(newest, Position::ZERO)?))
    }

    /// The store's own id.
    #[must_use]
    pub fn store(&self) -> StoreId {
        self.store
    }

    /// The heading of the bundle that the store was made from, if it was.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn bundle(&self) -> Result<Option<Heading>, Error> {
        bundle::marker(&*self.dir)
    }

    /// The segments up to the frame at `until`, oldest first, and that frame's head.
    pub(crate) fn parts(&self, until: Position) -> Result<(Head, Vec<Part>), Error> {
        let mut frames = self.read_from(until.before(), Depth::Facts)?;
        let found = frames.next().transpose()?.map(|frame| frame.header.head());
        let (Some(head), Some(mark)) = (found, frames.landmark()) else {
            return Err(Error::BeyondHead {
                head: self.head()?.position,
                asked: until,
            });
        };
        let last = self.segments.get(mark.segment, self.store)?;
        let line = self.segments.line(last, Position::ZERO)?;
        let part = |link: Link<'_>| -> Result<Part, Error> {
            Ok(Part {
                last: link.closed.map_or(until, |closed| closed.end.position),
                end: link.closed.map_or(mark.end, |closed| closed.end_offset),
                segment: link.segment()?,
            })
        };
        let parts: Result<_, _> = line.into_iter().map(part).collect();
        Ok((head, parts?))
    }

    /// The newest segment, without looking for its head.
    fn newest(&self, seen: &mut Seen) -> Result<SegmentName, Error> {
        match self.page(seen)?.as_ref().and_then(Page::place) {
            Some(place) => Ok(place.segment),
            None => newest_segment(&*self.dir),
        }
    }

    /// The newest published head. Never before one answered earlier.
    ///
    /// # Errors
    /// When it has to be looked up and cannot be read.
    pub fn head(&self) -> Result<Head, Error> {
        Ok(self.place()?.0.head)
    }

    /// Every position up to here is durable, as far as the control page says; zero without one.
    ///
    /// # Errors
    /// When the page is there and cannot be read.
    pub fn durable(&self) -> Result<Position, Error> {
        let page = self.page(&mut self.seen.lock())?;
        Ok(page.map_or(Position::ZERO, |page| page.durable()))
    }

    /// What was counted under a tag, as far as there is a control page.
    ///
    /// # Errors
    /// When the page is there and cannot be read.
    pub fn counted(&self, tag: CounterTag) -> Result<u64, Error> {
        let page = self.page(&mut self.seen.lock())?;
        Ok(page.map_or(0, |page| page.counted(tag)))
    }

    /// The frames behind `after`, up to the head published at the call.
    ///
    /// # Errors
    /// When the log cannot be read, or is damaged at the start of the walk.
    pub fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        let (place, page) = self.place()?;
        let walker = walk_from(
            &*self.dir,
            &self.segments,
            self.store,
            &place,
            page.as_ref(),
            after,
            depth,
        )?;
        Ok(Box::new(walker))
    }

    /// As [`SegmentReader::read_from`], behind a landmark and without a search; none when it does not stand.
    /// Without a control page, the head is looked for from there too.
    ///
    /// # Errors
    /// As [`SegmentReader::read_from`].
    pub fn read_behind(
        &self,
        landmark: &Landmark,
        depth: Depth,
    ) -> Result<Option<Box<dyn Frames + '_>>, Error> {
        let mut seen = self.seen.lock();
        if seen.place.is_none() {
            let newest = self.newest(&mut seen)?;
            if line_to(&*self.dir, &self.segments, self.store, newest, landmark)?.is_none() {
                return Ok(None);
            }
            seen.place = (newest == landmark.segment).then(|| (*landmark).into());
        }
        drop(seen);
        let (place, page) = self.place()?;
        let walker = walk_behind(
            &*self.dir,
            &self.segments,
            self.store,
            &place,
            page.as_ref(),
            (landmark, depth),
        )?;
        Ok(walker.map(|walker| Box::new(walker) as Box<dyn Frames>))
    }

    /// Waits until the head is beyond `position` or the deadline has passed, and returns the head
    /// either way.
    ///
    /// # Errors
    /// [`Error::BeyondHead`] at once when the log does not reach `position`; when the head cannot be read.
    pub fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<Head, Error> {
        let nothing = std::sync::atomic::AtomicU32::new(0);
        loop {
            let page = self.page(&mut self.seen.lock())?;
            let seen = page.as_ref().map(|page| page.seen(Signal::Published));
            let head = self.head()?;
            reaches(head, position)?;
            let now = self.storage.now();
            if head.position > position || deadline.passed(now) {
                return Ok(head);
            }
            let bound = deadline.bound(NAP, now);
            match (&page, seen) {
                (Some(page), Some(seen)) => page.wait_unseen(Signal::Published, seen, bound),
                _ => self.storage.wait(&nothing, 0, bound),
            }
        }
    }
}

fn newest_segment(dir: &dyn Directory) -> Result<SegmentName, Error> {
    let none = || Error::NotAStore {
        path: dir.path().to_owned(),
    };
    match segment::list(dir) {
        Ok(names) => names.last().copied().ok_or_else(none),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Err(none()),
        Err(error) => Err(error),
    }
}
