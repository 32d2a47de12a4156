//! Looks at all of a store and says what is there: reads only, takes no lock, works on damaged copies.

mod receipts;
mod report;
mod side_by_side;

pub use receipts::ReceiptState;
pub use report::{Accounts, Coverage, Finding, Kind, Outcome, Report, Skipped};

use std::collections::BTreeMap;
use std::io;

use receipts::Witness;
use side_by_side::Task;

use crate::control::CONTROL_NAME;
use crate::control::copy::PageCopy;
use crate::fault::Fault;
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName};
use crate::look::{Look, read_header};
use crate::options::SEGMENTS_MAX;
use crate::position::{Head, Position, Positions, Receipt, StoreId};
use crate::recovery::{
    Closed, ClosedRun, Found, Late, Lineage, Obstacle, SegmentFile, Writer, plan,
};
use crate::scan::{Checks, Cursor, ReadAt, Run, Source, Span, Step, Stop, Walk, Window, survey};
use crate::seal::{Hashing, Seal};

/// What `verify` is told beside the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The store the segments should belong to, where it is known.
    pub store: Option<StoreId>,
    /// A durable position known from elsewhere, beside the one that the control page states.
    pub slot: Position,
    /// Whether somebody may be writing.
    pub writer: Writer,
    /// What is held against every frame.
    pub checks: Checks,
    /// Receipts that were held outside of the store.
    pub receipts: Vec<Receipt>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            store: None,
            slot: Position::ZERO,
            writer: Writer::Gone,
            checks: Checks::ALL,
            receipts: Vec::new(),
        }
    }
}

/// Bytes in a segment that are no good frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadSpan {
    segment: SegmentName,
    span: Span,
    fault: Fault,
    positions: Positions,
}

/// The most bad stretches kept for the report; the others are counted.
const BAD_SPANS_MAX: usize = 10_000;
/// How often a break is looked at again while somebody may be writing there.
const SETTLE_TRIES_MAX: u32 = 8;

/// Looks at the whole store. Never fails: what could not be looked at stands in the report.
#[must_use]
pub fn verify(look: &dyn Look, options: &Options) -> Report {
    let mut survey = Survey::new(options.clone());
    survey.all(look);
    let verdict = plan(&survey.found);
    report::compose(survey, &verdict)
}

/// Everything gathered on the way.
struct Survey {
    options: Options,
    found: Found,
    coverage: Coverage,
    identity: Option<SegmentHeader>,
    unplaced: Vec<Run>,
    witness: Witness,
    bad: Vec<BadSpan>,
    bad_omitted: u64,
    /// Closed segments that are not what was sealed, each with its stated end.
    broken_seals: Vec<(SegmentName, Head)>,
    /// Segment files not looked through so far, with their sizes.
    unread: BTreeMap<SegmentName, u64>,
    /// Segment files looked through.
    read: Vec<SegmentName>,
}

/// One segment, looked through.
struct Looked {
    run: Run,
    accounts: Accounts,
    bad: Vec<BadSpan>,
    bad_omitted: u64,
}

/// Why there is no seal to hold a closed segment against.
enum Unsealed {
    None,
    Other(&'static str),
}

type File = Window<Hashing<Box<dyn ReadAt>>>;

impl Survey {
    fn new(options: Options) -> Survey {
        Survey {
            found: Found {
                obstacles: Vec::new(),
                structure: Vec::new(),
                slot: options.slot,
                closed: Vec::new(),
                newest: None,
                late: Vec::new(),
                writer: options.writer,
            },
            coverage: Coverage::new(options.checks),
            identity: None,
            unplaced: Vec::new(),
            witness: Witness::of(&options.receipts),
            bad: Vec::new(),
            bad_omitted: 0,
            broken_seals: Vec::new(),
            unread: BTreeMap::new(),
            read: Vec::new(),
            options,
        }
    }

