//! What `verify` answers: the verdict, what was covered, and each finding with what to do about it.

use std::fmt;

use super::{BadSpan, ReceiptState, Survey};
use crate::error::{Damage, Next};
use crate::fault::Fault;
use crate::format::{SegmentHeader, SegmentName};
use crate::position::{Head, Position, Positions, Receipt};
use crate::recovery::{End, Judgement, Late, Obstacle, Repair, Row, Verdict};
use crate::scan::{After, Checks, Run, Stop};

/// The verdict in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Every frame is what was written.
    Clean,
    /// Something was being written when the machine or the writer stopped; the next append repairs it.
    TornTail,
    /// Bytes are not what was written.
    Damaged,
    /// Something could not be looked at: nothing is said about the store.
    Incomplete,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Clean => "clean",
            Outcome::TornTail => "torn-tail",
            Outcome::Damaged => "damaged",
            Outcome::Incomplete => "incomplete",
        })
    }
}

/// Everything `verify` has to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The verdict.
    pub outcome: Outcome,
    /// The row of the recovery table that decided it.
    pub row: Row,
    /// The header of the newest segment: which store this is.
    pub identity: Option<SegmentHeader>,
    /// Where the log ends, when it could be judged.
    pub end: Option<End>,
    /// What was looked at.
    pub coverage: Coverage,
    /// What became of each receipt that was shown.
    pub receipts: Vec<(Receipt, ReceiptState)>,
    /// What was found, in the order of the segments.
    pub findings: Vec<Finding>,
    /// Bad stretches that were counted and not kept.
    pub findings_omitted: u64,
}

/// What was looked at, and what was not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// Segments of the log looked through.
    pub segments: u64,
    /// Their bytes, up to the stated end of closed ones.
    pub bytes: u64,
    /// The good frames in them.
    pub frames: u64,
    /// Closed segments that are what their seals say.
    pub seals: u64,
    /// Closed segments that have no seal: checksums and the chain hold them.
    pub unsealed: u64,
    /// Every byte of every segment file, by what it was found to be.
    pub accounts: Accounts,
    /// What was held against each frame.
    pub checks: Checks,
    /// What was not looked at, and why.
    pub skipped: Vec<Skipped>,
    /// Every frame from the first up to this position is good.
    pub horizon: Position,
}

impl Coverage {
    pub(super) fn new(checks: Checks) -> Coverage {
        Coverage {
            segments: 0,
            bytes: 0,
            frames: 0,
            seals: 0,
            unsealed: 0,
            accounts: Accounts::default(),
            checks,
            skipped: Vec::new(),
            horizon: Position::ZERO,
        }
    }

    /// Adds what was looked at elsewhere, with the same checks. The horizon is judged at the end.
    pub(super) fn add(&mut self, other: Coverage) {
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.frames += other.frames;
        self.seals += other.seals;
        self.unsealed += other.unsealed;
        self.accounts.add(&other.accounts);
        self.skipped.extend(other.skipped);
    }

    pub(super) fn skip(&mut self, what: &str, why: &'static str) {
        self.skipped.push(Skipped {
            what: what.to_owned(),
            why,
        });
    }
}

/// The bytes of the segment files, each counted once. On a store that nobody writes to they sum up to the files' sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accounts {
    /// Segment headers.
    pub headers: u64,
    /// Good frames.
    pub frames: u64,
    /// Zeros, prepared or where something was.
    pub zeros: u64,
    /// Bytes that are no good frame.
    pub bad: u64,
    /// Bytes that are never read: behind a stated end, or in a segment that no header names.
    pub late: u64,
    /// Files that have no place in the log.
    pub unread: u64,
}

impl Accounts {
    pub(super) fn add(&mut self, other: &Accounts) {
        self.headers += other.headers;
        self.frames += other.frames;
        self.zeros += other.zeros;
        self.bad += other.bad;
        self.late += other.late;
        self.unread += other.unread;
    }

    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.headers + self.frames + self.zeros + self.bad + self.late + self.unread
    }
}

