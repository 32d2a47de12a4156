//! What a state of the model is: the shared words, the locks, the files, the processes, and what was promised to whom.

use std::fmt;

use super::files::Segment;
pub use super::process::{At, FileId, Handle, Process};

/// The most processes a configuration can have; frame ids keep two bits for the owner.
pub const PROCESSES_MAX: usize = 4;
/// The most frames one command can write.
pub const BATCH_MAX: usize = 2;
/// The most writer epochs, counted from 1, that any bounds reach.
const EPOCHS_MAX: usize = 8;
/// How many bits of the id sets belong to one process.
const LANE_BITS: u32 = 32;

/// One write of one frame: who, for which command, at which attempt, which part of the batch. No id is written twice
/// with another predecessor, so that an id and the id before it stand for the chain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(u8);

impl FrameId {
    /// What stands before the first frame.
    pub const NONE: FrameId = FrameId(0xff);

    pub fn new(owner: usize, command: u8, attempt: u8, part: u8) -> FrameId {
        assert!(owner < PROCESSES_MAX && command < 4 && attempt < 4 && part < 2);
        FrameId((owner as u8) << 5 | command << 3 | attempt << 1 | part)
    }

    /// The same frame with another chain value.
    pub fn chained_anew(self) -> FrameId {
        FrameId(self.0 | 0x80)
    }

    pub fn bit(self) -> u128 {
        1 << (self.0 & 0x7f)
    }

    /// The same part of the same command, whichever attempt wrote it.
    pub fn decision(self) -> u8 {
        self.0 & 0b0111_1001
    }

    fn renamed(self, new_index: &[usize]) -> FrameId {
        if self == FrameId::NONE {
            return self;
        }
        FrameId(self.0 & 0b1001_1111 | (new_index[usize::from(self.0 >> 5 & 3)] as u8) << 5)
    }
}

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == FrameId::NONE {
            return f.write_str("-");
        }
        let owner = char::from(b'A' + (self.0 >> 5 & 3));
        write!(f, "{owner}{}", self.0 >> 3 & 3)?;
        if self.0 >> 1 & 3 > 0 {
            write!(f, "'{}", self.0 >> 1 & 3)?;
        }
        f.write_str(if self.0 & 1 == 1 { "+" } else { "" })
    }
}

/// The volatile word: changed as a whole, by compare-and-swap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Word {
    pub epoch: u8,
    pub head: u8,
    pub in_doubt: bool,
}

/// The files under `locks/`: how many exist, how many survive a power loss, who holds which.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Locks {
    pub greatest: u8,
    pub greatest_synced: u8,
    /// The file of the greatest epoch has no name any more. Who has it open can still lock it.
    pub removed: bool,
    holders: [Option<u8>; EPOCHS_MAX],
}

impl Locks {
    pub fn new() -> Locks {
        Locks {
            greatest: 1,
            greatest_synced: 1,
            removed: false,
            holders: [None; EPOCHS_MAX],
        }
    }

    /// Makes the lock file of an epoch, unless it is there.
    pub fn make(&mut self, epoch: u8) {
        self.removed &= epoch <= self.greatest;
        self.greatest = self.greatest.max(epoch);
    }

    pub fn holder(&self, epoch: u8) -> Option<usize> {
        self.holders[usize::from(epoch)].map(usize::from)
    }

    pub fn take(&mut self, epoch: u8, process: usize) {
        assert!(self.holder(epoch).is_none(), "a lock has one holder");
        self.holders[usize::from(epoch)] = Some(process as u8);
    }

    /// What the end of a process does, and an unlock: at most one append lock is held by a process.
    pub fn release_all_of(&mut self, process: usize) {
        for holder in &mut self.holders {
            if *holder == Some(process as u8) {
                *holder = None;
            }
        }
    }

    pub fn release_all(&mut self) {
        self.holders = [None; EPOCHS_MAX];
    }
}

/// Where the page says that a head stands. Written before the head is published, believed when it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    pub head: u8,
    pub file: FileId,
}

/// What the environment may still do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    pub raises: u8,
    pub kills: u8,
    pub stops: u8,
    pub refusals: u8,
    pub short_writes: u8,
    pub failed_syncs: u8,
    /// The page cache lets go of what a failed sync lost; reads give the disk's old bytes.
    pub evictions: u8,
    pub shutdowns: u8,
    pub power_losses: u8,
    /// Somebody removes the newest lock file.
    pub removals: u8,
}

