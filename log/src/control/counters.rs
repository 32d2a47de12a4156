//! The counter table of the control page: statistics shared by every process, never decisions.

use std::sync::atomic::Ordering::SeqCst;

use crate::journal::CounterTag;
use crate::storage::SharedMemory;

/// How many different tags can be counted. A prime, so that tags with a common step spread.
pub const COUNTER_SLOTS: usize = 257;

const _: () = assert!(super::at::COUNTERS + COUNTER_SLOTS * 2 <= super::at::ANCHORS);

/// Slots of two words: tag, count. A slot once taken stays its tag's.
pub struct CounterTable<'m> {
    memory: &'m dyn SharedMemory,
    at: usize,
}

impl<'m> CounterTable<'m> {
    pub(super) fn new(memory: &'m dyn SharedMemory, at: usize) -> CounterTable<'m> {
        CounterTable { memory, at }
    }

    /// The word of the slot that holds `tag`, taking a free one when `take` says so.
    fn slot(&self, tag: CounterTag, take: bool) -> Option<usize> {
        if tag.0 == 0 {
            return None;
        }
        let home = (tag.0 % COUNTER_SLOTS as u64) as usize;
        for step in 0..COUNTER_SLOTS {
            let slot = self.at + (home + step) % COUNTER_SLOTS * 2;
            let mut found = self.memory.word(slot).load(SeqCst);
            if found == 0 && take {
                let swapped = self
                    .memory
                    .word(slot)
                    .compare_exchange(0, tag.0, SeqCst, SeqCst);
                found = swapped.map_or_else(|other| other, |_| tag.0);
            }
            if found == tag.0 {
                return Some(slot + 1);
            }
            if found == 0 {
                return None;
            }
        }
        None
    }

    /// Adds `n`; `None` when every slot is another tag's.
    pub fn add(&self, tag: CounterTag, n: u64) -> Option<u64> {
        let slot = self.slot(tag, true)?;
        Some(self.memory.word(slot).fetch_add(n, SeqCst).wrapping_add(n))
    }

    /// The count.
    #[must_use]
    pub fn get(&self, tag: CounterTag) -> u64 {
        self.slot(tag, false)
            .map_or(0, |slot| self.memory.word(slot).load(SeqCst))
    }

    /// The count, which is zero afterwards.
    #[must_use]
    pub fn take(&self, tag: CounterTag) -> u64 {
        self.slot(tag, false)
            .map_or(0, |slot| self.memory.word(slot).swap(0, SeqCst))
    }

    /// Every tag with a count above zero, in order of tags.
    pub fn for_each(&self, f: &mut dyn FnMut(CounterTag, u64)) {
        let word = |index: usize| self.memory.word(self.at + index).load(SeqCst);
        let mut counts: Vec<_> = (0..COUNTER_SLOTS)
            .map(|slot| (word(slot * 2), word(slot * 2 + 1)))
            .collect();
        counts.sort_unstable();
        for (tag, count) in counts {
            if tag != 0 && count > 0 {
                f(CounterTag(tag), count);
            }
        }
    }
}