/// Something that was not looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// The file's name.
    pub what: String,
    /// Why not.
    pub why: &'static str,
}

/// What kind of thing was found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Something that could not be looked at.
    Obstacle(Obstacle),
    /// Bytes that are not what was written.
    Damage(Fault),
    /// An append that did not become durable.
    TornTail(Fault),
    /// An append that is going on.
    InFlight(Fault),
    /// Bytes behind a closed segment's end, or a whole segment that no header names.
    Late {
        /// The good frames among them.
        frames: u64,
    },
    /// A receipt that the store does not honour.
    Receipt(ReceiptState),
    /// A closed segment that is not what was sealed.
    Seal,
}

impl Kind {
    /// A short name for tables and machine output; never changes its meaning.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Kind::Obstacle(_) => "obstacle",
            Kind::Damage(_) => "damage",
            Kind::TornTail(_) => "torn-tail",
            Kind::InFlight(_) => "in-flight",
            Kind::Late { .. } => "late",
            Kind::Receipt(_) => "receipt",
            Kind::Seal => "seal",
        }
    }

    /// What happened, one word for each thing that has another remedy; never changes its meaning.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match self {
            Kind::Obstacle(Obstacle::Io { .. }) => "io-error",
            Kind::Obstacle(Obstacle::ForeignStore { .. }) => "foreign",
            Kind::Obstacle(Obstacle::NewerFormat { .. }) => "newer-format",
            Kind::Damage(fault) => fault.cause(),
            Kind::TornTail(_) => "torn-tail",
            Kind::InFlight(_) => "in-flight",
            Kind::Late { .. } => "late",
            Kind::Receipt(ReceiptState::Ahead {
                head: Position::ZERO,
            }) => "no-log",
            Kind::Receipt(ReceiptState::Ahead { .. }) => "rollback",
            Kind::Receipt(ReceiptState::Differs { .. }) => "split-view",
            Kind::Receipt(ReceiptState::OtherStore { .. }) => "other-store",
            Kind::Receipt(_) => "unreadable",
            Kind::Seal => "exchanged",
        }
    }
}

/// One thing that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The segment it stands in; none for what concerns the whole store.
    pub segment: Option<SegmentName>,
    /// The offset in the segment's file.
    pub offset: u64,
    /// The positions concerned, as far as they are known.
    pub positions: Option<Positions>,
    /// What it is.
    pub kind: Kind,
    /// What it means, in a sentence.
    pub meaning: String,
    /// What to do next.
    pub next: Next,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.code())?;
        if let Some(segment) = self.segment {
            write!(f, " in {segment} at offset {}", self.offset)?;
        }
        if let Some(positions) = self.positions {
            write!(f, " ({positions})")?;
        }
        write!(f, ": {}; {}", self.meaning, self.next)
    }
}

