//! A simulated machine: one disk, several processes, one clock, all seeded and in memory.
//!
//! It runs the production code. Every operation is a step; at a step a process can be killed or
//! stopped, the power can be cut, a write can find no space or end short, a sync can fail. What was
//! synced survives a power cut; of the rest, any legal part does, in sectors and in any order.
//!
//! A single process runs on the caller's thread. [`Sim::run`] runs several, one step of one of them
//! at a time, in an order that the seed decides.

mod image;
mod losses;
mod process;
mod schedule;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{FileSystem, ProcessId, SharedMemory, Trust};
use image::Image;
pub use losses::{CrashState, KillPoint, Losses, StateId};
pub use process::SimProcess;
pub use schedule::Chaos;
use schedule::Schedule;

/// A simulated machine. Cloning gives the same one.
#[derive(Clone)]
pub struct Sim {
    world: Arc<World>,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sim(step {})", self.steps())
    }
}

struct World {
    state: Mutex<State>,
    turn: Condvar,
    began: Instant,
}

struct State {
    image: Image,
    schedule: Schedule,
    random: Random,
    fault: Option<(u64, Fault)>,
    is_shut_down: bool,
    file_system: FileSystem,
    steps: u64,
    clock: Duration,
    boot: u64,
    processes: u32,
    handles: u64,
    trace: VecDeque<&'static str>,
    recorded: Option<Vec<KillPoint>>,
}

/// What goes wrong at a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The process is killed before the step.
    Kill,
    /// The step fails for want of space, if it is a write.
    NoSpace,
    /// The step writes only so many bytes, and the next write finds no space, if it is a write.
    Short(usize),
    /// The step fails, if it is a sync; what it should have synced counts as clean and is not.
    FailedSync,
    /// The same, and the process is killed before it can say so.
    LastSync,
    /// The file system is shut down while the step syncs, if it does: the sync says that it succeeded, what it should
    /// have written is lost, and until the power is cut nothing can be read, written or synced any more.
    Shutdown,
}

/// Which part of what was not synced survives a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// Nothing.
    Nothing,
    /// Everything.
    Everything,
    /// Of every sector, one or the other, as the seed says; of the names of each folder, the first few changes.
    Some(u64),
    /// Only the last write of every file, and no change of names.
    LastWrite,
}

/// How many steps are remembered by name.
const TRACE_STEPS: usize = 64;

/// More steps than any run makes that comes to an end. Whoever makes more goes round in a circle.
const STEPS_MAX: u64 = 1_000_000;

impl State {
    /// Counts a step.
    ///
    /// # Panics
    /// Beyond [`STEPS_MAX`]: what goes on for ever would take all memory before anybody saw why.
    fn count(&mut self, step: &'static str) -> u64 {
        let number = self.steps;
        assert!(
            number < STEPS_MAX,
            "no end after {number} steps: {:?}",
            self.trace
        );
        self.steps += 1;
        self.clock += Duration::from_micros(1);
        if self.trace.len() == TRACE_STEPS {
            self.trace.pop_front();
        }
        self.trace.push_back(step);
        number
    }

    /// The machine as it is before the next step; what did not change since the last one is shared with it.
    fn kill_point(&mut self) -> KillPoint {
        self.image.look_at_mappings();
        let last = self.recorded.as_ref().and_then(|points| points.last());
        let image = match last {
            Some(last) if last.image.changes == self.image.changes => last.image.clone(),
            _ => Arc::new(self.image.without_processes()),
        };
        KillPoint {
            step: self.steps,
            boot: self.boot,
            processes: self.processes,
            image,
        }
    }

    fn record(&mut self) {
        if self.recorded.is_some() {
            let point = self.kill_point();
            self.recorded.as_mut().expect("just seen").push(point);
        }
    }
}

/// Seeded numbers (splitmix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// The panic that ends a killed process; never shown.
struct Killed;

impl Sim {
    /// A machine with an empty disk.
    #[must_use]
    pub fn new(seed: u64) -> Sim {
        Sim {
            world: Arc::new(World {
                state: Mutex::new(State {
                    image: Image::default(),
                    schedule: Schedule::default(),
                    random: Random(seed),
                    fault: None,
                    is_shut_down: false,
                    file_system: FileSystem {
                        kind: "simulated".to_owned(),
                        trust: Trust::Durable,
                    },
                    steps: 0,
                    clock: Duration::ZERO,
                    boot: 1,
                    processes: 0,
                    handles: 0,
                    trace: VecDeque::with_capacity(TRACE_STEPS),
                    recorded: None,
                }),
                turn: Condvar::new(),
                began: Instant::now(),
            }),
        }
    }

    /// A new process.
    #[must_use]
    pub fn process(&self) -> Arc<SimProcess> {
        let mut state = self.world.state.lock();
        state.processes += 1;
        let id = ProcessId(state.processes);
        drop(state);
        Arc::new(SimProcess {
            world: self.world.clone(),
            id,
        })
    }

