//! Crash states, bounded and exhaustive: every sequence of up to three operations, killed before every step of its last
//! one; and for each such moment every state of the disk that a cut of the power can leave. Recoveries are crashed in the
//! same way. On the simulated machine, with the production code.
//!
//! What must hold of each state: it opens; what was acknowledged is there, once and in order; nothing is there that
//! nobody wrote; and an append goes on.
//!
//! A state is the bytes of every file, the names, the boot, and what the writer had been told. Whoever opens equal states
//! does the same, so equal ones of a sequence are judged once: both counts are given.

use std::collections::HashSet;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure_log::error::Error as LogError;
use tenure_log::storage::sim::{CrashState, KillPoint, Losses, Sim, StateId};

use super::{Figures, Order, Outcome, Tier, side_by_side};
use crate::hammer::Dice;

mod told;

pub(super) use told::open;
use told::{OPERATIONS, Operation, Told, play};

/// How much is tried.
struct Bounds {
    operations_max: usize,
    /// A sequence is killed before every so many of the steps that changed something.
    kill_every: usize,
    /// So many states of the disk are made for one set of names at one kill point: all of them if they are no more, else
    /// some by chance.
    states_max: usize,
    /// One recovery in so many is crashed again.
    again_one_in: u64,
    /// As `states_max`, of a crash in a recovery.
    again_states_max: usize,
}

/// Runs the rig.
///
/// # Errors
/// When a thread panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let bounds = order.tier.of(
        Bounds {
            operations_max: 2,
            kill_every: 5,
            states_max: 32,
            again_one_in: 300,
            again_states_max: 6,
        },
        Bounds {
            operations_max: 2,
            kill_every: 1,
            states_max: 128,
            again_one_in: 200,
            again_states_max: 24,
        },
        Bounds {
            operations_max: 3,
            kill_every: 1,
            states_max: 16_384,
            again_one_in: 3,
            again_states_max: 256,
        },
    );
    let sequences = sequences(bounds.operations_max);
    let figures = side_by_side(&sequences, |mine| {
        let mut figures = Figures::default();
        for sequence in mine {
            Crashes::new(sequence, order.seed, &bounds).everywhere(&mut figures);
            if order.tier == Tier::Whole {
                let so_far = figures
                    .tried
                    .iter()
                    .map(|(name, count)| format!("{count} {name}"));
                eprintln!(
                    "{sequence:?} done: {}",
                    so_far.collect::<Vec<_>>().join(", ")
                );
            }
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

/// How often things were done.
#[derive(Default)]
struct Counts {
    kill_points: u64,
    states: u64,
    distinct: u64,
    crashed_again: u64,
    again_states: u64,
    again_distinct: u64,
}

/// The crashes of one sequence.
struct Crashes<'r> {
    sequence: &'r [Operation],
    seed: u64,
    bounds: &'r Bounds,
    dice: Dice,
    /// What was told when: a state is known by the number of its entry.
    told: Vec<Told>,
    seen: HashSet<(StateId, usize)>,
    counts: Counts,
    violations: Vec<String>,
}

/// How a state came about.
#[derive(Clone, Copy)]
enum Way<'w> {
    Killed,
    Cut(usize, &'w [u32]),
}

/// Where a run was crashed: before which step, and of which recovery.
#[derive(Clone, Copy)]
struct Place<'p> {
    step: u64,
    recovery_of: Option<&'p str>,
}

impl<'r> Crashes<'r> {
    fn new(sequence: &'r [Operation], seed: u64, bounds: &'r Bounds) -> Self {
        let number = sequence
            .iter()
            .fold(seed.wrapping_mul(1_000_003), |number, operation| {
                number.wrapping_mul(31).wrapping_add(*operation as u64 + 1)
            });
        Self {
            sequence,
            seed,
            bounds,
            dice: Dice::new(number),
            told: Vec::new(),
            seen: HashSet::new(),
            counts: Counts::default(),
            violations: Vec::new(),
        }
    }

    /// Kills the sequence at every step of its last operation, and at its end.
    fn everywhere(mut self, figures: &mut Figures) {
        let (sim, mut told) = (Sim::new(self.seed), Told::default());
        sim.record();
        let played = sim.run_one(|process| play(&sim, process, self.sequence, &mut told));
        match played {
            Some(Ok(from)) => {
                let points = sim.recorded();
                let points = points.iter().filter(|point| point.step() >= from);
                self.each(points, &told, None);
            }
            Some(Err(error)) => self
                .violations
                .push(format!("{:?} ends without a crash: {error}", self.sequence)),
            None => unreachable!("nobody kills it"),
        }
        let counts = self.counts;
        figures.count("sequences", 1);
        figures.count("kill points", counts.kill_points);
        figures.count("crash states", counts.states);
        figures.count("distinct of them", counts.distinct);
        figures.count("recoveries crashed again", counts.crashed_again);
        figures.count("crash states in a recovery", counts.again_states);
        figures.count("distinct of these", counts.again_distinct);
        figures.violations.extend(self.violations);
    }

    /// Every kill point at which something is otherwise than at the one before it.
    fn each<'p>(
        &mut self,
        points: impl Iterator<Item = &'p KillPoint>,
        told: &Told,
        recovery_of: Option<&str>,
    ) {
        let mut last: Option<(&KillPoint, Told)> = None;
        let mut number = self.seed as usize;
        for point in points {
            let heard = told.before(point.step());
            if last
                .as_ref()
                .is_some_and(|(before, told)| point.is_as(before) && *told == heard)
            {
                continue;
            }
            number += 1;
            if recovery_of.is_some() || number.is_multiple_of(self.bounds.kill_every) {
                let step = point.step();
                self.at(point, &heard, Place { step, recovery_of });
            }
            last = Some((point, heard));
        }
    }

    /// Every state that a crash at this point can leave.
    fn at(&mut self, point: &KillPoint, told: &Told, place: Place<'_>) {
        let known = self.told.iter().position(|known| known == told);
        let told = known.unwrap_or_else(|| {
            self.told.push(told.clone());
            self.told.len() - 1
        });
        self.counts.kill_points += u64::from(place.recovery_of.is_none());
        self.judge(&point.killed(), told, place, Way::Killed);
        let states_max = match place.recovery_of {
            None => self.bounds.states_max,
            Some(_) => self.bounds.again_states_max,
        };
        for (naming, losses) in point.losses().iter().enumerate() {
            for digits in choose(losses, states_max, &mut self.dice) {
                let state = losses.state(&digits);
                self.judge(&state, told, place, Way::Cut(naming, &digits));
            }
        }
    }

    /// Has the state recovered and judged, unless an equal one was; some recoveries are crashed in turn.
    fn judge(&mut self, state: &CrashState, told: usize, place: Place<'_>, way: Way<'_>) {
        let is_first = place.recovery_of.is_none();
        let is_new = self.seen.insert((state.id, told));
        let counts = match is_first {
            true => [&mut self.counts.states, &mut self.counts.distinct],
            false => [
                &mut self.counts.again_states,
                &mut self.counts.again_distinct,
            ],
        };
        let [states, distinct] = counts;
        *states += 1;
        if !is_new {
            return;
        }
        *distinct += 1;
        let sim = state.start();
        let crashes = is_first && self.dice.roll(self.bounds.again_one_in) == 0;
        if crashes {
            sim.record();
        }
        let mut told = self.told[told].clone();
        let broken = recover(&sim, &mut told);
        if broken.is_none() && !crashes {
            return;
        }
        let described = self.describe(place, way);
        if let Some(broken) = broken {
            self.violations.push(format!("{described}: {broken}"));
        } else {
            self.counts.crashed_again += 1;
            self.each(sim.recorded().iter(), &told, Some(&described));
        }
    }

    fn describe(&self, place: Place<'_>, way: Way<'_>) -> String {
        let way = match way {
            Way::Killed => "nothing lost".to_owned(),
            Way::Cut(naming, digits) => format!("power cut, names {naming}, kept {digits:?}"),
        };
        let step = place.step;
        match place.recovery_of {
            None => format!("{:?} killed at step {step}, {way}", self.sequence),
            Some(first) => format!("{first}; its recovery killed at step {step}, {way}"),
        }
    }
}