/// Makes the report of what was gathered and how it was judged.
pub(super) fn compose(survey: Survey, verdict: &Verdict) -> Report {
    let mut findings: Vec<Finding> = survey.found.obstacles.iter().map(obstacle).collect();
    let (outcome, end) = match &verdict.judgement {
        Judgement::Obstructed(_) => {
            findings.extend(survey.bad.iter().map(unjudged));
            (Outcome::Incomplete, None)
        }
        Judgement::Damaged(damages) => {
            findings.extend(damages.iter().map(damage));
            findings.extend(
                survey
                    .bad
                    .iter()
                    .filter(|bad| !named(damages, bad))
                    .map(|bad| {
                        let newest = survey.found.newest.as_ref();
                        let open = newest.into_iter().chain(&survey.unplaced);
                        if is_in_an_open_tail(open, damages, bad) {
                            unjudged(bad)
                        } else {
                            further_damage(bad)
                        }
                    }),
            );
            (Outcome::Damaged, None)
        }
        Judgement::Torn(repair) => {
            findings.push(torn_tail(repair));
            (Outcome::TornTail, Some(repair.end))
        }
        Judgement::InFlight(end) => {
            findings.extend(survey.bad.iter().take(1).map(in_flight));
            (Outcome::Clean, Some(*end))
        }
        Judgement::Clean(end) => (Outcome::Clean, *end),
    };
    findings.extend(verdict.late.iter().map(late));
    let store = survey.identity.map(|header| header.store);
    let is_empty = outcome == Outcome::Clean && end.is_none();
    let head = end.map(|end| end.head.position);
    let head = head.or(is_empty.then_some(Position::ZERO));
    let judge = |receipt: &Receipt| (*receipt, survey.witness.judge(receipt, store, head));
    let receipts: Vec<_> = survey.options.receipts.iter().map(judge).collect();
    findings.extend(receipts.iter().filter_map(broken_receipt));
    findings.extend(survey.broken_seals.iter().map(broken_seal));
    let is_broken = |(_, state): &(Receipt, ReceiptState)| *state != ReceiptState::Kept;
    let outcome = match outcome {
        // A store that is whole in itself, and not the one that was acknowledged.
        Outcome::Clean | Outcome::TornTail
            if !survey.broken_seals.is_empty() || receipts.iter().any(is_broken) =>
        {
            Outcome::Damaged
        }
        judged => judged,
    };
    findings.sort_by_key(|finding| (finding.segment, finding.offset));
    let mut coverage = survey.coverage;
    let closed = survey.found.closed.iter().map(|closed| &closed.run);
    coverage.horizon = horizon(closed.chain(&survey.unplaced).chain(&survey.found.newest));
    Report {
        outcome,
        row: verdict.row,
        identity: survey.identity,
        end,
        coverage,
        receipts,
        findings,
        findings_omitted: survey.bad_omitted,
    }
}

/// Every frame from the first up to here is good.
fn horizon<'a>(runs: impl Iterator<Item = &'a Run>) -> Position {
    let mut runs: Vec<&Run> = runs.collect();
    runs.sort_by_key(|run| run.start.position);
    let mut before: Option<&Run> = None;
    for run in runs {
        let joins = match before {
            None => run.start.position == Position::ZERO,
            Some(before) => run.start == before.end,
        };
        if !joins {
            break;
        }
        before = Some(run);
        if matches!(run.stop, Stop::Bad(..)) {
            break;
        }
    }
    before.map_or(Position::ZERO, |run| run.end.position)
}

fn named(damages: &[Damage], bad: &BadSpan) -> bool {
    damages
        .iter()
        .any(|damage| damage.segment == bad.segment && damage.offset == bad.span.offset)
}

/// Whether a bad stretch is in a segment whose end nothing states, and nothing there is damage: elsewhere something is.
fn is_in_an_open_tail<'a>(
    open: impl Iterator<Item = &'a Run>,
    damages: &[Damage],
    bad: &BadSpan,
) -> bool {
    let mut open = open;
    open.any(|run| run.segment == bad.segment)
        && damages.iter().all(|damage| damage.segment != bad.segment)
}

fn obstacle(obstacle: &Obstacle) -> Finding {
    let segment = match obstacle {
        Obstacle::Io { path, .. } => path.parse().ok(),
        Obstacle::ForeignStore { segment, .. } | Obstacle::NewerFormat { segment, .. } => {
            Some(*segment)
        }
    };
    Finding {
        segment,
        offset: 0,
        positions: None,
        meaning: obstacle.to_string(),
        next: obstacle.next(),
        kind: Kind::Obstacle(obstacle.clone()),
    }
}

fn damage(damage: &Damage) -> Finding {
    Finding {
        segment: Some(damage.segment),
        offset: damage.offset,
        positions: Some(damage.positions),
        kind: Kind::Damage(damage.fault),
        meaning: format!("{}; what stood here was part of the log", damage.fault),
        next: damage.next,
    }
}

