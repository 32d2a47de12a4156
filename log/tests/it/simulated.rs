//! The production writer on a simulated machine: crashed, stopped and starved at every step.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_log::conformance::{follow_each_other, read};
use tenure_log::error::Error;
use tenure_log::format::{RulesVersion, SegmentHeader};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal};
use tenure_log::position::Position;
use tenure_log::storage::sim::{Chaos, Fault, Sim, SimProcess, Survival};
use tenure_log::storage::{Access, Directory, FileSystem, Opening, Storage, Trust};
use tenure_log::writer::site::Tuning;

mod losses;
mod told;
mod zeros;

use told::{Told, copy};

const STORE: &str = "/store";

/// Four frames of the tests fill a segment, and waits are short on a clock that jumps.
fn options() -> Options {
    let tuning = Tuning {
        append_wait: Duration::from_millis(200),
        sync_wait: Duration::from_millis(200),
        segment_bytes: vec![4096 + 512],
        fill_bytes: 256,
        ..Tuning::default()
    };
    Options {
        create: true,
        rules: RulesVersion(1),
        tuning,
        ..Options::default()
    }
}

fn open(process: Arc<SimProcess>) -> Result<SegmentLog, Error> {
    SegmentLog::open(process, Path::new(STORE), options())
}

/// Seven frames in two segments and a new life, then an orderly end.
fn workload(process: Arc<SimProcess>, told: &Told) -> Result<(), Error> {
    let log = open(process)?;
    for index in 0..5 {
        told.append(&log, &format!("{index}"))?;
    }
    told.raise(&log, "raised")?;
    told.append(&log, "6")
}

/// Opens, judges, appends once more, judges again.
fn recover(sim: &Sim, told: &Told, text: &str) {
    let judged = sim.run_one(|process| {
        let log = open(process).expect("opened after a crash");
        let frames = read(&log, Position::ZERO);
        let first = sim
            .bytes_of("segments/00000000000000000001-1.seg")
            .expect("the first segment");
        follow_each_other(
            SegmentHeader::decode(&first).expect("a header").start(),
            &frames,
        );
        told.judge(&frames);
        told.append(&log, text).expect("appended after a crash");
        told.judge(&read(&log, Position::ZERO));
    });
    judged.expect("nobody killed it");
}

/// Says where a test stood when it fails.
struct Context(String);

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Kills the recovery too, and cuts the power once more.
fn crash_again(cut: &Sim, told: &Told, at: u64) {
    let (sim, told) = (cut.fork(), copy(told));
    sim.set_fault(at, Fault::Kill);
    let _ = sim.run_one(|process| open(process).map(|log| told.append(&log, "again")));
    sim.clear_fault();
    let survival = SURVIVALS[at as usize % SURVIVALS.len()];
    let _context = Context(format!(
        "crashed again at step {at} of {:?}, {survival:?}",
        sim.trace().last()
    ));
    sim.cut_power(survival);
    recover(&sim, &told, "after two crashes");
}

const SURVIVALS: [Survival; 6] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::LastWrite,
    Survival::Some(1),
    Survival::Some(2),
    Survival::Some(3),
];

/// R1 to R4: killed at every step of the workload, then nothing but the process is lost, or the power
/// is cut with every kind of loss, and the recovery is crashed again.
#[test]
fn a_crash_at_every_step_loses_nothing_acknowledged() {
    let steps = {
        let (sim, told) = (Sim::new(1), Told::default());
        sim.run_one(|process| workload(process, &told))
            .expect("not killed")
            .expect("no fault");
        recover(&sim, &told, "last");
        sim.steps()
    };
    assert!(steps > 100, "the workload has {steps} steps");
    for at in 0..steps {
        let (sim, told) = (Sim::new(1), Told::default());
        sim.set_fault(at, Fault::Kill);
        let _ = sim.run_one(|process| workload(process, &told));
        recover(&sim.fork(), &copy(&told), "after kill");
        for survival in SURVIVALS {
            let cut = sim.fork();
            cut.cut_power(survival);
            let _context = Context(format!(
                "killed at step {at} of {:?}, {survival:?}",
                sim.trace().last()
            ));
            recover(&cut.fork(), &copy(&told), "after power");
            for again_at in (at % 11..130).step_by(11) {
                crash_again(&cut, &told, again_at);
            }
        }
    }
}

