//! Memory that runs out: every request for memory of a short story is where the process gets none, once and from then
//! on, and what it left is judged as after a crash.
//!
//! What must hold: the store opens; what was acknowledged stands, and besides it at most what was under way; the rules
//! and `verify` find nothing; and it goes on. And of input: lengths that pretend to be huge, under right checksums, never
//! become a request for memory.

use std::error::Error;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tenure_log::journal::Deadline;
use tenure_log::look::PlainDirectory;
use tenure_log::position::Receipt;
use tenure_log::verify::{Options, Outcome as Verdict, verify};
use tenure_projection::error::Trace;
use tenure_projection::host::System;
use tenure_projection::projector::Projector;
use tenure_projection::reader::{Known, Reader};
use tenure_projection::salvage::{self, Target};
use tenure_projection::store::{OpenOptions, Store};

use super::play::Ask;
use super::{Figures, Order, Outcome, side_by_side};

mod actor;
mod bombs;

pub use actor::act_if_ordered;

/// What gets nothing: a request of the story by its number, and whether all later ones too.
#[derive(Clone, Copy, Debug)]
struct Point {
    number: u64,
    onwards: bool,
}

/// What a process said before it ended.
#[derive(Debug)]
struct Said {
    /// The receipts of what was acknowledged, in order.
    receipts: Vec<Receipt>,
    /// How many requests there were, if it came to its end.
    requests: Option<u64>,
    /// How it ended, where that is neither well nor as one that gets no memory ends.
    broken: Option<String>,
}

/// Runs the rig.
///
/// # Errors
/// When a process cannot be started, or the story does not come to its end with all memory that it asks for.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let mut figures = Figures::default();
    bombs::run(order, &mut figures)?;
    let whole = Point {
        number: 0,
        onwards: false,
    };
    let room = room()?;
    let said = act(&order.itself, room.path(), whole)?;
    let requests = said.requests.ok_or("the story does not come to its end")?;
    let steps = said.receipts.len();
    // What chance decides, such as the place of a name in a table, may ask for a few more.
    let numbers = 1..=requests + requests / 50;
    let both = numbers.flat_map(|number| [false, true].map(|onwards| Point { number, onwards }));
    let points = order.draw(both.collect(), 40, 1_000);
    figures.count("requests of the story", requests);
    let part = |mine: &mut dyn Iterator<Item = &Point>| {
        let mut figures = Figures::default();
        for point in mine {
            if let Err(error) = one(&order.itself, *point, steps, &mut figures) {
                figures.violations.push(format!("{point:?}: {error}"));
            }
        }
        figures
    };
    figures.join(side_by_side(&points, part)?);
    Ok(Outcome::Ran(figures))
}

/// A directory in memory, where there is such a place: nothing here is about disks.
fn room() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

fn one(
    program: &Path,
    point: Point,
    steps: usize,
    figures: &mut Figures,
) -> Result<(), Box<dyn Error>> {
    let room = room()?;
    let said = act(program, room.path(), point)?;
    if said.requests.is_some() {
        // There were fewer this time.
        figures.count("came to their end", 1);
    }
    figures.count(
        if point.onwards {
            "none from then on"
        } else {
            "none once"
        },
        1,
    );
    let told = |line: String| format!("{point:?}, {} acknowledged: {line}", said.receipts.len());
    figures.violations.extend(said.broken.clone().map(told));
    let broken = judge(room.path(), &said, steps);
    figures.violations.extend(broken?.into_iter().map(told));
    Ok(())
}

