//! `verify`: looks at every byte of a store and says what is wrong. Opens no store and changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_projection::core::id::Position;
use tenure_projection::core::state::Unproven;
use tenure_projection::error::Error as ProjectionError;
use tenure_projection::log::format::SegmentName;
use tenure_projection::log::look::{Look, PlainDirectory};
use tenure_projection::log::position::Receipt;
use tenure_projection::log::recovery::Writer;
use tenure_projection::log::scan::ReadAt;
use tenure_projection::log::verify::{Kind, Options, Outcome, ReceiptState, Report, verify};
use tenure_projection::projector::{Finding, Projector};
use tenure_projection::reader::Reader;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::{BAD, DIM, HEAD, Object, PLAIN, WARN, watched};

use super::inspect::size;

/// How long a frame may be on its way before it is looked at again: a write takes some ten microseconds.
const SETTLE: Duration = Duration::from_millis(100);
/// Frames replayed before it is said how far it has come: some hundredths of a second.
const STEP_FRAMES: u64 = 100_000;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The store's directory [default: the store that other commands would use]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A receipt kept outside the store: shows a rollback or a rewritten history
    #[arg(long, value_name = "RECEIPT")]
    expected_head: Vec<String>,
}

/// What the bytes say, and what their content says.
struct Verified {
    report: Report,
    rules: Vec<Finding>,
    /// The frames among them that nobody has acknowledged.
    open: Vec<Position>,
    /// The position of the newest snapshot that fits, and whether a replay gives its state.
    snapshot: Option<(Position, bool)>,
    /// Why the content could not be replayed.
    skipped: Option<String>,
    /// Where fences cannot be proven, since frames before are lost.
    unproven: Vec<Unproven>,
}

impl Args {
    /// Verifies.
    ///
    /// # Errors
    /// When there is no directory, or a receipt is none. What is wrong with the store is the answer.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dir = match self.dir {
            Some(dir) => dir,
            None => ctx.dir()?,
        };
        let receipt = |text: &String| {
            text.parse::<Receipt>()
                .map_err(|error| Stop::from(Fault::usage(error.to_string())))
        };
        let receipts = self
            .expected_head
            .iter()
            .map(receipt)
            .collect::<Result<Vec<_>, _>>()?;
        // That there is no log is a finding to whoever was given a receipt of it.
        if receipts.is_empty() {
            exists(&dir)?;
        }
        let report = settled(ctx, &dir, receipts)?;
        let verified = replayed(ctx, &dir, report)?;
        if ctx.out.is_json() {
            ctx.out.object(&object(&verified))?;
        } else {
            people(ctx, &dir, &verified)?;
        }
        Ok(verified.exit())
    }
}

/// There has to be a directory with segments; an empty one is no store.
pub fn exists(dir: &Path) -> Result<(), Stop> {
    if dir.join("segments").is_dir() {
        return Ok(());
    }
    let fault = if dir.exists() {
        Fault::new(
            Cause::UnknownStore,
            format!("{} is no store: it has no segments", dir.display()),
        )
    } else {
        Fault::new(
            Cause::UnknownStore,
            format!("there is no {}", dir.display()),
        )
    };
    Err(fault.into())
}

/// Looks; and where a frame seems to be on its way, looks again: one that still is after a while is not being
/// written by anybody.
fn settled(ctx: &mut Context, dir: &Path, receipts: Vec<Receipt>) -> Result<Report, Stop> {
    let look = Counting {
        look: PlainDirectory::new(dir),
        read: Arc::default(),
    };
    let mut options = Options {
        writer: Writer::Live,
        receipts,
        ..Options::default()
    };
    let looked = |options: &Options| {
        look.read.store(0, Ordering::Relaxed);
        let far = || (look.read.load(Ordering::Relaxed), size(dir));
        watched(ctx.out.is_quiet(), far, || verify(&look, options))
    };
    let first = looked(&options);
    let Some(place) = in_flight(&first) else {
        return Ok(first);
    };
    std::thread::sleep(SETTLE);
    let second = looked(&options);
    if in_flight(&second) != Some(place) {
        return Ok(second);
    }
    options.writer = Writer::Gone;
    Ok(looked(&options))
}

