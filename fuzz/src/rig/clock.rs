//! Clocks that jump: the same commands, asked of one store whose clock stands and of one whose clock leaps years forth
//! and back, are answered alike. Holders are real processes that live and die meanwhile.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tenure_projection::core::generation::Generation;
use tenure_projection::core::holder::{Bearing, Sighting};
use tenure_projection::core::id::Time;
use tenure_projection::core::state::State;
use tenure_projection::host::{Host, HostError, ProcessChoice, System, This};
use tenure_projection::projector::Projector;
use tenure_projection::store::{OpenOptions, Store};

use super::play::{self, Known, NAMES};
use super::{Figures, Order, Outcome, for_each_seed};
use crate::hammer::Dice;

/// The machine, but for its clock.
#[derive(Debug)]
struct Jumping {
    machine: System,
    /// What the clock says beyond the machine's, in microseconds.
    ahead: AtomicI64,
}

impl Host for Jumping {
    fn now(&self) -> Time {
        Time(self.machine.now().0 + self.ahead.load(Ordering::Relaxed))
    }

    fn this(&self) -> This {
        self.machine.this()
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        let mut bearing = self.machine.bearing(choice)?;
        bearing.recorded = self.now();
        Ok(bearing)
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        self.machine.sight(record)
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        self.machine.remember_boot()
    }
}

/// Ten years in microseconds.
const FAR: u64 = 10 * 365 * 86_400 * 1_000_000;

/// Runs the rig.
///
/// # Errors
/// When a part of it panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let seeds = order.seeds(3, 30, 2_000);
    Ok(Outcome::Ran(for_each_seed(seeds, one)?))
}

/// Processes that hold sessions, each waiting for the end of its input.
struct Holders(Vec<Child>);

impl Holders {
    fn one() -> std::io::Result<Child> {
        Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
    }

    fn pids(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
    }

    /// Ends one, and begins another.
    fn turn(&mut self, dice: &mut Dice) -> std::io::Result<()> {
        let which = dice.roll(self.0.len() as u64) as usize;
        let new = Self::one()?;
        let mut ended = std::mem::replace(&mut self.0[which], new);
        let killed = ended.kill();
        ended.wait()?;
        killed
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        for holder in &mut self.0 {
            // One that has ended already cannot be killed, and is waited for all the same.
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// What a state says, for drawing commands.
struct Seen {
    generations: Vec<(&'static str, u64)>,
    dispatches: u64,
    envelopes: u64,
}

impl Seen {
    fn of(state: &State) -> Self {
        let generation = |name: &'static str| {
            let number = state.find(name.as_bytes())?;
            let Generation { number, .. } = state.session(number)?.generation;
            Some((name, number))
        };
        Self {
            generations: NAMES.into_iter().filter_map(generation).collect(),
            dispatches: state.next_dispatch().0 - 1,
            envelopes: state.next_envelope().0 - 1,
        }
    }
}

impl Known for Seen {
    fn generation(&self, name: &str) -> u64 {
        let mut all = self.generations.iter();
        all.find(|(known, _)| *known == name).map_or(0, |(_, g)| *g)
    }

    fn dispatches(&self) -> u64 {
        self.dispatches
    }

    fn envelopes(&self) -> u64 {
        self.envelopes
    }
}

fn one(seed: u64, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let (room, mut dice) = (tempfile::tempdir()?, Dice::new(seed));
    let kept = room.path().join("state");
    let host = || {
        Arc::new(Jumping {
            machine: System::new(&kept),
            ahead: AtomicI64::new(0),
        })
    };
    let (still, jumping) = (host(), host());
    let open = |name: &str, host: &Arc<Jumping>| {
        let options = OpenOptions::new(room.path().join(name)).create(true);
        Store::open(&options, host.clone())
    };
    let (first, second) = (open("still", &still)?, open("jumping", &jumping)?);
    let mut holders = Holders((0..3).map(|_| Holders::one()).collect::<Result<_, _>>()?);
    for number in 0..80 {
        if dice.roll(10) == 0 {
            holders.turn(&mut dice)?;
        }
        if dice.roll(2) == 0 {
            let ahead = dice.roll(2 * FAR).cast_signed() - FAR.cast_signed();
            jumping.ahead.store(ahead, Ordering::Relaxed);
            figures.count("jumps", 1);
        }
        let seen = first.view(Seen::of)?;
        let ask = play::draw(&mut dice, &seen, &holders.pids());
        let (stood, jumped) = (ask.of(&first)?, ask.of(&second)?);
        figures.count("commands", 1);
        if stood != jumped {
            figures.violations.push(format!(
                "seed {seed}, command {number}, {ask:?}: {stood:?}, and {jumped:?} where the clock jumps"
            ));
            return Ok(());
        }
    }
    let mut replay = Projector::new();
    replay.read(&second, None, &mut [])?;
    if let [first, ..] = replay.findings() {
        let line = format!("seed {seed}: the frame at {first} does not stand");
        figures.violations.push(line);
    }
    Ok(())
}
