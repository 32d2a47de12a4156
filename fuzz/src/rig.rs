//! The rigs, and what a run of one says. Names, promises and tiers stand in `docs/reliability.md`.

use std::error::Error;
use std::iter;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::hammer::{self, Dice, Plan};

pub mod clock;
pub mod corruption;
pub mod crashes;
pub mod faults;
pub mod fuzz;
pub mod histories;
pub mod model;
pub mod oom;
pub mod outside;
pub mod page;
pub mod pids;
pub mod play;
pub mod power;
pub mod scenario;
pub mod simulation;
pub mod stops;
pub mod trace;
pub mod zoo;

/// How much is tried: a sample within seconds, one within minutes, or everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// With the ordinary tests.
    Sample,
    /// Before something lands.
    Minutes,
    /// By hand, before a release.
    Whole,
}

impl Tier {
    /// From its number, 0 to 2.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Sample, Self::Minutes, Self::Whole]
            .get(usize::from(number))
            .copied()
    }

    /// What goes with it: of a sample, of minutes, of everything.
    fn of<T>(self, sample: T, minutes: T, whole: T) -> T {
        match self {
            Self::Sample => sample,
            Self::Minutes => minutes,
            Self::Whole => whole,
        }
    }
}

/// What a rig is asked to do.
#[derive(Clone, Debug)]
pub struct Order {
    /// How much.
    pub tier: Tier,
    /// Seed of every random choice.
    pub seed: u64,
    /// The `tenure` program that is tried.
    pub program: PathBuf,
    /// This program, which a rig starts again as its worker.
    pub itself: PathBuf,
}

impl Order {
    /// As many of the points as the tier has time for, drawn by the seed: all of them where everything is tried.
    fn draw<P>(&self, mut points: Vec<P>, sample: usize, minutes: usize) -> Vec<P> {
        let most = self.tier.of(sample, minutes, usize::MAX);
        let mut dice = Dice::new(self.seed);
        while points.len() > most {
            points.swap_remove(dice.roll(points.len() as u64) as usize);
        }
        points
    }

    /// Seeds that follow from this one, as many as the tier has time for.
    fn seeds(&self, sample: u64, minutes: u64, whole: u64) -> Range<u64> {
        let first = self.seed.wrapping_mul(1_000_003);
        first..first + self.tier.of(sample, minutes, whole)
    }
}

/// Tries every point on as many threads as there are processors, each the next one that nobody has taken.
///
/// # Errors
/// When a thread panics.
fn side_by_side<P: Sync>(
    points: &[P],
    part: impl Fn(&mut dyn Iterator<Item = &P>) -> Figures + Sync,
) -> Result<Figures, Box<dyn Error>> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let parts: Vec<_> = thread::scope(|scope| {
        let (part, next) = (&part, &next);
        let started: Vec<_> = (0..workers)
            .map(|_| {
                let mut mine = iter::from_fn(move || points.get(next.fetch_add(1, Relaxed)));
                scope.spawn(move || part(&mut mine))
            })
            .collect();
        started.into_iter().map(|part| part.join()).collect()
    });
    let mut figures = Figures::default();
    for part in parts {
        figures.join(part.map_err(|_| "a part of the run panicked")?);
    }
    // Which thread found what is chance.
    figures.violations.sort();
    Ok(figures)
}

/// Runs once for every seed, on as many threads as there are processors; what ends a run otherwise than well is found.
///
/// # Errors
/// When a thread panics.
fn for_each_seed(
    seeds: impl Iterator<Item = u64>,
    one: impl Fn(u64, &mut Figures) -> Result<(), Box<dyn Error>> + Sync,
) -> Result<Figures, Box<dyn Error>> {
    let seeds: Vec<u64> = seeds.collect();
    side_by_side(&seeds, |mine| {
        let mut figures = Figures::default();
        for seed in mine {
            if let Err(error) = one(*seed, &mut figures) {
                figures
                    .violations
                    .push(format!("seed {seed} ended: {error}"));
            }
        }
        figures
    })
}

/// What was tried, how often, and what was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Counts by name, in the order in which a page shows them.
    pub tried: Vec<(String, u64)>,
    /// A line for each promise that was broken: what was done, and what came of it.
    pub violations: Vec<String>,
}

impl Figures {
    /// Counts one more of that name.
    pub fn count(&mut self, name: &str, by: u64) {
        match self.tried.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += by,
            None => self.tried.push((name.to_owned(), by)),
        }
    }

    /// Adds what another part of the run found.
    pub fn join(&mut self, other: Self) {
        for (name, count) in other.tried {
            self.count(&name, count);
        }
        self.violations.extend(other.violations);
    }
}

/// How a rig's run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It ran.
    Ran(Figures),
    /// It did not run, and why.
    Skipped(String),
}

/// What a rig needs of the runner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing else.
    Nothing,
    /// The `tenure` program, which it starts.
    Program,
    /// That a panic unwinds: it is what the rig looks for, or how the simulator ends a process.
    Unwinding,
}

impl Needs {
    /// Why a rig that needs it cannot run in this program; none where it can.
    #[must_use]
    pub fn lacking(self) -> Option<&'static str> {
        let is_lacking = self == Self::Unwinding && cfg!(panic = "abort");
        is_lacking.then_some("a panic ends this program: build it with --profile rigs")
    }
}

/// A way of trying to break a promise.
#[derive(Clone, Copy)]
pub struct Rig {
    /// Its name on the command line and in the page.
    pub name: &'static str,
    /// What it does and what must hold.
    pub shows: &'static str,
    /// What has to be there.
    pub needs: Needs,
    /// Runs it.
    pub run: fn(&Order) -> Result<Outcome, Box<dyn Error>>,
}

