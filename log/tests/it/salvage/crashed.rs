//! A salvage that is stopped at every step, on the simulated machine.

use std::path::Path;
use std::sync::Arc;

use tenure_log::journal::Journal;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::look::Look;
use tenure_log::position::Position;
use tenure_log::salvage::salvage;
use tenure_log::storage::sim::{Fault, Sim, Survival};
use tenure_log::storage::{Opening, Storage};
use tenure_log::verify::{Outcome, verify};

use super::{DEST, Notes};
use crate::store::{Builder, Files};

const SURVIVALS: [Survival; 5] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::LastWrite,
    Survival::Some(1),
    Survival::Some(2),
];

fn hurt() -> Files {
    let mut builder = Builder::small();
    let (name, offset, _) = builder.frames[4];
    builder.file(name)[offset + 90] ^= 1;
    builder.files
}

fn start(sim: &Sim, files: &Files) -> Option<bool> {
    sim.run_one(|process| {
        let storage: Arc<dyn Storage> = process;
        let dest = Some(Path::new(DEST));
        salvage(files, &storage, dest, &mut Notes::default()).is_ok()
    })
}

/// Whether there is a whole store; a part of one is never taken for a store.
fn is_whole(sim: &Sim, context: &str) -> bool {
    let judged = sim.run_one(|process| {
        let Ok(dir) = process.directory(Path::new(DEST), Opening::Existing) else {
            return false;
        };
        let names = dir.names().unwrap_or_default();
        if names.iter().all(|name| !name.ends_with(".seg")) {
            return false;
        }
        let report = verify(&dir, &Default::default());
        if report.outcome != Outcome::Clean {
            let opened = SegmentLog::open(process, Path::new(DEST), Options::default());
            assert!(opened.is_err(), "{context}: a part of a store was opened");
            return false;
        }
        assert_eq!(report.coverage.horizon, Position(10), "{context}");
        let log = SegmentLog::open(process, Path::new(DEST), Options::default()).expect("opened");
        assert_eq!(
            log.head().expect("read").position,
            Position(10),
            "{context}"
        );
        true
    });
    judged.expect("not killed")
}

/// Killed at every step, and the power cut then with every kind of loss: there is no store at the target or a whole one,
/// and once it was said to be done it is whole.
#[test]
fn a_crash_at_every_step_leaves_no_store_or_a_whole_one() {
    let files = hurt();
    let steps = {
        let sim = Sim::new(7);
        assert_eq!(start(&sim, &files), Some(true));
        for survival in SURVIVALS {
            let cut = sim.fork();
            cut.cut_power(survival);
            assert!(is_whole(&cut, "done"), "{survival:?}");
        }
        sim.steps()
    };
    assert!(steps > 30, "{steps}");
    let mut whole = 0;
    for at in 0..steps {
        let sim = Sim::new(7);
        sim.set_fault(at, Fault::Kill);
        assert_eq!(start(&sim, &files), None);
        is_whole(&sim.fork(), &format!("killed at {at}"));
        for survival in SURVIVALS {
            let cut = sim.fork();
            cut.cut_power(survival);
            whole += u32::from(is_whole(&cut, &format!("killed at {at}, {survival:?}")));
        }
    }
    assert!(whole > 0, "none of the crashes came late enough");
}

/// No space, a short write and a failed sync at every step: it is said that it is not done, or it is whole.
#[test]
fn a_fault_at_every_step_is_told() {
    let files = hurt();
    let steps = {
        let sim = Sim::new(7);
        start(&sim, &files).expect("not killed");
        sim.steps()
    };
    for fault in [Fault::NoSpace, Fault::Short(10), Fault::FailedSync] {
        for at in 0..steps {
            let sim = Sim::new(7);
            sim.set_fault(at, fault);
            let done = start(&sim, &files).expect("not killed");
            sim.clear_fault();
            sim.cut_power(Survival::Nothing);
            let context = format!("{fault:?} at {at}");
            assert!(is_whole(&sim, &context) || !done, "{context}");
        }
    }
}