/// R5, R6, R8 and F25: no space, a short write and a failed sync at every step of the workload. What
/// is said to be absent is absent, what is acknowledged is there after a power cut, and the store goes on.
#[test]
fn a_fault_at_every_step_is_told_truthfully() {
    let steps = {
        let (sim, told) = (Sim::new(2), Told::default());
        sim.run_one(|process| workload(process, &told))
            .expect("not killed")
            .expect("no fault");
        sim.steps()
    };
    let mut met = 0;
    for fault in [
        Fault::NoSpace,
        Fault::Short(1),
        Fault::Short(100),
        Fault::Short(300),
        Fault::FailedSync,
    ] {
        for at in 0..steps {
            let (sim, told) = (Sim::new(2), Told::default());
            let _context = Context(format!("{fault:?} at step {at}"));
            sim.set_fault(at, fault);
            let first = sim
                .run_one(|process| workload(process, &told))
                .expect("not killed");
            met += u32::from(!sim.clear_fault());
            if let Err(error) = &first {
                let expected = match fault {
                    Fault::FailedSync => matches!(error, Error::Poisoned { .. } | Error::Io { .. }),
                    _ => matches!(error, Error::NoSpace { .. }),
                };
                assert!(expected, "{error}");
            }
            for survival in SURVIVALS {
                let cut = sim.fork();
                cut.cut_power(survival);
                recover(&cut, &copy(&told), "after power");
            }
            recover(&sim, &told, "after fault");
        }
    }
    assert!(met > 50, "{met} faults happened");
}

/// R6: after a failed sync the same handle goes on, in a new epoch, and what it says stays true even
/// when the disk kept nothing of what the failed sync should have written.
#[test]
fn after_a_failed_sync_the_frames_are_carried_into_a_new_segment() {
    let mut carried = 0;
    for at in 0..400 {
        let (sim, told) = (Sim::new(3), Told::default());
        let _context = Context(format!("failed sync at step {at}"));
        sim.set_fault(at, Fault::FailedSync);
        let ran = sim.run_one(|process| {
            let log = match open(process) {
                Ok(log) => log,
                Err(error) => return Err(error),
            };
            let mut poisoned = false;
            for index in 0..6 {
                let before = log.head()?.position;
                match told.append(&log, &index.to_string()) {
                    Err(Error::Poisoned { .. }) => {
                        poisoned = true;
                        // What was published and not acknowledged is carried over by the next append.
                        let unknown = log.head()?;
                        told.append(&log, &format!("{index} again"))?;
                        if unknown.position > before {
                            let frames = read(&log, before);
                            assert_eq!(frames[0].header.head(), unknown, "position and chain stay");
                            log.wait_durable(unknown.position, Deadline::NEVER)?;
                        }
                    }
                    other => other?,
                }
            }
            Ok(poisoned)
        });
        sim.clear_fault();
        carried += u32::from(matches!(ran, Some(Ok(true))));
        sim.cut_power(Survival::Nothing);
        recover(&sim, &told, "after power");
    }
    assert!(carried > 3, "{carried} runs went on after a failed sync");
}

/// R7: the file system is shut down while a sync is under way that then says that it succeeded, at every step of the
/// workload. Nothing is acknowledged that is gone after the next boot.
#[test]
fn a_sync_that_raced_a_shutdown_acknowledges_nothing() {
    let mut met = 0;
    for at in 0..400 {
        let (sim, told) = (Sim::new(4), Told::default());
        sim.set_fault(at, Fault::Shutdown);
        let ran = sim
            .run_one(|process| workload(process, &told))
            .expect("not killed");
        if sim.clear_fault() {
            continue;
        }
        // A sync at the very end may be of what nobody waits for.
        met += u32::from(ran.is_err());
        let _context = Context(format!("shut down at step {at}"));
        for survival in [Survival::Nothing, Survival::Some(5), Survival::LastWrite] {
            let cut = sim.fork();
            cut.cut_power(survival);
            recover(&cut, &copy(&told), "after a shutdown");
        }
    }
    assert!(met > 10, "{met} syncs raced a shutdown");
}

/// How many seeds the tests of chance try; a campaign sets more.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|text: String| text.parse::<u64>().ok())
    };
    let from = number("TENURE_SEEDS_FROM").unwrap_or(0);
    from..from + number("TENURE_SEEDS").unwrap_or(usual)
}

type Body<'b> = Box<dyn FnOnce(Arc<SimProcess>) -> Result<(), Error> + Send + 'b>;

