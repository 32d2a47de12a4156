//! A long replay on two processors: one reads, checks and decodes frames, ahead of the one that folds them. Each costs
//! about half of a replay, so that it takes half the time. What is folded, and in which order, is the same.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use tenure_core::event::Entry;
use tenure_log::journal::{Frames, Landmark};
use tenure_log::position::{Head, Position};

use crate::entry;
use crate::error::Error;
use crate::gauge;

/// From how many frames on a thread is worth its start: a replay of some ten milliseconds.
const FRAMES_MIN: u64 = 16 << 10;
/// Entries handed over at once: few enough that all batches stay in a processor's cache, and many enough that what
/// waiting for one another costs is little beside folding them.
const BATCH_ENTRIES: usize = 256;
/// Batches on their way; the reading stops when all are full. This bounds the memory, whatever the log's length.
const BATCHES: usize = 4;

/// Whether so many frames are replayed faster by two.
pub(crate) fn pays(frames: u64) -> bool {
    frames >= FRAMES_MIN && thread::available_parallelism().is_ok_and(|n| n.get() > 1)
}

/// Shows every entry up to `until` to `fold`, in order, and where its frame stands in the log. Returns where the last one
/// stands, where the log can say so.
///
/// # Errors
/// When `open` fails, a frame cannot be read or does not decode: every entry before it was shown then.
pub(crate) fn decoded<'f>(
    open: impl FnOnce() -> Result<Box<dyn Frames + 'f>, Error> + Send,
    until: Position,
    mut fold: impl FnMut(&Entry, Head),
) -> Result<Option<Landmark>, Error> {
    let (full, ready) = sync_channel(BATCHES);
    let (empty, free) = channel();
    for _ in 0..BATCHES {
        give_back(&empty, Batch::default());
    }
    // Both ends go into the scope: where the fold panics, they are gone before the reading is waited for.
    thread::scope(move |scope| {
        let reading = scope.spawn(move || read(&mut *open()?, until, &full, &free));
        for batch in ready {
            for (head, entry) in &batch.entries[..batch.used] {
                fold(entry, *head);
            }
            if let Some((head, _)) = batch.entries[..batch.used].last() {
                gauge::show(head.position, until);
            }
            give_back(&empty, batch);
        }
        // A panic there is one here.
        reading.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Entries in the order of their positions. Those behind the used ones are kept for the room they have.
#[derive(Default)]
struct Batch {
    entries: Vec<(Head, Entry)>,
    used: usize,
}

/// Who reads may have come to the end, and wants no more batches.
fn give_back(empty: &Sender<Batch>, batch: Batch) {
    let _: Result<(), _> = empty.send(batch);
}

fn read(
    frames: &mut dyn Frames,
    until: Position,
    full: &SyncSender<Batch>,
    free: &Receiver<Batch>,
) -> Result<Option<Landmark>, Error> {
    loop {
        // Whoever folds panicked: nobody waits for an answer.
        let Ok(mut batch) = free.recv() else {
            return Ok(None);
        };
        let filled = batch.fill(frames, until);
        let sent = full.send(batch);
        if !filled? || sent.is_err() {
            return Ok(frames.landmark());
        }
    }
}

impl Batch {
    /// Fills it with the next entries; says whether there are more behind.
    fn fill(&mut self, frames: &mut dyn Frames, until: Position) -> Result<bool, Error> {
        self.used = 0;
        while self.used < BATCH_ENTRIES {
            let Some(frame) = frames.next().transpose()? else {
                return Ok(false);
            };
            if self.used == self.entries.len() {
                self.entries.push(Default::default());
            }
            let (head, entry) = &mut self.entries[self.used];
            entry::decode_into(entry, &frame)?;
            *head = frame.header.head();
            self.used += 1;
            if head.position >= until {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use tenure_log::error::Error as LogError;
    use tenure_log::frame::{Frame, FrameRef, Header, Parts};
    use tenure_log::position::{Chain, Epoch, Incarnation, TimeMicros};

    use std::sync::Arc;

    use super::*;
    use crate::gauge::Gauge;

    /// As many frames without an event, and then an error.
    struct Some100s {
        frame: Frame,
        left: u64,
    }

    impl Frames for Some100s {
        fn next(&mut self) -> Option<Result<FrameRef<'_>, LogError>> {
            if self.left == 0 {
                return Some(Err(LogError::BeyondHead {
                    head: self.frame.header.position,
                    asked: self.frame.header.position.next(),
                }));
            }
            self.left -= 1;
            self.frame.header.position = self.frame.header.position.next();
            Some(Ok(self.frame.by_ref()))
        }
    }

    fn frames(left: u64, facts: Vec<u8>) -> Box<dyn Frames> {
        let header = Header {
            position: Position::ZERO,
            incarnation: Incarnation(1),
            epoch: Epoch(1),
            time: TimeMicros(5),
            durable: Position::ZERO,
            facts_len: 0,
            texts_len: 0,
            bodies_len: 0,
            chain: Chain::default(),
        };
        let parts = Parts {
            facts,
            ..Parts::default()
        };
        Box::new(Some100s {
            frame: Frame { header, parts },
            left,
        })
    }

    /// A fence that is none, no texts, no bodies, an input of no bytes, no events.
    fn nothing() -> Vec<u8> {
        let mut facts = vec![0; 28];
        facts[2] = 1;
        facts
    }

    fn seen(left: u64, until: u64, facts: Vec<u8>) -> (Vec<u64>, Result<(), Error>) {
        let mut seen = Vec::new();
        let open = || Ok(frames(left, facts));
        let read = decoded(open, Position(until), |entry, head| {
            assert_eq!(entry.at.position.0, head.position.0);
            seen.push(head.position.0);
        });
        (seen, read.map(drop))
    }

    #[test]
    fn every_entry_is_shown_once_and_none_behind_the_last() {
        let batch = BATCH_ENTRIES as u64;
        for until in [1, batch - 1, batch, batch + 1, 20 * batch + 3] {
            let (seen, read) = seen(until + 5, until, nothing());
            assert!(read.is_ok(), "{read:?}");
            assert!(seen.into_iter().eq(1..=until));
        }
    }

    #[test]
    fn a_gauge_is_moved_by_what_is_done_over_it_and_by_nothing_else() {
        let gauge = Arc::new(Gauge::default());
        let long = 2 * BATCH_ENTRIES as u64;
        assert!(seen(long, long, nothing()).1.is_ok());
        assert_eq!(gauge.read(), (0, 0));
        let ended = gauge.over(|| {
            decoded(
                || Ok(frames(long, nothing())),
                Position(9 * long),
                |_, head| {
                    let (done, whole) = gauge.read();
                    assert!(done < head.position.0 && [0, 9 * long].contains(&whole));
                },
            )
        });
        assert!(ended.is_err());
        assert_eq!(gauge.read(), (long, 9 * long));
        assert!(seen(1, 1, nothing()).1.is_ok());
        assert_eq!(gauge.read(), (long, 9 * long));
    }

    #[test]
    fn what_stands_before_an_error_is_shown_and_the_error_returned() {
        for good in [0, 1, 7 * BATCH_ENTRIES as u64, 1000] {
            let (seen, read) = seen(good, good + 10, nothing());
            assert!(matches!(read, Err(Error::Log(_))), "{read:?}");
            assert!(seen.into_iter().eq(1..=good));
        }
        let (seen, read) = seen(3, 3, vec![0; 3]);
        assert!(matches!(read, Err(Error::Facts { .. })), "{read:?}");
        assert!(seen.is_empty());
    }

    #[test]
    fn a_log_that_does_not_open_is_an_error() {
        let open = || {
            Err(Error::Facts {
                position: tenure_core::id::Position(1),
                fault: tenure_core::codec::v1::Fault::Fence,
            })
        };
        assert!(decoded(open, Position(1), |_, _| ()).is_err());
    }

    #[test]
    #[should_panic(expected = "in the fold")]
    fn a_panic_in_the_fold_ends_the_reading() {
        let open = || Ok(frames(u64::MAX, nothing()));
        let _ = decoded(open, Position(u64::MAX), |_, _| panic!("in the fold"));
    }
}