/// Every rig of the runner.
pub const RIGS: &[Rig] = &[
    Rig {
        name: "hammer",
        shows: "writers on one store, killed and stopped at random: nothing acknowledged is lost or doubled, nothing stale is in the log",
        run: hammered,
        needs: Needs::Nothing,
    },
    Rig {
        name: "syscalls",
        shows: "every system call of a story of commands fails, is interrupted or is where the process dies: an answer is true, and the command repeated ends as it should",
        run: faults::run,
        needs: Needs::Program,
    },
    Rig {
        name: "stops",
        shows: "a writer is stopped at every system call, taken over and continued: it is in the log before the takeover or refused",
        run: stops::run,
        needs: Needs::Program,
    },
    Rig {
        name: "corruption",
        shows: "every way in which the bytes of a store at rest can be changed: found, never taken for a torn tail, and salvaged without loss of what is whole",
        run: corruption::run,
        needs: Needs::Nothing,
    },
    Rig {
        name: "crashes",
        shows: "every sequence of up to three operations, killed at every step, every state of the disk that a power cut can leave, recoveries crashed again: nothing acknowledged is lost",
        run: crashes::run,
        needs: Needs::Unwinding,
    },
    Rig {
        name: "simulation",
        shows: "several processes on a simulated machine, their steps interleaved by a seed, killed and stopped, with failed syncs, clocks that leap and a power cut: nothing acknowledged is lost or out of order",
        run: simulation::run,
        needs: Needs::Unwinding,
    },
    Rig {
        name: "model",
        shows: "random commands, asked of the product and of a small reference model: the same answers, the same state",
        run: model::run,
        needs: Needs::Nothing,
    },
    Rig {
        name: "histories",
        shows: "what several processes asked and were told, killed and stopped meanwhile: linearizable, with the log as the order",
        run: histories::run,
        needs: Needs::Nothing,
    },
    Rig {
        name: "power",
        shows: "the file system is shut down under its writers and mounted again, ext4 and XFS: every note ever acknowledged is there",
        run: power::run,
        needs: Needs::Nothing,
    },
    Rig {
        name: "clock",
        shows: "the same commands where the clock stands and where it leaps by years: the same answers",
        run: clock::run,
        needs: Needs::Nothing,
    },
    Rig {
        name: "pids",
        shows: "process numbers given out again, and holders in another namespace: gone is gone, and unknowable is never dead",
        run: pids::run,
        needs: Needs::Program,
    },
    Rig {
        name: "fuzz",
        shows: "everything that decodes, on files of a corpus changed by chance: no panic, no request for memory that has no bound, and what each target asserts",
        run: fuzz::run,
        needs: Needs::Unwinding,
    },
    Rig {
        name: "outside",
        shows: "arguments, payloads of hooks and requests, changed by chance: a documented end, an answer that is one, and nothing printed that a terminal obeys",
        run: outside::run,
        needs: Needs::Program,
    },
    Rig {
        name: "oom",
        shows: "every request for memory of a story of commands gets none: what the process left is as after a crash, and no length of the input becomes a request",
        run: oom::run,
        needs: Needs::Nothing,
    },
    Rig {
        name: "zoo",
        shows: "forty-one known bugs, planted one at a time: each is caught by what has to catch it",
        run: zoo::run,
        needs: Needs::Nothing,
    },
];

/// A run of a rig as JSON: the commit and seed that repeat it, where it ran, what was tried and what was found.
#[must_use]
pub fn said(rig: &Rig, order: &Order, outcome: &Outcome, took: Duration) -> Value {
    let git = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = git.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    let mut value = json!({
        "schema": "tenure.rig.v1",
        "rig": rig.name,
        "tier": order.tier as u8,
        "seed": order.seed,
        "commit": commit.unwrap_or_default(),
        "machine": {
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "kernel": kernel.unwrap_or_default().trim(),
        },
        "seconds": took.as_secs(),
    });
    match outcome {
        Outcome::Ran(figures) => {
            let tried = figures.tried.iter();
            value["tried"] = tried
                .map(|(name, count)| (name.clone(), json!(count)))
                .collect();
            value["violations"] = json!(figures.violations);
        }
        Outcome::Skipped(reason) => value["skipped"] = json!(reason),
    }
    value
}

fn hammered(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let seconds = order.tier.of(2, 5, 900);
    let mut figures = Figures::default();
    for (processes, threads) in [(2, 1), (8, 1), (1, 64)] {
        let room = tempfile::tempdir()?;
        let plan = Plan {
            program: order.itself.clone(),
            store: hammer::store_in(room.path()),
            processes,
            threads,
            time: Duration::from_secs(seconds),
            kill_every: Duration::from_millis(300),
            stop_every: Duration::from_millis(2000),
            seed: order.seed,
        };
        let tally = hammer::run(&plan)?;
        let report = hammer::judge(&plan.store, &tally)?;
        figures.count("acknowledged", tally.acknowledged.len() as u64);
        figures.count("refused as stale", tally.refused);
        figures.count("unknown", tally.unknown);
        figures.count("kills", tally.kills.into());
        figures.count("stops", tally.stops.into());
        figures.count("frames", report.frames);
        let broken = report.violations.into_iter().chain(tally.failures);
        let named = broken.map(|line| format!("{processes} x {threads}: {line}"));
        figures.violations.extend(named);
    }
    Ok(Outcome::Ran(figures))
}