/// A store's directory of which it is counted how many bytes were read.
struct Counting {
    look: PlainDirectory,
    read: Arc<AtomicU64>,
}

impl Look for Counting {
    fn names(&self) -> io::Result<Vec<String>> {
        self.look.names()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(CountedFile {
            file: self.look.open(name)?,
            read: self.read.clone(),
        }))
    }

    fn control(&self) -> io::Result<Option<Vec<u8>>> {
        self.look.control()
    }

    fn seal(&self, segment: SegmentName) -> io::Result<Option<Vec<u8>>> {
        self.look.seal(segment)
    }
}

struct CountedFile {
    file: Box<dyn ReadAt>,
    read: Arc<AtomicU64>,
}

impl ReadAt for CountedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(into, offset)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

fn in_flight(report: &Report) -> Option<(String, u64)> {
    let finding = report
        .findings
        .iter()
        .find(|f| matches!(f.kind, Kind::InFlight(_)))?;
    Some((
        finding.segment.map(|s| s.to_string()).unwrap_or_default(),
        finding.offset,
    ))
}

/// Where the bytes are good, replays what they say: every fence has to stand at its position.
fn replayed(ctx: &mut Context, dir: &Path, report: Report) -> Result<Verified, Stop> {
    let mut verified = Verified {
        report,
        rules: Vec::new(),
        open: Vec::new(),
        snapshot: None,
        skipped: None,
        unproven: Vec::new(),
    };
    if !matches!(verified.report.outcome, Outcome::Clean | Outcome::TornTail) {
        verified.skipped =
            Some("the frames have to be good before their content is replayed".to_owned());
        return Ok(verified);
    }
    let host = ctx.host();
    let whole = verified.report.end.map_or(0, |end| end.head.position.0);
    let passed = AtomicU64::new(0);
    let mut projector = Projector::new();
    let mut compared = None;
    let far = || (passed.load(Ordering::Relaxed), whole);
    let read = watched(ctx.out.is_quiet(), far, || {
        let reader = Reader::open(dir, host)?;
        if let Some(snapshot) = reader.snapshot()? {
            let position = snapshot.at.position;
            move_to(&mut projector, &reader, position, &passed)?;
            compared = Some((position, *projector.state() == snapshot));
        }
        let head = Position(reader.head()?.position.0);
        move_to(&mut projector, &reader, head, &passed)
    });
    verified.snapshot = compared;
    if let Err(error) = read {
        verified.skipped = Some(error.to_string());
    }
    verified.rules = projector.findings().to_vec();
    verified.open.clone_from(&projector.state().findings);
    verified.unproven = projector.state().unproven.clone();
    Ok(verified)
}

/// Replays up to a position, in steps, so that somebody can be told how far it has come.
fn move_to(
    projector: &mut Projector,
    reader: &Reader,
    to: Position,
    passed: &AtomicU64,
) -> Result<(), ProjectionError> {
    while projector.position() < to {
        let step = Position(projector.position().0.saturating_add(STEP_FRAMES).min(to.0));
        projector.read(reader, Some(step), &mut [])?;
        passed.store(step.0, Ordering::Relaxed);
    }
    Ok(())
}

impl Verified {
    fn verdict(&self) -> Outcome {
        // What somebody has looked at is shown, and no verdict any more.
        let stands = self.open.is_empty();
        let is_newer = |f: &Finding| matches!(f, Finding::Unknown { .. });
        let receipts = self
            .report
            .receipts
            .iter()
            .all(|(_, state)| *state == ReceiptState::Kept);
        let snapshot = self.snapshot.is_none_or(|(_, agrees)| agrees);
        match self.report.outcome {
            Outcome::Clean | Outcome::TornTail if !stands || !receipts || !snapshot => {
                Outcome::Damaged
            }
            Outcome::Clean if self.skipped.is_some() || self.rules.iter().any(is_newer) => {
                Outcome::Incomplete
            }
            outcome => outcome,
        }
    }

    fn exit(&self) -> Exit {
        let found = self
            .report
            .findings
            .iter()
            .any(|f| !matches!(f.kind, Kind::Obstacle(_)));
        match self.verdict() {
            Outcome::Clean => Exit::DONE,
            Outcome::Incomplete if !found => Exit::INCOMPLETE,
            _ => Exit::NEGATIVE,
        }
    }

