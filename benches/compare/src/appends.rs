//! Durable fenced appends per second, by store and number of threads; and in batches.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure_benches::machine::Ticks;

use crate::drive::{SEATS_PER_THREAD, Served, crews, drive, drive_ahead};
use crate::options::{Options, Part};
use crate::peers::{self, Peer};

/// Events of one commit in the batches.
pub const TOGETHER: usize = 100;

/// How a store was written to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// So many threads, one event a call.
    Threads(usize),
    /// One thread, [`TOGETHER`] events a commit.
    Batch,
    /// As before, and the next commit is on its way before the last one is answered.
    Ahead,
    /// So many processes, one event a call.
    Processes(usize),
}

/// One store, one way, one round.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The store's name.
    pub peer: &'static str,
    /// How it was written to.
    pub way: Way,
    /// What came of it.
    pub served: Served,
    /// The idle share of the machine meanwhile.
    pub idle: f64,
}

/// Everything that was measured, and what could not be.
#[derive(Default)]
pub struct Appends {
    /// Every cell.
    pub cells: Vec<Cell>,
    /// Stores that failed, each with the reason.
    pub failed: BTreeMap<&'static str, String>,
}

/// Measures every cell, round by round.
pub fn measure(options: &Options) -> io::Result<Appends> {
    let mut ways = Vec::new();
    if options.wants(Part::Appends) {
        ways.extend(options.threads.iter().map(|n| Way::Threads(*n)));
    }
    if options.wants(Part::Batches) {
        ways.extend([Way::Batch, Way::Ahead]);
    }
    if options.wants(Part::Processes) {
        ways.extend(options.processes.iter().map(|n| Way::Processes(*n)));
    }
    let peers = options.chosen(peers::all());
    let mut all = Appends::default();
    for round in 1..=options.rounds {
        for way in &ways {
            for peer in &peers {
                let shared = matches!(way, Way::Processes(_));
                let several = [peers::OURS, peers::SQLITE_USED].contains(&peer.name());
                let waits = *way == Way::Ahead && !peer.goes_ahead();
                if waits || (shared && !several) || all.failed.contains_key(peer.name()) {
                    continue;
                }
                eprintln!(
                    "round {round} of {}: {way:?}, {}",
                    options.rounds,
                    peer.name()
                );
                all.take(&**peer, *way, options)?;
            }
        }
    }
    Ok(all)
}

impl Appends {
    /// Measures one cell; a store that cannot do it is left out from then on, unless it is ours.
    fn take(&mut self, peer: &dyn Peer, way: Way, options: &Options) -> io::Result<()> {
        let ticks = Ticks::now()?;
        let run = AssertUnwindSafe(|| match way {
            Way::Threads(threads) => run(peer, threads, 1, options),
            Way::Batch => run(peer, 1, TOGETHER, options),
            Way::Ahead => run_ahead(peer, options),
            Way::Processes(count) => crate::processes::run(peer, count, options),
        });
        let served = if peer.name() == peers::OURS {
            run.0()?
        } else {
            match catch_unwind(run) {
                Ok(served) => served?,
                Err(panic) => {
                    self.failed.insert(peer.name(), reason(&*panic));
                    return Ok(());
                }
            }
        };
        let idle = ticks.idle_since()?;
        self.cells.push(Cell {
            peer: peer.name(),
            way,
            served,
            idle,
        });
        Ok(())
    }
}

/// What a panic said.
pub fn reason(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

fn run(peer: &dyn Peer, threads: usize, together: usize, options: &Options) -> io::Result<Served> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let seats = SEATS_PER_THREAD.max(together);
    let crews = crews(threads, seats, options.bodies);
    let place = peer.make(scratch.path(), &crews);
    let served = drive(&*place, crews, together, options.duration);
    served.stands_in(peer, place);
    Ok(served)
}

/// One thread with two commits on their way.
fn run_ahead(peer: &dyn Peer, options: &Options) -> io::Result<Served> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    // Each commit is of other seats than the one before it, which is not answered yet.
    let crews = crews(1, 2 * TOGETHER, options.bodies);
    let place = peer.make(scratch.path(), &crews);
    let served = drive_ahead(&*place, crews, TOGETHER, options.duration);
    served.stands_in(peer, place);
    Ok(served)
}
