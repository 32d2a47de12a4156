//! Threads that carry out the workload on one store for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_benches::figures::quantile;
use tenure_benches::workload::{Act, Bodies, Crew, SEED, Step};

use crate::peers::{Answers, Peer, Place};

/// Sessions that each thread acts for.
pub const SEATS_PER_THREAD: usize = 16;

/// Crews for so many threads.
pub fn crews(threads: usize, seats: usize, bodies: Bodies) -> Vec<Crew> {
    let crew = |n| Crew::new(SEED, n, seats).with(bodies);
    (0..threads as u64).map(crew).collect()
}

/// What the threads did.
#[derive(Clone, Debug)]
pub struct Served {
    /// Appends acknowledged, refusals left out.
    pub appends: u64,
    /// Late writes refused.
    pub refused: u64,
    /// Appends of the thread that got the least.
    pub least: u64,
    /// Appends of the thread that got the most.
    pub best: u64,
    /// How long the slowest thread was at it.
    pub seconds: f64,
    /// Half of the calls took no longer, in microseconds.
    pub p50_micros: f64,
    /// 99 of 100 calls took no longer, in microseconds.
    pub p99_micros: f64,
}

impl Served {
    /// Opens the store again and counts: what was acknowledged stands there, and nothing else.
    ///
    /// # Panics
    /// When it does not: such figures are worth nothing.
    pub fn stands_in(&self, peer: &dyn Peer, place: Box<dyn Place>) {
        if let Some(found) = place.count() {
            let (appends, name) = (self.appends, peer.name());
            assert_eq!(found, appends, "{name}: found and acknowledged differ");
        }
    }

    /// Appends in a second.
    pub fn per_second(&self) -> f64 {
        self.appends as f64 / self.seconds
    }

    /// The least served, as a share of the best.
    pub fn fairness(&self) -> f64 {
        self.least as f64 / self.best.max(1) as f64
    }

    /// For another process.
    pub fn to_json(&self) -> Value {
        json!({
            "appends": self.appends,
            "refused": self.refused,
            "least": self.least,
            "best": self.best,
            "seconds": self.seconds,
            "p50_micros": self.p50_micros,
            "p99_micros": self.p99_micros,
        })
    }

    /// From another process.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            appends: value["appends"].as_u64()?,
            refused: value["refused"].as_u64()?,
            least: value["least"].as_u64()?,
            best: value["best"].as_u64()?,
            seconds: value["seconds"].as_f64()?,
            p50_micros: value["p50_micros"].as_f64()?,
            p99_micros: value["p99_micros"].as_f64()?,
        })
    }
}

/// What one thread did.
#[derive(Default)]
struct Part {
    appends: u64,
    refused: u64,
    nanos: Vec<u64>,
    took: Duration,
}

impl Part {
    /// Takes in a commit that was asked for then and is answered.
    fn note(&mut self, asked: Instant, steps: &[Step]) {
        self.nanos.push(asked.elapsed().as_nanos() as u64);
        let late = steps.iter().filter(|step| step.act == Act::Late).count();
        self.refused += late as u64;
        self.appends += (steps.len() - late) as u64;
    }
}

/// Lets a thread for each crew work for so long, with so many steps in each commit.
pub fn drive(place: &dyn Place, crews: Vec<Crew>, together: usize, duration: Duration) -> Served {
    let (stop, begin) = (AtomicBool::new(false), Barrier::new(crews.len() + 1));
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for crew in crews {
            scope.spawn(|| {
                let part = work(place, crew, together, &begin, &stop);
                all.lock().expect("nobody panicked").push(part);
            });
        }
        begin.wait();
        std::thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
    });
    sum(&all.into_inner().expect("nobody panicked"))
}

fn work(
    place: &dyn Place,
    mut crew: Crew,
    together: usize,
    begin: &Barrier,
    stop: &AtomicBool,
) -> Part {
    let mut hand = place.hand();
    let mut part = Part::default();
    begin.wait();
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        // Each is of another seat, so that none waits for another's answer.
        let steps: Vec<_> = (0..together).map(|_| crew.next_step()).collect();
        let asked = Instant::now();
        hand.perform(&mut crew, &steps);
        part.note(asked, &steps);
    }
    part.took = began.elapsed();
    part
}

/// Lets one thread work for so long, with so many steps in each commit, and the next commit handed over before the last
/// one is answered.
///
/// # Panics
/// Where the store answers nothing later.
pub fn drive_ahead(
    place: &dyn Place,
    mut crews: Vec<Crew>,
    together: usize,
    duration: Duration,
) -> Served {
    let mut crew = crews.pop().expect("there is one crew");
    let mut hand = place.hand_ahead().expect("the store goes ahead");
    let mut part = Part::default();
    let mut last: Option<(Instant, Vec<Step>, Answers)> = None;
    let began = Instant::now();
    loop {
        let next = (began.elapsed() < duration).then(|| {
            let steps: Vec<_> = (0..together).map(|_| crew.next_step()).collect();
            let asked = Instant::now();
            let answers = hand.begin(&crew, &steps);
            (asked, steps, answers)
        });
        let over = next.is_none();
        if let Some((asked, steps, answers)) = std::mem::replace(&mut last, next) {
            answers(&mut crew, &steps);
            part.note(asked, &steps);
        }
        if over {
            break;
        }
    }
    part.took = began.elapsed();
    sum(&[part])
}

fn sum(parts: &[Part]) -> Served {
    let mut nanos: Vec<u64> = parts.iter().flat_map(|part| &part.nanos).copied().collect();
    nanos.sort_unstable();
    let appends = || parts.iter().map(|part| part.appends);
    let took = parts.iter().map(|part| part.took).max();
    Served {
        appends: appends().sum(),
        refused: parts.iter().map(|part| part.refused).sum(),
        least: appends().min().unwrap_or(0),
        best: appends().max().unwrap_or(0),
        seconds: took.unwrap_or_default().as_secs_f64(),
        p50_micros: quantile(&nanos, 0.5) as f64 / 1e3,
        p99_micros: quantile(&nanos, 0.99) as f64 / 1e3,
    }
}
