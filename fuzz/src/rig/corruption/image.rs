//! The files of a store in memory, to be changed and judged.

use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_log::error::Error;
use tenure_log::format::{RulesVersion, SEGMENT_HEADER_BYTES};
use tenure_log::frame::{Depth, Draft, Frame, FrameRef, Parts};
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::look::Copied;
use tenure_log::position::{Position, Receipt, TimeMicros};
use tenure_log::scan::{Checks, Step};
use tenure_log::storage::disk::Disk;
use tenure_log::writer::site::Tuning;

use super::change::Found;

/// A frame that was written, and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    file: String,
    pub offset: usize,
    pub bytes: usize,
    frame: Frame,
}

impl Written {
    /// Whether a frame of the same position is this one.
    pub fn is(&self, other: &FrameRef<'_>) -> bool {
        self.frame.by_ref() == *other
    }
}

impl PartialEq<Frame> for Written {
    fn eq(&self, other: &Frame) -> bool {
        self.frame == *other
    }
}

/// A store's files.
#[derive(Clone)]
pub struct Image {
    pub dir: PathBuf,
    pub files: Copied,
    names: Arc<Vec<String>>,
    segment_bytes: u64,
    /// What was written, in order.
    pub frames: Arc<Vec<Written>>,
    /// The receipt of the newest frame.
    pub receipt: Receipt,
}

impl Deref for Image {
    type Target = Copied;

    fn deref(&self) -> &Copied {
        &self.files
    }
}

impl DerefMut for Image {
    fn deref_mut(&mut self) -> &mut Copied {
        &mut self.files
    }
}

/// Small segments, so that there are several.
pub const SEGMENT_BYTES: u64 = SEGMENT_HEADER_BYTES as u64 + 3000;

/// Those of the small store.
pub const SMALL_BYTES: u64 = SEGMENT_HEADER_BYTES as u64 + 1000;

