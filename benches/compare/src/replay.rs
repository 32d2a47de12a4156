//! Replay of one long log, from the first event to the state.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tenure_benches::figures::Figures;
use tenure_benches::reading::{self, Aside};
use tenure_benches::workload::{Act, Crew, SEED};

use crate::appends::reason;
use crate::options::Options;
use crate::peers::ledger::{Ledger, Write};
use crate::peers::sqlite::Sqlite;

/// Every checksum and nothing else.
pub const CHECKSUMS: &str = "tenure: checksums alone";
/// What `verify` does.
pub const VERIFY: &str = "tenure: verify (checksums, chain, seals)";
/// Fence fields.
pub const FENCES: &str = "tenure: authority alone (fence fields)";
/// Everything.
pub const WHOLE: &str = "tenure: the whole state";
/// The peers that targets name.
pub const SQLITE: &str = "SQLite";
/// As above.
pub const LMDB: &str = "LMDB";

/// A way to replay, with how long it took in each round.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What is done.
    pub name: &'static str,
    /// What is checked on the way.
    pub checks: &'static str,
    /// How many events were read.
    pub events: u64,
    /// Seconds in each round.
    pub seconds: Vec<f64>,
}

impl Replay {
    /// Events a second.
    pub fn per_second(&self) -> Figures {
        let rate = |seconds: &f64| self.events as f64 / seconds;
        Figures::new(self.seconds.iter().map(rate).collect())
    }
}

/// Everything that was measured.
pub struct Replays {
    /// Each way.
    pub ways: Vec<Replay>,
    /// The bytes of our segments.
    pub bytes: u64,
    /// The peak of private memory of a process that replays the whole state.
    pub peak_bytes: u64,
    /// Stores that failed, each with the reason.
    pub failed: BTreeMap<&'static str, String>,
}

/// A store to read.
struct Way {
    name: &'static str,
    checks: &'static str,
    build: fn(&Path, &mut Crew, usize),
    read: fn(&Path) -> u64,
}

fn built(_: &Path, _: &mut Crew, _: usize) {}

const OURS: [Way; 4] = [
    Way {
        name: WHOLE,
        checks: "headers and facts",
        build: built,
        read: reading::open,
    },
    Way {
        name: FENCES,
        checks: "headers and facts",
        build: built,
        read: reading::fences,
    },
    Way {
        name: CHECKSUMS,
        checks: "all bytes",
        build: built,
        read: reading::checksums,
    },
    Way {
        name: VERIFY,
        checks: "all bytes, chain, seals",
        build: built,
        read: reading::verified,
    },
];

fn other<L: Ledger>(name: &'static str, checks: &'static str) -> Way {
    Way {
        name,
        checks,
        build: build::<L>,
        read: rows::<L>,
    }
}

fn others() -> Vec<Way> {
    vec![
        other::<Sqlite>(SQLITE, "none"),
        #[cfg(feature = "lmdb")]
        other::<crate::peers::lmdb::Lmdb>(LMDB, "none"),
        #[cfg(feature = "redb")]
        other::<crate::peers::redb::Redb>("redb", "none on this path"),
        #[cfg(feature = "fjall")]
        other::<crate::peers::fjall::Fjall>("fjall", "blocks"),
        #[cfg(feature = "raft-engine")]
        other::<crate::peers::raft_engine::OneGroup>("raft-engine, one raft group", "batches"),
        #[cfg(feature = "okaywal")]
        other::<crate::peers::okaywal::OkayWal>("okaywal", "none on this path"),
        #[cfg(feature = "commitlog")]
        other::<crate::peers::commitlog::Commitlog>("commitlog", "none on this path"),
    ]
}

/// Builds every log, then reads them in turn. Ours is in `dir` already.
pub fn measure(options: &Options, dir: &Path) -> io::Result<Replays> {
    let chosen = others()
        .into_iter()
        .filter(|way| options.wants_peer(way.name));
    let ways: Vec<Way> = OURS.into_iter().chain(chosen).collect();
    let place = |n: usize| match n {
        n if n < OURS.len() => dir.to_owned(),
        n => dir.join(format!("peer{n}")),
    };
    let places: Vec<PathBuf> = (0..ways.len()).map(place).collect();
    let mut all = Replays {
        ways: ways.iter().map(Way::unmeasured).collect(),
        bytes: reading::bytes_in(&dir.join("store/segments")),
        peak_bytes: 0,
        failed: BTreeMap::new(),
    };
    let aside = Aside::put(dir)?;
    for (way, place) in ways.iter().zip(&places).skip(OURS.len()) {
        eprintln!("{}: writing {} events", way.name, options.events);
        std::fs::create_dir(place)?;
        let mut crew = Crew::new(SEED, 0, options.sessions).with(options.bodies);
        all.attempt(way.name, || {
            (way.build)(place, &mut crew, options.events);
            0
        });
    }
    // The first time reads from the disk and counts for nobody.
    for round in 0..=options.rounds {
        for (n, (way, place)) in ways.iter().zip(&places).enumerate() {
            if all.failed.contains_key(way.name) {
                continue;
            }
            eprintln!("replay {round} of {}: {}", options.rounds, way.name);
            let began = Instant::now();
            let Some(events) = all.attempt(way.name, || (way.read)(place)) else {
                continue;
            };
            let took = began.elapsed();
            all.ways[n].events = events;
            if round > 0 {
                all.ways[n].seconds.push(took.as_secs_f64());
            }
        }
    }
    all.ways.retain(|way| !way.seconds.is_empty());
    all.peak_bytes = crate::processes::memory_of_opening(dir)?.peak_bytes;
    aside.put_back()?;
    Ok(all)
}

impl Way {
    fn unmeasured(&self) -> Replay {
        Replay {
            name: self.name,
            checks: self.checks,
            events: 0,
            seconds: Vec::new(),
        }
    }
}

impl Replays {
    /// Does something to a store that may not be able to.
    fn attempt(&mut self, name: &'static str, work: impl FnOnce() -> u64) -> Option<u64> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(events) => Some(events),
            Err(panic) => {
                self.failed.insert(name, reason(&*panic));
                None
            }
        }
    }

    /// A way that was measured.
    pub fn way(&self, name: &str) -> Option<&Replay> {
        self.ways.iter().find(|way| way.name == name)
    }
}

fn build<L: Ledger>(dir: &Path, crew: &mut Crew, events: usize) {
    /// Events of one commit.
    const TOGETHER: usize = 10_000;
    let ledger = L::open(dir, crew.seats.len() as u64);
    let mut left = events;
    while left > 0 {
        let mut writes = Vec::with_capacity(TOGETHER);
        let mut late = Vec::with_capacity(TOGETHER);
        for _ in 0..left.min(TOGETHER) {
            let step = crew.next_step();
            writes.push(Write::of(crew, &step));
            late.push(step.act == Act::Late);
            // What a store answers changes no step.
            crew.done(&step, None);
        }
        let current = ledger.commit(&writes);
        assert!(
            current
                .iter()
                .zip(&late)
                .all(|(current, late)| current != late),
            "a late write stands, or another does not"
        );
        left -= writes.len();
    }
}

fn rows<L: Ledger>(dir: &Path) -> u64 {
    let mut current: HashMap<u64, u64> = HashMap::new();
    let mut count = 0;
    L::read(dir, |session, generation| {
        current.insert(session, generation);
        count += 1;
    });
    std::hint::black_box(current);
    count
}
