//! Snapshots beside the work: a thread of their own writes them, so that no call waits for one.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::live::ALONG_FRAMES_MAX;
use super::{Store, snapshot};

/// A snapshot that is due waits until nothing was appended for so long: its syncs stand between those of the log, and
/// while frames come fast it is out of date before it is written.
const QUIET: Duration = Duration::from_millis(20);

/// How many times as long as it may be the tail grows while frames come without such a pause. At a hundred thousand a
/// second that is a sixth of a second of work; whoever opens behind a crash reads so much more.
const BUSY_MAX: u64 = 8;

/// The thread that writes a snapshot, while there is one. Whoever gives up the last handle of a store waits for it, so
/// that a process that ends does not leave the next one more to read.
pub(super) struct Aside {
    writing: Mutex<Option<JoinHandle<()>>>,
    last: Arc<LastHandle>,
    /// The process that the thread is of: after a fork there is none to wait for.
    process: u32,
}

/// Whether the last handle is gone.
#[derive(Default)]
struct LastHandle {
    gone: Mutex<bool>,
    changed: Condvar,
}

impl LastHandle {
    /// Whether it goes, or is gone, within that time.
    fn goes_within(&self, time: Duration) -> bool {
        let mut gone = self.gone.lock();
        if !*gone {
            self.changed.wait_for(&mut gone, time);
        }
        *gone
    }
}

impl Aside {
    pub fn new() -> Self {
        Self {
            writing: Mutex::new(None),
            last: Arc::default(),
            process: std::process::id(),
        }
    }

    /// Has a snapshot that is due written, unless one is on its way.
    pub fn begin(&self, store: &Store) {
        let Some(mut writing) = self.writing.try_lock() else {
            return;
        };
        if writing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        // Not this handle's clone: whoever waits for the thread would be waited for by it.
        let (itself, last) = (Store(store.0.clone(), None), Arc::clone(&self.last));
        let thread = Builder::new().name("tenure-snapshot".to_owned());
        // Where there can be no thread, it stays due and is tried again behind the next frames.
        *writing = thread.spawn(move || write_when_quiet(&itself, &last)).ok();
    }
}

/// Writes the snapshot that is due, once nothing is appended for a while or the tail has grown too long.
fn write_when_quiet(store: &Store, last: &LastHandle) {
    let mut before = None;
    loop {
        let live = store.live.read();
        let (tail, cost) = (live.since_snapshot, live.snapshot_bytes);
        drop(live);
        // Who held what is not followed for ever, and would have to be read again.
        let is_long = snapshot::is_due(tail / BUSY_MAX, cost) || tail > ALONG_FRAMES_MAX / 2;
        if is_long || before == Some(tail) || last.goes_within(QUIET) {
            break;
        }
        before = Some(tail);
    }
    if let Some(turn) = store.snapshot_turn() {
        store.write_due_snapshot(turn);
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(thread) = self.writing.get_mut().take()
            && self.process == std::process::id()
        {
            *self.last.gone.lock() = true;
            self.last.changed.notify_all();
            // Nothing depends on a snapshot, not on one whose thread panicked either.
            let _ = thread.join();
        }
    }
}
