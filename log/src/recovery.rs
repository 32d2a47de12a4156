//! What was found at open, and what follows from it: the table of `docs/recovery.md`. [`plan`] is pure; who holds the
//! append lock carries it out.

mod carry_out;
mod lineage;

pub use carry_out::{QUARANTINE_FOLDER, Torn, keep_torn, torn_tails, zero_torn};
pub use lineage::{Closed, Lineage, SegmentFile};

use crate::error::{Damage, Error, Next};
use crate::fault::Fault;
use crate::format::SegmentName;
use crate::position::{Head, Position, Positions, StoreId};
use crate::scan::{After, Run, Stop};
use crate::zoo::planted;

/// The rows of the table, in its order: the first that matches decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Row {
    /// 1: something could not be looked at, or belongs elsewhere.
    Obstacle = 1,
    /// 2: the segments or their frames do not fit together.
    Structure = 2,
    /// 3: bad at or below a durable position.
    DurableBad = 3,
    /// 4: bad before the stated end of a closed segment.
    ClosedBad = 4,
    /// 5: late bytes behind a stated end.
    Late = 5,
    /// 6: bad above every durable position, nothing good behind it.
    TornTail = 6,
    /// 7: the same, with good frames behind it.
    TornTailGoodBehind = 7,
    /// 8: zeros to the end, or no frame yet.
    Clean = 8,
    /// 9: an incomplete last frame while a writer is live.
    InFlight = 9,
}

impl Row {
    /// Its number in the table.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its name in the table; never changes its meaning.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Row::Obstacle => "obstacle",
            Row::Structure => "structure",
            Row::DurableBad => "durable-bad",
            Row::ClosedBad => "closed-bad",
            Row::Late => "late",
            Row::TornTail => "torn-tail",
            Row::TornTailGoodBehind => "torn-tail-good-behind",
            Row::Clean => "clean",
            Row::InFlight => "in-flight",
        }
    }
}

/// Something that keeps the store from being judged. Nothing is inferred from it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Obstacle {
    /// The system refused an operation.
    Io {
        /// What it was about.
        path: String,
        /// The system's answer.
        kind: std::io::ErrorKind,
        /// The system's words.
        message: String,
    },
    /// A segment of another store.
    ForeignStore {
        /// The segment.
        segment: SegmentName,
        /// The store it names.
        found: StoreId,
        /// The store it should name.
        expected: StoreId,
    },
    /// A segment of a newer format.
    NewerFormat {
        /// The segment.
        segment: SegmentName,
        /// The version it states.
        found: u32,
        /// The newest version known.
        known: u32,
    },
}

impl Obstacle {
    /// The obstacle of a failed operation on `path`.
    #[must_use]
    pub fn io(path: impl Into<String>, error: &std::io::Error) -> Obstacle {
        Obstacle::Io {
            path: path.into(),
            kind: error.kind(),
            message: error.to_string(),
        }
    }

    /// The error to answer an opener with.
    #[must_use]
    pub fn to_error(&self) -> Error {
        match self {
            Obstacle::Io {
                path,
                kind,
                message,
            } => Error::from_io("read", path, std::io::Error::new(*kind, message.clone())),
            &Obstacle::ForeignStore {
                segment,
                found,
                expected,
            } => Error::ForeignStore {
                segment,
                found,
                expected,
            },
            &Obstacle::NewerFormat {
                segment,
                found,
                known,
            } => Error::NewerFormat {
                path: segment.to_string().into(),
                found,
                known,
            },
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn next(&self) -> Next {
        match self {
            Obstacle::Io { .. } => Next::MakeReadable,
            Obstacle::ForeignStore { .. } => Next::TakeOut,
            Obstacle::NewerFormat { .. } => Next::NewerProgram,
        }
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Io { path, message, .. } => write!(f, "{path} cannot be read: {message}"),
            Obstacle::ForeignStore {
                found, expected, ..
            } => {
                write!(f, "it belongs to store {found}, this is store {expected}")
            }
            Obstacle::NewerFormat { found, known, .. } => {
                write!(
                    f,
                    "it has format version {found}, this program knows up to {known}"
                )
            }
        }
    }
}

/// Whether somebody may be writing while the bytes are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Writer {
    /// Nobody: the looker holds the append lock, or the machine has booted since.
    Gone,
    /// Somebody may be.
    Live,
}

