//! Random commands, asked of the product and of a small reference model of authority: both must say the same, and stand
//! the same afterwards.

use std::error::Error;
use std::sync::Arc;

use tenure_projection::core::holder::{Answer, BootId, HostId};
use tenure_projection::core::state::{EnvelopeState, State};
use tenure_projection::host::Scripted;
use tenure_projection::log::journal::memory::MemoryLog;
use tenure_projection::store::{RULES, Store};

use super::play::{self, Came};
use super::{Figures, Order, Outcome, for_each_seed};
use crate::hammer::Dice;

mod reference;

use reference::{Mail, Reference};

/// Process numbers that hold sessions.
const PIDS: [u32; 4] = [501, 502, 503, 504];
/// Commands of one life of a store.
const COMMANDS: u64 = 150;

/// Runs the rig.
///
/// # Errors
/// When a part of it panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let seeds = order.seeds(60, 600, 60_000);
    Ok(Outcome::Ran(for_each_seed(seeds, one)?))
}

fn one(seed: u64, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let host = Arc::new(Scripted::new(HostId([7; 16]), BootId([1; 16])));
    let store = Store::over(Arc::new(MemoryLog::new(RULES)), host.clone())?;
    let (mut model, mut dice) = (Reference::default(), Dice::new(seed));
    for pid in PIDS {
        turn(&host, &mut model, pid);
    }
    for number in 0..COMMANDS {
        if dice.roll(8) == 0 {
            let pid = PIDS[dice.roll(PIDS.len() as u64) as usize];
            turn(&host, &mut model, pid);
        }
        let running: Vec<u32> = PIDS.into_iter().filter(|p| model.is_running(*p)).collect();
        if running.is_empty() {
            continue;
        }
        let ask = play::draw(&mut dice, &model, &running);
        let (must, came) = (model.ask(ask), ask.of(&store)?);
        count(figures, &came);
        let told = |what: String| format!("seed {seed}, command {number}, {ask:?}: {what}");
        if must != came {
            let line = told(format!("it came to {came:?}, and must to {must:?}"));
            figures.violations.push(line);
            return Ok(());
        }
        let differs = store.view(|state| difference(state, &model))?;
        if let Some(line) = differs {
            figures.violations.push(told(line));
            return Ok(());
        }
    }
    figures.count("lives", 1);
    Ok(())
}

/// A process ends, or another one begins under its number.
fn turn(host: &Scripted, model: &mut Reference, pid: u32) {
    let turn = model.turn_process(pid);
    let answer = if model.is_running(pid) {
        Answer::Exists {
            start: Some(u64::from(turn)),
            pidfs: Some(u64::from(pid) << 32 | u64::from(turn)),
        }
    } else {
        Answer::NoSuchProcess
    };
    host.set_answer(pid, answer);
}

fn count(figures: &mut Figures, came: &Came) {
    figures.count("commands", 1);
    match came {
        Ok(_) => figures.count("done", 1),
        Err(code) => figures.count(code, 1),
    }
}

/// What the product's state says otherwise than the model.
fn difference(state: &State, model: &Reference) -> Option<String> {
    for (name, generation, is_active) in model.standing() {
        let number = state.find(name.as_bytes());
        let found = number.and_then(|n| {
            Some((
                state.session(n)?.generation.number,
                !state.session(n)?.retired,
            ))
        });
        if found != Some((generation, is_active)) {
            return Some(format!(
                "{name} stands at {found:?}, and must at {generation}, active {is_active}"
            ));
        }
    }
    for (index, (mail, generation)) in model.mail().into_iter().enumerate() {
        let number = tenure_projection::core::id::EnvelopeNo(index as u64 + 1);
        let found = state.envelope(number).map(|row| {
            let mail = match row.state {
                EnvelopeState::Pending => Mail::Pending,
                EnvelopeState::Delivered => Mail::Delivered,
                EnvelopeState::Acknowledged => Mail::Acknowledged,
                EnvelopeState::Cancelled => Mail::Cancelled,
            };
            (mail, row.generation.number)
        });
        if found != Some((mail, generation)) {
            return Some(format!(
                "{number} stands at {found:?}, and must at {mail:?} of {generation}"
            ));
        }
    }
    None
}