    fn checks(&self) -> Vec<&'static str> {
        let checks = self.report.coverage.checks;
        let mut named = vec![
            "header-crc",
            "facts-crc",
            "position",
            "epoch",
            "incarnation",
        ];
        named.extend(checks.whole.then_some("rest-crc"));
        named.extend(checks.chain.then_some("chain"));
        named.extend(self.skipped.is_none().then_some("fence"));
        named.extend(self.snapshot.map(|_| "snapshot"));
        named
    }
}

fn people(ctx: &mut Context, dir: &Path, verified: &Verified) -> Result<(), Stop> {
    let (report, coverage) = (&verified.report, &verified.report.coverage);
    let verdict = verified.verdict();
    let style = if verdict == Outcome::Clean { HEAD } else { BAD };
    ctx.out
        .styled(style, format_args!("{}: {verdict}", dir.display()))?;
    ctx.out.say(format_args!(
        "  {} frames in {} segments, {} bytes; good up to position {}",
        coverage.frames, coverage.segments, coverage.bytes, coverage.horizon
    ))?;
    let accounts = &coverage.accounts;
    ctx.out.say(format_args!(
        "  bytes: {} of headers, {} of frames, {} zeros, {} bad, {} late, {} unread; {} segments sealed, {} closed and unsealed",
        accounts.headers,
        accounts.frames,
        accounts.zeros,
        accounts.bad,
        accounts.late,
        accounts.unread,
        coverage.seals,
        coverage.unsealed
    ))?;
    ctx.out
        .say(format_args!("  checked: {}", verified.checks().join(", ")))?;
    for skipped in &coverage.skipped {
        ctx.out.styled(
            WARN,
            format_args!("  not looked at: {}: {}", skipped.what, skipped.why),
        )?;
    }
    if let Some(why) = &verified.skipped {
        ctx.out
            .styled(WARN, format_args!("  content not replayed: {why}"))?;
    }
    for stretch in &verified.unproven {
        ctx.out
            .styled(WARN, format_args!("  unproven: {}", unproven(stretch)))?;
    }
    for finding in &report.findings {
        ctx.out.styled(WARN, format_args!("  {finding}"))?;
    }
    if report.findings_omitted > 0 {
        ctx.out
            .styled(DIM, format_args!("  and {} more", report.findings_omitted))?;
    }
    for finding in &verified.rules {
        let (position, kind, meaning, next) = rule(finding, &verified.open);
        ctx.out.styled(
            WARN,
            format_args!("  {kind} at position {position}: {meaning}; {next}"),
        )?;
    }
    if let Some((position, false)) = verified.snapshot {
        let (meaning, next) = DIFFERS;
        ctx.out.styled(
            WARN,
            format_args!("  snapshot-differs at position {position}: {meaning}; {next}"),
        )?;
    }
    for (receipt, state) in &report.receipts {
        let style = if *state == ReceiptState::Kept {
            PLAIN
        } else {
            BAD
        };
        ctx.out
            .styled(style, format_args!("  receipt {receipt}: {}", kept(state)))?;
    }
    Ok(())
}

/// What a snapshot means that no replay gives, and what to do.
const DIFFERS: (&str, &str) = (
    "the snapshot says otherwise than the log it was made from; answers since may be wrong, the log is not",
    "remove the directory `snapshots` of the store: it is made again from the log",
);

/// A stretch of a salvaged log, as a sentence.
fn unproven(stretch: &Unproven) -> String {
    let until = stretch.until.map_or_else(
        || "the end, where no new incarnation has begun".to_owned(),
        |until| format!("position {until}, where a new incarnation begins"),
    );
    let since = stretch.since;
    format!(
        "frames are lost from position {since} on; what stands on what cannot be told up to {until}"
    )
}

fn kept(state: &ReceiptState) -> String {
    match state {
        ReceiptState::Kept => "it stands where it stood".to_owned(),
        ReceiptState::Differs { found } => {
            format!("another frame stands there, with chain {found}")
        }
        ReceiptState::Ahead {
            head: tenure_projection::log::position::Position::ZERO,
        } => "there is no log".to_owned(),
        ReceiptState::Ahead { head } => format!("the log ends before it, at position {head}"),
        ReceiptState::Unreadable => "no good frame stands there".to_owned(),
        ReceiptState::OtherStore { found } => {
            format!("it is of another store; this one is {found}")
        }
    }
}

