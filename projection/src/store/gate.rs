//! Where the threads of one batch sleep until it is answered: one word, so that one system call wakes them all.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::id::Position;

use crate::sync::{AtomicU32, AtomicU64, Word};

/// How far a batch has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Nobody decides it yet.
    Waiting = 0,
    /// As before, and one of those who sleep is asked to lead.
    ToLead = 1,
    /// A leader decides it, or its sync is under way.
    Taken = 2,
    /// It is decided, and nobody syncs it yet.
    Decided = 3,
    /// As before, and one of those who sleep is asked to sync.
    ToSync = 4,
    /// It is answered.
    Served = 5,
}

/// The gate of a batch. Every change of its stage but the last is made under the group's lock: so whoever goes to sleep
/// under one stage is seen by whoever makes the next.
#[derive(Debug, Default)]
pub(super) struct Gate {
    stage: Word,
    sleepers: AtomicU32,
    synced: AtomicU64,
}

impl Gate {
    /// How far the batch has come.
    pub fn stage(&self) -> Stage {
        match self.stage.load() {
            0 => Stage::Waiting,
            1 => Stage::ToLead,
            2 => Stage::Taken,
            3 => Stage::Decided,
            4 => Stage::ToSync,
            _ => Stage::Served,
        }
    }

    /// Under the group's lock. Gives the stage back.
    pub fn set(&self, stage: Stage) -> Stage {
        self.stage.store(stage as u32);
        stage
    }

    /// Asks one of those who sleep to do what `stage` says; says whether anybody sleeps. Under the group's lock.
    pub fn offer(&self, stage: Stage) -> bool {
        let asleep = self.sleepers.load(Ordering::SeqCst) > 0;
        if asleep {
            self.set(stage);
            self.stage.wake(1);
        }
        asleep
    }

    /// Wakes everybody: the batch is answered, and everything up to `synced` is durable.
    pub fn open(&self, synced: Position) {
        self.synced.store(synced.0, Ordering::SeqCst);
        self.set(Stage::Served);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.stage.wake(u32::MAX >> 1);
        }
    }

    /// Everything up to here was known to be durable when the batch was answered.
    pub fn synced(&self) -> Position {
        Position(self.synced.load(Ordering::SeqCst))
    }

    /// Counts the caller among those who sleep; to be called under the group's lock, and [`Gate::sleep`] behind it.
    pub fn enter(&self) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
    }

    /// Sleeps while the stage is `seen`, at most `bound`; may return early.
    pub fn sleep(&self, seen: Stage, bound: Option<Duration>) {
        self.stage.sleep(seen as u32, bound);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
