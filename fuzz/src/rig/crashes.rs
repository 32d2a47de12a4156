//! Crash states, bounded and exhaustive: every sequence of up to three operations, killed at every step of its last one,
//! the power cut with every kind of loss, and the recovery crashed again. On the simulated machine, with the production
//! code.
//!
//! What must hold of each state: it opens; what was acknowledged is there, once and in order; nothing that was said to
//! be absent is; nothing is there that nobody wrote; and an append goes on.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenure_log::error::Error as LogError;
use tenure_log::format::RulesVersion;
use tenure_log::frame::{Depth, Draft, Parts};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::position::{Head, Position, TimeMicros};
use tenure_log::storage::sim::{Fault, Sim, SimProcess, Survival};
use tenure_log::writer::site::Tuning;

use super::{Figures, Order, Outcome, side_by_side};

/// What a writer does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    /// Appends a frame.
    Append,
    /// Appends one that goes over several sectors; two of them do not fit into a segment.
    AppendLarge,
    /// Appends two in one transaction.
    AppendTwo,
    /// Appends a frame, and does not wait for its answer.
    AppendUnanswered,
    /// Begins a new life.
    Raise,
    /// Closes the store and opens it again.
    Reopen,
}

const OPERATIONS: [Operation; 6] = [
    Operation::Append,
    Operation::AppendLarge,
    Operation::AppendTwo,
    Operation::AppendUnanswered,
    Operation::Raise,
    Operation::Reopen,
];

/// How much is tried.
struct Bounds {
    operations_max: usize,
    survivals: &'static [Survival],
    /// A sequence is killed at every so many of its steps.
    kill_every: usize,
    /// A recovery is crashed at every so many of its steps.
    again_every: u64,
}

const SURVIVALS: [Survival; 9] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::LastWrite,
    Survival::Some(1),
    Survival::Some(2),
    Survival::Some(3),
    Survival::Some(4),
    Survival::Some(5),
    Survival::Some(6),
];

/// Steps of a recovery, at most, at which it is crashed again.
const RECOVERY_STEPS: u64 = 130;

/// Runs the rig.
///
/// # Errors
/// When a sequence cannot be played without a crash.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let bounds = order.tier.of(
        Bounds {
            operations_max: 2,
            survivals: &SURVIVALS[..4],
            kill_every: 5,
            again_every: 53,
        },
        Bounds {
            operations_max: 2,
            survivals: &SURVIVALS[..4],
            kill_every: 1,
            again_every: 41,
        },
        Bounds {
            operations_max: 3,
            survivals: &SURVIVALS,
            kill_every: 1,
            again_every: 7,
        },
    );
    let sequences = sequences(bounds.operations_max);
    let figures = side_by_side(&sequences, |mine| {
        let mut figures = Figures::default();
        for sequence in mine {
            figures.count("sequences", 1);
            crash_everywhere(sequence, order.seed, &bounds, &mut figures);
        }
        figures
    })?;
    Ok(Outcome::Ran(figures))
}

/// Every sequence of up to so many operations.
fn sequences(operations_max: usize) -> Vec<Vec<Operation>> {
    let mut all = vec![Vec::new()];
    let mut newest = all.clone();
    for _ in 0..operations_max {
        let longer = |sequence: &Vec<Operation>| {
            let sequence = sequence.clone();
            OPERATIONS.map(move |operation| [&sequence[..], &[operation]].concat())
        };
        newest = newest.iter().flat_map(longer).collect();
        all.extend(newest.clone());
    }
    all
}

/// What the log told of each text.
#[derive(Clone, Default)]
struct Told {
    tried: BTreeSet<String>,
    acknowledged: Vec<(String, Head)>,
    absent: BTreeSet<String>,
}

