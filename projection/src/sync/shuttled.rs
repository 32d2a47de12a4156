//! The same, of the scheduler's: each lock, atomic and sleep is a point at which another thread may go on.

use std::time::Duration;

use shuttle::sync::{self, Condvar};

pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64};
pub(crate) use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Whoever holds a lock and panics ends the run.
const WHOLE: &str = "nobody panicked under the lock";

/// A lock without poison.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock around a value.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect(WHOLE)
    }

    /// Takes it where nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    /// Whether somebody has it.
    pub fn is_locked(&self) -> bool {
        self.0.try_lock().is_err()
    }
}

/// A lock that many may read under, without poison.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock around a value.
    pub fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect(WHOLE)
    }

    /// Waits until nobody reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect(WHOLE)
    }
}

/// A number that threads sleep on. There is no time here: who sleeps is woken, or sleeps for ever, which ends the run.
#[derive(Debug, Default)]
pub(crate) struct Word {
    number: Mutex<u32>,
    changed: Condvar,
}

impl Word {
    /// The number.
    pub fn load(&self) -> u32 {
        *self.number.lock()
    }

    /// Makes it another one.
    pub fn store(&self, number: u32) {
        *self.number.lock() = number;
    }

    /// Sleeps if the number is `seen`, until woken.
    pub fn sleep(&self, seen: u32, _bound: Option<Duration>) {
        let number = self.number.lock();
        if *number == seen {
            drop(self.changed.wait(number).expect(WHOLE));
        }
    }

    /// Wakes up to so many of those who sleep: one, or all.
    pub fn wake(&self, count: u32) {
        // As the system does: whoever looks at the number to go to sleep does so before or behind this.
        let _number = self.number.lock();
        if count == 1 {
            self.changed.notify_one();
        } else {
            self.changed.notify_all();
        }
    }
}
