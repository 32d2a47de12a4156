//! Copies what is good of a damaged store into a new one. The source is only read.
//!
//! Every good frame is written again at its own position, with its parts and time, in segments with a new salt; so its
//! chain is another one, and no receipt of the old store fits. In place of every position that was lost stands a frame
//! of the caller's that says so: positions that other frames name mean what they meant. What does not decode, and
//! what is late, goes to quarantine. Last comes the first frame of a new life. `docs/recovery.md` says why each is so.

mod source;
mod target;

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::fault::Fault;
use crate::format::SegmentName;
use crate::frame::{Draft, FrameRef, Header, Parts};
use crate::journal::next_life;
use crate::look::Look;
use crate::position::{Incarnation, Position, Positions, StoreId};
use crate::scan::{Checks, Source, Span, Step, Walk, Window};
use crate::storage::{self, Opening, Storage};
use source::{Line, Volume};
use target::Target;

/// The most positions that are filled with records of their loss. More cannot have stood in files of the sizes that
/// the log makes, so a header that says otherwise is not believed.
const LOST_MAX: u64 = 1 << 28;

/// Who knows what frames mean.
pub trait Scribe {
    /// Sees each frame that is kept, in order.
    fn kept(&mut self, frame: &FrameRef<'_>);
    /// Makes the frame that stands in place of a lost one.
    fn lost(&mut self, position: Position, why: &Lost) -> Draft;
    /// Makes the first frame of the new life.
    fn raised(&mut self, incarnation: Incarnation, report: &Report) -> Draft;
}

/// Positions that cannot be read any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Which.
    pub positions: Positions,
    /// Where they should stand.
    pub segment: SegmentName,
    /// The offset there at which something else stands; none when the file is not there or too short.
    pub offset: Option<u64>,
    /// What is wrong there.
    pub fault: Fault,
}

/// Bytes that were put into the new store's quarantine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The file in `quarantine/`.
    pub file: String,
    /// The file of the source.
    pub from: String,
    /// Where they stood there.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
    /// Whether they are late: written by a writer that had lost its epoch, or prepared and never counted.
    pub is_late: bool,
}

/// What a salvage did, or would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The store; it keeps its name.
    pub store: StoreId,
    /// The newest life that was found.
    pub before: Incarnation,
    /// The life that begins behind what was kept.
    pub incarnation: Incarnation,
    /// How many frames were kept.
    pub frames: u64,
    /// What was lost, in order.
    pub lost: Vec<Lost>,
    /// What went to quarantine.
    pub quarantine: Vec<Kept>,
    /// Files of the source that were passed over, and why.
    pub skipped: Vec<(String, String)>,
    /// The last position before the new life.
    pub end: Position,
}

/// Copies what is good in the store that `look` shows into a new store in the directory `dest`. Without `dest` nothing is
/// written, and the report says what would be. The new store has to be opened at its place like one that was moved.
///
/// Memory: the report, and a few megabytes. Disk: as much as the source has frames.
///
/// # Errors
/// [`Error::NotAStore`] when there is no segment, [`Error::NewerFormat`], [`Error::Occupied`] when there is something in
/// `dest`, and the system's answers. Then nothing in `dest` is taken for a store.
pub fn salvage(
    look: &dyn Look,
    storage: &Arc<dyn Storage>,
    dest: Option<&Path>,
    scribe: &mut dyn Scribe,
) -> Result<Report, Error> {
    let line = source::line(look)?;
    let mut random = [0; 36];
    storage
        .random(&mut random)
        .map_err(|error| storage::failed("draw random numbers for", "a new store", error))?;
    let (salt, life) = random.split_at(16);
    let salt = crate::position::Salt(salt.try_into().expect("sixteen bytes"));
    let (next_salt, incarnation) =
        next_life(line.incarnation, life.try_into().expect("twenty bytes"));
    let target = match dest {
        Some(path) => Some(Target::begin(&**storage, path, &line, salt)?),
        None => None,
    };
    let mut copy = Copy {
        look,
        scribe,
        target,
        expected: Position(1),
        incarnation: Incarnation(1),
        known_end: line.durable,
        report: Report {
            store: line.store,
            before: line.incarnation,
            incarnation,
            frames: 0,
            lost: Vec::new(),
            quarantine: Vec::new(),
            skipped: line.skipped.clone(),
            end: Position::ZERO,
        },
    };
    copy.all(&line)?;
    copy.begin_life(next_salt)?;
    Ok(copy.report)
}