/// Appends texts of its own, with a new handle after every error.
fn writer<'b>(told: &Told, number: usize, frames: usize) -> Body<'b> {
    let told = told.clone();
    Box::new(move |process| {
        let mut log = open_patiently(&process)?;
        for index in 0..frames {
            // Busy is an answer: nothing happened, or it is unknown. A new handle goes on.
            let text = format!("{number}:{index}");
            let raises = number == 1 && index == 2;
            let told = if raises {
                told.raise(&log, &text)
            } else {
                told.append(&log, &text)
            };
            if told.is_err() {
                log = open_patiently(&process)?;
            }
        }
        Ok(())
    })
}

fn open_patiently(process: &Arc<SimProcess>) -> Result<SegmentLog, Error> {
    for _ in 0..200 {
        match open(process.clone()) {
            Err(Error::Busy { .. } | Error::Poisoned { .. }) => {}
            // A failed sync while the store or its page was made.
            Err(Error::Io { .. }) => {}
            other => return other,
        }
    }
    open(process.clone())
}

/// Runs writers under `chaos`, then judges what a process after them and after a power cut finds.
fn run_chaos(seed: u64, chaos: Chaos, writers: usize, others: Vec<Body<'_>>) -> (usize, Sim) {
    let (sim, told) = (Sim::new(seed), Told::default());
    let _context = Context(format!("seed {seed}, {writers} writers, {chaos:?}"));
    let bodies = (0..writers)
        .map(|number| writer(&told, number, 4))
        .chain(others);
    let reader: Body<'_> = {
        let told = told.clone();
        Box::new(move |process| told.read_along(&process, 12))
    };
    let ended = sim.run(chaos, bodies.chain([reader]).collect());
    let killed = ended.iter().filter(|outcome| outcome.is_none()).count();
    for outcome in ended.into_iter().flatten() {
        outcome.expect("who lives comes to an end");
    }
    let cut = sim.fork();
    let frames = sim
        .fork()
        .run_one(|process| read(&open_patiently(&process).expect("opened"), Position::ZERO));
    told.judge_what_was_read(&frames.expect("nobody killed it"));
    recover(&sim, &copy(&told), "after all");
    cut.cut_power(SURVIVALS[seed as usize % SURVIVALS.len()]);
    recover(&cut, &told, "after power");
    (killed, sim)
}

/// Processes killed and stopped at random steps, for many seeds: L3, F8 and F9. Nothing acknowledged
/// is missing, nothing is doubled, nothing said to be absent is there, positions have no gap, and
/// everybody who lives comes to an end.
#[test]
fn processes_killed_and_stopped_at_any_step_lose_and_double_nothing() {
    let (mut killed, mut raised) = (0, 0);
    for seed in seeds(200) {
        let chaos = Chaos {
            kill_one_in: 100 + seed % 150,
            stop_one_in: 40 + seed % 200,
            kills_max: 2,
            ..Chaos::default()
        };
        let (more, sim) = run_chaos(seed, chaos, 2 + seed as usize % 3, Vec::new());
        killed += more;
        raised += usize::from(sim.bytes_of("locks/2").is_some());
    }
    assert!(
        killed > 50 && raised > 20,
        "{killed} were killed, {raised} runs raised the epoch"
    );
}

/// R1: what one of several writers is told is on the disk when it is told, whoever synced it: the power is cut at that
/// moment.
#[test]
fn what_is_acknowledged_among_other_writers_is_synced_at_that_moment() {
    let mut judged = 0;
    // One seed in thirty shows a writer that publishes while another syncs and is told first.
    for seed in seeds(500) {
        let (sim, told) = (Sim::new(seed), Told::default());
        let _context = Context(format!("seed {seed}"));
        let cuts = Mutex::new(Vec::new());
        let bodies = (0..3).map(|number| {
            let (sim, told, cuts) = (&sim, &told, &cuts);
            let body: Body<'_> = Box::new(move |process| {
                let log = open_patiently(&process)?;
                for index in 0..4 {
                    told.append(&log, &format!("{number}:{index}"))?;
                    let cut = sim.fork();
                    cut.cut_power(Survival::Nothing);
                    cuts.lock().push((cut, copy(told)));
                }
                Ok(())
            });
            body
        });
        for ended in sim.run(Chaos::default(), bodies.collect()) {
            ended.expect("nobody kills it").expect("no fault");
        }
        for (cut, told) in cuts.into_inner() {
            recover(&cut, &told, "after power");
            judged += 1;
        }
    }
    assert!(judged > 0 && judged % 12 == 0, "{judged} moments");
}

