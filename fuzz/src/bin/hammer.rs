//! `hammer [PROCESSES] [THREADS] [SECONDS] [SEED]`: many writers on one store, killed and stopped at random.

use std::process::ExitCode;
use std::time::Duration;

use tenure_fuzz::hammer::{Plan, judge, run, store_in, worker};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    if worker::work_if_ordered()? {
        return Ok(ExitCode::SUCCESS);
    }
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .map(|a| a.parse())
        .collect::<Result<_, _>>()?;
    let number = |at: usize, default: u64| numbers.get(at).copied().unwrap_or(default);
    let room = tempfile::tempdir()?;
    let plan = Plan {
        program: std::env::current_exe()?,
        store: store_in(room.path()),
        processes: u32::try_from(number(0, 8))?,
        threads: u32::try_from(number(1, 1))?,
        time: Duration::from_secs(number(2, 30)),
        kill_every: Duration::from_millis(300),
        stop_every: Duration::from_millis(2000),
        seed: number(3, 1),
    };
    let tally = run(&plan)?;
    let report = judge(&plan.store, &tally)?;
    println!(
        "{} processes x {} threads for {:?}, seed {}: {} acknowledged, {} refused as stale, {} unknown, \
         {} kills, {} stops; log: {} frames, {} notes, {} grants; least and most served: {:?}",
        plan.processes,
        plan.threads,
        plan.time,
        plan.seed,
        tally.acknowledged.len(),
        tally.refused,
        tally.unknown,
        tally.kills,
        tally.stops,
        report.frames,
        report.notes,
        report.grants,
        tally.spread
    );
    let broken = report.violations.iter().chain(&tally.failures);
    broken
        .clone()
        .take(20)
        .for_each(|line| println!("VIOLATION {line}"));
    Ok(if broken.count() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
