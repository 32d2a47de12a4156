//! A journal in memory: for tests, and for views over a log that was copied into memory.
//!
//! Everything published is durable at once, for as long as the process lives. Clones of the handle
//! are handles on the same journal, as processes are on one store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{
    Appended, Blobs, CounterTag, Counters, Deadline, Decision, Frames, Identity, Journal, Raising,
    RulesVersion, Tail, TransactError, reaches,
};
use crate::error::Error;
use crate::frame::{self, Depth, Draft, Frame, FrameRef, Place};
use crate::position::{Chain, Epoch, Head, Incarnation, Position, Salt, StoreId};
use crate::storage::SealedBytes;

/// A journal in memory. Cloning gives another handle on the same journal.
#[derive(Clone)]
pub struct MemoryLog {
    shared: Arc<Shared>,
}

struct Shared {
    rules: RulesVersion,
    store: StoreId,
    log: Mutex<Log>,
    published: Condvar,
    counters: MemoryCounters,
    blobs: MemoryBlobs,
}

struct Log {
    frames: Vec<Arc<Frame>>,
    born: Head,
    head: Head,
    salt: Salt,
    incarnation: Incarnation,
    segment_first: Position,
    encoded: Vec<u8>,
}

/// A memory journal is one segment that nobody takes over.
const EPOCH: Epoch = Epoch(1);

impl MemoryLog {
    /// A new, empty store with a random id.
    ///
    /// # Panics
    /// When the operating system gives no random numbers.
    #[must_use]
    pub fn new(rules: RulesVersion) -> MemoryLog {
        let mut ids = [[0; 16]; 2];
        for id in &mut ids {
            getrandom::fill(id).expect("the operating system gives random numbers");
        }
        MemoryLog::with_identity(rules, StoreId(ids[0]), Salt(ids[1]))
    }

    /// A new, empty store with the id and salt given, for repeatable tests.
    #[must_use]
    pub fn with_identity(rules: RulesVersion, store: StoreId, salt: Salt) -> MemoryLog {
        let born = Head {
            position: Position::ZERO,
            chain: Chain::born(store, salt),
        };
        MemoryLog {
            shared: Arc::new(Shared {
                rules,
                store,
                log: Mutex::new(Log {
                    frames: Vec::new(),
                    born,
                    head: born,
                    salt,
                    incarnation: Incarnation(1),
                    segment_first: Position(1),
                    encoded: Vec::new(),
                }),
                published: Condvar::new(),
                counters: MemoryCounters::default(),
                blobs: MemoryBlobs::default(),
            }),
        }
    }

    fn lock(&self, deadline: Deadline) -> Result<MutexGuard<'_, Log>, Error> {
        let began = Instant::now();
        match deadline.remaining(began) {
            None => Ok(self.shared.log.lock()),
            Some(left) => self
                .shared
                .log
                .try_lock_for(left)
                .ok_or_else(|| Error::Busy {
                    waited: began.elapsed(),
                    holder: "another thread of this process".to_owned(),
                }),
        }
    }
}

impl Log {
    /// The frames after `known`, which has to be a head of this log.
    fn tail(&self, known: Head) -> Result<Vec<Frame>, Error> {
        let at = usize::try_from(known.position.0).unwrap_or(usize::MAX);
        let stands_here = match at.checked_sub(1) {
            None => Some(self.born),
            Some(index) => self.frames.get(index).map(|frame| frame.header.head()),
        };
        if stands_here != Some(known) {
            return Err(Error::Diverged {
                known,
                head: self.head,
            });
        }
        Ok(self.frames[at..]
            .iter()
            .map(|frame| Frame::clone(frame))
            .collect())
    }

    fn append(&mut self, drafts: &[Draft]) -> Result<Appended, Error> {
        let first = if drafts.is_empty() {
            self.head.position
        } else {
            self.head.position.next()
        };
        let (mut head, mut added) = (self.head, Vec::with_capacity(drafts.len()));
        for draft in drafts {
            let place = Place::in_segment(self.salt, self.segment_first, EPOCH);
            self.encoded.clear();
            let durable = head.position;
            head = frame::encode_into(
                &mut self.encoded,
                &place,
                head,
                durable,
                self.incarnation,
                draft,
            )
            .map_err(super::refused)?;
            let (frame, _) = frame::decode(&place, &self.encoded, Depth::Facts)
                .expect("a frame that was just encoded is good");
            added.push(Arc::new(frame.to_owned()));
        }
        let heads = added.iter().map(|frame| frame.header.head()).collect();
        self.frames.append(&mut added);
        self.head = head;
        Ok(Appended {
            first,
            heads,
            head,
            mark: None,
            marks: Vec::new(),
            drafts: Vec::new(),
        })
    }
}

impl Journal for MemoryLog {
    fn identity(&self) -> Identity {
        Identity {
            store: self.shared.store,
            incarnation: self.shared.log.lock().incarnation,
            rules: self.shared.rules,
        }
    }

    fn head(&self) -> Result<Head, Error> {
        Ok(self.shared.log.lock().head)
    }

    fn durable(&self) -> Result<Position, Error> {
        Ok(self.shared.log.lock().head.position)
    }