    fn all(&mut self, look: &dyn Look) {
        // Before the segments: a slot read later may be ahead of the bytes that were looked at.
        let page = self.control(look);
        let lineage = Lineage::of(self.options.store, &self.headers(look));
        self.identity = lineage.newest;
        self.believe(page);
        self.found
            .obstacles
            .extend(lineage.obstacles.iter().cloned());
        self.found.structure.extend(&lineage.damage);
        let closed = lineage.closed.iter().map(Task::Closed);
        let newest = lineage.newest.iter().map(Task::Newest);
        self.side_by_side(look, &closed.chain(newest).collect::<Vec<_>>());
        for header in &lineage.unplaced {
            self.coverage.skip(
                &header.name().to_string(),
                "its end: nothing good says where it is",
            );
            open(look, header.name(), 0)
                .and_then(|mut file| self.unplaced(header, &mut file))
                .unwrap_or_else(|error| self.unreadable(header.name(), &error));
        }
        for late in &lineage.late {
            open(look, late.name(), 0)
                .and_then(|mut file| self.late(late, &mut file))
                .unwrap_or_else(|error| self.unreadable(late.name(), &error));
        }
        self.left_over();
    }

    fn look_at_closed(&mut self, look: &dyn Look, closed: &Closed) {
        let name = closed.header.name();
        let sealed = self.seal_of(look, name);
        // What is sealed is hashed on the way.
        let until = sealed.as_ref().map_or(0, |seal| seal.bytes);
        let file = open(look, name, until).and_then(|mut file| {
            self.closed(closed, &mut file)?;
            Ok(file)
        });
        let file = match file {
            Ok(file) => Some(file),
            Err(error) => {
                self.unreadable(name, &error);
                None
            }
        };
        match sealed {
            Ok(seal) => self.seal(look, &seal, closed, file),
            Err(unsealed) => self.unsealed(name, unsealed),
        }
    }

    fn look_at_newest(&mut self, look: &dyn Look, newest: &SegmentHeader) {
        open(look, newest.name(), 0)
            .and_then(|mut file| self.newest(newest, &mut file))
            .unwrap_or_else(|error| self.unreadable(newest.name(), &error));
    }

    /// Files that have no place in the log: their header is bad, or is another's.
    fn left_over(&mut self) {
        for name in &self.read {
            self.unread.remove(name);
        }
        for (name, bytes) in std::mem::take(&mut self.unread) {
            self.coverage.accounts.unread += bytes;
            let name = name.to_string();
            if self
                .coverage
                .skipped
                .iter()
                .all(|skipped| skipped.what != name)
            {
                let why = "its header gives it no place in the log; `inspect` shows its frames";
                self.coverage.skip(&name, why);
            }
        }
    }

    fn control(&mut self, look: &dyn Look) -> Option<PageCopy> {
        let why = match look.control() {
            Ok(Some(bytes)) => match PageCopy::of(&bytes) {
                Some(page) => return Some(page),
                None => "it is no control page: what it knows to be durable is not known",
            },
            Ok(None) => "it is not there: what it knew to be durable is not known",
            Err(_) => "it could not be read: what it knows to be durable is not known",
        };
        self.coverage.skip(CONTROL_NAME, why);
        None
    }

    /// The control page can be made anew at any time, so that one of another store says nothing about this one.
    fn believe(&mut self, page: Option<PageCopy>) {
        let Some(page) = page else { return };
        if self
            .identity
            .is_some_and(|header| header.store != page.store())
        {
            self.coverage
                .skip(CONTROL_NAME, "it belongs to another store");
        } else if let Some(mark) = page.mark() {
            self.found.slot = self.found.slot.max(mark.head.position);
        }
    }

    fn headers(&mut self, look: &dyn Look) -> Vec<SegmentFile> {
        let mut names = match look.names() {
            Ok(names) => names,
            Err(error) => {
                self.found.obstacles.push(Obstacle::io("segments", &error));
                return Vec::new();
            }
        };
        names.sort_unstable();
        let mut files = Vec::new();
        for text in names {
            let Ok(name) = text.parse::<SegmentName>() else {
                self.coverage.skip(&text, "not the name of a segment");
                continue;
            };
            if files.len() == SEGMENTS_MAX {
                self.unreadable(
                    name,
                    &io::Error::other(format!("more than {SEGMENTS_MAX} segments")),
                );
                break;
            }
            match look.open(&text).and_then(|file| read_header(&file)) {
                Ok((bytes, header)) => {
                    self.unread.insert(name, bytes);
                    files.push(SegmentFile {
                        name,
                        bytes,
                        header,
                    });
                }
                Err(error) => self.unreadable(name, &error),
            }
        }
        files
    }