/// The digits of the states that are made: all there are, or so many of them; and each sector torn once in each way.
fn choose(losses: &Losses, states_max: usize, dice: &mut Dice) -> Vec<Vec<u32>> {
    let (radices, moments) = (losses.radices(), losses.moments());
    let (least, most) = (
        vec![0; radices.len()],
        moments.last().cloned().unwrap_or_default(),
    );
    let every = radices.iter().try_fold(1_usize, |count, radix| {
        count
            .checked_mul(*radix as usize)
            .filter(|count| *count <= states_max)
    });
    let mut chosen = match every {
        Some(count) => (0..count)
            .map(|number| digits_of(number, &radices))
            .collect(),
        None => {
            let mut chosen = moments;
            chosen.truncate(states_max);
            while chosen.len() < states_max {
                let drawn = radices
                    .iter()
                    .map(|radix| dice.roll(u64::from(*radix)) as u32);
                chosen.push(drawn.collect());
            }
            chosen
        }
    };
    let mut torn = Vec::new();
    for (place, count) in losses.torn().iter().enumerate() {
        for kind in 0..*count {
            for others in [&least, &most] {
                let mut digits = others.clone();
                digits[place] = radices[place] + kind;
                torn.push(digits);
            }
        }
    }
    let step = torn.len().div_ceil(states_max).max(1);
    chosen.extend(torn.into_iter().step_by(step));
    chosen
}

fn digits_of(mut number: usize, radices: &[u32]) -> Vec<u32> {
    let digit = |radix: &u32| {
        let digit = number % *radix as usize;
        number /= *radix as usize;
        digit as u32
    };
    radices.iter().map(digit).collect()
}

/// Opens, judges, appends once more, judges again; what does not hold.
fn recover(sim: &Sim, told: &mut Told) -> Option<String> {
    let text = [told.afterwards()];
    let judge = || {
        sim.run_one(|process| -> Result<Option<String>, LogError> {
            let log = open(process)?;
            if let Some(broken) = told.broken(&log)? {
                return Ok(Some(broken));
            }
            told.append(sim, &log, &text)?;
            told.broken(&log)
        })
    };
    match catch_unwind(AssertUnwindSafe(judge)) {
        Ok(Some(Ok(broken))) => broken,
        Ok(Some(Err(error))) => Some(format!("it does not go on: {error}")),
        Ok(None) => unreachable!("nobody kills it"),
        Err(_) => Some("it panicked".to_owned()),
    }
}