fn further_damage(bad: &BadSpan) -> Finding {
    at(
        bad,
        Kind::Damage(bad.fault),
        format!("{}; {} bytes cannot be read", bad.fault, bad.span.bytes),
        Next::Salvage,
    )
}

fn unjudged(bad: &BadSpan) -> Finding {
    let meaning = format!("{}; whether it was durable cannot be said", bad.fault);
    at(bad, Kind::TornTail(bad.fault), meaning, Next::Salvage)
}

fn in_flight(bad: &BadSpan) -> Finding {
    at(
        bad,
        Kind::InFlight(bad.fault),
        "a frame is being written".to_owned(),
        Next::LookAgain,
    )
}

fn at(bad: &BadSpan, kind: Kind, meaning: String, next: Next) -> Finding {
    Finding {
        segment: Some(bad.segment),
        offset: bad.span.offset,
        positions: Some(bad.positions),
        kind,
        meaning,
        next,
    }
}

fn torn_tail(repair: &Repair) -> Finding {
    let first = repair.end.head.position.next();
    let bytes = repair.dirty_end - repair.end.offset;
    let mut meaning = format!(
        "{}; nothing says that its {bytes} bytes were durable",
        repair.fault
    );
    let mut positions = Positions::from(first);
    if let Some(After {
        frames,
        first: good,
        last,
        ..
    }) = repair.after
    {
        positions = Positions::to(first, last);
        meaning = format!(
            "{}; {bytes} bytes, among them good frames ({frames}, from position {good}), which follow nothing; acknowledged \
             events may be among them if the disk lost synced bytes",
            repair.fault
        );
    }
    Finding {
        segment: Some(repair.end.segment),
        offset: repair.end.offset,
        positions: Some(positions),
        kind: Kind::TornTail(repair.fault),
        meaning,
        next: Next::Append,
    }
}

fn late(late: &Late) -> Finding {
    let what = if late.offset == 0 {
        "no header names this segment"
    } else {
        "behind the segment's stated end"
    };
    Finding {
        segment: Some(late.segment),
        offset: late.offset,
        positions: None,
        kind: Kind::Late {
            frames: late.frames,
        },
        meaning: format!(
            "{what}: {} bytes, good frames among them: {}; written too late and never read",
            late.bytes, late.frames
        ),
        next: Next::Nothing,
    }
}

fn broken_seal((segment, end): &(SegmentName, Head)) -> Finding {
    Finding {
        segment: Some(*segment),
        offset: 0,
        positions: Some(Positions::to(end.position, end.position)),
        kind: Kind::Seal,
        meaning: "the file or its end is not what was sealed: it was exchanged or changed after it was closed"
            .to_owned(),
        next: Next::OtherCopy,
    }
}

fn broken_receipt((receipt, state): &(Receipt, ReceiptState)) -> Option<Finding> {
    let meaning = match state {
        ReceiptState::Kept => return None,
        ReceiptState::Differs { found } => {
            format!(
                "chain {found} stands there, {} was acknowledged",
                receipt.chain
            )
        }
        ReceiptState::Ahead {
            head: Position::ZERO,
        } => format!(
            "there is no log, and position {} of it was acknowledged",
            receipt.position
        ),
        ReceiptState::Ahead { head } => {
            format!("the log ends at position {head}, what was acknowledged behind it is not there")
        }
        ReceiptState::Unreadable => "no good frame stands there".to_owned(),
        ReceiptState::OtherStore { found } => {
            format!(
                "it was given by store {}, this is store {found}",
                receipt.store
            )
        }
    };
    Some(Finding {
        segment: None,
        offset: 0,
        positions: Some(Positions::to(receipt.position, receipt.position)),
        kind: Kind::Receipt(*state),
        meaning,
        next: Next::OtherCopy,
    })
}