/// The same with syncs that fail by chance: R6.
#[test]
fn failed_syncs_among_stopped_processes_lose_and_double_nothing() {
    let mut raised = 0;
    for seed in seeds(150) {
        let chaos = Chaos {
            stop_one_in: 60 + seed % 200,
            kill_one_in: 400,
            kills_max: 1,
            fail_sync_one_in: 6 + seed % 20,
        };
        let (_, sim) = run_chaos(seed, chaos, 2 + seed as usize % 2, Vec::new());
        raised += usize::from(sim.bytes_of("locks/2").is_some());
    }
    assert!(raised > 20, "{raised} runs raised the epoch");
}

/// Removes what `choose` picks, again and again.
fn remover<'b>(choose: impl Fn(&dyn Directory) -> Vec<String> + Send + 'b) -> Body<'b> {
    Box::new(move |process| {
        for _ in 0..3 {
            if let Ok(dir) = process.directory(Path::new(STORE), Opening::Existing) {
                (0..60).for_each(|_| process.step());
                for name in choose(&*dir) {
                    // It may not be there yet, or not again.
                    let _ = dir.remove(&name);
                }
            }
        }
        Ok(())
    })
}

/// One kill and many stops, while somebody changes the store's files.
fn meddled_with(seed: u64) -> Chaos {
    Chaos {
        kill_one_in: 300,
        stop_one_in: 60 + seed % 300,
        kills_max: 1,
        ..Chaos::default()
    }
}

/// The same with somebody who removes the control page: it is derived, whoever writes notices.
#[test]
fn a_control_page_removed_among_living_writers_loses_and_doubles_nothing() {
    for seed in seeds(150) {
        let remover = remover(|_| vec!["control".to_owned()]);
        run_chaos(seed, meddled_with(seed), 2, vec![remover]);
    }
}

/// C21: the same with somebody who removes every lock file.
#[test]
fn lock_files_removed_among_living_writers_lose_and_double_nothing() {
    let mut raised = 0;
    for seed in seeds(150) {
        let remover = remover(|dir| {
            let locks = dir.list("locks").unwrap_or_default();
            locks.iter().map(|name| format!("locks/{name}")).collect()
        });
        let (_, sim) = run_chaos(seed, meddled_with(seed), 3, vec![remover]);
        raised += usize::from(sim.bytes_of("locks/2").is_some());
    }
    assert!(raised > 20, "{raised} runs raised the epoch");
}

/// C21: the same with somebody who puts another file in the place of each lock: two processes must never hold two files of
/// one name.
#[test]
fn lock_files_replaced_among_living_writers_lose_and_double_nothing() {
    for seed in seeds(150) {
        let replacer: Body<'_> = Box::new(|process| {
            for _ in 0..3 {
                let Ok(dir) = process.directory(Path::new(STORE), Opening::Existing) else {
                    continue;
                };
                (0..60).for_each(|_| process.step());
                for name in dir.list("locks").unwrap_or_default() {
                    let name = format!("locks/{name}");
                    // Whoever removes it too is as welcome.
                    let _ = dir.remove(&name);
                    let _ = dir.open(&name, Access::CreateNew);
                }
            }
            Ok(())
        });
        run_chaos(seed, meddled_with(seed), 3, vec![replacer]);
    }
}

/// What goes round in a circle ends with a message, not with the memory of the machine.
#[test]
#[should_panic(expected = "no end after")]
fn a_machine_that_comes_to_no_end_is_stopped() {
    let sim = Sim::new(1);
    sim.run_one(|process| {
        while sim.steps() < u64::MAX {
            process.step()
        }
    });
}

/// File systems whose locks or syncs may lie are refused for appending unless they are allowed by name;
/// one in memory is said not to outlive a reboot.
#[test]
fn doubtful_file_systems_are_refused_unless_they_are_named() {
    let sim = Sim::new(9);
    let judged = sim.run_one(|process| {
        let open = |allowed: &[&str]| {
            let allowed_file_systems = allowed.iter().map(|kind| (*kind).to_owned()).collect();
            SegmentLog::open(
                process.clone(),
                Path::new(STORE),
                Options {
                    allowed_file_systems,
                    ..options()
                },
            )
        };
        let kind = |kind: &str, trust| {
            sim.set_file_system(FileSystem {
                kind: kind.to_owned(),
                trust,
            })
        };
        kind("nfs", Trust::Doubtful);
        for allowed in [&[][..], &["smb"]] {
            assert!(
                matches!(open(allowed), Err(Error::RefusedFileSystem { kind }) if kind == "nfs")
            );
        }
        assert!(
            open(&["smb", "nfs"])
                .expect("allowed by name")
                .outlives_reboot()
        );
        kind("tmpfs", Trust::Memory);
        assert!(!open(&[]).expect("opened").outlives_reboot());
    });
    judged.expect("nobody killed it");
}
