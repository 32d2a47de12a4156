//! The hammer, briefly: many processes and threads with random kills and stops, and the log judged afterwards.

use std::path::PathBuf;
use std::time::Duration;

use tenure_fuzz::hammer::{Plan, judge, run, store_in};

fn plan(
    room: &tempfile::TempDir,
    processes: u32,
    threads: u32,
    kill_ms: u64,
    stop_ms: u64,
    seed: u64,
) -> Plan {
    Plan {
        program: PathBuf::from(env!("CARGO_BIN_EXE_tenure-fuzz")),
        store: store_in(room.path()),
        processes,
        threads,
        time: Duration::from_secs(4),
        kill_every: Duration::from_millis(kill_ms),
        stop_every: Duration::from_millis(stop_ms),
        seed,
    }
}

fn hammer(processes: u32, threads: u32, kill_ms: u64, stop_ms: u64, seed: u64) {
    let room = tempfile::tempdir().expect("a directory");
    let plan = plan(&room, processes, threads, kill_ms, stop_ms, seed);
    let tally = run(&plan).expect("workers start");
    let report = judge(&plan.store, &tally).expect("the log reads");
    assert_eq!(tally.failures, Vec::<String>::new());
    assert_eq!(report.violations, Vec::<String>::new(), "{report:?}");
    assert!(!tally.acknowledged.is_empty(), "somebody was served");
    assert!(
        report.grants > 0 && tally.kills > 0,
        "it was no quiet run: {report:?}"
    );
}

/// R1, R2, R3, F1, F4, C01, LIV-16, LIV-20
#[test]
fn two_processes_killed_at_random_lose_nothing_and_double_nothing() {
    hammer(2, 1, 300, 0, 11);
}

/// REG-10, REG-13, L3, C18, E01
#[test]
fn eight_processes_killed_and_stopped_at_random_keep_the_fence() {
    hammer(8, 1, 300, 900, 12);
}

/// OUT-11, A15
#[test]
fn sixty_four_threads_share_one_store() {
    hammer(1, 64, 900, 0, 13);
}

/// F26, LIV-20: of many processes that make one store, one does, and the others open it; none fails.
#[test]
fn many_births_at_once_are_one() {
    for round in 0..12 {
        let room = tempfile::tempdir().expect("a directory");
        let mut plan = plan(&room, 8, 1, 0, 0, round);
        plan.time = Duration::from_millis(150);
        let tally = run(&plan).expect("workers start");
        assert_eq!(tally.failures, Vec::<String>::new());
        let report = judge(&plan.store, &tally).expect("the log reads");
        assert_eq!(report.violations, Vec::<String>::new());
    }
}
