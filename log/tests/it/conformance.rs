//! The one suite, on every engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_log::conformance::{self, Bench};
use tenure_log::format::RulesVersion;
use tenure_log::journal::Journal;
use tenure_log::journal::memory::MemoryLog;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::sim::Sim;
use tenure_log::writer::site::Tuning;

struct Memory(MemoryLog);

impl Bench for Memory {
    fn open(&self) -> Arc<dyn Journal> {
        Arc::new(self.0.clone())
    }
}

struct Directory {
    _temp: tempfile::TempDir,
    path: PathBuf,
    options: Options,
}

impl Directory {
    fn new(tuning: Tuning) -> Directory {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let path = Path::new(temp.path()).join("store");
        let options = Options {
            create: true,
            rules: RulesVersion(1),
            tuning,
            ..Options::default()
        };
        Directory {
            _temp: temp,
            path,
            options,
        }
    }
}

impl Bench for Directory {
    fn open(&self) -> Arc<dyn Journal> {
        Arc::new(
            SegmentLog::open(Arc::new(Disk), &self.path, self.options.clone()).expect("opened"),
        )
    }
}

#[test]
fn the_memory_journal_conforms() {
    conformance::run(&|| Box::new(Memory(MemoryLog::new(RulesVersion(1)))));
}

#[test]
fn the_segment_log_conforms() {
    conformance::run(&|| Box::new(Directory::new(Tuning::default())));
}

/// Rotation after every few frames, on every path of the suite.
#[test]
fn the_segment_log_conforms_with_small_segments() {
    let tuning = || Tuning {
        segment_bytes: vec![4096 + 700],
        fill_bytes: 300,
        ..Tuning::default()
    };
    conformance::run(&|| Box::new(Directory::new(tuning())));
}

struct Machine {
    sim: Sim,
    options: Options,
}

impl Bench for Machine {
    fn open(&self) -> Arc<dyn Journal> {
        let log = SegmentLog::open(
            self.sim.process(),
            Path::new("/store"),
            self.options.clone(),
        );
        Arc::new(log.expect("opened"))
    }
}

#[test]
fn the_segment_log_conforms_on_a_simulated_machine() {
    conformance::run(&|| {
        let tuning = Tuning {
            segment_bytes: vec![4096 + 700],
            fill_bytes: 300,
            ..Tuning::default()
        };
        let options = Options {
            create: true,
            rules: RulesVersion(1),
            tuning,
            ..Options::default()
        };
        Box::new(Machine {
            sim: Sim::new(5),
            options,
        })
    });
}
