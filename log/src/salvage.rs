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
use crate::zoo::planted;
use source::{Line, Volume};
use target::Target;

/// The most positions that are filled with records of their loss. More cannot have stood in files of the sizes that
/// the log makes, so a header that says otherwise is not believed.
const LOST_MAX: u64 = 1 << 28;

/// The file in the quarantine of a salvaged store that says what the others are.
pub const MANIFEST_NAME: &str = "salvage.manifest";

/// Who knows what frames mean.
pub trait Scribe {
    /// Sees each frame whose bytes are good, in order, and says whether its content decodes. One that does not is lost.
    fn keeps(&mut self, frame: &FrameRef<'_>) -> bool;
    /// Makes the frame that stands in place of a lost one. `life` begins behind everything that is kept.
    fn lost(&mut self, position: Position, life: Incarnation, why: &Lost) -> Draft;
    /// Makes the first frame of the new life.
    fn raised(&mut self, report: &Report) -> Draft;
    /// So many bytes of the source have been gone through.
    fn passed(&mut self, bytes: u64);
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
    /// What stands there.
    pub found: Aside,
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
    /// What they are.
    pub kind: Aside,
    /// The header of the frame that they were, where that one is good.
    pub header: Option<Header>,
}

/// Why bytes are in quarantine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aside {
    /// They are no good frame.
    Bad(Fault),
    /// A frame with good checksums, whose content does not decode.
    Undecoded,
    /// Late: written by a writer that had lost its epoch, or good frames that the log does not count.
    Late,
    /// A segment file without anything to read it by.
    Unread,
}

impl std::fmt::Display for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Aside::Bad(fault) => fault.fmt(f),
            Aside::Undecoded => f.write_str("the content of the frame does not decode"),
            Aside::Late => f.write_str("late: the log does not count it"),
            Aside::Unread => f.write_str("no segment header to read it by"),
        }
    }
}