fn options(segment_bytes: u64) -> Options {
    Options {
        create: true,
        rules: RulesVersion(1),
        tuning: Tuning {
            segment_bytes: vec![segment_bytes],
            fill_bytes: 1024,
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// Appends a frame with that body, durably.
pub fn append(log: &SegmentLog, body: &[u8]) -> Result<(), TransactError> {
    let parts = Parts {
        facts: vec![7; body.len() % 60],
        texts: body.iter().rev().copied().collect(),
        bodies: body.to_vec(),
    };
    let draft = Draft {
        time: TimeMicros(1_000_000 + body.len() as i64),
        parts,
    };
    let head = Journal::head(log)?;
    let appended = log.transact(head, Deadline::NEVER, &mut |_| vec![draft.clone()])?;
    Ok(log.wait_durable(appended.head.position, Deadline::NEVER)?)
}

/// Every frame of a log.
pub fn read(log: &SegmentLog) -> Result<Vec<Frame>, Error> {
    let mut walk = log.read_from(Position::ZERO, Depth::Whole)?;
    let mut frames = Vec::new();
    while let Some(frame) = walk.next() {
        frames.push(frame?.to_owned());
    }
    Ok(frames)
}

impl Image {
    /// A store in `dir` that a writer left at rest, with that many frames.
    ///
    /// # Errors
    /// When it cannot be made or read.
    pub fn of_a_store(
        dir: &Path,
        frames: usize,
        segment_bytes: u64,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let log = SegmentLog::open(Arc::new(Disk), dir, options(segment_bytes))?;
        for number in 0..frames {
            let body = format!("{number} ").repeat(1 + number % 23);
            append(&log, body.as_bytes())?;
        }
        log.tend()?;
        let (head, written) = (Journal::head(&log)?, read(&log)?);
        let receipt = Receipt {
            store: log.identity().store,
            position: head.position,
            chain: head.chain,
        };
        drop(log);
        let files = Copied::of(dir)?;
        let mut image = Self {
            dir: dir.to_owned(),
            names: Arc::new(files.segments.keys().cloned().collect()),
            files,
            segment_bytes,
            frames: Arc::default(),
            receipt,
        };
        image.frames = Arc::new(image.places(written)?);
        Ok(image)
    }

    fn places(&self, frames: Vec<Frame>) -> io::Result<Vec<Written>> {
        let mut names = self.segments.keys();
        let (mut file, mut written) = (String::new(), Vec::new());
        let mut frames = frames.into_iter();
        inspect_all(&self.files, Checks::ALL, &mut |entry| match entry {
            Entry::Segment { .. } => file = names.next().cloned().unwrap_or_default(),
            Entry::Step {
                span,
                step: Step::Frame(..),
            } => written.extend(frames.next().map(|frame| Written {
                file: file.clone(),
                offset: span.offset as usize,
                bytes: span.bytes as usize,
                frame,
            })),
            _ => {}
        })?;
        Ok(written)
    }

    /// What the store is opened with.
    pub fn options(&self) -> Options {
        options(self.segment_bytes)
    }

    /// Makes the segments again what they are in `whole`, and the seals too if there are to be any.
    pub fn restore(&mut self, whole: &Self, is_sealed: bool) {
        let mut before = whole.segments.iter();
        let is_same = |(name, bytes): (&String, &Arc<Vec<u8>>)| {
            let before = before.next();
            before.is_some_and(|(old, was)| old == name && Arc::ptr_eq(was, bytes))
        };
        if self.segments.len() != whole.segments.len() || !self.segments.iter().all(is_same) {
            self.segments.clone_from(&whole.segments);
        }
        match is_sealed {
            true if self.seals.is_empty() => self.seals.clone_from(&whole.seals),
            true => {}
            false => self.seals.clear(),
        }
    }

    /// The names of the files that were written, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The frames of a file, in order.
    pub fn frames_of<'i>(&'i self, name: &'i str) -> impl Iterator<Item = &'i Written> {
        self.frames.iter().filter(move |frame| frame.file == name)
    }

    /// Where the frames of a file end.
    pub fn end_of(&self, name: &str) -> usize {
        let last = self.frames_of(name).last();
        last.map_or(SEGMENT_HEADER_BYTES, |frame| frame.offset + frame.bytes)
    }

    /// Changes a file.
    pub fn edit(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(bytes) = self.segments.get_mut(name) {
            change(Arc::make_mut(bytes));
        }
    }

    /// What kind of place the two differ in: the most telling one.
    pub fn difference(&self, changed: &Self) -> Found {
        let newest = self.segments.keys().next_back();
        let mut found = Found::Nothing;
        for (name, old) in &self.segments {
            let Some(new) = changed.segments.get(name) else {
                return Found::Log;
            };
            if Arc::ptr_eq(old, new) || old == new {
                continue;
            }
            let end = self.end_of(name);
            let is_log = new.get(..end) != old.get(..end);
            found = found.max(match (is_log, newest == Some(name)) {
                (true, _) => Found::Log,
                (false, false) => Found::Unread,
                // Fewer zeros are as good.
                (false, true) if new[end..].iter().all(|byte| *byte == 0) => Found::Unread,
                (false, true) => Found::Prepared,
            });
        }
        match changed.segments.len() == self.segments.len() {
            true => found,
            false => Found::Log,
        }
    }

    /// The positions of frames whose bytes stand in `changed` as they were, and that were not kept.
    pub fn still_whole(&self, changed: &Self, kept: &[bool]) -> Vec<usize> {
        let is_whole = |frame: &Written| {
            let range = frame.offset..frame.offset + frame.bytes;
            let bytes = changed.segments.get(&frame.file);
            bytes.and_then(|bytes| bytes.get(range.clone()))
                == self.segments[&frame.file].get(range)
        };
        let whole = self.frames.iter().enumerate();
        let lost = whole.filter(|(number, frame)| !kept[*number] && is_whole(frame));
        lost.map(|(number, _)| number + 1).collect()
    }

    /// Writes the files to the directory where the store was made.
    ///
    /// # Errors
    /// The system's answer.
    pub fn put_into(&self, dir: &Path) -> io::Result<()> {
        let segments = dir.join("segments");
        for entry in fs::read_dir(&segments)? {
            fs::remove_file(entry?.path())?;
        }
        let write = |path: PathBuf, bytes: &[u8]| {
            use std::io::Write as _;
            use std::os::unix::fs::OpenOptionsExt as _;
            let mut options = fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(path)?;
            file.write_all(bytes)
        };
        for (name, bytes) in &self.segments {
            write(segments.join(name), bytes)?;
        }
        // What was put into quarantine by an earlier opening is not of this store.
        let quarantine = dir.join("quarantine");
        if quarantine.exists() {
            fs::remove_dir_all(quarantine)?;
        }
        let control = dir.join("control");
        if control.exists() {
            fs::remove_file(&control)?;
        }
        match &self.control {
            Some(bytes) => write(control, bytes),
            None => Ok(()),
        }
    }
}
