//! Histories of several processes on one store, killed and stopped at random, checked for linearizability: real time
//! included, with the log as the order, and as the oracle for what nobody was told of.
//!
//! Every operation that was carried out stands in the log under its own name, so its place in the order is known. What
//! is left to check: that the place lies between the call and the answer as others saw them; that each answer is the one
//! that the order gives; that a refusal was true at some moment between its call and its answer; and that nothing stands
//! there twice, or was refused.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use super::{Figures, Order, Outcome, for_each_seed};
use crate::hammer::Dice;

mod check;
mod player;
mod recorded;

pub use player::play_if_ordered;
use recorded::{History, record};

/// Runs the rig.
///
/// # Errors
/// When a part of it panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let tried = |seed: u64, figures: &mut Figures| -> Result<(), Box<dyn Error>> {
        let room = tempfile::tempdir()?;
        let store = room.path().join("store");
        let history = one(&order.itself, &store, &mut Dice::new(seed))?;
        figures.count("histories", 1);
        figures.count("operations", history.operations.len() as u64);
        figures.count("killed", history.kills);
        figures.count("stopped", history.stops);
        let broken = check::check(&history, &store, figures)?.into_iter();
        let named = broken.map(|line| format!("seed {seed}: {line}"));
        figures.violations.extend(named);
        Ok(())
    };
    let figures = for_each_seed(order.seeds(4, 60, 20_000), tried)?;
    Ok(Outcome::Ran(figures))
}

fn one(program: &Path, store: &Path, dice: &mut Dice) -> Result<History, Box<dyn Error>> {
    let players = 2 + dice.roll(3) as u32;
    let time = Duration::from_millis(150 + dice.roll(250));
    record(program, store, players, time, dice)
}
