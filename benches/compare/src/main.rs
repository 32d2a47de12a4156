//! `tenure-compare`: the canonical workload on this store and on SQLite, side by side in one run.
//!
//! Rounds go through every number of threads and every store in turn (A B C A B C), so that whatever else the
//! machine does meets them alike. Printed are medians with their range, and ratios between medians; absolute
//! numbers move with the machine.

mod appends;
mod figures;
mod machine;
mod options;
mod peers;
mod replay;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match options::Options::from_arguments(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &options::Options) -> std::io::Result<()> {
    let machine = machine::describe(&options.dir)?;
    let before = machine::idle_for(std::time::Duration::from_secs(1))?;
    let appends = appends::measure(options)?;
    let replays = replay::measure(options)?;
    let report = report::Report {
        machine,
        idle_before: before,
        appends,
        replays,
    };
    print!("{}", report.tables());
    if let Some(path) = &options.json {
        std::fs::write(path, format!("{:#}\n", report.json()))?;
    }
    Ok(())
}