/// Where something is wrong that a loss is put down to: the last such place before it.
type Cause = (SegmentName, Option<u64>, Fault);

struct Copy<'c> {
    look: &'c dyn Look,
    scribe: &'c mut dyn Scribe,
    target: Option<Target>,
    /// The position of the next frame.
    expected: Position,
    incarnation: Incarnation,
    /// Every position up to here was given once.
    known_end: Position,
    report: Report,
}

impl Copy<'_> {
    fn all(&mut self, line: &Line) -> Result<(), Error> {
        for volume in &line.volumes {
            self.volume(volume)?;
        }
        for (name, from) in &line.late {
            self.set_aside_file(name, *from, true)?;
        }
        for name in &line.unreadable {
            self.set_aside_file(name, 0, false)?;
        }
        let last = line.volumes.last().map(|volume| volume.name);
        if let Some(segment) = last {
            let fault = Fault::Short {
                have: 0,
                need: crate::frame::FRAME_HEADER_BYTES as u64,
            };
            self.fill(self.known_end.next(), (segment, None, fault))?;
        }
        self.report.end = self.expected.before();
        Ok(())
    }

    /// Copies one segment, and records the loss of what should stand in it. What the system does not read is lost.
    fn volume(&mut self, volume: &Volume) -> Result<(), Error> {
        let mut cause = (volume.name, None, Fault::Zeros);
        match self.look.open(&volume.file).and_then(Window::new) {
            Ok(window) => {
                let mut walk = Walk::new(window, &volume.header, Checks::ALL, volume.end);
                if volume.is_borrowed {
                    walk = walk.detached();
                }
                self.walk(volume, &mut walk, &mut cause)?;
            }
            Err(error) => self.unreadable(volume, &error),
        }
        if let Some(end) = volume.end {
            self.set_aside_file(&volume.file, end, true)?;
        }
        match volume.last {
            // What should still be in it, before the next one begins.
            Some(last) => self.fill(last.next(), cause),
            None => Ok(()),
        }
    }

    fn walk<S: Source>(
        &mut self,
        volume: &Volume,
        walk: &mut Walk<S>,
        cause: &mut Cause,
    ) -> Result<(), Error> {
        let mut aside: Option<(Span, bool)> = None;
        loop {
            let (span, step) = match walk.next() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable(volume, &error);
                    break;
                }
            };
            match step {
                Step::Frame(frame, _) if self.belongs(volume, &frame.header) => {
                    self.frame(volume, &frame, *cause)?;
                    *cause = (volume.name, None, Fault::Zeros);
                }
                Step::Frame(..) => {
                    extend(&mut aside, span, true);
                    continue;
                }
                Step::Zeros => *cause = (volume.name, Some(span.offset), Fault::Zeros),
                Step::Bad(fault, header) => {
                    *cause = (volume.name, Some(span.offset), fault);
                    if let Some(header) = header {
                        self.heard_of(volume, &header);
                    }
                    extend(&mut aside, span, false);
                    continue;
                }
            }
            self.put_aside(&volume.file, aside.take())?;
        }
        self.known_end = self.known_end.max(walk.durable());
        self.put_aside(&volume.file, aside)
    }

    fn unreadable(&mut self, volume: &Volume, error: &io::Error) {
        let skipped = (volume.file.clone(), error.to_string());
        self.report.skipped.push(skipped);
    }

    /// Whether a good frame is one of those that the log counts there.
    fn belongs(&self, volume: &Volume, header: &Header) -> bool {
        header.position >= self.expected && volume.last.is_none_or(|last| header.position <= last)
    }

    /// A header that is good in itself says that its position was given, and others before it.
    fn heard_of(&mut self, volume: &Volume, header: &Header) {
        if volume.last.is_none_or(|last| header.position <= last) {
            self.known_end = self.known_end.max(header.position).max(header.durable);
        }
    }

    fn frame(&mut self, volume: &Volume, frame: &FrameRef<'_>, cause: Cause) -> Result<(), Error> {
        self.fill(frame.header.position, cause)?;
        self.incarnation = self.incarnation.max(frame.header.incarnation);
        self.scribe.kept(frame);
        self.report.frames += 1;
        self.expected = frame.header.position.next();
        let draft = Draft {
            time: frame.header.time,
            parts: Parts {
                facts: frame.facts.to_vec(),
                texts: frame.texts.to_vec(),
                bodies: frame.bodies.to_vec(),
            },
        };
        let Some(target) = &mut self.target else {
            return Ok(());
        };
        target.put(self.incarnation, volume.header.rules, &draft)
    }

    /// Records the loss of every position up to `next`, which comes next.
    fn fill(&mut self, next: Position, (segment, offset, fault): Cause) -> Result<(), Error> {
        if self.expected >= next {
            return Ok(());
        }
        let count = next.0 - self.expected.0;
        if count > LOST_MAX {
            let (what, offered, max) = ("positions lost in one place", count, LOST_MAX);
            return Err(Error::LimitExceeded { what, offered, max });
        }
        let lost = Lost {
            positions: Positions::to(self.expected, next.before()),
            segment,
            offset,
            fault,
        };
        while self.expected < next {
            let draft = self.scribe.lost(self.expected, &lost);
            if let Some(target) = &mut self.target {
                target.put_among(self.incarnation, &draft)?;
            }
            self.expected = self.expected.next();
        }
        self.report.lost.push(lost);
        Ok(())
    }

    fn begin_life(&mut self, salt: crate::position::Salt) -> Result<(), Error> {
        let incarnation = self.report.incarnation;
        let draft = self.scribe.raised(incarnation, &self.report);
        match self.target.take() {
            Some(target) => target.finish(incarnation, salt, &draft),
            None => Ok(()),
        }
    }

    fn put_aside(&mut self, file: &str, aside: Option<(Span, bool)>) -> Result<(), Error> {
        match aside {
            Some((span, is_late)) => self.set_aside(file, span, is_late),
            None => Ok(()),
        }
    }

    /// Everything in a file from an offset on, up to its last byte that is not zero.
    fn set_aside_file(&mut self, file: &str, offset: u64, is_late: bool) -> Result<(), Error> {
        let failed = |error| storage::failed("read", file, error);
        let source = self.look.open(file).map_err(failed)?;
        let end = source::dirty_end(&*source, offset).map_err(failed)?;
        if end <= offset {
            return Ok(());
        }
        let bytes = end - offset;
        self.set_aside(file, Span { offset, bytes }, is_late)
    }

    fn set_aside(&mut self, from: &str, span: Span, is_late: bool) -> Result<(), Error> {
        let kind = if is_late { "late" } else { "bad" };
        let file = format!("{from}.{}-{}.{kind}", span.offset, span.end());
        if let Some(target) = &self.target {
            let failed = |error| storage::failed("copy to quarantine from", from, error);
            let source = self.look.open(from).map_err(failed)?;
            target.quarantine(&file, &*source, span)?;
        }
        self.report.quarantine.push(Kept {
            file,
            from: from.to_owned(),
            offset: span.offset,
            bytes: span.bytes,
            is_late,
        });
        Ok(())
    }
}

/// Stretches that follow each other are kept together.
fn extend(aside: &mut Option<(Span, bool)>, span: Span, is_late: bool) {
    match aside {
        Some((before, _)) => before.bytes = span.end() - before.offset,
        None => *aside = Some((span, is_late)),
    }
}

/// Opens the directory of a new store, which has to be empty or not there.
fn empty_directory(
    storage: &dyn Storage,
    path: &Path,
) -> Result<Arc<dyn crate::storage::Directory>, Error> {
    let dir = storage
        .directory(path, Opening::Create)
        .map_err(|error| storage::failed("make", path, error))?;
    for folder in ["", crate::segment::SEGMENTS_FOLDER] {
        match dir.list(folder) {
            Ok(names) if names.is_empty() => {}
            Ok(_) => {
                let path = path.to_owned();
                return Err(Error::Occupied { path });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(storage::failed("list", path, error)),
        }
    }
    Ok(dir)
}
