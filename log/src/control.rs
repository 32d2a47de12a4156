//! The control page: a small file that every process on a store maps.
//!
//! Its volatile half (the word, the places, targets, waiters) holds for one boot and is rebuilt by
//! whoever holds the append lock; its durable half (two checksummed marks) is believed across
//! boots. It tells where to look and whom to wake. It never decides where bytes are overwritten:
//! that follows from frames that were read. Rules: log.md, "The control page".
//!
//! A page is never repaired in place. It is replaced by a new file, and a holder that finds its own
//! page without a name knows that what it published there reached nobody.

pub mod anchor;
pub mod begun;
pub mod copy;
pub mod counters;
pub mod place;

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};

use crate::format::SegmentName;
use crate::journal::CounterTag;
use crate::options::EPOCH_MAX;
use crate::position::{Epoch, Position, StoreId};
use crate::storage::{Access, BootId, SharedMemory, Storage, StoredFile};
use anchor::Anchor;
use begun::Begun;
use place::{DurableMark, HeadPlace};

/// The name of the page in a store's directory.
pub const CONTROL_NAME: &str = "control";

/// The bytes of the page: one page of words, two of counters, four of anchors.
pub const CONTROL_BYTES: usize = 7 * 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"tenurCT2");

/// Indices in words of eight bytes. Words that different processes change at the same time stand in
/// cache lines of their own.
mod at {
    pub const MAGIC: usize = 0;
    pub const BOOT: usize = 1;
    pub const STORE: usize = 3;
    pub const WORD: usize = 8;
    pub const ACQUISITIONS: usize = 16;
    pub const HOLDER: usize = 17;
    pub const LOCK: usize = 18;
    pub const DURABLE: usize = 24;
    pub const TARGET: usize = 25;
    pub const POISON: usize = 26;
    pub const SYNC_TURN: usize = 27;
    pub const ZEROING: usize = 28;
    pub const BEGUN: usize = 29;
    pub const PLACES: usize = 32;
    pub const MARKS: usize = PLACES + super::place::PLACES_WORDS;
    pub const WORDS_END: usize = MARKS + super::place::MARKS_WORDS;
    /// Byte 2048, in half words.
    pub const SIGNALS: usize = 512;
    /// Byte 4096.
    pub const COUNTERS: usize = 512;
    /// Byte 3 * 4096.
    pub const ANCHORS: usize = 1536;
}

/// Bits of the word: epoch above, head in the middle, in-doubt below.
const HEAD_BITS: u32 = 45;

/// The greatest head position that fits into the word. A million frames a second reach it in a year.
pub const WORD_POSITION_MAX: u64 = (1 << HEAD_BITS) - 1;

/// The greatest epoch that fits into the word. An epoch is raised when a holder stood still or a
/// sync failed, never in the course of work.
pub const WORD_EPOCH_MAX: u64 = (1 << (63 - HEAD_BITS)) - 1;

/// The word that names an epoch's lock file: the epoch above, the low bits of the inode number below.
const LOCK_INODE_BITS: u32 = HEAD_BITS + 1;
const LOCK_INODE_MASK: u64 = (1 << LOCK_INODE_BITS) - 1;

const _: () = assert!(WORD_EPOCH_MAX <= EPOCH_MAX);
const _: () = assert!(at::WORDS_END * 8 <= at::SIGNALS * 4);
const _: () = assert!((at::ANCHORS + anchor::ANCHORS_WORDS) * 8 <= CONTROL_BYTES);

/// The word: what the newest epoch has published. Changed only by compare-and-swap from the value
/// read under the append lock, so that a holder whose epoch was raised publishes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// The writer epoch.
    pub epoch: Epoch,
    /// The position of the newest published frame.
    pub head: Position,
    /// Whether bytes behind the head may have been written that nobody published.
    pub in_doubt: bool,
}

impl Word {
    fn pack(self) -> u64 {
        assert!(
            self.epoch.0 <= WORD_EPOCH_MAX && self.head.0 <= WORD_POSITION_MAX,
            "the word holds {self:?}"
        );
        self.epoch.0 << (HEAD_BITS + 1) | self.head.0 << 1 | u64::from(self.in_doubt)
    }

    fn unpack(bits: u64) -> Word {
        Word {
            epoch: Epoch(bits >> (HEAD_BITS + 1)),
            head: Position(bits >> 1 & WORD_POSITION_MAX),
            in_doubt: bits & 1 == 1,
        }
    }
}

/// What a process waits for on the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The append lock was given back.
    Released,
    /// A head was published.
    Published,
    /// A sync of an even number has ended, or one failed.
    SyncedEven,
    /// A sync of an odd number has ended, or one failed.
    SyncedOdd,
}

