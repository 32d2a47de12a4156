//! Several processes on one simulated machine, which a seed repeats: their steps are interleaved by chance, they are
//! stopped and killed, syncs fail, clocks leap by years, and at the end the power is cut. The production code, from a
//! command down to the log.
//!
//! What must hold: what was acknowledged is in the log, now and after the power cut, where it was said to be; what began
//! after another's answer stands behind it; every frame stands by the rules, generations included; whoever lives comes to
//! an end; and a command goes on.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use tenure_log::error::Error as LogError;
use tenure_log::position::Receipt;
use tenure_log::storage::sim::{Chaos, Sim, SimProcess, Survival};
use tenure_projection::core::holder::{BootId, HostId};
use tenure_projection::core::id::Time;
use tenure_projection::error::{Error as StoreError, Failure, Trace};
use tenure_projection::host::Scripted;
use tenure_projection::projector::Projector;
use tenure_projection::reader::Known;
use tenure_projection::store::{Answer, Store};

use super::play::{Ask, Tok};
use super::{Figures, Order, Outcome, crashes, for_each_seed};
use crate::hammer::Dice;

/// Commands of one process.
const COMMANDS: u64 = 6;
/// Ten years in microseconds.
const FAR: u64 = 10 * 365 * 86_400 * 1_000_000;
/// How often a store is opened before its errors count.
const PATIENCE: u32 = 200;

/// Sessions that the processes want.
const SESSIONS: [&str; 2] = ["api", "web"];

/// Runs the rig.
///
/// # Errors
/// When a part of it panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let tried = |seed: u64, figures: &mut Figures| -> Result<(), Box<dyn Error>> {
        let ran = catch_unwind(AssertUnwindSafe(|| one(seed)));
        let (counts, broken) = ran.map_err(|_| "a process panicked")?;
        figures.join(counts);
        figures.count("runs", 1);
        let named = broken
            .into_iter()
            .map(|line| format!("seed {seed}: {line}"));
        figures.violations.extend(named);
        Ok(())
    };
    let figures = for_each_seed(order.seeds(100, 10_000, 1_000_000), tried)?;
    Ok(Outcome::Ran(figures))
}

/// An answer: from which step to which it was asked for, and what it says.
#[derive(Clone, Copy, Debug)]
struct Answered {
    asked: u64,
    told: u64,
    receipt: Receipt,
}

/// What the processes of one run were told.
#[derive(Default)]
struct Told {
    answered: Vec<Answered>,
    figures: Figures,
}

/// A store over the machine's disk. Whoever meets a failed sync or a lock tries again.
fn open(process: &Arc<SimProcess>, host: &Arc<Scripted>) -> Result<Store, StoreError> {
    let once = || {
        let log = crashes::open(process.clone()).map_err(StoreError::from)?;
        Store::over(Arc::new(log), host.clone())
    };
    for _ in 0..PATIENCE {
        match once() {
            Err(StoreError::Log(error)) if passes(&error) => {}
            other => return other,
        }
    }
    once()
}

/// Whether it is an answer to try again on.
fn passes(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Busy { .. } | LogError::Poisoned { .. } | LogError::Io { .. }
    )
}

fn host() -> Arc<Scripted> {
    Arc::new(Scripted::new(HostId([7; 16]), BootId([1; 16])))
}

/// One process: it takes sessions over and writes under the tokens that it had, current or not.
fn act(
    sim: &Sim,
    process: &Arc<SimProcess>,
    mut dice: Dice,
    told: &Mutex<Told>,
) -> Result<(), StoreError> {
    let host = host();
    let mut store = open(process, &host)?;
    let mut tokens: Vec<Tok> = Vec::new();
    for _ in 0..COMMANDS {
        let ahead = dice.roll(2 * FAR).cast_signed() - FAR.cast_signed();
        host.set_now(Time(ahead));
        let name = SESSIONS[dice.roll(2) as usize];
        let own = (!tokens.is_empty()).then(|| tokens[dice.roll(tokens.len() as u64) as usize]);
        let ask = match (dice.roll(6), own) {
            (0, _) | (_, None) => Ask::Register(name, 100),
            (1, _) => Ask::Adopt(name, 100, true, None),
            (2, Some(own)) => Ask::Send(own, name, None),
            (3, Some(own)) => {
                Ask::Dispatch(if name == "api" { "one" } else { "two" }, name, Some(own))
            }
            (_, Some(own)) => Ask::Note(own),
        };
        let asked = sim.steps();
        let came = store.execute(ask.call());
        let mut told = told.lock().expect("nobody panicked under it");
        told.figures.count("commands", 1);
        let what = match came {
            Ok(done) => {
                if let Answer::Granted(grant) = &done.answer {
                    let generation = grant.token.generation.number;
                    tokens.push(Tok { name, generation });
                }
                let receipt = done.receipt;
                let told_at = sim.steps();
                told.answered.push(Answered {
                    asked,
                    told: told_at,
                    receipt,
                });
                "acknowledged"
            }
            Err(Failure::Refused(_)) => "refused",
            Err(Failure::Unknown { .. }) => "unknown",
            Err(_) => "failed",
        };
        told.figures.count(what, 1);
        drop(told);
        if matches!(what, "unknown" | "failed") {
            drop(store);
            store = open(process, &host)?;
        }
    }
    Ok(())
}

