//! The page as bytes that were read, not mapped: for looking at a store without touching it.

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::place::{self, DurableMark};
use super::{CONTROL_BYTES, MAGIC, at, halves_to_bytes};
use crate::position::StoreId;
use crate::storage::SharedMemory;

/// A page's bytes, as they were at one moment or nearly so.
#[derive(Debug)]
pub struct PageCopy {
    words: Vec<AtomicU64>,
}

impl PageCopy {
    /// The page in `bytes`, of this machine's order like every page; none when they are not a control page of this version.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<PageCopy> {
        let (words, []) = bytes.as_chunks() else {
            return None;
        };
        let copy = PageCopy {
            words: words
                .iter()
                .map(|word| AtomicU64::new(u64::from_ne_bytes(*word)))
                .collect(),
        };
        (bytes.len() == CONTROL_BYTES && copy.load(at::MAGIC) == MAGIC).then_some(copy)
    }

    /// The store that the page belongs to.
    #[must_use]
    pub fn store(&self) -> StoreId {
        StoreId(halves_to_bytes(
            self.load(at::STORE),
            self.load(at::STORE + 1),
        ))
    }

    /// What is durable across boots.
    #[must_use]
    pub fn mark(&self) -> Option<DurableMark> {
        place::mark(self, at::MARKS)
    }

    fn load(&self, index: usize) -> u64 {
        self.word(index).load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl SharedMemory for PageCopy {
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    fn half_word(&self, _index: usize) -> &AtomicU32 {
        unreachable!("nobody waits on a copy")
    }
}