/// The page, mapped for reading; every answer is a snapshot.
#[derive(Clone)]
pub struct Page {
    memory: Arc<dyn SharedMemory>,
    storage: Arc<dyn Storage>,
    file: Arc<dyn StoredFile>,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("word", &self.word())
            .field("durable", &self.durable())
            .finish()
    }
}

impl Page {
    /// Maps an open control file for `access`; `None` when it is not a control page of this version.
    ///
    /// # Errors
    /// The system's answer.
    pub fn map(
        storage: Arc<dyn Storage>,
        file: Arc<dyn StoredFile>,
        access: Access,
    ) -> io::Result<Option<Page>> {
        if file.size()? != CONTROL_BYTES as u64 {
            return Ok(None);
        }
        let memory = file.map_shared(access)?;
        let magic = memory.word(at::MAGIC).load(SeqCst);
        Ok((magic == MAGIC).then_some(Page {
            memory,
            storage,
            file,
        }))
    }

    fn load(&self, index: usize) -> u64 {
        self.memory.word(index).load(SeqCst)
    }

    /// The boot that the volatile half holds for.
    #[must_use]
    pub fn boot(&self) -> BootId {
        BootId(self.sixteen(at::BOOT))
    }

    /// The store that the page belongs to.
    #[must_use]
    pub fn store(&self) -> StoreId {
        StoreId(self.sixteen(at::STORE))
    }

    fn sixteen(&self, index: usize) -> [u8; 16] {
        halves_to_bytes(self.load(index), self.load(index + 1))
    }

    /// The word.
    #[must_use]
    pub fn word(&self) -> Word {
        Word::unpack(self.load(at::WORD))
    }

    /// Every position up to here is durable.
    #[must_use]
    pub fn durable(&self) -> Position {
        Position(self.load(at::DURABLE))
    }

    /// The greatest position a sync was begun for.
    #[must_use]
    pub fn target(&self) -> Position {
        Position(self.load(at::TARGET))
    }

    /// Whether a sync failed in this epoch, or in a later one.
    #[must_use]
    pub fn poisoned(&self, epoch: Epoch) -> bool {
        epoch <= self.poison()
    }

    /// The greatest epoch in which a sync failed; zero when none did.
    #[must_use]
    pub fn poison(&self) -> Epoch {
        Epoch(self.load(at::POISON))
    }

    /// Whether zeros were written in this epoch of which nobody said that they are durable.
    #[must_use]
    pub fn is_zeroing(&self, epoch: Epoch) -> bool {
        self.load(at::ZEROING) == epoch.0
    }

    /// How often the append lock was taken: while this stands still, so does its holder.
    #[must_use]
    pub fn acquisitions(&self) -> u64 {
        self.load(at::ACQUISITIONS)
    }

    /// Who took the append lock last, for messages.
    #[must_use]
    pub fn describe_holder(&self) -> String {
        format!(
            "process {}, which took the append lock of epoch {}",
            self.load(at::HOLDER),
            self.word().epoch
        )
    }

    /// The number of the sync lock that is in use.
    #[must_use]
    pub fn sync_turn(&self) -> u64 {
        self.load(at::SYNC_TURN)
    }

    /// The sync that was begun last.
    #[must_use]
    pub fn begun(&self) -> Begun {
        Begun::unpack(self.load(at::BEGUN))
    }

    /// Where the newest published frame stands; none while the holder of a raised epoch has not settled.
    #[must_use]
    pub fn place(&self) -> Option<HeadPlace> {
        place::newest(&*self.memory, at::PLACES, || self.word())
    }

    /// The greatest position known durable across boots.
    #[must_use]
    pub fn mark(&self) -> Option<DurableMark> {
        place::mark(&*self.memory, at::MARKS)
    }

    /// The anchor in `segment` nearest before the frame behind `position`.
    #[must_use]
    pub fn anchor(&self, segment: SegmentName, position: Position) -> Option<Anchor> {
        anchor::nearest(&*self.memory, at::ANCHORS, segment, position)
    }

    /// What has to be handed to [`Control::wait`] later: nothing signalled in between is missed.
    #[must_use]
    pub fn seen(&self, signal: Signal) -> u32 {
        self.half(signal, 0).load(SeqCst)
    }

    /// Whether the page still has its name. What is published on a page without one reaches nobody.
    ///
    /// # Errors
    /// The system's answer.
    pub fn is_current(&self) -> io::Result<bool> {
        self.file.is_linked()
    }

    /// Sleeps until `signal` is given again after `seen`, at most `bound`. Changes nothing, so that
    /// a giver who looks for waiters does not see this one: bounds are short.
    pub fn wait_unseen(&self, signal: Signal, seen: u32, bound: Duration) {
        self.storage.wait(self.half(signal, 0), seen, bound);
    }

    /// Each signal has a cache line: its sequence number, and how many wait for it.
    fn half(&self, signal: Signal, which: usize) -> &AtomicU32 {
        self.memory
            .half_word(at::SIGNALS + signal as usize * 16 + which)
    }

