//! `tenure-compare`: the canonical workload on this store and on others, side by side in one run.
//!
//! Rounds go through every number of writers and every store in turn (A B C A B C), so that whatever else the
//! machine does meets them alike. Printed are medians with their range, and ratios between medians; absolute
//! numbers move with the machine.

mod appends;
mod drive;
mod limits;
mod opening;
mod options;
mod peers;
mod processes;
mod replay;
mod report;
mod syncs;
mod targets;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use tenure_benches::workload::{Crew, SEED};
use tenure_benches::{ended, machine, page, reading};

use options::{Options, Part};
use report::Report;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments
        .next_if(|first| first == processes::WORKER)
        .is_some()
    {
        return ended(processes::work(&arguments.next().unwrap_or_default()));
    }
    match Options::from_arguments(arguments) {
        Ok(options) => ended(run(&options)),
        Err(error) => {
            eprintln!("{error}\n\n{}", options::USAGE);
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    let machine = machine::describe(&options.dir)?;
    let idle = machine::idle_for(Duration::from_secs(1))?;
    let mut report = Report::new(options, machine, idle);
    report.appends = appends::measure(options)?;
    if options.wants(Part::Syncs) {
        report.syncs = Some(syncs::measure(options)?);
    }
    if options.wants(Part::Replay) || options.wants(Part::Open) {
        long_log(options, &mut report)?;
    }
    let tables = report.tables();
    print!("{tables}");
    if let Some(path) = &options.json {
        std::fs::write(path, format!("{:#}\n", report.json()))?;
    }
    match &options.markdown {
        Some(path) => page::replace(path, "compare", &tables),
        None => Ok(()),
    }
}

/// What is measured on one long log.
fn long_log(options: &Options, report: &mut Report) -> io::Result<()> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let dir = scratch.path();
    eprintln!("tenure: writing {} events", options.events);
    let mut crew = Crew::new(SEED, 0, options.sessions).with(options.bodies);
    reading::build(dir, &mut crew, options.events, opening::TAIL);
    if options.wants(Part::Open) {
        report.opening = Some(opening::measure(options, dir, &crew)?);
    }
    if options.wants(Part::Replay) {
        let replays = replay::measure(options, dir)?;
        let frames = replays.way(replay::CHECKSUMS).map_or(1, |way| way.events);
        let frame_bytes = (replays.bytes / frames.max(1)).max(1) as usize;
        report.limits = Some(limits::measure(&options.dir, options.rounds, frame_bytes)?);
        report.replays = Some(replays);
    }
    Ok(())
}