impl Aside {
    /// The word printed for it, which also ends the file's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Aside::Bad(_) => "bad",
            Aside::Undecoded => "undecoded",
            Aside::Late => "late",
            Aside::Unread => "unread",
        }
    }
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
/// `dest`, and the system's answers. Then `dest` is taken for no store, or is a whole one whose names may not be durable.
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
type Cause = (SegmentName, Option<u64>, Aside);

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
            self.set_aside_file(name, *from, Aside::Late)?;
        }
        for name in &line.unreadable {
            self.set_aside_file(name, 0, Aside::Unread)?;
        }
        let last = line.volumes.last().map(|volume| volume.name);
        if let Some(segment) = last {
            let short = Aside::Bad(Fault::Short {
                have: 0,
                need: crate::frame::FRAME_HEADER_BYTES as u64,
            });
            self.fill(self.known_end.next(), (segment, None, short))?;
        }
        self.report.end = self.expected.before();
        Ok(())
    }

    /// Copies one segment, and records the loss of what should stand in it. What the system does not read is lost.
    fn volume(&mut self, volume: &Volume) -> Result<(), Error> {
        let mut cause = nothing(volume);
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
            self.set_aside_file(&volume.file, end, Aside::Late)?;
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
        let mut aside: Option<Piece> = None;
        let mut passed = 0;
        loop {
            let (span, step) = match walk.next() {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable(volume, &error);
                    break;
                }
            };
            self.scribe.passed(span.end() - passed);
            passed = span.end();
            let piece = match step {
                Step::Frame(frame, _) if self.belongs(volume, &frame.header) => {
                    if self.frame(volume, &frame, *cause)? {
                        *cause = nothing(volume);
                        None
                    } else {
                        *cause = (volume.name, Some(span.offset), Aside::Undecoded);
                        self.heard_of(volume, &frame.header);
                        Some((span, Aside::Undecoded, Some(frame.header)))
                    }
                }
                Step::Frame(frame, _) => Some((span, Aside::Late, Some(frame.header))),
                Step::Zeros => {
                    *cause = (volume.name, Some(span.offset), Aside::Bad(Fault::Zeros));
                    None
                }
                Step::Bad(..) if planted("salvage-stops-early") => break,
                Step::Bad(fault, header) => {
                    *cause = (volume.name, Some(span.offset), Aside::Bad(fault));
                    if let Some(header) = header {
                        self.heard_of(volume, &header);
                        if header.position == self.expected && self.belongs(volume, &header) {
                            self.fill(header.position.next(), *cause)?;
                        }
                    }
                    Some((span, Aside::Bad(fault), header))
                }
            };
            if let (Some(before), Some(next)) = (&mut aside, &piece)
                && follows(before, next)
            {
                before.0.bytes = next.0.end() - before.0.offset;
                continue;
            }
            self.put_aside(&volume.file, std::mem::replace(&mut aside, piece))?;
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

    /// Copies a frame; whether its content decodes.
    fn frame(
        &mut self,
        volume: &Volume,
        frame: &FrameRef<'_>,
        cause: Cause,
    ) -> Result<bool, Error> {
        self.fill(frame.header.position, cause)?;
        if !self.scribe.keeps(frame) {
            return Ok(false);
        }
        self.incarnation = self.incarnation.max(frame.header.incarnation);
        self.report.frames += 1;
        self.expected = frame.header.position.next();
        if let Some(target) = &mut self.target {
            let draft = Draft {
                time: frame.header.time,
                parts: Parts {
                    facts: frame.facts.to_vec(),
                    texts: frame.texts.to_vec(),
                    bodies: frame.bodies.to_vec(),
                },
            };
            target.put(self.incarnation, volume.header.rules, &draft)?;
        }
        Ok(true)
    }

    /// Records the loss of every position up to `next`, which comes next.
    fn fill(&mut self, next: Position, (segment, offset, found): Cause) -> Result<(), Error> {
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
            found,
        };
        while self.expected < next {
            let draft = self
                .scribe
                .lost(self.expected, self.report.incarnation, &lost);
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
        let draft = self.scribe.raised(&self.report);
        match self.target.take() {
            Some(target) => {
                target.manifest(&self.report.quarantine)?;
                target.finish(incarnation, salt, &draft)
            }
            None => Ok(()),
        }
    }

    fn put_aside(&mut self, file: &str, piece: Option<Piece>) -> Result<(), Error> {
        match piece {
            Some(piece) => self.set_aside(file, piece),
            None => Ok(()),
        }
    }

    /// Everything in a file from an offset on, up to its last byte that is not zero.
    fn set_aside_file(&mut self, file: &str, offset: u64, kind: Aside) -> Result<(), Error> {
        let failed = |error| storage::failed("read", file, error);
        let source = self.look.open(file).map_err(failed)?;
        let end = source::dirty_end(&*source, offset).map_err(failed)?;
        if end <= offset {
            return Ok(());
        }
        let bytes = end - offset;
        self.set_aside(file, (Span { offset, bytes }, kind, None))
    }

    fn set_aside(&mut self, from: &str, (span, kind, header): Piece) -> Result<(), Error> {
        let file = format!("{from}.{}-{}.{}", span.offset, span.end(), kind.as_str());
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
            kind,
            header,
        });
        Ok(())
    }
}

/// Nothing stands where the next frame should.
fn nothing(volume: &Volume) -> Cause {
    (volume.name, None, Aside::Bad(Fault::Zeros))
}

/// Bytes that are set aside, and the header of the frame that they were.
type Piece = (Span, Aside, Option<Header>);

/// Stretches that follow each other are kept together, unless it is known which frames they were.
fn follows(before: &Piece, next: &Piece) -> bool {
    let is_rubble = |piece: &Piece| matches!(piece.1, Aside::Bad(_)) && piece.2.is_none();
    before.0.end() == next.0.offset && is_rubble(before) && is_rubble(next)
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
