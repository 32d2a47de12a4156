//! The seam between a log engine and everything that replays or extends a log.
//!
//! A journal orders frames. It knows positions, epochs and bytes, never what a frame means: whoever
//! appends decides inside [`Journal::transact`], which runs once on the true head. All engines carry
//! the same frame parts and pass one conformance suite.

pub mod memory;
pub mod segment;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::fault::{Fault, Part};
pub use crate::format::RulesVersion;
use crate::frame::{Depth, Draft, Frame, FrameRef};
use crate::options::POSITION_MAX;
use crate::position::{Chain, Head, Incarnation, Position, Salt, StoreId};
pub use crate::reader::landmark::Landmark;
use crate::recovery::Torn;
use crate::storage::{Pieces, SealedBytes};

/// Which life of which store a journal is, and by which rules its newest frames were judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The store's name, drawn at birth and kept for ever.
    pub store: StoreId,
    /// The current life; raised by restore, salvage and copy.
    pub incarnation: Incarnation,
    /// The rules version named by the newest segment header.
    pub rules: RulesVersion,
}

/// A point on the monotonic clock after which an operation stops waiting, or never.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No deadline.
    pub const NEVER: Deadline = Deadline(None);

    /// A deadline at `instant`.
    pub fn at(instant: Instant) -> Deadline {
        Deadline(Some(instant))
    }

    /// A deadline `wait` from now; [`Deadline::NEVER`] when the clock cannot count that far.
    pub fn after(wait: Duration) -> Deadline {
        Deadline(Instant::now().checked_add(wait))
    }

    /// The time left at `now`: `None` when there is no deadline, zero when it has passed.
    pub fn remaining(self, now: Instant) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(now))
    }

    /// Whether the deadline has passed at `now`.
    pub fn passed(self, now: Instant) -> bool {
        self.0.is_some_and(|at| at <= now)
    }

    /// The shorter of `wait` and the time left at `now`.
    pub fn bound(self, wait: Duration, now: Instant) -> Duration {
        self.remaining(now).map_or(wait, |left| left.min(wait))
    }
}

/// What a decision sees: the frames its caller had not read yet, and the head it will extend.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    /// The frames after the `known` head, oldest first.
    pub frames: &'a [Frame],
    /// The true head; the first draft stands at `head.position + 1`.
    pub head: Head,
    /// The life the drafts will be written in.
    pub incarnation: Incarnation,
}

/// What a transaction put into the log. Published, not yet durable: see [`Journal::wait_durable`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The position of the first draft; of the judged head when there was no draft.
    pub first: Position,
    /// One head per draft, in order.
    pub heads: Vec<Head>,
    /// The head after the transaction; the judged head when there was no draft.
    pub head: Head,
    /// Where that head stands, for [`Journal::read_behind`]; none on engines without places.
    pub mark: Option<Landmark>,
    /// Where every one of `heads` stands, in order; empty on engines without places, and where frames were found in the
    /// log that a newer epoch may have carried elsewhere.
    pub marks: Vec<Landmark>,
    /// The drafts, given back for the room that they have; empty where an engine keeps them.
    pub drafts: Vec<Draft>,
}

/// Why a transaction did not put all its drafts into the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError {
    /// An epoch was raised meanwhile. The first `appended.len()` drafts are in the log, the others
    /// certainly are not: read on, rebuild, and decide again.
    #[error("the log moved on meanwhile: {} of the drafts are in it, decide the others again", appended.len())]
    Moved {
        /// The heads of the drafts that are in the log.
        appended: Vec<Head>,
    },
    /// It may have happened. Ask later by position and chain.
    #[error("it is unknown whether position {} with chain {chain} is in the log", position.0)]
    Unknown {
        /// Where the last draft would stand.
        position: Position,
        /// The chain it would have there.
        chain: Chain,
        /// Why the question could not be answered.
        #[source]
        source: Error,
    },
    /// Nothing happened.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// A decision for [`Journal::transact`]: sees the tail, returns drafts to append in order.