    fn transact(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Decision<'_>,
    ) -> Result<Appended, TransactError> {
        let mut log = self.lock(deadline)?;
        let frames = log.tail(known)?;
        let drafts = decide(Tail {
            frames: &frames,
            head: log.head,
            incarnation: log.incarnation,
        });
        let appended = log.append(&drafts)?;
        drop(log);
        if !appended.heads.is_empty() {
            self.shared.published.notify_all();
        }
        Ok(appended)
    }

    fn wait_durable(&self, position: Position, deadline: Deadline) -> Result<(), Error> {
        if position == Position::ZERO {
            // There is nothing to wait for, not even in an empty log.
            return Ok(());
        }
        let head = self.wait_beyond(position.before(), deadline)?.position;
        if head >= position {
            Ok(())
        } else {
            Err(Error::BeyondHead {
                head,
                asked: position,
            })
        }
    }

    fn read_from(&self, after: Position, _: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        let log = self.shared.log.lock();
        let at = usize::try_from(after.0)
            .unwrap_or(usize::MAX)
            .min(log.frames.len());
        Ok(Box::new(MemoryFrames {
            frames: log.frames[at..].to_vec(),
            read: 0,
        }))
    }

    fn wait_beyond(&self, position: Position, deadline: Deadline) -> Result<Head, Error> {
        let mut log = self.shared.log.lock();
        reaches(log.head, position)?;
        while log.head.position <= position {
            match deadline.remaining(Instant::now()) {
                None => self.shared.published.wait(&mut log),
                Some(left) if left.is_zero() => break,
                Some(left) => {
                    self.shared.published.wait_for(&mut log, left);
                }
            }
        }
        Ok(log.head)
    }

    fn raise(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Raising<'_>,
    ) -> Result<Appended, TransactError> {
        let mut log = self.lock(deadline)?;
        let frames = log.tail(known)?;
        let mut random = [0; 20];
        getrandom::fill(&mut random).expect("the operating system gives random numbers");
        let (salt, incarnation) = super::next_life(log.incarnation, random);
        let draft = decide(
            Tail {
                frames: &frames,
                head: log.head,
                incarnation: log.incarnation,
            },
            incarnation,
        );
        let old = (log.salt, log.incarnation, log.segment_first);
        (log.salt, log.incarnation, log.segment_first) =
            (salt, incarnation, log.head.position.next());
        let appended = log.append(&[draft]);
        if appended.is_err() {
            (log.salt, log.incarnation, log.segment_first) = old;
        }
        drop(log);
        self.shared.published.notify_all();
        Ok(appended?)
    }

    fn counters(&self) -> &dyn Counters {
        &self.shared.counters
    }

    fn snapshots(&self) -> &dyn Blobs {
        &self.shared.blobs
    }
}

struct MemoryFrames {
    frames: Vec<Arc<Frame>>,
    read: usize,
}

impl Frames for MemoryFrames {
    fn next(&mut self) -> Option<Result<FrameRef<'_>, Error>> {
        let frame = self.frames.get(self.read)?;
        self.read += 1;
        Some(Ok(frame.by_ref()))
    }
}

#[derive(Default)]
struct MemoryCounters {
    counts: Mutex<HashMap<CounterTag, u64>>,
}

impl Counters for MemoryCounters {
    fn add(&self, tag: CounterTag, n: u64) -> Option<u64> {
        let mut counts = self.counts.lock();
        let count = counts.entry(tag).or_default();
        *count = count.saturating_add(n);
        Some(*count)
    }

    fn get(&self, tag: CounterTag) -> u64 {
        self.counts.lock().get(&tag).copied().unwrap_or(0)
    }

    fn take(&self, tag: CounterTag) -> u64 {
        self.counts.lock().remove(&tag).unwrap_or(0)
    }

    fn for_each(&self, f: &mut dyn FnMut(CounterTag, u64)) {
        let mut counts: Vec<_> = self
            .counts
            .lock()
            .iter()
            .map(|(tag, n)| (*tag, *n))
            .collect();
        counts.sort_unstable();
        counts
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .for_each(|(tag, n)| f(tag, n));
    }
}

#[derive(Default)]
struct MemoryBlobs {
    blobs: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// A blob as it was when it was asked for.
#[derive(Debug)]
struct Copied(Vec<u8>);

impl SealedBytes for Copied {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Blobs for MemoryBlobs {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        super::plain_name(name)?;
        Ok(self.blobs.lock().get(name).cloned())
    }

    fn read_part(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<Option<usize>, Error> {
        super::plain_name(name)?;
        let blobs = self.blobs.lock();
        let Some(blob) = blobs.get(name) else {
            return Ok(None);
        };
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(blob.len());
        let read = into.len().min(blob.len() - from);
        into[..read].copy_from_slice(&blob[from..from + read]);
        Ok(Some(read))
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn SealedBytes>>, Error> {
        let whole = self.read(name)?.filter(|bytes| !bytes.is_empty());
        Ok(whole.map(|bytes| Arc::new(Copied(bytes)) as Arc<dyn SealedBytes>))
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        super::plain_name(name)?;
        self.blobs.lock().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        Ok(self.blobs.lock().keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        super::plain_name(name)?;
        self.blobs.lock().remove(name);
        Ok(())
    }
}
