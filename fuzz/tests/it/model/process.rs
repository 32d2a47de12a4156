//! What one process knows and where it stands.

use std::fmt;

use super::state::{BATCH_MAX, FrameId};

/// Where a process stands in the protocol; each step touches one shared thing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum At {
    /// Between commands, or before another round of the same command: loads the epoch next.
    Idle,
    /// Wants `locks/epoch`.
    Lock,
    /// Past its bound: creates the next lock file, syncs the directory, raises the word.
    RaiseCreate,
    RaiseSync,
    RaiseSwap,
    /// Holds the lock from here to `Publish`: compares the word with what it knows, reads what is new.
    Check,
    /// In doubt: syncs the directory for an entry that a dead creator may not have synced.
    FoundSync,
    /// Zeroes what stands behind the end it found.
    Cut,
    CutSync,
    /// In a new epoch: makes its own segment, which carries over what is not durable.
    Succeed,
    SucceedSync,
    /// Says where the head stands that it found, then publishes it and clears the in-doubt bit.
    Settle,
    SettleSwap,
    /// What its new segment carries is durable.
    SettleRaise,
    Decide,
    /// The segment is full: sets the in-doubt bit, syncs the segment up to its end, makes the next with the frames in it.
    Rotate,
    CloseBegin,
    CloseSync,
    CloseRaise,
    ClosePoison,
    Create,
    CreateSync,
    /// There is room: sets the in-doubt bit, writes.
    Mark,
    WriteBegin,
    WriteMiddle,
    WriteEnd,
    /// Says where the head stands, then publishes it.
    Place,
    Publish,
    /// The frames were in the new segment before it had a name: they are durable.
    PublishRaise,
    /// Only without the swap: the second half of a look and a store.
    PublishStore,
    /// Holds no lock from here on: waits until its position is durable.
    Wait,
    SyncBegin,
    SyncTarget,
    Sync,
    SyncRaise,
    SyncPoison,
}

/// An open segment: which file it is. The last number tells files of one name apart, where a rename may replace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    pub first: u8,
    pub epoch: u8,
    pub again: u8,
}

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.epoch)?;
        f.write_str(&"'".repeat(usize::from(self.again)))
    }
}

/// The newest segment as a process knows it, through its open descriptor, and the head it cached with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    pub file: FileId,
    /// None for a file that was opened to sync it, not to append.
    pub head: Option<u8>,
    pub tip: FrameId,
    /// Frames up to here may have been written before the descriptor was opened.
    pub opened_at: u8,
    /// How many failed syncs of the file this descriptor has been told of, or was opened after.
    pub errors_seen: u8,
}

impl Handle {
    /// The head that the steps behind `Check` have read.
    pub fn caught_up(&self) -> u8 {
        self.head
            .expect("a process behind its check has read the head")
    }
}

/// One process with one thread. Threads of a process combine, which is a batch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process {
    pub at: At,
    pub stopped: bool,
    pub commands_left: u8,
    /// The frames of each command.
    pub batch: u8,
    pub command: u8,
    pub attempt: u8,
    /// The first part of the batch that is not in the log as far as its owner knows.
    pub part: u8,
    /// The attempt that wrote each part.
    pub written: [u8; BATCH_MAX],
    pub epoch: u8,
    pub handle: Option<Handle>,
    /// The descriptor that it syncs through, where that is another one.
    pub led: Option<Handle>,
    /// Its publication failed: the frames at `question` are in the log, or not.
    pub asks: bool,
    pub question: u8,
    /// It was refused, and answers when the head it was judged by is durable.
    pub refused: bool,
    /// The position that has to be durable before it answers.
    pub waits_for: u8,
    /// Up to where its sync makes frames durable.
    pub target: u8,
    /// It takes the lock only to write down where the head stands.
    pub repairs: bool,
    /// The frames it publishes were in the segment before that had a name.
    pub born: bool,
}

impl Process {
    pub fn new(commands_left: u8, batch: u8) -> Process {
        Process {
            at: At::Idle,
            stopped: false,
            commands_left,
            batch,
            command: 0,
            attempt: 0,
            part: 0,
            written: [0; BATCH_MAX],
            epoch: 0,
            handle: None,
            led: None,
            asks: false,
            question: 0,
            refused: false,
            waits_for: 0,
            target: 0,
            born: false,
            repairs: false,
        }
    }

    /// The descriptor that the steps behind `Check` have.
    pub fn opened(&self) -> Handle {
        self.handle
            .expect("a process behind its check has the newest segment open")
    }

    /// The descriptor that the steps of a leader, or of whoever closes or zeroes a segment, sync through.
    pub fn syncs_by(&mut self) -> &mut Option<Handle> {
        let leads = matches!(
            self.at,
            At::SyncBegin | At::SyncTarget | At::Sync | At::SyncRaise | At::SyncPoison
        );
        if leads && self.led.is_some() {
            &mut self.led
        } else {
            &mut self.handle
        }
    }

    /// The command has its answer, or its process does not live to get one.
    pub fn next_command(&mut self) {
        let next = Process::new(self.commands_left - 1, self.batch);
        let lives = next.commands_left > 0;
        *self = Process {
            command: self.command + 1,
            handle: self.handle.filter(|_| lives),
            led: self.led.filter(|_| lives),
            ..next
        };
    }

    /// Starts another round of the same command; what the round before knew only for itself is forgotten.
    pub fn again(&mut self) {
        self.at = At::Idle;
        self.epoch = 0;
        self.target = 0;
        if !self.repairs {
            self.waits_for = 0;
        }
        self.born = false;
    }
}
