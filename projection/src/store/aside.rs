//! Snapshots beside the work: a thread of their own writes them, so that no call waits for one.

use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::Store;

/// The thread that writes a snapshot, while there is one. Whoever gives up the last handle of a store waits for it, so
/// that a process that ends does not leave the next one more to read.
pub(super) struct Aside {
    writing: Mutex<Option<JoinHandle<()>>>,
    /// The process that the thread is of: after a fork there is none to wait for.
    process: u32,
}

impl Aside {
    pub fn new() -> Self {
        Self {
            writing: Mutex::new(None),
            process: std::process::id(),
        }
    }

    /// Begins to write a snapshot that is due, unless one is being written.
    pub fn begin(&self, store: &Store) {
        let Some(mut writing) = self.writing.try_lock() else {
            return;
        };
        if writing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let Some(turn) = store.snapshot_turn() else {
            return;
        };
        // Not this handle's clone: whoever waits for the thread would be waited for by it.
        let itself = Store(store.0.clone(), None);
        let thread = Builder::new().name("tenure-snapshot".to_owned());
        // Where there can be no thread, it stays due and is tried again behind the next frames.
        *writing = thread.spawn(move || itself.write_due_snapshot(turn)).ok();
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(thread) = self.writing.get_mut().take()
            && self.process == std::process::id()
        {
            // Nothing depends on a snapshot, not on one whose thread panicked either.
            let _ = thread.join();
        }
    }
}