/// Bytes that no header counts into the log: written by a writer that had lost its epoch. Kept, never read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// The segment they stand in.
    pub segment: SegmentName,
    /// Where they begin; zero when the whole segment is late.
    pub offset: u64,
    /// How many bytes, up to the last that is not zero.
    pub bytes: u64,
    /// How many good frames are among them.
    pub frames: u64,
}

/// A closed segment and what a scan found before its stated end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClosedRun {
    /// What its successor's header states.
    pub stated: Head,
    /// What was found.
    pub run: Run,
}

/// Everything a scan found, for [`plan`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// What could not be looked at.
    pub obstacles: Vec<Obstacle>,
    /// What [`Lineage`] found wrong with the segments' headers, names and sizes.
    pub structure: Vec<Damage>,
    /// The highest durable position known from outside the frames: the control page's durable slots. It has to be read
    /// *before* the segments are: a slot may be ahead of bytes that were read earlier.
    pub slot: Position,
    /// The closed segments whose content was looked at, in order.
    pub closed: Vec<ClosedRun>,
    /// The newest segment. None when the store has no segment yet.
    pub newest: Option<Run>,
    /// Late bytes and segments.
    pub late: Vec<Late>,
    /// Whether somebody may have been writing.
    pub writer: Writer,
}

/// Where the log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The newest segment.
    pub segment: SegmentName,
    /// The last frame.
    pub head: Head,
    /// The offset behind it: where the next frame begins.
    pub offset: u64,
}

/// What the next lock holder does about a torn tail: the bytes from `end.offset` to `dirty_end` go to quarantine, then
/// they are zeroed from the end backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair {
    /// Where the log ends, and goes on afterwards.
    pub end: End,
    /// The offset behind the last byte that is not zero.
    pub dirty_end: u64,
    /// What is wrong with the first frame.
    pub fault: Fault,
    /// The good frames behind it. Acknowledged ones may be among them if the disk lost synced bytes.
    pub after: Option<After>,
}

/// What follows from what was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// Row 1: no write, nothing inferred.
    Obstructed(Vec<Obstacle>),
    /// Rows 2 to 4: no write.
    Damaged(Vec<Damage>),
    /// Rows 6 and 7.
    Torn(Repair),
    /// Rows 5 and 8: go on. None when the store has no segment yet.
    Clean(Option<End>),
    /// Row 9: readers wait or stop here.
    InFlight(End),
}

/// The row that decides, and what follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The first row that matches. Late bytes beside a torn tail do not hide it: row 5 decides only where otherwise row 8
    /// would.
    pub row: Row,
    /// What follows.
    pub judgement: Judgement,
    /// Late bytes, whatever the row: shown, kept.
    pub late: Vec<Late>,
}

/// Judges what a scan found.
#[must_use]
pub fn plan(found: &Found) -> Verdict {
    let (row, judgement) = judge(found);
    Verdict {
        row,
        judgement,
        late: found.late.clone(),
    }
}

fn judge(found: &Found) -> (Row, Judgement) {
    if !found.obstacles.is_empty() {
        return (
            Row::Obstacle,
            Judgement::Obstructed(found.obstacles.clone()),
        );
    }
    let damages = damages(found);
    if let Some(row) = damages.iter().map(|(row, _)| *row).min() {
        return (
            row,
            Judgement::Damaged(damages.into_iter().map(|(_, damage)| damage).collect()),
        );
    }
    let quiet = if found.late.is_empty() {
        Row::Clean
    } else {
        Row::Late
    };
    let Some(run) = &found.newest else {
        return (quiet, Judgement::Clean(None));
    };
    let end = End {
        segment: run.segment,
        head: run.end,
        offset: run.end_offset,
    };
    let Stop::Bad(fault, _) = run.stop else {
        return (quiet, Judgement::Clean(Some(end)));
    };
    if found.writer == Writer::Live {
        return (Row::InFlight, Judgement::InFlight(end));
    }
    let row = if run.after.is_some() {
        Row::TornTailGoodBehind
    } else {
        Row::TornTail
    };
    (
        row,
        Judgement::Torn(Repair {
            end,
            dirty_end: run.dirty_end,
            fault,
            after: run.after,
        }),
    )
}