/// Plays the story in a process of its own.
fn act(program: &Path, room: &Path, point: Point) -> Result<Said, Box<dyn Error>> {
    let order = actor::order(room, point.number, point.onwards);
    let out = Command::new(program)
        .env(actor::ORDER, order)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()?;
    let mut said = Said {
        receipts: Vec::new(),
        requests: None,
        broken: None,
    };
    for line in String::from_utf8_lossy(&out.stdout).split_inclusive('\n') {
        match line
            .strip_suffix('\n')
            .and_then(|line| line.split_once(' '))
        {
            Some(("done", receipt)) => said.receipts.push(receipt.parse()?),
            Some(("requests", count)) => said.requests = Some(count.parse()?),
            _ => {}
        }
    }
    let err = String::from_utf8_lossy(&out.stderr);
    /// What a process ends with that aborts.
    const ABORTED: i32 = 6;
    let is_starved = out.status.signal() == Some(ABORTED) && !err.contains("panicked");
    // Where an error for want of memory is an answer, the story ends with it.
    let is_told = out.status.code() == Some(1) && !err.contains("panicked");
    if !(out.status.success() || is_starved || is_told) {
        let last = err.lines().last().unwrap_or_default();
        said.broken = Some(format!("it ended with {}: {last}", out.status));
    }
    Ok(said)
}

/// What does not hold of what a process left.
fn judge(room: &Path, said: &Said, steps: usize) -> Result<Vec<String>, Box<dyn Error>> {
    let (store, host) = (actor::store_in(room), Arc::new(System::of_this_user()));
    let mut broken = Vec::new();
    let known = said.receipts.last().map_or(0, |receipt| receipt.position.0);
    if store.join("segments").exists() || !said.receipts.is_empty() {
        // First by who only reads; a store that is being made is none to them yet.
        match Reader::open(&store, host.clone()) {
            Ok(reader) => broken.extend(lacking(&reader, &said.receipts)?),
            Err(error) if !said.receipts.is_empty() => {
                broken.push(format!("nobody can read: {error}"));
            }
            Err(_) => {}
        }
    }
    let options = OpenOptions::new(&store).create(true);
    let opened = match Store::open(&options, host.clone()) {
        Ok(opened) => opened,
        Err(error) => return Ok(vec![format!("nobody can write: {error}")]),
    };
    broken.extend(lacking(&opened, &said.receipts)?);
    // Each command is one frame, and one was under way.
    let head = opened.head()?.position.0;
    let most = known + u64::from(said.receipts.len() < steps);
    if head < known || head > most {
        broken.push(format!(
            "the log ends at {head}, and must at {known} to {most}"
        ));
    }
    let mut replay = Projector::new();
    replay.read(&opened, None, &mut [])?;
    if let [first, ..] = replay.findings() {
        broken.push(format!("the frame at {first} does not stand"));
    }
    if let Err(failure) = Ask::Register("lab", std::process::id()).of(&opened) {
        broken.push(format!("it does not go on: {failure}"));
    }
    opened
        .journal()
        .wait_durable(tenure_log::position::Position(head), Deadline::NEVER)?;
    drop(opened);
    let report = verify(&PlainDirectory::new(&store), &Options::default());
    if report.outcome != Verdict::Clean {
        broken.push(format!("verify says {}", report.outcome));
    }
    broken.extend(salvaged(room, &store)?);
    Ok(broken)
}

/// What was acknowledged and is not there.
fn lacking(reader: &Reader, receipts: &[Receipt]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut lacking = Vec::new();
    for receipt in receipts {
        let known = reader.outcome(&Trace::Receipt(*receipt))?;
        if !matches!(known, Known::Done { receipt: found, .. } if found == *receipt) {
            lacking.push(format!("{receipt} was acknowledged and is not there"));
        }
    }
    Ok(lacking)
}

/// What is wrong with a salvage behind one that was cut short.
fn salvaged(room: &Path, store: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let begun = actor::salvage_in(room);
    if !begun.exists() {
        return Ok(Vec::new());
    }
    // Half of a store is a file's name that nobody takes for a store: another place is asked for.
    let target: PathBuf = room.join("salvaged-again");
    let order = salvage::Order {
        source: store.to_owned(),
        target: Target::Directory(target.clone()),
        actor: None,
        reason: "memory ran out".to_owned(),
    };
    let report = salvage::run(&order, &System::of_this_user(), &mut |_| {});
    Ok(match report {
        Ok(report) if report.positions_lost() == 0 => {
            fs::remove_dir_all(target)?;
            Vec::new()
        }
        Ok(report) => vec![format!(
            "a salvage loses {} positions",
            report.positions_lost()
        )],
        Err(error) => vec![format!("a salvage ends with {error}")],
    })
}
