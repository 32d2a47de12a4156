//! `salvage`: copies what is good of a damaged store into a new one and says what may be missing. The source is only
//! read.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_projection::core::id::Position;
use tenure_projection::log::salvage::Kept;
use tenure_projection::salvage::{Order, Progress, Report, Target, run};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Stop, of_store, shell_word};
use crate::input;
use crate::output::{BAD, DIM, HEAD, Object, WARN};

use super::verify::exists;

mod affected;

/// How often progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// Lines of one kind that people are shown; `--json` has all of them.
const LINES_MAX: usize = 20;

/// Arguments of `salvage`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The damaged store's directory; nothing of it is changed
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// Where the new store goes: a directory that is not there, or is empty
    #[arg(
        value_name = "DEST",
        required_unless_present = "in_place",
        conflicts_with = "in_place"
    )]
    dest: Option<PathBuf>,
    /// Put the new store in the place of the damaged one, which stays beside it as SRC.damaged-N
    #[arg(long)]
    in_place: bool,
    /// Only say what would be kept and lost
    #[arg(long)]
    dry_run: bool,
    /// Why; kept in the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
}

impl Args {
    /// Salvages.
    ///
    /// # Errors
    /// When there is no store, the target is taken, somebody has the store open, or the system refuses.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        exists(&self.source)?;
        let reason = match &self.reason {
            Some(reason) => input::line("the reason", reason)?,
            None => "salvaged".to_owned(),
        };
        let target = match self.dest {
            _ if self.dry_run => Target::DryRun,
            Some(dest) => Target::Directory(dest),
            None => Target::InPlace,
        };
        let order = Order {
            source: self.source,
            target,
            actor: ctx.actor(),
            reason,
        };
        let mut meter = Meter::new(!ctx.out.is_json() && !ctx.out.is_quiet());
        let report = run(&order, &*ctx.host(), &mut |progress| meter.show(progress));
        meter.clear();
        let report = report.map_err(|error| of_store(&error, &order.source))?;
        if ctx.out.is_json() {
            objects(ctx, &report)?;
        } else {
            people(ctx, &order.source, &report)?;
        }
        Ok(Exit::DONE)
    }
}

/// Progress on a terminal, on standard error.
struct Meter {
    is_shown: bool,
    next: Instant,
}

impl Meter {
    fn new(wanted: bool) -> Self {
        Self {
            is_shown: wanted && std::io::stderr().is_terminal(),
            next: Instant::now() + SHOWN_EVERY,
        }
    }

    fn show(&mut self, progress: Progress) {
        if !self.is_shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + SHOWN_EVERY;
        let all = progress.all_bytes.max(1);
        let percent = progress.done_bytes.saturating_mul(100) / all;
        let (done, all) = (progress.done_bytes >> 20, all >> 20);
        // What cannot be shown is missed by nobody.
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[Ksalvage: {percent}%, {done} of {all} MiB"
        );
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn range(first: Position, last: Position) -> String {
    if first == last {
        format!("position {first}")
    } else {
        format!("positions {first} to {last}")
    }
}

fn people(ctx: &mut Context, source: &Path, report: &Report) -> Result<(), Stop> {
    let bytes = &report.bytes;
    let (lost, kept) = (report.positions_lost(), bytes.frames);
    let style = if lost == 0 { HEAD } else { BAD };
    let would = if report.store.is_none() {
        "would be "
    } else {
        ""
    };
    ctx.out.styled(
        style,
        format_args!(
            "{}: {kept} frames {would}kept, {lost} lost",
            source.display()
        ),
    )?;
    for lost in bytes.lost.iter().take(LINES_MAX) {
        let last = lost.positions.last.unwrap_or(lost.positions.first);
        let place = lost
            .offset
            .map_or_else(String::new, |offset| format!(" at offset {offset}"));
        let positions = range(Position(lost.positions.first.0), Position(last.0));
        let (segment, found) = (lost.segment, lost.found);
        ctx.out.styled(
            WARN,
            format_args!("  {positions}: {segment}{place}: {found}"),
        )?;
    }
    more(ctx, bytes.lost.len())?;
    for (file, why) in &bytes.skipped {
        ctx.out
            .styled(WARN, format_args!("  not read: {file}: {why}"))?;
    }
    affected::people(ctx, report)?;
    for kept in bytes.quarantine.iter().take(LINES_MAX) {
        let Kept {
            file, bytes, kind, ..
        } = kept;
        ctx.out.styled(
            DIM,
            format_args!("  quarantine/{file}: {bytes} bytes, {kind}"),
        )?;
    }
    more(ctx, bytes.quarantine.len())?;
    ending(ctx, report)
}

fn more(ctx: &mut Context, all: usize) -> Result<(), Stop> {
    if all > LINES_MAX {
        let rest = all - LINES_MAX;
        ctx.out.styled(
            DIM,
            format_args!("  and {rest} more; --json has all of them"),
        )?;
    }
    Ok(())
}

/// Where it is now, and what to do next.
fn ending(ctx: &mut Context, report: &Report) -> Result<(), Stop> {
    let Some(store) = &report.store else {
        return ctx.out.say("nothing was written");
    };
    let at = shell_word(store);
    ctx.out.say(format_args!(
        "the new store is {}, in incarnation {}: no token granted before is current in it",
        store.display(),
        report.bytes.incarnation
    ))?;
    if let Some(damaged) = &report.damaged {
        ctx.out
            .say(format_args!("the damaged one is {}", damaged.display()))?;
    }
    ctx.out.styled(
        DIM,
        format_args!("  tenure --store {at} adopt --all --reason TEXT"),
    )
}

fn objects(ctx: &mut Context, report: &Report) -> Result<(), Stop> {
    let bytes = &report.bytes;
    let skipped: Vec<Value> = bytes
        .skipped
        .iter()
        .map(|(file, why)| json!({ "what": file, "why": why }))
        .collect();
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let summary = Object::new("salvage")
        .with("store", path(&report.store))
        .with("damaged", path(&report.damaged))
        .with("store_id", bytes.store.to_string())
        .with("frames_kept", bytes.frames)
        .with("positions_lost", report.positions_lost())
        .with("end", bytes.end.0)
        .with("incarnation_before", bytes.before.0)
        .with(
            "incarnation",
            report.store.as_ref().map(|_| bytes.incarnation.0),
        )
        .with("envelopes_lost", report.envelopes)
        .with("keys_kept", report.keys.kept)
        .with("body_bytes_lost", report.body_bytes_lost())
        .with("skipped", skipped);
    ctx.out.object(&summary)?;
    for lost in &bytes.lost {
        let object = Object::new("salvage-lost")
            .with("from", lost.positions.first.0)
            .with("to", lost.positions.last.unwrap_or(lost.positions.first).0)
            .with("segment", lost.segment.to_string())
            .with("offset", lost.offset)
            .with("kind", lost.found.as_str())
            .with("meaning", lost.found.to_string());
        ctx.out.object(&object)?;
    }
    affected::objects(ctx, report)?;
    for kept in &bytes.quarantine {
        let object = Object::new("salvage-quarantine")
            .with("file", kept.file.clone())
            .with("from", kept.from.clone())
            .with("offset", kept.offset)
            .with("bytes", kept.bytes)
            .with("kind", kept.kind.as_str())
            .with("meaning", kept.kind.to_string())
            .with("position", kept.header.map(|header| header.position.0));
        ctx.out.object(&object)?;
    }
    Ok(())
}
