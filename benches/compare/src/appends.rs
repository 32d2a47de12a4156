//! Durable fenced appends per second, by store and number of threads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use tenure_benches::workload::{Act, Crew, SEED};

use crate::figures::quantile;
use crate::machine::Ticks;
use crate::options::Options;
use crate::peers::{self, Peer, Place};

/// Sessions that each thread acts for.
const SEATS_PER_THREAD: usize = 16;

/// One store, one number of threads, one round.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The store's place in [`peers::all`].
    pub peer: usize,
    /// How many threads wrote.
    pub threads: usize,
    /// Appends acknowledged a second, refusals left out.
    pub per_second: f64,
    /// Appends acknowledged.
    pub appends: u64,
    /// Late writes refused.
    pub refused: u64,
    /// Appends of the thread that got the least.
    pub least_served: u64,
    /// Appends of the thread that got the most.
    pub best_served: u64,
    /// Half of the steps took no longer, in microseconds.
    pub p50_micros: f64,
    /// 99 of 100 steps took no longer, in microseconds.
    pub p99_micros: f64,
    /// The idle share of the machine meanwhile.
    pub idle: f64,
}

/// Measures every cell, round by round.
pub fn measure(options: &Options) -> io::Result<Vec<Cell>> {
    let peers = peers::all();
    let mut cells = Vec::new();
    for round in 0..options.rounds {
        for threads in &options.threads {
            for (number, peer) in peers.iter().enumerate() {
                eprintln!(
                    "round {} of {}: {threads} threads, {}",
                    round + 1,
                    options.rounds,
                    peer.name()
                );
                let mut cell = run(&**peer, *threads, options)?;
                cell.peer = number;
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

/// What one thread did.
#[derive(Default)]
struct Served {
    appends: u64,
    refused: u64,
    nanos: Vec<u64>,
    took: Duration,
}

fn run(peer: &dyn Peer, threads: usize, options: &Options) -> io::Result<Cell> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let crews: Vec<Crew> = (0..threads as u64)
        .map(|n| Crew::new(SEED, n, SEATS_PER_THREAD))
        .collect();
    let place = peer.make(scratch.path(), &crews);
    let ticks = Ticks::now()?;
    let served = serve(&*place, crews, options.duration);
    let idle = ticks.idle_since()?;
    let appends = served.iter().map(|s| s.appends).sum();
    if let Some(found) = place.count() {
        assert_eq!(
            found,
            appends,
            "{}: acknowledged and found differ",
            peer.name()
        );
    }
    let took = served.iter().map(|s| s.took).max().unwrap_or_default();
    let mut nanos: Vec<u64> = served.iter().flat_map(|s| &s.nanos).copied().collect();
    nanos.sort_unstable();
    Ok(Cell {
        peer: 0,
        threads,
        per_second: appends as f64 / took.as_secs_f64(),
        appends,
        refused: served.iter().map(|s| s.refused).sum(),
        least_served: served.iter().map(|s| s.appends).min().unwrap_or(0),
        best_served: served.iter().map(|s| s.appends).max().unwrap_or(0),
        p50_micros: quantile(&nanos, 0.5) as f64 / 1e3,
        p99_micros: quantile(&nanos, 0.99) as f64 / 1e3,
        idle,
    })
}

fn serve(place: &dyn Place, crews: Vec<Crew>, duration: Duration) -> Vec<Served> {
    let (stop, begin) = (AtomicBool::new(false), Barrier::new(crews.len() + 1));
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for crew in crews {
            scope.spawn(|| {
                let served = work(place, crew, &begin, &stop);
                all.lock().expect("nobody panicked").push(served);
            });
        }
        begin.wait();
        std::thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
    });
    all.into_inner().expect("nobody panicked")
}

fn work(place: &dyn Place, mut crew: Crew, begin: &Barrier, stop: &AtomicBool) -> Served {
    let mut hand = place.hand();
    let mut served = Served::default();
    begin.wait();
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let step = crew.next_step();
        let asked = Instant::now();
        hand.perform(&mut crew, &step);
        served.nanos.push(asked.elapsed().as_nanos() as u64);
        if step.act == Act::Late {
            served.refused += 1;
        } else {
            served.appends += 1;
        }
    }
    served.took = began.elapsed();
    served
}
