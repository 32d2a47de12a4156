//! Where entries are read from: a journal that can also be written, or a directory that is only looked at.

use std::path::Path;
use std::sync::Arc;

use tenure_core::redaction::Classes;
use tenure_log::error::Error;
use tenure_log::frame::Depth;
use tenure_log::journal::segment::blobs::FolderBlobs;
use tenure_log::journal::{
    Blobs, CounterTag, Deadline, Frames, Identity, Journal, Landmark, RulesVersion,
};
use tenure_log::position::{Head, Position};
use tenure_log::reader::open::SegmentReader;
use tenure_log::segment::SEGMENTS_FOLDER;
use tenure_log::storage::{Opening, Storage};

/// The reading half of a log.
pub(crate) trait Source: Send + Sync {
    /// Store, life and rules version.
    fn identity(&self) -> Result<Identity, Error>;
    /// From which position on which version of the rules decided, oldest first.
    fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error>;
    /// The newest head there is.
    fn head(&self) -> Result<Head, Error>;
    /// The newest position that may be shown.
    fn newest(&self) -> Result<Position, Error>;
    /// Returns when nothing up to `position` can be taken back any more.
    fn settle(&self, position: Position) -> Result<(), Error>;
    /// The frames behind `after`; may run beyond [`Source::newest`].
    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error>;
    /// The same behind a landmark, without a search; none when it does not stand.
    fn read_behind(
        &self,
        landmark: &Landmark,
        depth: Depth,
    ) -> Result<Option<Box<dyn Frames + '_>>, Error>;
    /// Waits until there is something behind `position`, or until the deadline.
    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<(), Error>;
    /// Derived files.
    fn blobs(&self) -> &dyn Blobs;
    /// What was counted beside the log; statistics.
    fn counted(&self, tag: CounterTag) -> Result<u64, Error>;
    /// What was taken out of its frames, where it was made from a bundle.
    fn redacted(&self) -> Classes {
        Classes::default()
    }
}

impl Source for Arc<dyn Journal> {
    fn identity(&self) -> Result<Identity, Error> {
        Ok(Journal::identity(&**self))
    }

    fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error> {
        Journal::rules(&**self)
    }

    fn head(&self) -> Result<Head, Error> {
        Journal::head(&**self)
    }

    fn newest(&self) -> Result<Position, Error> {
        Ok(Journal::head(&**self)?.position)
    }

    fn settle(&self, position: Position) -> Result<(), Error> {
        self.wait_durable(position, Deadline::NEVER)
    }

    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        Journal::read_from(&**self, after, depth)
    }

    fn read_behind(
        &self,
        landmark: &Landmark,
        depth: Depth,
    ) -> Result<Option<Box<dyn Frames + '_>>, Error> {
        Journal::read_behind(&**self, landmark, depth)
    }

    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<(), Error> {
        Journal::wait_beyond(&**self, position, deadline).map(|_: Head| ())
    }

    fn blobs(&self) -> &dyn Blobs {
        self.snapshots()
    }

    fn counted(&self, tag: CounterTag) -> Result<u64, Error> {
        Ok(self.counters().get(tag))
    }
}

/// Says what is no store before anything is said about its owner and mode: those of any other directory are
/// nobody's business.
pub(crate) fn is_a_store(dir: &Path) -> Result<(), Error> {
    match dir.join(SEGMENTS_FOLDER).try_exists() {
        Ok(false) => Err(Error::NotAStore {
            path: dir.to_owned(),
        }),
        // What cannot be looked at is for the log to say.
        Ok(true) | Err(_) => Ok(()),
    }
}

/// A directory that is only looked at: no lock is taken and no byte changed (LOG-8).
#[derive(Debug)]
pub(crate) struct Looking {
    reader: SegmentReader,
    blobs: FolderBlobs,
    redacted: Classes,
}

impl Looking {
    pub(crate) fn open(storage: Arc<dyn Storage>, dir: &Path) -> Result<Self, Error> {
        is_a_store(dir)?;
        let reader = SegmentReader::open(storage.clone(), dir)?;
        let directory = storage
            .directory(dir, Opening::Existing)
            .map_err(|error| tenure_log::storage::failed("open", dir, error))?;
        let words = reader.bundle()?.map(|heading| heading.redacted);
        let classes = words.iter().flatten().filter_map(|w| Classes::from_word(w));
        let redacted = Classes::from_bits(classes.fold(0, |all, class| all | class.bits()));
        Ok(Self {
            reader,
            blobs: FolderBlobs::new(storage, directory),
            redacted,
        })
    }
}

impl Source for Looking {
    fn redacted(&self) -> Classes {
        self.redacted
    }

    fn identity(&self) -> Result<Identity, Error> {
        self.reader.identity()
    }

    fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error> {
        self.reader.rules()
    }

    fn head(&self) -> Result<Head, Error> {
        self.reader.head()
    }

    /// Whoever only looks cannot sync: it shows what is durable already. Nothing behind that was
    /// acknowledged to anybody yet. Without a page of this boot nobody has written in it, and all that is
    /// there has outlived one.
    fn newest(&self) -> Result<Position, Error> {
        let durable = self.reader.durable()?;
        let head = self.reader.head()?.position;
        Ok(if durable == Position::ZERO {
            head
        } else {
            head.min(durable)
        })
    }

    fn settle(&self, _position: Position) -> Result<(), Error> {
        Ok(())
    }

    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        self.reader.read_from(after, depth)
    }

    fn read_behind(
        &self,
        landmark: &Landmark,
        depth: Depth,
    ) -> Result<Option<Box<dyn Frames + '_>>, Error> {
        self.reader.read_behind(landmark, depth)
    }

    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<(), Error> {
        self.reader.wait_beyond(position, deadline).map(|_| ())
    }

    fn blobs(&self) -> &dyn Blobs {
        &self.blobs
    }

    fn counted(&self, tag: CounterTag) -> Result<u64, Error> {
        self.reader.counted(tag)
    }
}
