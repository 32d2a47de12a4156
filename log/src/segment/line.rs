//! The line of segments from the newest back, as far as a reader needs it, and the judgement of all of
//! them by their headers and sizes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Segment, file_name, list};
use crate::error::{Damage, Error};
use crate::fault::Fault;
use crate::format::{Predecessor, RulesVersion, SegmentHeader, SegmentName};
use crate::look::read_header;
use crate::position::{Position, Positions, StoreId};
use crate::recovery::{Lineage, Obstacle, SegmentFile};
use crate::storage::{self, Access, Directory};

/// How many segment files a handle keeps open: the one in use, and those a reader passes.
const OPEN_FILES_MAX: usize = 6;

/// The segments of a store, opened on demand.
pub struct Segments {
    dir: Arc<dyn Directory>,
    access: Access,
    open: Mutex<Vec<Arc<Segment>>>,
    /// Good headers, which never change: what is judged again later is the size.
    headers: Mutex<BTreeMap<SegmentName, SegmentHeader>>,
}

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segments({})", self.dir.path().display())
    }
}

/// A segment, and where its successor's header ends it.
#[derive(Clone, Debug)]
pub struct Link<'s> {
    /// What it says about itself.
    pub header: SegmentHeader,
    /// Its end; none for the newest.
    pub closed: Option<Predecessor>,
    file: File<'s>,
}

/// Whether a segment is open. A long log has many, and whoever walks a few frames of it opens one.
#[derive(Clone, Debug)]
enum File<'s> {
    Open(Arc<Segment>),
    /// With the header that names it.
    Later(&'s Segments, SegmentHeader),
}

impl Link<'_> {
    /// Of a segment that is open.
    #[must_use]
    pub fn of(segment: Arc<Segment>, closed: Option<Predecessor>) -> Self {
        Link {
            header: *segment.header(),
            closed,
            file: File::Open(segment),
        }
    }

    /// The segment, opened where it was not.
    ///
    /// # Errors
    /// As [`Segments::line`].
    pub fn segment(&self) -> Result<Arc<Segment>, Error> {
        match &self.file {
            File::Open(segment) => Ok(segment.clone()),
            File::Later(segments, named_by) => segments.before(named_by, self.header.name()),
        }
    }
}

impl Segments {
    /// The segments in `dir`, whose files are opened for `access`.
    #[must_use]
    pub fn new(dir: Arc<dyn Directory>, access: Access) -> Segments {
        Segments {
            dir,
            access,
            open: Mutex::new(Vec::new()),
            headers: Mutex::new(BTreeMap::new()),
        }
    }

    /// The store whose directory this is: the one that the oldest good header names, as `verify` takes it. `newest` is
    /// the newest of the segments by its name.
    ///
    /// # Errors
    /// When that one cannot be opened or is not of this store: then, before anything else, whatever
    /// [`judge`](Segments::judge) says.
    pub fn store(&self, newest: SegmentName) -> Result<StoreId, Error> {
        let mut oldest = None;
        for name in list(&*self.dir)? {
            if name == newest || oldest.is_some() {
                break;
            }
            oldest = self.look_at(name)?.header.ok();
        }
        let opened = Segment::open(&*self.dir, newest, self.access);
        if let Some(SegmentHeader { store, .. }) = oldest
            && !matches!(&opened, Ok(segment) if segment.header().store == store)
        {
            self.judge(store)?;
        }
        Ok(opened?.header().store)
    }

    /// Every segment file with its size and header.
    ///
    /// # Errors
    /// When one cannot be listed, opened or read.
    pub fn files(&self) -> Result<Vec<SegmentFile>, Error> {
        list(&*self.dir)?
            .into_iter()
            .map(|name| self.look_at(name))
            .collect()
    }

    fn look_at(&self, name: SegmentName) -> Result<SegmentFile, Error> {
        let path = file_name(name);
        let failed = |error| storage::failed("read", self.dir.path_of(&path), error);
        let file = self.dir.open(&path, Access::Read).map_err(failed)?;
        let known = self.headers.lock().get(&name).copied();
        let (bytes, header) = match known {
            Some(header) => (file.size().map_err(failed)?, Ok(header)),
            None => read_header(&&*file).map_err(failed)?,
        };
        if let Ok(header) = header {
            self.headers.lock().insert(name, header);
        }
        Ok(SegmentFile {
            name,
            bytes,
            header,
        })
    }

