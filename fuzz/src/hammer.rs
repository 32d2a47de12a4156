//! The hammer: many processes and threads on one store, killed and stopped at random, and the log judged
//! afterwards.
//!
//! Every worker writes notes with numbers of its own, takes sessions over from the others, and prints each
//! acknowledgement only after the store gave it. Afterwards the log must hold every acknowledged note exactly
//! once and at the position acknowledged, no note twice, positions without gaps, and no event of a generation
//! that was stale at its position (R1, R2, R3, F1, F4).

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

mod judge;
pub mod worker;

pub use judge::{Report, judge};

/// What to do, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program that runs a worker: this one, or the test's.
    pub program: PathBuf,
    /// The store's directory.
    pub store: PathBuf,
    /// Worker processes at a time.
    pub processes: u32,
    /// Threads in each.
    pub threads: u32,
    /// How long.
    pub time: Duration,
    /// Random kills, on average so far apart; none at zero.
    pub kill_every: Duration,
    /// Random stops of half a second to three seconds, on average so far apart; none at zero.
    pub stop_every: Duration,
    /// Seed of the random choices.
    pub seed: u64,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Every acknowledged note: its number and the position given.
    pub acknowledged: HashMap<u64, u64>,
    /// Workers killed.
    pub kills: u32,
    /// Workers stopped and continued.
    pub stops: u32,
    /// Writes refused as stale.
    pub refused: u64,
    /// Answers "it may have happened".
    pub unknown: u64,
    /// Lines of workers that failed.
    pub failures: Vec<String>,
    /// Fewest and most acknowledgements of one worker that was never killed or stopped.
    pub spread: Option<(u64, u64)>,
}

/// A small generator, so that a seed repeats a run's choices (xorshift64*).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// The next number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % sides.max(1)
    }
}

/// A worker as the hammer sees it.
struct Worker {
    child: Child,
    number: u32,
    touched: bool,
    resume_at: Option<Instant>,
}

/// A line that a worker printed.
struct Line {
    worker: u32,
    text: String,
}

fn spawn(plan: &Plan, number: u32, lines: &Sender<Line>) -> io::Result<Worker> {
    let mut child = Command::new(&plan.program)
        .env(
            worker::ORDER,
            worker::order(&plan.store, number, plan.threads),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().expect("standard output is piped");
    let lines = lines.clone();
    std::thread::spawn(move || {
        // A killed worker's last line may be cut; a line counts only when it ends.
        let mut reader = BufReader::new(out);
        let mut text = String::new();
        while reader.read_line(&mut text).is_ok_and(|n| n > 0) {
            if text.ends_with('\n')
                && lines
                    .send(Line {
                        worker: number,
                        text: text.trim_end().into(),
                    })
                    .is_err()
            {
                break;
            }
            text.clear();
        }
    });
    Ok(Worker {
        child,
        number,
        touched: false,
        resume_at: None,
    })
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// Runs the plan.
///
/// # Errors
/// When a worker cannot be started.
pub fn run(plan: &Plan) -> io::Result<Tally> {
    let (sender, receiver) = channel();
    let mut dice = Dice::new(plan.seed);
    let mut tally = Tally::default();
    let mut by_worker: HashMap<u32, u64> = HashMap::new();
    let mut next_number = plan.processes;
    let mut workers = (0..plan.processes)
        .map(|number| spawn(plan, number, &sender))
        .collect::<io::Result<Vec<_>>>()?;
    let end = Instant::now() + plan.time;
    let mut kill_at = due(plan.kill_every, &mut dice);
    let mut stop_at = due(plan.stop_every, &mut dice);
    while Instant::now() < end {
        collect(
            &receiver,
            &mut tally,
            &mut by_worker,
            Duration::from_millis(5),
        );
        let now = Instant::now();
        for worker in workers
            .iter_mut()
            .filter(|w| w.resume_at.is_some_and(|at| at <= now))
        {
            signal(&worker.child, Signal::CONT);
            worker.resume_at = None;
        }
        if kill_at.is_some_and(|at| at <= now) {
            let victim = dice.roll(workers.len() as u64) as usize;
            let mut worker =
                std::mem::replace(&mut workers[victim], spawn(plan, next_number, &sender)?);
            next_number += 1;
            if let Some(status) = worker.child.try_wait()? {
                let number = worker.number;
                tally
                    .failures
                    .push(format!("worker {number} had ended with {status}"));
            }
            worker.child.kill()?;
            worker.child.wait()?;
            by_worker.remove(&worker.number);
            tally.kills += 1;
            kill_at = due(plan.kill_every, &mut dice);
        }
        if stop_at.is_some_and(|at| at <= now) {
            let victim = dice.roll(workers.len() as u64) as usize;
            signal(&workers[victim].child, Signal::STOP);
            workers[victim].touched = true;
            workers[victim].resume_at = Some(now + Duration::from_millis(500 + dice.roll(2500)));
            tally.stops += 1;
            stop_at = due(plan.stop_every, &mut dice);
        }
    }
    finish(workers, &receiver, sender, &mut tally, &mut by_worker)?;
    Ok(tally)
}

/// The next time that something is due; on average `every` from now.
fn due(every: Duration, dice: &mut Dice) -> Option<Instant> {
    let micros = every.as_micros() as u64;
    (micros > 0).then(|| Instant::now() + Duration::from_micros(dice.roll(2 * micros)))
}

/// Lets every worker end by itself, and takes in what they still say.
fn finish(
    mut workers: Vec<Worker>,
    lines: &Receiver<Line>,
    sender: Sender<Line>,
    tally: &mut Tally,
    by_worker: &mut HashMap<u32, u64>,
) -> io::Result<()> {
    for worker in &mut workers {
        signal(&worker.child, Signal::CONT);
        // The end of its standard input tells a worker to stop.
        drop(worker.child.stdin.take());
    }
    for worker in &mut workers {
        let status = worker.child.wait()?;
        if !status.success() {
            tally
                .failures
                .push(format!("worker {} ended with {status}", worker.number));
        }
    }
    drop(sender);
    while collect(lines, tally, by_worker, Duration::from_secs(5)) {}
    let whole = workers
        .iter()
        .filter(|w| !w.touched)
        .filter_map(|w| by_worker.get(&w.number));
    tally.spread = whole.fold(None, |spread: Option<(u64, u64)>, n| {
        Some(spread.map_or((*n, *n), |(least, most)| (least.min(*n), most.max(*n))))
    });
    Ok(())
}

/// Takes in what the workers said; false when there is nothing more to come.
fn collect(
    lines: &Receiver<Line>,
    tally: &mut Tally,
    by_worker: &mut HashMap<u32, u64>,
    wait: Duration,
) -> bool {
    let Ok(first) = lines.recv_timeout(wait) else {
        return false;
    };
    for line in std::iter::once(first).chain(lines.try_iter()) {
        let mut words = line.text.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("ack"), Some(note), Some(position)) => {
                let (Ok(note), Ok(position)) = (note.parse(), position.parse()) else {
                    continue;
                };
                tally.acknowledged.insert(note, position);
                *by_worker.entry(line.worker).or_default() += 1;
            }
            (Some("refused"), ..) => tally.refused += 1,
            (Some("unknown"), ..) => tally.unknown += 1,
            _ => tally
                .failures
                .push(format!("worker {}: {}", line.worker, line.text)),
        }
    }
    true
}

/// A store in a new directory below `room`.
#[must_use]
pub fn store_in(room: &Path) -> PathBuf {
    room.join("store")
}