/// The store's log on the machine, made where there is none; its segments are small.
///
/// # Errors
/// As [`SegmentLog::open`].
pub(super) fn open(process: Arc<SimProcess>) -> Result<SegmentLog, LogError> {
    let tuning = Tuning {
        append_wait: Duration::from_millis(200),
        sync_wait: Duration::from_millis(200),
        segment_bytes: vec![4096 + 2048],
        fill_bytes: 256,
        ..Tuning::default()
    };
    let options = Options {
        create: true,
        rules: RulesVersion(1),
        tuning,
        ..Options::default()
    };
    SegmentLog::open(process, Path::new("/store"), options)
}

fn draft(text: &str) -> Draft {
    Draft {
        time: TimeMicros(1),
        parts: Parts {
            texts: text.as_bytes().to_vec(),
            ..Parts::default()
        },
    }
}

impl Told {
    fn append(told: &RefCell<Self>, log: &SegmentLog, texts: &[String]) -> Result<(), LogError> {
        told.borrow_mut().tried.extend(texts.iter().cloned());
        let drafts: Vec<Draft> = texts.iter().map(|text| draft(text)).collect();
        let known = log.head()?;
        let done = log.transact(known, Deadline::NEVER, &mut |_| drafts.clone());
        Self::hear(told, log, texts, done.map(|appended| appended.heads))
    }

    fn raise(told: &RefCell<Self>, log: &SegmentLog, text: &str) -> Result<(), LogError> {
        let texts = [text.to_owned()];
        told.borrow_mut().tried.extend(texts.iter().cloned());
        let known = log.head()?;
        let done = log.raise(known, Deadline::NEVER, &mut |_, _| draft(text));
        Self::hear(told, log, &texts, done.map(|appended| appended.heads))
    }

    fn hear(
        told: &RefCell<Self>,
        log: &SegmentLog,
        texts: &[String],
        done: Result<Vec<Head>, TransactError>,
    ) -> Result<(), LogError> {
        match done {
            Ok(heads) => {
                let last = heads.last().map_or(Position::ZERO, |head| head.position);
                log.wait_durable(last, Deadline::NEVER)?;
                let done = texts.iter().cloned().zip(heads);
                told.borrow_mut().acknowledged.extend(done);
                Ok(())
            }
            Err(TransactError::Failed(error)) => {
                told.borrow_mut().absent.extend(texts.iter().cloned());
                Err(error)
            }
            Err(TransactError::Unknown { source, .. }) => Err(source),
            // One process, which saw the head just now: nobody moved it.
            Err(other) => panic!("{other}"),
        }
    }

    /// What a log holds otherwise than was told.
    fn broken(&self, log: &SegmentLog) -> Result<Option<String>, LogError> {
        let mut walk = log.read_from(Position::ZERO, Depth::Whole)?;
        let (mut seen, mut heads) = (BTreeSet::new(), BTreeSet::new());
        while let Some(frame) = walk.next() {
            let frame = frame?;
            let text = String::from_utf8_lossy(frame.texts).into_owned();
            if !self.tried.contains(&text) || self.absent.contains(&text) {
                return Ok(Some(format!("{text:?} is there and must not be")));
            }
            heads.insert((text.clone(), frame.header.position));
            if !seen.insert(text.clone()) {
                return Ok(Some(format!("{text:?} is there twice")));
            }
        }
        let lost = self.acknowledged.iter().find(|(text, head)| {
            let entry = (text.clone(), head.position);
            !heads.contains(&entry)
        });
        Ok(lost.map(|(text, head)| {
            let position = head.position;
            format!("{text:?}, acknowledged at {position}, is not there")
        }))
    }
}