/// Position, kind, meaning, and what to do about a finding; `open` are the frames that nobody has acknowledged.
fn rule(finding: &Finding, open: &[Position]) -> (Position, &'static str, String, String) {
    match finding {
        Finding::DoesNotStand(position) => {
            let (seen, next) = match open.contains(position) {
                true => (
                    "",
                    format!("tenure store accept finding:{position} --reason TEXT"),
                ),
                false => (
                    ", and was acknowledged",
                    "nothing has to be done".to_owned(),
                ),
            };
            let meaning = format!(
                "what it was written under was not current at its position; it is in the log and grants nothing{seen}"
            );
            (*position, "does-not-stand", meaning, next)
        }
        Finding::Unknown { position, kind } => (
            *position,
            "newer-event",
            format!("event kind {kind} is of a newer program"),
            "use the newer program".to_owned(),
        ),
    }
}

/// What was read and held against what.
fn coverage(verified: &Verified) -> Value {
    let coverage = &verified.report.coverage;
    let accounts = &coverage.accounts;
    let mut skipped: Vec<Value> = coverage
        .skipped
        .iter()
        .map(|s| json!({ "what": s.what, "why": s.why }))
        .collect();
    skipped.extend(
        verified
            .skipped
            .as_ref()
            .map(|why| json!({ "what": "content", "why": why })),
    );
    let unproven: Value = verified
        .unproven
        .iter()
        .map(
            |u| json!({ "from": u.since.0, "until": u.until.map(|p| p.0), "meaning": unproven(u) }),
        )
        .collect();
    json!({
        "bytes": coverage.bytes,
        "frames": coverage.frames,
        "segments": coverage.segments,
        "sealed": coverage.seals,
        "unsealed": coverage.unsealed,
        "accounted": {
            "headers": accounts.headers,
            "frames": accounts.frames,
            "zeros": accounts.zeros,
            "bad": accounts.bad,
            "late": accounts.late,
            "unread": accounts.unread,
        },
        "checks": verified.checks(),
        "skipped": skipped,
        "unproven": unproven,
        "horizon": coverage.horizon.0,
    })
}

fn object(verified: &Verified) -> Object {
    let report = &verified.report;
    let bytes = report.findings.iter().map(|finding| {
        json!({
            "segment": finding.segment.map(|s| s.to_string()),
            "offset": finding.offset,
            "position": finding.positions.map(|p| p.first.0),
            "positions": finding.positions.map(|p| p.to_string()),
            "kind": finding.kind.code(),
            "cause": finding.kind.cause(),
            "meaning": finding.meaning,
            "next": finding.next.to_string(),
        })
    });
    let rules = verified.rules.iter().map(|finding| {
        let (position, kind, meaning, next) = rule(finding, &verified.open);
        json!({
            "segment": null, "offset": null, "position": position.0,
            "kind": kind, "meaning": meaning, "next": next,
        })
    });
    let snapshot = verified.snapshot.filter(|(_, agrees)| !agrees);
    let snapshot = snapshot.map(|(position, _)| {
        json!({
            "segment": null, "offset": null, "position": position.0,
            "kind": "snapshot-differs", "meaning": DIFFERS.0, "next": DIFFERS.1,
        })
    });
    let receipts: Value = report
        .receipts
        .iter()
        .map(|(receipt, state)| {
            let is_kept = *state == ReceiptState::Kept;
            json!({ "receipt": receipt.to_string(), "kept": is_kept, "meaning": kept(state) })
        })
        .collect();
    Object::new("verify")
        .with("verdict", verified.verdict().to_string())
        .with("row", report.row.name())
        .with("store", report.identity.map(|h| h.store.to_string()))
        .with("coverage", coverage(verified))
        .with(
            "findings",
            bytes.chain(rules).chain(snapshot).collect::<Value>(),
        )
        .with("findings_omitted", report.findings_omitted)
        .with("receipts", receipts)
}
