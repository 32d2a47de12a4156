//! Which of several simulated processes makes the next step.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::{State, World};

/// What happens to processes that run side by side, each one step in so many on average; zero is never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chaos {
    /// A process is killed.
    pub kill_one_in: u64,
    /// A process is stopped, and goes on later.
    pub stop_one_in: u64,
    /// How many are killed at most.
    pub kills_max: u32,
    /// A sync fails; counted in syncs, not in steps.
    pub fail_sync_one_in: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Condition {
    Ready,
    /// Waits for a word to be woken, at most until the clock says so.
    Asleep {
        word: usize,
        until: Duration,
    },
    /// Is stopped, and goes on when the clock says so.
    Stopped {
        until: Duration,
    },
    Killed,
    Ended,
}

/// How long a stopped process stays so at most: beyond every bound that the tests set.
const STOP_MAX: Duration = Duration::from_secs(8);

#[derive(Default)]
pub(super) struct Schedule {
    processes: BTreeMap<u32, Condition>,
    turn: Option<u32>,
    chaos: Chaos,
    kills: u32,
}

impl Schedule {
    pub(super) fn begin(&mut self, chaos: Chaos, processes: impl Iterator<Item = u32>) {
        *self = Schedule {
            processes: processes.map(|id| (id, Condition::Ready)).collect(),
            chaos,
            ..Schedule::default()
        };
        self.turn = self.processes.keys().next().copied();
    }

    pub(super) fn is_running(&self) -> bool {
        !self.processes.is_empty()
    }

    pub(super) fn sleep(&mut self, id: u32, word: usize, until: Duration) {
        self.processes.insert(id, Condition::Asleep { word, until });
    }

    pub(super) fn wake(&mut self, woken: usize, count: u32) {
        let asleep = self.processes.values_mut().filter(
            |condition| matches!(condition, Condition::Asleep { word, .. } if *word == woken),
        );
        for condition in asleep.take(count as usize) {
            *condition = Condition::Ready;
        }
    }

    pub(super) fn end(&mut self, id: u32) {
        self.processes.insert(id, Condition::Ended);
        if self.turn == Some(id) {
            self.turn = None;
        }
    }
}

impl State {
    /// Whether the sync that is made fails by chance.
    pub(super) fn sync_fails(&mut self) -> bool {
        let one_in = self.schedule.chaos.fail_sync_one_in;
        one_in != 0 && self.random.below(one_in) == 0
    }

    /// Decides who makes the next step; the clock jumps when everybody waits.
    pub(super) fn choose(&mut self) {
        self.schedule.turn = None;
        loop {
            let now = self.clock;
            for condition in self.schedule.processes.values_mut() {
                if let Condition::Asleep { until, .. } | Condition::Stopped { until } = condition
                    && *until <= now
                {
                    *condition = Condition::Ready;
                }
            }
            let ready: Vec<u32> = self
                .schedule
                .processes
                .iter()
                .filter(|(_, condition)| matches!(condition, Condition::Ready | Condition::Killed))
                .map(|(id, _)| *id)
                .collect();
            if ready.is_empty() {
                let next =
                    self.schedule
                        .processes
                        .values()
                        .filter_map(|condition| match condition {
                            Condition::Asleep { until, .. } | Condition::Stopped { until } => {
                                Some(*until)
                            }
                            _ => None,
                        });
                let Some(next) = next.min() else { return };
                self.clock = next;
                continue;
            }
            let id = ready[self.random.below(ready.len() as u64) as usize];
            if self.strikes(id) {
                continue;
            }
            self.schedule.turn = Some(id);
            return;
        }
    }

    /// Lets something happen to the process that would make the next step.
    fn strikes(&mut self, id: u32) -> bool {
        let chaos = self.schedule.chaos;
        let mut one_in = |n: u64| n != 0 && self.random.below(n) == 0;
        let (kills, stops) = (one_in(chaos.kill_one_in), one_in(chaos.stop_one_in));
        if kills
            && self.schedule.kills < chaos.kills_max
            && self.schedule.processes[&id] == Condition::Ready
        {
            self.schedule.kills += 1;
            self.schedule.processes.insert(id, Condition::Killed);
            self.image.release_locks_of(id);
            return true;
        }
        if stops && self.schedule.processes[&id] == Condition::Ready {
            let until =
                self.clock + Duration::from_micros(self.random.below(STOP_MAX.as_micros() as u64));
            self.schedule
                .processes
                .insert(id, Condition::Stopped { until });
            return true;
        }
        false
    }
}

impl World {
    /// Chooses when nobody has the turn, and lets everybody look.
    pub(super) fn hand_over(&self, state: &mut MutexGuard<'_, State>) {
        if state.schedule.turn.is_none() {
            state.choose();
        }
        self.turn.notify_all();
    }

    /// Blocks until it is this process's turn; false when it was killed.
    pub(super) fn await_turn(&self, state: &mut MutexGuard<'_, State>, id: u32) -> bool {
        while state.schedule.turn != Some(id) {
            self.turn.wait(state);
        }
        state.schedule.processes.get(&id) != Some(&Condition::Killed)
    }
}