    /// What was counted under a tag.
    #[must_use]
    pub fn counted(&self, tag: CounterTag) -> u64 {
        counters::CounterTable::new(&*self.memory, at::COUNTERS).get(tag)
    }
}

/// The page, mapped for writing.
#[derive(Clone, Debug)]
pub struct Control {
    page: Page,
}

impl std::ops::Deref for Control {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.page
    }
}

impl Control {
    /// The page as one that may be changed. It has to be mapped for writing.
    #[must_use]
    pub fn new(page: Page) -> Control {
        Control { page }
    }

    fn raise_word(&self, index: usize, value: u64) -> bool {
        self.page.storage.step();
        self.page.memory.word(index).fetch_max(value, SeqCst) < value
    }

    /// Replaces the word if it still is `from`; says whether it did.
    ///
    /// # Panics
    /// When `to` does not fit into the word ([`WORD_POSITION_MAX`], [`WORD_EPOCH_MAX`]).
    #[must_use]
    pub fn swap(&self, from: Word, to: Word) -> bool {
        self.page.storage.step();
        self.page
            .memory
            .word(at::WORD)
            .compare_exchange(from.pack(), to.pack(), SeqCst, SeqCst)
            .is_ok()
    }

    /// Whether a file is *the* append lock of `epoch`: the first one that was taken. Another one of that
    /// name stands in place of a removed one, which somebody may still hold.
    #[must_use]
    pub fn is_lock_of(&self, epoch: Epoch, inode: u64) -> bool {
        self.page.storage.step();
        let word = self.page.memory.word(at::LOCK);
        let ours = epoch.0 << LOCK_INODE_BITS | inode & LOCK_INODE_MASK;
        let mut found = word.load(SeqCst);
        while found >> LOCK_INODE_BITS < epoch.0 {
            match word.compare_exchange(found, ours, SeqCst, SeqCst) {
                Ok(_) => return true,
                Err(other) => found = other,
            }
        }
        found == ours
    }

    /// Counts one acquisition of the append lock, by this process.
    pub fn count_acquisition(&self) {
        self.page.storage.step();
        let us = u64::from(self.page.storage.process().0);
        self.page.memory.word(at::HOLDER).store(us, SeqCst);
        self.page.memory.word(at::ACQUISITIONS).fetch_add(1, SeqCst);
    }

    /// States that every position up to here is durable.
    pub fn raise_durable(&self, position: Position) {
        self.raise_word(at::DURABLE, position.0);
    }

    /// States that a sync is begun for this position.
    pub fn raise_target(&self, position: Position) {
        self.raise_word(at::TARGET, position.0);
    }

    /// States that a sync failed in this epoch.
    pub fn poison_epoch(&self, epoch: Epoch) {
        self.raise_word(at::POISON, epoch.0);
        self.ring(Signal::SyncedEven, u32::MAX);
        self.ring(Signal::SyncedOdd, u32::MAX);
    }

    /// Notes that a sync of everything up to `target` begins. Only with a sync lock.
    pub fn begin_sync(&self, target: Position) {
        let word = self.begun().next(target).pack();
        self.page.memory.word(at::BEGUN).store(word, SeqCst);
    }

    /// Wakes everybody whom the newest sync served, and one of those who have to wait for the next: to lead it.
    pub fn end_sync(&self) {
        let [this, next] = self.begun().signals();
        self.ring(this, u32::MAX);
        self.ring(next, 1);
    }

    /// States that zeros of this epoch are being made durable. Only under its lock.
    pub fn begin_zeros(&self, epoch: Epoch) {
        self.page.storage.step();
        self.page.memory.word(at::ZEROING).store(epoch.0, SeqCst);
    }

    /// States that they are. Only under the lock of that epoch: an overtaken holder changes nothing.
    pub fn end_zeros(&self, epoch: Epoch) {
        self.page.storage.step();
        let word = self.page.memory.word(at::ZEROING);
        let _ = word.compare_exchange(epoch.0, 0, SeqCst, SeqCst);
    }

    /// Goes past the sync lock numbered `turn`, whose holder stands still.
    pub fn pass_sync_turn(&self, turn: u64) {
        self.raise_word(at::SYNC_TURN, turn + 1);
    }

    /// Writes down where the head stands that is published next in `epoch`. Only under its lock.
    pub fn put_place(&self, epoch: Epoch, place: &HeadPlace) {
        self.page.storage.step();
        let published = self.page.word().head;
        place::put(&*self.page.memory, at::PLACES, epoch, place, published);
    }

    /// Writes down where frames begin, so that readers need not look from the segment's start. Only
    /// under the append lock.
    pub fn put_anchor(&self, anchor: &Anchor) {
        anchor::put(&*self.page.memory, at::ANCHORS, anchor);
    }