/// Plays a sequence; says how many steps there were before its last operation.
fn play(
    sim: &Sim,
    process: Arc<SimProcess>,
    sequence: &[Operation],
    told: &RefCell<Told>,
) -> Result<u64, LogError> {
    let mut before = 0;
    let mut log = open(process.clone())?;
    for (number, operation) in sequence.iter().enumerate() {
        before = sim.steps();
        match operation {
            Operation::Append => Told::append(told, &log, &[format!("{number}")])?,
            Operation::AppendLarge => {
                let text = format!("{number} {}", "l".repeat(1100));
                Told::append(told, &log, &[text])?;
            }
            Operation::AppendTwo => {
                let texts = [format!("{number}a"), format!("{number}b")];
                Told::append(told, &log, &texts)?;
            }
            Operation::AppendUnanswered => {
                let text = format!("{number}u");
                told.borrow_mut().tried.insert(text.clone());
                let drafts = vec![draft(&text)];
                match log.transact(log.head()?, Deadline::NEVER, &mut |_| drafts.clone()) {
                    Ok(_) => {}
                    Err(TransactError::Failed(error)) => return Err(error),
                    Err(TransactError::Unknown { source, .. }) => return Err(source),
                    Err(other) => panic!("{other}"),
                }
            }
            Operation::Raise => Told::raise(told, &log, &format!("{number} raised"))?,
            Operation::Reopen => {
                drop(log);
                log = open(process.clone())?;
            }
        }
    }
    Ok(before)
}

/// Kills the sequence at every step of its last operation, and cuts the power.
fn crash_everywhere(sequence: &[Operation], seed: u64, bounds: &Bounds, figures: &mut Figures) {
    let (sim, told) = (Sim::new(seed), RefCell::default());
    let from = sim.run_one(|process| play(&sim, process, sequence, &told));
    let from = from
        .expect("nobody kills it")
        .expect("nothing is in its way");
    let first = from + seed % bounds.kill_every as u64;
    for at in (first..sim.steps()).step_by(bounds.kill_every) {
        let (sim, told) = (Sim::new(seed), RefCell::default());
        sim.set_fault(at, Fault::Kill);
        let _ = sim.run_one(|process| play(&sim, process, sequence, &told));
        let told = told.into_inner();
        let kill = format!("{sequence:?} killed at step {at}");
        recover(&sim.fork(), &told, figures, &kill);
        for survival in bounds.survivals {
            let cut = sim.fork();
            cut.cut_power(*survival);
            let place = format!("{kill}, {survival:?}");
            recover(&cut.fork(), &told, figures, &place);
            let first = at % bounds.again_every;
            for again in (first..RECOVERY_STEPS).step_by(bounds.again_every as usize) {
                crash_again(&cut, &told, again, figures, &place);
            }
        }
    }
}

/// Kills the recovery too, and cuts the power once more.
fn crash_again(cut: &Sim, told: &Told, at: u64, figures: &mut Figures, place: &str) {
    let (sim, told) = (cut.fork(), RefCell::new(told.clone()));
    sim.set_fault(at, Fault::Kill);
    let again = ["again".to_owned()];
    let _ = sim.run_one(|process| Told::append(&told, &open(process)?, &again));
    if sim.clear_fault() {
        // It was done before.
        return;
    }
    let survival = SURVIVALS[at as usize % SURVIVALS.len()];
    sim.cut_power(survival);
    let place = format!("{place}, then killed at step {at} of the recovery, {survival:?}");
    figures.count("crashes in a recovery", 1);
    recover(&sim, &told.into_inner(), figures, &place);
}

/// Opens, judges, appends once more, judges again.
fn recover(sim: &Sim, told: &Told, figures: &mut Figures, place: &str) {
    figures.count("crash states", 1);
    let told = RefCell::new(told.clone());
    let judge = || {
        sim.run_one(|process| -> Result<Option<String>, LogError> {
            let log = open(process)?;
            if let Some(broken) = told.borrow().broken(&log)? {
                return Ok(Some(broken));
            }
            Told::append(&told, &log, &["afterwards".to_owned()])?;
            told.borrow().broken(&log)
        })
    };
    let broken = match catch_unwind(AssertUnwindSafe(judge)) {
        Ok(Some(Ok(broken))) => broken,
        Ok(Some(Err(error))) => Some(format!("it does not go on: {error}")),
        Ok(None) => Some("it was killed by nobody".to_owned()),
        Err(_) => Some("it panicked".to_owned()),
    };
    let broken = broken.map(|broken| format!("{place}: {broken}"));
    figures.violations.extend(broken);
}