/// One run of several processes, and what it broke.
fn one(seed: u64) -> (Figures, Vec<String>) {
    let (sim, told) = (Sim::new(seed), Mutex::new(Told::default()));
    let mut dice = Dice::new(seed);
    let chaos = Chaos {
        kill_one_in: 300 + dice.roll(1_500),
        stop_one_in: 100 + dice.roll(600),
        kills_max: 2,
        fail_sync_one_in: [0, 8 + dice.roll(20)][dice.roll(2) as usize],
    };
    let processes = 2 + dice.roll(3);
    let bodies = (0..processes).map(|number| {
        let (sim, told) = (&sim, &told);
        let dice = Dice::new(seed.wrapping_mul(31) + number + 1);
        let body: Box<dyn FnOnce(Arc<SimProcess>) -> Result<(), StoreError> + Send> =
            Box::new(move |process| act(sim, &process, dice, told));
        body
    });
    let ended = sim.run(chaos, bodies.collect());
    let Told {
        answered,
        mut figures,
    } = told.into_inner().expect("nobody panicked under it");
    let mut broken = Vec::new();
    for ended in ended {
        match ended {
            None => figures.count("killed", 1),
            Some(Ok(())) => {}
            Some(Err(error)) => broken.push(format!("a process ends with {error}")),
        }
    }
    broken.extend(out_of_order(&answered));
    let cut = sim.fork();
    const SURVIVALS: [Survival; 5] = [
        Survival::Nothing,
        Survival::Everything,
        Survival::LastWrite,
        Survival::Some(1),
        Survival::Some(2),
    ];
    let survival = SURVIVALS[dice.roll(SURVIVALS.len() as u64) as usize];
    cut.cut_power(survival);
    for (place, sim) in [
        ("afterwards".to_owned(), sim),
        (format!("{survival:?} after a power cut"), cut),
    ] {
        let found = sim.run_one(|process| lacking(&process, &answered));
        let found = match found {
            Some(Ok(found)) => found,
            Some(Err(error)) => vec![format!("it does not go on: {error}")],
            None => vec!["it was killed by nobody".to_owned()],
        };
        broken.extend(found.into_iter().map(|line| format!("{place}: {line}")));
    }
    (figures, broken)
}

/// What was asked for after another's answer and stands before it (L1).
fn out_of_order(answered: &[Answered]) -> Vec<String> {
    let mut broken = Vec::new();
    for before in answered {
        for after in answered.iter().filter(|after| before.told < after.asked) {
            if after.receipt.position <= before.receipt.position {
                let (after, before) = (after.receipt.position, before.receipt.position);
                broken.push(format!("{after} was asked for when {before} was answered"));
            }
        }
    }
    broken
}

/// What of the answers is not in the log, and what does not stand there (R1, F1, F2).
fn lacking(process: &Arc<SimProcess>, answered: &[Answered]) -> Result<Vec<String>, StoreError> {
    let store = open(process, &host())?;
    let mut broken = Vec::new();
    for Answered { receipt, .. } in answered {
        let known = store.outcome(&Trace::Receipt(*receipt))?;
        if !matches!(known, Known::Done { receipt: found, .. } if found == *receipt) {
            broken.push(format!("{receipt} was acknowledged and is not there"));
        }
    }
    let mut replay = Projector::new();
    replay.read(&store, None, &mut [])?;
    if let [first, ..] = replay.findings() {
        broken.push(format!("the frame at {first} does not stand"));
    }
    if let Err(error) = store.execute(Ask::Register("doc", 100).call()) {
        broken.push(format!("a command ends with {error}"));
    }
    Ok(broken)
}
