//! How far a long replay has come, for whoever shows it to somebody who waits.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_log::position::Position;

thread_local! {
    /// Whom this thread's replays are shown to.
    static SHOWN: RefCell<Option<Arc<Gauge>>> = const { RefCell::new(None) };
}

/// How far a long replay has come: opening a store without a snapshot, or making a state of the past again. Short ones
/// do not move it.
#[derive(Debug, Default)]
pub struct Gauge {
    done: AtomicU64,
    whole: AtomicU64,
}

impl Gauge {
    /// The position that was replayed last, and the one at which the replay ends; both 0 before one begins.
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        let [done, whole] = [&self.done, &self.whole].map(|value| value.load(Ordering::Relaxed));
        (done, whole)
    }

    /// Does `work` on this thread; the long replays in it move the gauge.
    pub fn over<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        /// Whoever was shown them before is again, also after a panic.
        struct Before(Option<Arc<Gauge>>);
        impl Drop for Before {
            fn drop(&mut self) {
                SHOWN.set(self.0.take());
            }
        }
        let _before = Before(SHOWN.replace(Some(Arc::clone(self))));
        work()
    }
}

/// A long replay of this thread that ends at `whole` has come to `done`.
pub(crate) fn show(done: Position, whole: Position) {
    SHOWN.with_borrow(|shown| {
        if let Some(gauge) = shown {
            gauge.done.store(done.0, Ordering::Relaxed);
            gauge.whole.store(whole.0, Ordering::Relaxed);
        }
    });
}