pub type Decision<'f> = &'f mut dyn FnMut(Tail<'_>) -> Vec<Draft>;

/// A decision for [`Journal::raise`]: sees the tail and the new life, returns its first frame.
pub type Raising<'f> = &'f mut dyn FnMut(Tail<'_>, Incarnation) -> Draft;

/// Frames of a journal in order, borrowed one at a time.
pub trait Frames {
    /// The next frame; `None` at the head that was published when the walk began. After an error
    /// the walk is over.
    fn next(&mut self) -> Option<Result<FrameRef<'_>, Error>>;

    /// Where the newest frame handed out stands; none before the first, and on engines without places.
    fn landmark(&self) -> Option<Landmark> {
        None
    }
}

/// An ordered log of frames that many threads and processes extend.
pub trait Journal: Send + Sync {
    /// Store, life and rules version.
    fn identity(&self) -> Identity;

    /// From which position on which version of the rules decided: one entry for each change, oldest first.
    ///
    /// # Errors
    /// When what says so cannot be read.
    fn rules(&self) -> Result<Vec<(Position, RulesVersion)>, Error> {
        Ok(vec![(Position(1), self.identity().rules)])
    }

    /// The newest published head; one atomic load where nothing is new.
    ///
    /// # Errors
    /// When the head has to be looked up and cannot be read.
    fn head(&self) -> Result<Head, Error>;

    /// Every position up to here is durable.
    ///
    /// # Errors
    /// When the mark has to be looked up and cannot be read.
    fn durable(&self) -> Result<Position, Error>;

    /// Runs `decide` once under the append lock, with the frames after `known` and the true head,
    /// and appends what it returns with one write. The position of a draft is `head + 1`,
    /// `head + 2` and so on. Returns when the drafts are published, which is before they are
    /// durable. `known` has to be a head of this log.
    ///
    /// # Errors
    /// See [`TransactError`]; [`Error::Busy`] when the lock was not to be had by `deadline`.
    fn transact(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Decision<'_>,
    ) -> Result<Appended, TransactError>;

    /// Waits until every position up to `position` is durable, leading the sync where nobody does.
    /// Every thread of every process may call it.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when a sync failed: what was not acknowledged before is unknown.
    fn wait_durable(&self, position: Position, deadline: Deadline) -> Result<(), Error>;

    /// The frames after `after`, up to the head published at the call. Takes no lock and changes
    /// no byte.
    ///
    /// # Errors
    /// When the log cannot be read, or is damaged at the start of the walk.
    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error>;

    /// Where the frame of a published head stands, for [`Journal::read_behind`]; none when it is not in this
    /// log, and on engines without places.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn landmark(&self, _head: Head) -> Result<Option<Landmark>, Error> {
        Ok(None)
    }

    /// As [`Journal::read_from`], behind a landmark and without a search. None when it does not stand:
    /// whoever asks then searches.
    ///
    /// # Errors
    /// As [`Journal::read_from`].
    fn read_behind(
        &self,
        _landmark: &Landmark,
        _depth: Depth,
    ) -> Result<Option<Box<dyn Frames + '_>>, Error> {
        Ok(None)
    }

    /// Waits until the head is beyond `position` or the deadline has passed, and returns the head
    /// either way.
    ///
    /// # Errors
    /// [`Error::BeyondHead`] at once when the log does not reach `position` (F19): whoever knows it has read another
    /// log, or one that was rolled back. When the head cannot be read.
    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<Head, Error>;

    /// Begins a new life: a new segment with a new salt and an incarnation raised by one plus a
    /// random number below 2^31, whose first frame is the draft. Two lives that begin from the
    /// same bytes differ.
    ///
    /// # Errors
    /// As [`Journal::transact`].
    fn raise(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Raising<'_>,
    ) -> Result<Appended, TransactError>;

    /// Shared counters. Statistics only: lost with the control page.
    fn counters(&self) -> &dyn Counters;

    /// Named derived files. Never truth: whatever does not fit is ignored and rebuilt.
    fn snapshots(&self) -> &dyn Blobs;

    /// The torn tails that recovery has cut off, ever, as far as their bytes are still kept: for the caller to record those
    /// that it has not. May be asked inside of a transaction.
    fn torn(&self) -> Vec<Torn> {
        Vec::new()
    }

    /// Does what can be done at any time and delays nobody: a segment log seals what was closed. Nothing
    /// depends on it.
    ///
    /// # Errors
    /// The system's answer.
    fn tend(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// What a counter counts, as its user numbers it. Zero is no tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CounterTag(pub u64);

/// Counters shared by every process on a store; statistics, never decisions.
pub trait Counters: Send + Sync {
    /// Adds `n` and returns the new count; `None` when every slot is taken by other tags.
    fn add(&self, tag: CounterTag, n: u64) -> Option<u64>;
    /// The count of `tag`, zero when nothing was counted.
    fn get(&self, tag: CounterTag) -> u64;
    /// The count of `tag`, setting it to zero.
    fn take(&self, tag: CounterTag) -> u64;
    /// Calls `f` with every tag that has a count above zero.
    fn for_each(&self, f: &mut dyn FnMut(CounterTag, u64));
}

/// Named derived files beside a log.
pub trait Blobs: Send + Sync {
    /// The whole blob, or `None` when there is none of that name.
    ///
    /// # Errors
    /// When it exists and cannot be read, or the name is not a plain name.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error>;
    /// As many bytes of the blob from `offset` on as `into` has room for and the blob has; `None` when there is
    /// none of that name.
    ///
    /// # Errors
    /// When it exists and cannot be read, or the name is not a plain name.
    fn read_part(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<Option<usize>, Error>;
    /// The whole blob where it is, without reading it: what is never looked at costs nothing. It stays what it was
    /// when it is replaced or removed. `None` when there is none of that name, or it is empty.
    ///
    /// # Errors
    /// When it exists and cannot be mapped, or the name is not a plain name.
    fn map(&self, name: &str) -> Result<Option<Arc<dyn SealedBytes>>, Error>;
    /// Replaces the blob: all of it or nothing, durable on return.
    ///
    /// # Errors
    /// When it cannot be written, or the name is not a plain name.
    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;
    /// As [`Blobs::write_atomic`] of each, durable on return together.
    ///
    /// # Errors
    /// When one cannot be written, or a name is not a plain name; each is then as it was, or new.
    fn write_together(&self, blobs: &[(String, Box<dyn Pieces>)]) -> Result<(), Error> {
        blobs.iter().try_for_each(|(name, content)| {
            let mut bytes = Vec::new();
            let whole = content.each(&mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            whole.map_err(|error| Error::from_io("make", name, error))?;
            self.write_atomic(name, &bytes)
        })
    }
    /// The names, sorted.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn list(&self) -> Result<Vec<String>, Error>;
    /// Removes the blob if it is there.
    ///
    /// # Errors
    /// When it cannot be removed, or the name is not a plain name.
    fn remove(&self, name: &str) -> Result<(), Error>;
    /// Puts bytes away outside of memory, where nobody else finds them; they are gone with what this gives. None where
    /// there is no room, and on engines that have no such place.
    fn put_away(&self, _bytes: &[u8]) -> Option<Arc<dyn SealedBytes>> {
        None
    }
    /// Keeps others from making the same blobs at the same time, until what it gives is dropped; `None` while somebody
    /// does. It spares work and guards nothing: a blob is whole whoever writes it. An engine without such a lock gives
    /// it to everybody.
    ///
    /// # Errors
    /// When the lock cannot be had.
    fn alone(&self) -> Result<Option<Box<dyn Send>>, Error> {
        Ok(Some(Box::new(())))
    }
}

/// Whether a log reaches the position that somebody waits behind.
pub(crate) fn reaches(head: Head, asked: Position) -> Result<(), Error> {
    if head.position < asked {
        return Err(Error::BeyondHead {
            head: head.position,
            asked,
        });
    }
    Ok(())
}

/// The salt and incarnation of the life after `incarnation`, from twenty random bytes.
pub(crate) fn next_life(incarnation: Incarnation, random: [u8; 20]) -> (Salt, Incarnation) {
    let (salt, step) = random
        .split_first_chunk::<16>()
        .expect("twenty bytes hold sixteen");
    let step = u32::from_le_bytes(*step.first_chunk().expect("four bytes are left")) >> 1;
    (
        Salt(*salt),
        Incarnation(incarnation.0 + 1 + u64::from(step)),
    )
}

/// What a draft that does not fit into a frame is refused with.
pub(crate) fn refused(fault: Fault) -> Error {
    match fault {
        Fault::TooLong { part, len, max } => Error::LimitExceeded {
            what: match part {
                Part::Facts => "bytes of facts",
                Part::Texts => "bytes of texts",
                Part::Bodies => "bytes of bodies",
            },
            offered: len,
            max: u64::from(max),
        },
        // The other faults of an encoder are about numbers the engine gave itself; only running out of positions
        // is left.
        _ => Error::LimitExceeded {
            what: "position",
            offered: POSITION_MAX + 1,
            max: POSITION_MAX,
        },
    }
}

/// Blob names are plain file names, so that none leaves its directory: ASCII letters, digits, `.`, `-`
/// and `_`, not beginning with a dot.
pub(crate) fn plain_name(name: &str) -> Result<&str, Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.bytes().all(plain) {
        return Ok(name);
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "not a plain name");
    Err(Error::from_io("use", name, source))
}
