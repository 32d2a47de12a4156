//! The system's allocator, which counts what is asked for and gives nothing where it was told so: for the rig `oom`, and
//! for a ceiling on what input can ask for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

thread_local! {
    /// The largest single request of this thread so far; what others do beside it is theirs.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// The largest single request of the whole process.
static LARGEST_OF_ALL: AtomicUsize = AtomicUsize::new(0);
/// Whether requests are counted.
static COUNTS: AtomicBool = AtomicBool::new(false);
/// How many were counted.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// Which of them gets nothing, from one; none at zero.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Whether every later one gets nothing either.
static ONWARDS: AtomicBool = AtomicBool::new(false);

/// The allocator, to be made a program's own.
pub struct Counting;

// SAFETY: every request is handed on to the system's allocator as it came, or answered with null, which says that there
// is no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if refuses(bytes) {
            return ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

fn refuses(bytes: usize) -> bool {
    // A thread that ends has no such cell any more, and is done with its work.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
    if bytes > LARGEST_OF_ALL.load(Relaxed) {
        LARGEST_OF_ALL.fetch_max(bytes, Relaxed);
    }
    if !COUNTS.load(Relaxed) {
        return false;
    }
    let number = ASKED.fetch_add(1, Relaxed) + 1;
    let refused = REFUSED.load(Relaxed);
    number == refused || refused > 0 && number > refused && ONWARDS.load(Relaxed)
}

/// From now on requests are counted, and the one of that number gets nothing, or all from it on; none at zero.
pub fn refuse(number: u64, onwards: bool) {
    REFUSED.store(number, Relaxed);
    ONWARDS.store(onwards, Relaxed);
    COUNTS.store(true, Relaxed);
}

/// How many requests were counted. They are not, any more.
pub fn counted() -> u64 {
    COUNTS.store(false, Relaxed);
    ASKED.load(Relaxed)
}

/// The largest single request of this thread so far, in bytes; zero in a program that has another allocator.
#[must_use]
pub fn largest() -> usize {
    LARGEST.get()
}

/// The largest single request of the whole process so far, in bytes.
#[must_use]
pub fn largest_of_all() -> usize {
    LARGEST_OF_ALL.load(Relaxed)
}