    fn unreadable(&mut self, name: SegmentName, error: &io::Error) {
        self.found
            .obstacles
            .push(Obstacle::io(name.to_string(), error));
        self.coverage
            .skip(&name.to_string(), "it could not be read");
    }

    fn closed(&mut self, closed: &Closed, file: &mut File) -> io::Result<()> {
        let cursor = Cursor::new(&closed.header, self.options.checks);
        let see = &mut |head| self.witness.see(head);
        let looked = look_through(&closed.header, file, cursor, Some(closed.end_offset), see)?;
        self.coverage.accounts.late += file.len().saturating_sub(closed.end_offset);
        if file.len() > closed.end_offset {
            let behind = Cursor::resume(
                &closed.header,
                self.options.checks,
                closed.end,
                closed.end_offset,
            );
            self.late_from(&closed.header, file, behind)?;
        }
        let run = self.take(looked, file.len().min(closed.end_offset));
        // A cut file is reported by its size.
        if closed.bytes >= closed.end_offset {
            self.found.closed.push(ClosedRun {
                stated: closed.end,
                run,
            });
        }
        Ok(())
    }

    fn seal_of(&self, look: &dyn Look, name: SegmentName) -> Result<Seal, Unsealed> {
        let bytes = match look.seal(name) {
            Ok(None) => return Err(Unsealed::None),
            Ok(Some(bytes)) => bytes,
            Err(_) => return Err(Unsealed::Other("it could not be read")),
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        text.parse().map_err(|_| Unsealed::Other("it is no seal"))
    }

    fn unsealed(&mut self, name: SegmentName, why: Unsealed) {
        match why {
            Unsealed::None => self.coverage.unsealed += 1,
            Unsealed::Other(why) => self.coverage.skip(&Seal::file_name(name), why),
        }
    }

    /// Holds a closed segment against its seal. A file that could not be read through is tried again.
    fn seal(&mut self, look: &dyn Look, seal: &Seal, closed: &Closed, file: Option<File>) {
        let name = closed.header.name();
        let stated = (name, closed.end, closed.end_offset);
        let frames = (closed.end.position.0).saturating_sub(closed.header.start().position.0);
        let same = (seal.segment, seal.end, seal.bytes) == stated && seal.frames == frames;
        let held = match file {
            Some(file) => seal.is_of(file.file()),
            None => look
                .open(&name.to_string())
                .and_then(|file| seal.holds(&*file)),
        };
        match held {
            Ok(true) if same => self.coverage.seals += 1,
            Ok(_) => self.broken_seals.push((name, closed.end)),
            Err(error) => self.unreadable(name, &error),
        }
    }

    /// The newest segment. While somebody may be writing, a break is looked at again: what stands before and behind it was
    /// not read at one time.
    fn newest(&mut self, header: &SegmentHeader, file: &mut File) -> io::Result<()> {
        let see = &mut |head| self.witness.see(head);
        let cursor = Cursor::new(header, self.options.checks);
        let mut looked = look_through(header, file, cursor, None, see)?;
        for _ in 0..SETTLE_TRIES_MAX {
            if self.options.writer == Writer::Gone || !matches!(looked.run.stop, Stop::Bad(..)) {
                break;
            }
            file.read_anew()?;
            let before = looked.run;
            let cursor = Cursor::resume(header, self.options.checks, before.end, before.end_offset);
            looked = look_through(header, file, cursor, None, see)?;
            looked.run.start = before.start;
            looked.accounts.frames += before.end_offset - SEGMENT_HEADER_BYTES as u64;
            looked.run.durable = looked.run.durable.max(before.durable);
            if looked.run.end == before.end {
                break;
            }
        }
        let run = self.take(looked, file.len());
        self.found.newest = Some(run);
        Ok(())
    }

    /// A segment whose end nothing states: its frames are counted, and a break in it may or may not be its end.
    fn unplaced(&mut self, header: &SegmentHeader, file: &mut File) -> io::Result<()> {
        let cursor = Cursor::new(header, self.options.checks);
        let looked = look_through(header, file, cursor, None, &mut |_| {})?;
        let run = self.take(looked, file.len());
        self.unplaced.push(run);
        Ok(())
    }

    fn late(&mut self, header: &SegmentHeader, file: &mut File) -> io::Result<()> {
        let cursor = Cursor::new(header, self.options.checks);
        let looked = look_through(header, file, cursor, None, &mut |_| {})?;
        self.read.push(header.name());
        self.coverage.accounts.late += file.len();
        self.found.late.push(Late {
            segment: header.name(),
            offset: 0,
            bytes: looked.run.dirty_end,
            frames: frames_in(&looked.run),
        });
        Ok(())
    }

    fn late_from(
        &mut self,
        header: &SegmentHeader,
        file: &mut File,
        cursor: Cursor,
    ) -> io::Result<()> {
        let offset = cursor.offset();
        let run = look_through(header, file, cursor, None, &mut |_| {})?.run;
        if run.dirty_end > offset {
            let bytes = run.dirty_end - offset;
            self.found.late.push(Late {
                segment: run.segment,
                offset,
                bytes,
                frames: frames_in(&run),
            });
        }
        Ok(())
    }

    /// Counts what was looked through.
    fn take(&mut self, looked: Looked, bytes: u64) -> Run {
        self.read.push(looked.run.segment);
        self.coverage.segments += 1;
        self.coverage.accounts.add(&looked.accounts);
        self.coverage.bytes += bytes;
        self.coverage.frames += frames_in(&looked.run);
        let room = BAD_SPANS_MAX.saturating_sub(self.bad.len());
        self.bad_omitted += looked.bad_omitted + looked.bad.len().saturating_sub(room) as u64;
        self.bad.extend(looked.bad.into_iter().take(room));
        looked.run
    }
}

/// The first `hashed` bytes are hashed on the way.
fn open(look: &dyn Look, name: SegmentName, hashed: u64) -> io::Result<File> {
    Window::new(Hashing::new(look.open(&name.to_string())?, hashed))
}

fn frames_in(run: &Run) -> u64 {
    run.end.position.0 - run.start.position.0 + run.after.map_or(0, |after| after.frames)
}

/// Walks through one segment up to its end, shows each good frame to `see`, and keeps what is bad.
fn look_through(
    header: &SegmentHeader,
    file: &mut File,
    cursor: Cursor,
    stated_end: Option<u64>,
    see: &mut dyn FnMut(Head),
) -> io::Result<Looked> {
    let (mut bad, mut bad_omitted): (Vec<BadSpan>, u64) = (Vec::new(), 0);
    let mut accounts = Accounts {
        headers: SEGMENT_HEADER_BYTES as u64,
        ..Accounts::default()
    };
    let mut last = cursor.head().position;
    let mut zeros = None;
    let mut keep = |span, fault, positions| {
        if bad.len() < BAD_SPANS_MAX {
            bad.push(BadSpan {
                segment: header.name(),
                span,
                fault,
                positions,
            });
        } else {
            bad_omitted += 1;
        }
    };
    let mut walk = Walk::resume(file, cursor, stated_end);
    let run = survey(header, &mut walk, &mut |span, step| {
        match step {
            Step::Zeros => accounts.zeros += span.bytes,
            Step::Frame(..) => accounts.frames += span.bytes,
            Step::Bad(..) => accounts.bad += span.bytes,
        }
        // Zeros are bad where something stands behind them.
        if let Some(zeros) = zeros.take() {
            keep(zeros, Fault::Zeros, Positions::from(last.next()));
        }
        match step {
            Step::Zeros => zeros = Some(span),
            Step::Frame(frame, _) => {
                last = frame.header.position;
                see(frame.header.head());
            }
            Step::Bad(fault, None) => keep(span, *fault, Positions::from(last.next())),
            Step::Bad(fault, Some(header)) => {
                last = header.position;
                keep(span, *fault, Positions::to(last, last));
            }
        }
    })?;
    if let (Some(zeros), Some(_)) = (zeros, stated_end) {
        keep(zeros, Fault::Zeros, Positions::from(last.next()));
    }
    Ok(Looked {
        run,
        accounts,
        bad,
        bad_omitted,
    })
}
