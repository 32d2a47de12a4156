//! Runs a configuration and says what it found.

use std::fmt::Write;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use super::branch::Branch;
use super::protocol::Protocol;
use super::rules::{Bounds, Rules};
use super::state::Broken;

/// Whether the larger bounds are asked for.
pub fn large() -> bool {
    std::env::var("TENURE_MODEL_BOUNDS").is_ok_and(|bounds| bounds == "large")
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Every state within the bounds: no promise is broken, and each of the branches is taken.
pub fn holds(name: &str, bounds: Bounds, branches: &[Branch]) {
    holds_by(name, Rules::PROTOCOL, bounds, branches);
}

/// A second guard switched back: the first one holds.
pub fn holds_without(name: &str, switch: impl FnOnce(&mut Rules), bounds: Bounds) {
    let mut rules = Rules::PROTOCOL;
    switch(&mut rules);
    holds_by(name, rules, bounds, &[]);
}

fn holds_by(name: &str, rules: Rules, bounds: Bounds, branches: &[Branch]) {
    let model = Protocol::new(rules, bounds, true);
    let watched = model.watched();
    let begun = Instant::now();
    let checker = model
        .checker()
        .threads(threads())
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f32(),
    );
    if let Some((property, path)) = checker.discoveries().into_iter().next() {
        panic!(
            "{name}: not so: {property}\n{}",
            steps(&path.into_actions())
        );
    }
    for &branch in branches {
        assert!(
            watched.took(branch),
            "{name}: no path reaches {branch:?}, the bounds show too little"
        );
    }
}

/// One part switched back: the promise is broken. Prints the shortest path to it.
pub fn breaks(switch: impl FnOnce(&mut Rules), bounds: Bounds, broken: Broken) {
    let mut rules = Rules::PROTOCOL;
    switch(&mut rules);
    let until = HasDiscoveries::AnyOf([broken.promise()].into());
    let checker = Protocol::new(rules, bounds, false)
        .checker()
        .finish_when(until)
        .spawn_bfs()
        .join();
    let states = checker.unique_state_count();
    let path = checker.discovery(broken.promise());
    let path =
        path.unwrap_or_else(|| panic!("{states} states, and it is so: {}", broken.promise()));
    println!(
        "{states} states; not so: {}\n{}",
        broken.promise(),
        steps(&path.into_actions())
    );
}

fn steps(actions: &[impl std::fmt::Debug]) -> String {
    actions
        .iter()
        .enumerate()
        .fold(String::new(), |mut text, (i, action)| {
            writeln!(text, "  {:2} {action:?}", i + 1).expect("a string takes everything");
            text
        })
}