    /// Judges every segment by its header, its predecessor, and its size against its stated end: rows 1
    /// and 2 of the table, without the frames.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn judge(&self, store: StoreId) -> Result<(), Error> {
        let mut before = self.files()?;
        loop {
            let lineage = Lineage::of(Some(store), &before);
            let found = lineage
                .obstacles
                .first()
                .map(Obstacle::to_error)
                .or_else(|| lineage.damage.first().map(|damage| Error::from(*damage)));
            let Some(error) = found else { return Ok(()) };
            // A folder that is listed while segments are made in it may show a later one and not an
            // earlier one.
            let again = self.files()?;
            if again == before {
                return Err(error);
            }
            before = again;
        }
    }

    /// The segment `name` of `store`.
    ///
    /// # Errors
    /// As [`Segment::open`]; [`Error::ForeignStore`] when it belongs to another.
    pub fn get(&self, name: SegmentName, store: StoreId) -> Result<Arc<Segment>, Error> {
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|segment| segment.name() == name) {
            // The one that was not asked for longest is let go first: hardly ever the newest.
            open[at..].rotate_left(1);
            return Ok(open[open.len() - 1].clone());
        }
        drop(open);
        let segment = Segment::open(&*self.dir, name, self.access)?;
        let found = segment.header().store;
        if found != store {
            return Err(Error::ForeignStore {
                segment: name,
                found,
                expected: store,
            });
        }
        Ok(self.keep(segment))
    }

    /// Keeps a segment open.
    pub fn keep(&self, segment: Segment) -> Arc<Segment> {
        let segment = Arc::new(segment);
        self.headers
            .lock()
            .insert(segment.name(), *segment.header());
        let mut open = self.open.lock();
        if open.len() == OPEN_FILES_MAX {
            open.remove(0);
        }
        open.push(segment.clone());
        segment
    }

    /// The line from `newest` back to the segment that holds the frame behind `after`, oldest first.
    ///
    /// # Errors
    /// When a predecessor is missing, foreign or damaged.
    pub fn line(&self, newest: Arc<Segment>, after: Position) -> Result<Vec<Link<'_>>, Error> {
        let mut line = vec![Link::of(newest, None)];
        while let Some(link) = line.last()
            && link.header.start().position > after
        {
            let header = link.header;
            let Some(before) = header.predecessor else {
                break;
            };
            let known = self.headers.lock().get(&before.name).copied();
            line.push(match known.filter(|known| known.store == header.store) {
                Some(known) => Link {
                    header: known,
                    closed: Some(before),
                    file: File::Later(self, header),
                },
                None => Link::of(self.before(&header, before.name)?, Some(before)),
            });
        }
        line.reverse();
        Ok(line)
    }

    /// The segment that a header names as its predecessor.
    fn before(&self, header: &SegmentHeader, name: SegmentName) -> Result<Arc<Segment>, Error> {
        self.get(name, header.store)
            .map_err(|error| missing(error, header, name))
    }
}

/// From which position on which version of the rules decided, as the headers of a line say: one entry for each
/// change, oldest first.
pub(crate) fn rules(line: &[Link<'_>]) -> Vec<(Position, RulesVersion)> {
    let mut rules: Vec<_> = line
        .iter()
        .map(|link| (link.header.first, link.header.rules))
        .collect();
    rules.dedup_by_key(|(_, version)| *version);
    rules
}

/// Says who names the segment that is not there.
fn missing(error: Error, named_by: &SegmentHeader, name: SegmentName) -> Error {
    match error {
        Error::Damaged(damage) if matches!(damage.fault, Fault::Short { have: 0, .. }) => {
            let last = named_by.start().position.max(name.first);
            let fault = Fault::SegmentMissing {
                named_by: named_by.name(),
            };
            Error::Damaged(Box::new(Damage {
                positions: Positions::to(name.first, last),
                fault,
                ..*damage
            }))
        }
        other => other,
    }
}