/// A promise that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Broken {
    AcknowledgedMissing,
    AbsentPresent,
    PrefixChanged,
    Doubled,
    DecidedElsewhere,
    Gap,
    Lineage,
    Stranded,
}

impl Broken {
    /// The promise.
    pub const fn promise(self) -> &'static str {
        match self {
            Broken::AcknowledgedMissing => "no acknowledged frame is missing",
            Broken::AbsentPresent => "no frame answered absent is in the log",
            Broken::PrefixChanged => "the published and the durable prefix never change",
            Broken::Doubled => "no decision stands twice",
            Broken::DecidedElsewhere => "no frame of another history stands behind the last",
            Broken::Gap => "positions have no gap",
            Broken::Lineage => "the chain of segments holds",
            Broken::Stranded => "nobody waits for ever",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub word: Word,
    /// The sync target and the durable position: raised only.
    pub target: u8,
    pub durable: u8,
    /// The greatest epoch that a failed sync poisoned.
    pub poison: u8,
    /// The epoch in which zeros were begun of which nobody said that they are durable.
    pub zeroing: u8,
    pub locks: Locks,
    pub segments: Vec<Segment>,
    pub processes: Vec<Process>,
    pub left: Budget,
    /// The file system is shut down: whatever is read or written fails from now on.
    pub shut_down: bool,
    /// The page cache let go of bytes: what was published and is not durable is no promise any more.
    pub evicted: bool,
    /// Two slots, the newer last.
    pub places: Vec<Place>,
    /// What was published, in order, and how much of it was called durable or answered by; kept to judge by.
    pub published: Vec<FrameId>,
    pub confirmed: u8,
    pub acknowledged: u128,
    pub absent: u128,
    pub broken: Option<Broken>,
}

impl State {
    /// Writes into the slot that is not the published head's.
    pub fn put_place(&mut self, place: Place) {
        if self.places.len() == 2 {
            let published = self
                .places
                .iter()
                .rposition(|there| there.head == self.word.head);
            self.places.remove(if published == Some(0) { 1 } else { 0 });
        }
        self.places.push(place);
    }

    /// Drops what no process will believe any more, so that states that differ in nothing else are one.
    pub fn forget_old_places(&mut self) {
        let Word { epoch, head, .. } = self.word;
        self.places
            .retain(|place| place.file.epoch >= epoch && place.head >= head);
    }

    /// The same state with the processes in a fixed order: they are alike, so what one may do any other may.
    pub fn in_order(mut self) -> State {
        let key = |p: &Process| Process {
            handle: p.handle.map(|h| Handle {
                tip: FrameId::NONE,
                ..h
            }),
            ..p.clone()
        };
        if self.processes.is_sorted_by(|a, b| key(a) <= key(b)) {
            return self;
        }
        let mut order: Vec<usize> = (0..self.processes.len()).collect();
        order.sort_by_key(|&i| key(&self.processes[i]));
        let mut new_index = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            new_index[old] = new;
        }
        self.processes = order
            .iter()
            .map(|&old| self.processes[old].clone())
            .collect();
        self.rename(&new_index);
        self
    }

    fn rename(&mut self, new_index: &[usize]) {
        for holder in self.locks.holders.iter_mut().flatten() {
            *holder = new_index[usize::from(*holder)] as u8;
        }
        for handle in self.processes.iter_mut().filter_map(|p| p.handle.as_mut()) {
            handle.tip = handle.tip.renamed(new_index);
        }
        for segment in &mut self.segments {
            segment.map_ids(|id| id.renamed(new_index));
        }
        for id in &mut self.published {
            *id = id.renamed(new_index);
        }
        self.acknowledged = lanes_renamed(self.acknowledged, new_index);
        self.absent = lanes_renamed(self.absent, new_index);
    }
}

fn lanes_renamed(set: u128, new_index: &[usize]) -> u128 {
    let lane = u128::from(u32::MAX);
    new_index
        .iter()
        .enumerate()
        .fold(0, |renamed, (old, &new)| {
            renamed | (set >> (old as u32 * LANE_BITS) & lane) << (new as u32 * LANE_BITS)
        })
}
