//! A word of this process that threads sleep on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex;

/// A number that threads sleep on while it stays the same; one system call wakes many of them.
#[derive(Debug, Default)]
pub(crate) struct Word(AtomicU32);

impl Word {
    /// The number.
    pub fn load(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Makes it another one. Who sleeps goes on sleeping until it is woken.
    pub fn store(&self, number: u32) {
        self.0.store(number, Ordering::SeqCst);
    }

    /// Sleeps while the number is `seen`, at most `bound`; may return early.
    pub fn sleep(&self, seen: u32, bound: Option<Duration>) {
        let bound = bound.map(|bound| futex::Timespec {
            tv_sec: i64::try_from(bound.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(bound.subsec_nanos()),
        });
        // Every answer means: look again.
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, seen, bound.as_ref());
    }

    /// Wakes up to so many of those who sleep.
    pub fn wake(&self, count: u32) {
        // Waking nobody is no error.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, count);
    }
}