    /// How many steps were made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.world.state.lock().steps
    }

    /// The names of the newest steps, for messages.
    #[must_use]
    pub fn trace(&self) -> Vec<&'static str> {
        self.world.state.lock().trace.iter().copied().collect()
    }

    /// Lets `fault` happen at step number `at`, counted from zero; once.
    pub fn set_fault(&self, at: u64, fault: Fault) {
        self.world.state.lock().fault = Some((at, fault));
    }

    /// Lets no fault happen that has not happened yet. Says whether there was one.
    pub fn clear_fault(&self) -> bool {
        self.world.state.lock().fault.take().is_some()
    }

    /// Remembers the machine before every step from now on.
    pub fn record(&self) {
        self.world.state.lock().recorded = Some(Vec::new());
    }

    /// The machine before every step since [`Sim::record`], and as it is now.
    #[must_use]
    pub fn recorded(&self) -> Vec<KillPoint> {
        let mut state = self.world.state.lock();
        state.record();
        state.recorded.take().unwrap_or_default()
    }

    /// What kind of file system the disk has.
    pub fn set_file_system(&self, file_system: FileSystem) {
        self.world.state.lock().file_system = file_system;
    }

    /// How many bytes all files may have together.
    pub fn set_capacity(&self, bytes: u64) {
        self.world.state.lock().image.capacity = bytes;
    }

    /// Runs a process until it ends or is killed; `None` when it was killed. Its locks are free then.
    ///
    /// # Panics
    /// When the process panics by itself.
    pub fn run_one<T>(&self, body: impl FnOnce(Arc<SimProcess>) -> T) -> Option<T> {
        let process = self.process();
        let id = process.id;
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(process)));
        self.world.state.lock().image.release_locks_of(id.0);
        match outcome {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Killed>() => None,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    /// Runs processes side by side, each on a thread of its own, one step at a time in an order that
    /// the machine's seed decides. `None` for each that was killed.
    ///
    /// # Panics
    /// When a process panics by itself.
    pub fn run<T: Send>(
        &self,
        chaos: Chaos,
        bodies: Vec<Box<dyn FnOnce(Arc<SimProcess>) -> T + Send + '_>>,
    ) -> Vec<Option<T>> {
        let processes: Vec<_> = bodies.iter().map(|_| self.process()).collect();
        {
            let mut state = self.world.state.lock();
            state
                .schedule
                .begin(chaos, processes.iter().map(|process| process.id.0));
            self.world.hand_over(&mut state);
        }
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = bodies
                .into_iter()
                .zip(processes)
                .map(|(body, process)| {
                    scope.spawn(move || {
                        let (world, id) = (process.world.clone(), process.id.0);
                        let body = || {
                            world.await_turn(&mut world.state.lock(), id);
                            body(process)
                        };
                        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
                        let mut state = world.state.lock();
                        state.image.release_locks_of(id);
                        state.schedule.end(id);
                        world.hand_over(&mut state);
                        outcome
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("panics were caught inside"))
                .collect()
        });
        self.world.state.lock().schedule = Schedule::default();
        outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Ok(value) => Some(value),
                Err(payload) if payload.is::<Killed>() => None,
                Err(payload) => std::panic::resume_unwind(payload),
            })
            .collect()
    }

    /// Cuts the power: every process is gone, the disk holds what was synced and a part of the rest.
    pub fn cut_power(&self, survival: Survival) {
        let mut state = self.world.state.lock();
        state.boot += 1;
        state.is_shut_down = false;
        let mut random = state.random.clone();
        if let Survival::Some(seed) = survival {
            random = Random(seed);
        }
        state.image.cut_power(survival, &mut random);
    }

    /// The bytes of a file as a process would read them now.
    #[must_use]
    pub fn bytes_of(&self, path: &str) -> Option<Vec<u8>> {
        self.world.state.lock().image.bytes_of(path)
    }

    /// Turns one bit of a file over, on disk and in memory alike.
    ///
    /// # Panics
    /// When there is no such byte.
    pub fn flip(&self, path: &str, offset: u64, bit: u8) {
        self.world.state.lock().image.flip(path, offset, bit);
    }

    /// A copy of the machine as it is now, all processes gone.
    #[must_use]
    pub fn fork(&self) -> Sim {
        let other = Sim::new(0);
        let state = self.world.state.lock();
        let mut copy = other.world.state.lock();
        copy.image = state.image.copy();
        copy.random = state.random.clone();
        copy.boot = state.boot;
        copy.clock = state.clock;
        copy.processes = state.processes;
        drop(copy);
        other
    }
}

/// Memory that every process of the machine shares.
#[derive(Debug)]
struct SimMemory {
    words: Vec<AtomicU64>,
    halves: Vec<AtomicU32>,
}

impl SimMemory {
    fn new(bytes: &[u8]) -> SimMemory {
        let words = bytes.chunks_exact(8).map(|chunk| {
            AtomicU64::new(u64::from_ne_bytes(
                *chunk.first_chunk().expect("chunks of eight"),
            ))
        });
        SimMemory {
            words: words.collect(),
            halves: (0..bytes.len() / 4).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.words.len() * 8];
        for (word, eight) in self.words.iter().zip(bytes.chunks_exact_mut(8)) {
            eight.copy_from_slice(&word.load(SeqCst).to_ne_bytes());
        }
        bytes
    }

    /// Whether these are its bytes.
    fn holds(&self, bytes: &[u8]) -> bool {
        let mut pairs = self.words.iter().zip(bytes.chunks_exact(8));
        bytes.len() == self.words.len() * 8
            && pairs.all(|(word, eight)| word.load(SeqCst).to_ne_bytes() == *eight)
    }

    /// Reads at `offset`, as a file is read.
    fn read(&self, into: &mut [u8], offset: usize) -> usize {
        let count = (self.words.len() * 8)
            .saturating_sub(offset)
            .min(into.len());
        let mut done = 0;
        while done < count {
            let at = offset + done;
            let eight = self.words[at / 8].load(SeqCst).to_ne_bytes();
            let part = &eight[at % 8..];
            let part = &part[..part.len().min(count - done)];
            into[done..done + part.len()].copy_from_slice(part);
            done += part.len();
        }
        count
    }
}

impl SharedMemory for SimMemory {
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    fn half_word(&self, index: usize) -> &AtomicU32 {
        &self.halves[index]
    }
}