/// Everything that is damage, each with its row.
fn damages(found: &Found) -> Vec<(Row, Damage)> {
    let durable = durable(found);
    let mut damages: Vec<_> = found
        .structure
        .iter()
        .map(|damage| (Row::Structure, *damage))
        .collect();
    for closed in &found.closed {
        damages.extend(closed_damage(closed, durable));
    }
    if let Some(run) = &found.newest {
        damages.extend(newest_damage(run, durable));
    } else if durable > Position::ZERO && found.structure.is_empty() {
        // Frames were durable once, and now there is not one segment.
        let segment = SegmentName {
            first: Position(1),
            epoch: crate::position::Epoch(1),
        };
        let positions = Positions::to(Position(1), durable);
        let fault = Fault::Short {
            have: 0,
            need: crate::format::SEGMENT_HEADER_BYTES as u64,
        };
        let damage = Damage {
            segment,
            offset: 0,
            positions,
            fault,
            next: Next::RestoreFile,
        };
        damages.push((Row::DurableBad, damage));
    }
    damages
}

/// Every position up to here was durable, as far as anything good says.
fn durable(found: &Found) -> Position {
    let runs = found
        .closed
        .iter()
        .map(|closed| &closed.run)
        .chain(&found.newest);
    runs.map(|run| run.durable)
        .chain([found.slot])
        .max()
        .unwrap_or_default()
}

fn closed_damage(closed: &ClosedRun, durable: Position) -> Option<(Row, Damage)> {
    let ClosedRun { stated, run } = closed;
    let bad = run.end.position.next();
    let (row, fault) = match run.stop {
        Stop::End if run.end == *stated => return None,
        Stop::End => (
            Row::Structure,
            Fault::SegmentEnd {
                found: run.end,
                stated: *stated,
            },
        ),
        Stop::Bad(fault, _) if fault.is_impossible() => (Row::Structure, fault),
        Stop::Bad(fault, _) => (
            if bad <= durable {
                Row::DurableBad
            } else {
                Row::ClosedBad
            },
            fault,
        ),
        Stop::Zeros => (
            if bad <= durable {
                Row::DurableBad
            } else {
                Row::ClosedBad
            },
            Fault::Zeros,
        ),
    };
    let last = run
        .after
        .map_or(stated.position, |after| after.first.before())
        .max(bad);
    Some((row, damage_at(run, Positions::to(bad, last), fault)))
}

fn newest_damage(run: &Run, durable: Position) -> Option<(Row, Damage)> {
    let bad = run.end.position.next();
    let (row, fault) = match run.stop {
        Stop::Bad(fault, _) if fault.is_impossible() => (Row::Structure, fault),
        Stop::Bad(fault, _) if bad <= durable && !planted("cut-at-first-bad-frame") => {
            (Row::DurableBad, fault)
        }
        // Even zeros, or the end of the file: what was durable stood here.
        Stop::Zeros if bad <= durable => (Row::DurableBad, Fault::Zeros),
        Stop::End if bad <= durable => {
            let need = run.end_offset + crate::frame::FRAME_HEADER_BYTES as u64;
            (
                Row::DurableBad,
                Fault::Short {
                    have: run.end_offset,
                    need,
                },
            )
        }
        _ => return None,
    };
    let last = run
        .after
        .map(|after| after.first.before())
        .unwrap_or(durable)
        .max(bad);
    Some((row, damage_at(run, Positions::to(bad, last), fault)))
}

fn damage_at(run: &Run, positions: Positions, fault: Fault) -> Damage {
    Damage {
        segment: run.segment,
        offset: run.end_offset,
        positions,
        fault,
        next: Next::Salvage,
    }
}