    /// Writes down a position known durable across boots.
    pub fn put_mark(&self, mark: &DurableMark) {
        self.page.storage.step();
        place::put_mark(&*self.page.memory, at::MARKS, mark);
    }

    /// Sleeps until `signal` is given again after `seen`, at most `bound`.
    pub fn wait(&self, signal: Signal, seen: u32, bound: Duration) {
        self.page.storage.step();
        self.half(signal, 1).fetch_add(1, SeqCst);
        self.page.storage.wait(self.half(signal, 0), seen, bound);
        self.half(signal, 1).fetch_sub(1, SeqCst);
    }

    /// Gives `signal` to up to `count` waiters; one system call, and none when nobody waits. A
    /// process killed while it waited counts as waiting until the page is replaced: it costs calls.
    pub fn ring(&self, signal: Signal, count: u32) {
        self.half(signal, 0).fetch_add(1, SeqCst);
        if self.half(signal, 1).load(SeqCst) > 0 {
            self.page.storage.wake(self.half(signal, 0), count);
        }
    }

    /// Makes the durable marks durable.
    ///
    /// # Errors
    /// The system's answer.
    pub fn sync(&self) -> io::Result<()> {
        self.page.file.sync()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> counters::CounterTable<'_> {
        counters::CounterTable::new(&*self.page.memory, at::COUNTERS)
    }
}

/// What a new page says.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    /// This boot.
    pub boot: BootId,
    /// The store.
    pub store: StoreId,
    /// Epoch and head, as the lock holder found them.
    pub word: Word,
    /// Where that head stands.
    pub place: HeadPlace,
    /// Every position up to here was synced.
    pub durable: Position,
    /// The mark to carry over, if there is one.
    pub mark: Option<DurableMark>,
}

impl Birth {
    /// The bytes of the page.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut words = vec![0; CONTROL_BYTES / 8];
        words[at::MAGIC] = MAGIC;
        [words[at::BOOT], words[at::BOOT + 1]] = bytes_to_halves(self.boot.0);
        [words[at::STORE], words[at::STORE + 1]] = bytes_to_halves(self.store.0);
        words[at::WORD] = self.word.pack();
        words[at::DURABLE] = self.durable.0;
        words[at::TARGET] = self.durable.0;
        place::lay_place(&mut words[at::PLACES..], self.word.epoch, &self.place);
        if let Some(mark) = &self.mark {
            place::lay_mark(&mut words[at::MARKS..], mark);
        }
        // Shared memory is read in the machine's own order; a page never leaves its machine.
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }
}

fn halves_to_bytes(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

fn bytes_to_halves(bytes: [u8; 16]) -> [u64; 2] {
    let number = u128::from_le_bytes(bytes);
    [number as u64, (number >> 64) as u64]
}

#[derive(Debug)]
struct Mapped {
    map: MmapRaw,
}

/// Maps a file as shared words.
pub(crate) fn map_shared(file: &File, access: Access) -> io::Result<Arc<dyn SharedMemory>> {
    let options = MmapOptions::new();
    let map = match access {
        Access::Read => options.map_raw_read_only(file)?,
        Access::Write | Access::CreateNew | Access::CreateOrOpen => options.map_raw(file)?,
    };
    Ok(Arc::new(Mapped { map }))
}

impl SharedMemory for Mapped {
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(
            index < self.map.len() / size_of::<AtomicU64>(),
            "word {index} of a page of {}",
            self.map.len()
        );
        // SAFETY: the mapping begins at a page boundary and lives as long as `self`; the index was
        // just held against its length. All access, in every process that keeps to the protocol, is
        // atomic. A page mapped for reading is only loaded from: only `Control` stores.
        unsafe { &*self.map.as_ptr().cast::<AtomicU64>().add(index) }
    }

    fn half_word(&self, index: usize) -> &AtomicU32 {
        assert!(
            index < self.map.len() / size_of::<AtomicU32>(),
            "half word {index} of a page of {}",
            self.map.len()
        );
        // SAFETY: as above; half words and words never overlap (see `at`).
        unsafe { &*self.map.as_ptr().cast::<AtomicU32>().add(index) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_comes_back_at_its_limits() {
        for epoch in [0, 1, WORD_EPOCH_MAX] {
            for head in [0, 1, WORD_POSITION_MAX] {
                for in_doubt in [false, true] {
                    let word = Word {
                        epoch: Epoch(epoch),
                        head: Position(head),
                        in_doubt,
                    };
                    assert_eq!(Word::unpack(word.pack()), word);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "the word holds")]
    fn a_position_beyond_the_word_is_never_cut() {
        let _ = Word {
            epoch: Epoch(1),
            head: Position(WORD_POSITION_MAX + 1),
            in_doubt: false,
        }
        .pack();
    }
}
