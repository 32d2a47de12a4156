//! Appending: one transaction under the append lock, from catching up to publishing.
//!
//! The order is log.md's, "Append protocol": set in-doubt by swap, write the frames with one call,
//! publish the new head and clear in-doubt by one swap. A swap that fails means that the epoch was
//! raised: nothing was published, and the newest epoch is asked what became of the frames.

pub mod birth;
pub mod doubt;
pub mod group;
pub mod site;
pub mod sync;
pub mod view;

use std::io;

use crate::control::anchor::{Anchor, STRETCH_BYTES};
use crate::control::place::HeadPlace;
use crate::control::{Signal, WORD_POSITION_MAX, Word};
use crate::error::Error;
use crate::format::SegmentName;
use crate::frame::{Draft, Frame, encode_into};
use crate::journal::{self, Appended, Deadline, Decision, Landmark, Raising, Tail, TransactError};
use crate::lock::Patience;
use crate::position::{Head, Position};
use crate::segment::{file_name, fill_with_zeros, zero_backwards};
use crate::zoo::planted;
use birth::Birth;
use site::{Held, Site};
use view::{Known, Passed, View};

/// The writer's side of a handle. One thread at a time.
#[derive(Debug, Default)]
pub struct Writer {
    view: Option<View>,
    /// What the view passed when it was last moved.
    passed: Option<Passed>,
    /// Kept between appends, for its capacity.
    buffer: Vec<u8>,
}

/// Frames written down, and where they go.
struct Batch {
    /// The head before the first.
    before: Head,
    heads: Vec<Head>,
    /// Behind each frame, counted from the first byte of the batch.
    ends: Vec<u64>,
}

impl Batch {
    fn head(&self) -> Head {
        self.heads.last().copied().unwrap_or(self.before)
    }

    /// What is in the log of it: all. `base` is where its first byte stands, where that is known.
    fn appended(self, base: Option<(SegmentName, u64)>) -> Appended {
        let marks = base.map(|(segment, base)| self.marks(segment, base));
        let first = if self.heads.is_empty() {
            self.before.position
        } else {
            self.before.position.next()
        };
        Appended {
            first,
            head: self.head(),
            heads: self.heads,
            mark: None,
            marks: marks.unwrap_or_default(),
            drafts: Vec::new(),
        }
    }

    fn marks(&self, segment: SegmentName, base: u64) -> Vec<Landmark> {
        let mut offset = base;
        let mark = |(head, end): (&Head, &u64)| {
            let end = base + end;
            Landmark {
                head: *head,
                segment,
                offset: std::mem::replace(&mut offset, end),
                end,
            }
        };
        self.heads.iter().zip(&self.ends).map(mark).collect()
    }

    fn unknown(&self, source: Error) -> TransactError {
        let Head { position, chain } = self.head();
        TransactError::Unknown {
            position,
            chain,
            source,
        }
    }
}

/// Whether a transaction begins a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beginning {
    /// When the old one is full, or of older rules.
    IfNeeded,
    /// It begins a life.
    Always,
}

/// How a write ended.
enum Written {
    /// Published.
    Published,
    /// The epoch was raised: what became of the frames is not known here.
    Overtaken,
    /// Only the first of the frames are in the log, and published.
    Partly(usize, Error),
}

impl Writer {
    /// [`Journal::transact`](crate::journal::Journal::transact) on a segment log.
    ///
    /// # Errors
    /// See [`TransactError`].
    pub fn transact(
        &mut self,
        site: &Site,
        known: Head,
        deadline: Deadline,
        decide: Decision<'_>,
    ) -> Result<Appended, TransactError> {
        let mut patience = Patience::new(&*site.storage, deadline, site.tuning.append_wait);
        let (held, frames) = self.hold_ready(site, &mut patience, known, Beginning::IfNeeded)?;
        let view = self.view.as_ref().expect("catching up leaves a view");
        let incarnation = view.segment.header().incarnation;
        let drafts = decide(Tail {
            frames: &frames,
            head: view.head,
            incarnation,
        });
        if drafts.is_empty() {
            return Ok(Appended {
                first: view.head.position,
                heads: Vec::new(),
                head: view.head,
                mark: None,
                marks: Vec::new(),
                drafts,
            });
        }
        for draft in &drafts {
            draft.judge().map_err(journal::refused)?;
        }
        let bytes: u64 = drafts.iter().map(|draft| draft.frame_bytes() as u64).sum();
        let appended = match self.needs_segment(site, bytes) {
            true => {
                self.append_in_new_segment(site, held, &mut patience, Birth::Rotation, &drafts)?
            }
            false => self.append(site, held, &mut patience, &drafts)?,
        };
        Ok(Appended { drafts, ..appended })
    }

    /// Where this writer's newest head stands; none before it has read or written one.
    #[must_use]
    pub fn place(&self) -> Option<HeadPlace> {
        self.view.as_ref().map(View::place)
    }

    /// [`Journal::raise`](crate::journal::Journal::raise) on a segment log.
    ///
    /// # Errors
    /// See [`TransactError`].
    pub fn raise(
        &mut self,
        site: &Site,
        known: Head,
        deadline: Deadline,
        decide: Raising<'_>,
    ) -> Result<Appended, TransactError> {
        let mut patience = Patience::new(&*site.storage, deadline, site.tuning.append_wait);
        let (held, frames) = self.hold_ready(site, &mut patience, known, Beginning::Always)?;
        let view = self.view.as_ref().expect("catching up leaves a view");
        let incarnation = view.segment.header().incarnation;
        let mut random = [0; 20];
        site.storage
            .random(&mut random)
            .map_err(|error| site.failed("draw random numbers for", "a new life", error))?;
        let (salt, new) = journal::next_life(incarnation, random);
        let draft = decide(
            Tail {
                frames: &frames,
                head: view.head,
                incarnation,
            },
            new,
        );
        draft.judge().map_err(journal::refused)?;
        let birth = Birth::Life {
            salt,
            incarnation: new,
        };
        self.append_in_new_segment(site, held, &mut patience, birth, &[draft])
    }

    /// Settles the doubt about the head, if there is any left under the lock.
    ///
    /// # Errors
    /// When it cannot be settled.
    pub fn settle_doubt(&mut self, site: &Site, deadline: Deadline) -> Result<(), Error> {
        let mut patience = Patience::new(&*site.storage, deadline, site.tuning.append_wait);
        self.hold_settled(site, &mut patience).map(drop)
    }

    /// The append lock, so that the next segment can begin where one will.
    fn hold_ready<'s>(
        &mut self,
        site: &'s Site,
        patience: &mut Patience,
        known: Head,
        beginning: Beginning,
    ) -> Result<(Held<'s>, Vec<Frame>), TransactError> {
        loop {
            let (held, frames) = self.hold_caught_up(site, patience, known)?;
            let view = self.view.as_ref().expect("catching up leaves a view");
            let begins = beginning == Beginning::Always || view.segment.header().rules < site.rules;
            if !begins || !view.is_empty() {
                return Ok((held, frames));
            }
            if let Some(ready) = self.hold_past_empty(site, patience, held, known)? {
                return Ok(ready);
            }
            let now = site.storage.now();
            if patience.is_over(now) {
                return Err(patience.busy(now, "a newer writer epoch".to_owned()).into());
            }
        }
    }

    /// The append lock, with the view at the true head, and the frames behind `known`.
    fn hold_caught_up<'s>(
        &mut self,
        site: &'s Site,
        patience: &mut Patience,
        known: Head,
    ) -> Result<(Held<'s>, Vec<Frame>), TransactError> {
        let point = self.view.as_ref().map(View::point);
        self.passed = None;
        let held = self.hold_settled(site, patience)?;
        let view = self.view.as_ref().expect("settling leaves a view");
        let newest_rules = view.segment.header().rules;
        if newest_rules > site.rules {
            let (what, offered, max) = (
                "rules version",
                u64::from(newest_rules.0),
                u64::from(site.rules.0),
            );
            return Err(Error::LimitExceeded { what, offered, max }.into());
        }
        if let Some(frames) = self.passed.take().and_then(|passed| passed.behind(known)) {
            return Ok((held, frames));
        }
        match view.frames_after(site, &held.control, Known { head: known, point })? {
            Some(frames) => Ok((held, frames)),
            // More than one transaction is shown: the caller reads on and comes again.
            None => Err(TransactError::Moved {
                appended: Vec::new(),
            }),
        }
    }

    /// The append lock with no doubt left: the view is at the true head, the newest segment is the
    /// epoch's own, and everything that a dead holder left is published or cut off.
    fn hold_settled<'s>(
        &mut self,
        site: &'s Site,
        patience: &mut Patience,
    ) -> Result<Held<'s>, Error> {
        loop {
            let mut held = site.hold(patience)?;
            if !held.word.in_doubt && self.catch_up(site, &held)? {
                return Ok(held);
            }
            if self.settle(site, &mut held)? {
                return Ok(held);
            }
            self.view = None;
            if patience.is_over(site.storage.now()) {
                return Err(patience.busy(site.storage.now(), "a newer writer epoch".to_owned()));
            }
        }
    }

    /// Without doubt, the page says where the head is; whether there is a frame is looked up there.
    fn catch_up(&mut self, site: &Site, held: &Held<'_>) -> Result<bool, Error> {
        let Some(place) = held.control.place() else {
            return Ok(false);
        };
        if place.segment.epoch != held.word.epoch {
            return Ok(false);
        }
        if let Some(view) = &mut self.view {
            if view.is_at(&place) || planted("not-read-again") {
                return Ok(true);
            }
            let from = view.head;
            if let Some(frames) = view.advance(site, &place, &mut self.buffer)? {
                self.passed = Some(Passed { from, frames });
                return Ok(true);
            }
        }
        if self.view.is_none() && View::is_closed(site, &place)? {
            return Ok(false);
        }
        self.view = View::adopt(site, &place)?;
        Ok(self.view.is_some())
    }

    fn needs_segment(&self, site: &Site, bytes: u64) -> bool {
        let view = self.view.as_ref().expect("catching up leaves a view");
        let header = view.segment.header();
        let before = header.predecessor.map(|before| before.end_offset);
        let is_full = view.end + bytes > site.tuning.target_bytes(before) && !view.is_empty();
        is_full || header.rules < site.rules
    }

    /// Writes the drafts behind the head.
    fn append(
        &mut self,
        site: &Site,
        held: Held<'_>,
        patience: &mut Patience,
        drafts: &[Draft],
    ) -> Result<Appended, TransactError> {
        let view = self.view.as_mut().expect("catching up leaves a view");
        let at = (view.segment.place(), view.end, view.head);
        let durable = match planted("durable-of-the-unsynced") {
            true => view.head.position,
            false => held.control.durable().min(view.head.position),
        };
        let incarnation = view.segment.header().incarnation;
        self.buffer.clear();
        let batch = encode(&mut self.buffer, at, durable, incarnation, drafts)?;
        let doubt = Word {
            in_doubt: true,
            ..held.word
        };
        if !held.control.swap(held.word, doubt) {
            return Err(TransactError::Moved {
                appended: Vec::new(),
            });
        }
        let written = write(site, &held, doubt, view, &self.buffer, &batch);
        match written {
            Ok(Written::Published) => {
                let base = (view.segment.name(), view.end);
                view.pass(batch.head(), &batch.ends);
                drop(held);
                Ok(batch.appended(Some(base)))
            }
            Ok(Written::Partly(0, error)) => Err(error.into()),
            Ok(Written::Partly(count, _)) => {
                view.pass(batch.heads[count - 1], &batch.ends[..count]);
                Err(TransactError::Moved {
                    appended: batch.heads[..count].to_vec(),
                })
            }
            Ok(Written::Overtaken) => {
                drop(held);
                self.view = None;
                self.ask(site, patience, batch)
            }
            Err(error) => {
                self.view = None;
                Err(batch.unknown(error))
            }
        }
    }

    /// Asks the newest epoch, as an ordinary client of it, which of the frames are in the log.
    fn ask(
        &mut self,
        site: &Site,
        patience: &mut Patience,
        batch: Batch,
    ) -> Result<Appended, TransactError> {
        let held = match self.hold_settled(site, patience) {
            Ok(held) => held,
            Err(error) => return Err(batch.unknown(error)),
        };
        let view = self.view.as_ref().expect("settling leaves a view");
        let found = match view.heads_after(
            site,
            &held.control,
            Known {
                head: batch.before,
                point: None,
            },
            batch.heads.len(),
        ) {
            Ok(found) => found,
            Err(error) => return Err(batch.unknown(error)),
        };
        let count = batch
            .heads
            .iter()
            .zip(&found)
            .take_while(|(ours, theirs)| ours == theirs)
            .count();
        if count == batch.heads.len() {
            return Ok(batch.appended(None));
        }
        Err(TransactError::Moved {
            appended: batch.heads[..count].to_vec(),
        })
    }
}

/// Writes the drafts down as frames behind `(segment, offset, head)`.
fn encode(
    buffer: &mut Vec<u8>,
    (place, offset, before): (crate::frame::Place, u64, Head),
    durable: Position,
    incarnation: crate::position::Incarnation,
    drafts: &[Draft],
) -> Result<Batch, Error> {
    let last = before.position.0 + drafts.len() as u64;
    if last > WORD_POSITION_MAX {
        return Err(Error::LimitExceeded {
            what: "position",
            offered: last,
            max: WORD_POSITION_MAX,
        });
    }
    let mut batch = Batch {
        before,
        heads: Vec::with_capacity(drafts.len()),
        ends: Vec::with_capacity(drafts.len()),
    };
    for draft in drafts {
        let at = place.at(offset + buffer.len() as u64);
        let head = encode_into(buffer, &at, batch.head(), durable, incarnation, draft)
            .map_err(journal::refused)?;
        batch.heads.push(head);
        batch.ends.push(buffer.len() as u64);
    }
    Ok(batch)
}

/// Under the lock and in doubt: writes the batch and publishes it.
fn write(
    site: &Site,
    held: &Held<'_>,
    doubt: Word,
    view: &mut View,
    bytes: &[u8],
    batch: &Batch,
) -> Result<Written, Error> {
    view.fill_ahead(site, bytes.len() as u64);
    let file = &**view.segment.file();
    let failed = |error| site.failed("append to", &file_name(view.segment.name()), error);
    let mut written = 0;
    let refused = loop {
        match file.write_at(&bytes[written..], view.end + written as u64) {
            Ok(0) => break io::Error::from(io::ErrorKind::WriteZero),
            Ok(n) => written += n,
            Err(error) => break error,
        }
        if written == bytes.len() {
            return publish(site, held, doubt, view, batch, batch.heads.len());
        }
    };
    let whole = batch.ends.partition_point(|end| *end <= written as u64);
    let clean = matches!(
        refused.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    );
    if !clean {
        // The page cache may hold part of the call that failed: the next holder looks.
        return Err(failed(refused));
    }
    // What was written of the frame that did not fit was never published: zeroing it is not recovery.
    let kept = whole.checked_sub(1).map_or(0, |last| batch.ends[last]);
    zero_backwards(file, view.end + kept, view.end + written as u64).map_err(failed)?;
    match publish(site, held, doubt, view, batch, whole)? {
        Written::Published => Ok(Written::Partly(whole, failed(refused))),
        other => Ok(other),
    }
}

/// Publishes the first `count` frames of the batch.
fn publish(
    site: &Site,
    held: &Held<'_>,
    doubt: Word,
    view: &View,
    batch: &Batch,
    count: usize,
) -> Result<Written, Error> {
    let Some(last) = count.checked_sub(1) else {
        let cleared = held.control.swap(
            doubt,
            Word {
                in_doubt: false,
                ..doubt
            },
        );
        return Ok(if cleared {
            Written::Published
        } else {
            Written::Overtaken
        });
    };
    let before = last.checked_sub(1).map_or(0, |before| batch.ends[before]);
    let (head, end) = (batch.heads[last], view.end + batch.ends[last]);
    let place = HeadPlace {
        head,
        segment: view.segment.name(),
        offset: view.end + before,
        end,
    };
    held.control.put_place(doubt.epoch, &place);
    let published = held.control.swap(
        doubt,
        Word {
            head: head.position,
            in_doubt: false,
            ..doubt
        },
    );
    // A page that has lost its name reaches nobody, whatever it says.
    let current = held
        .control
        .is_current()
        .map_err(|error| site.failed("look at", "control", error))?;
    if !published || !current {
        return Ok(Written::Overtaken);
    }
    if view.end / STRETCH_BYTES != end / STRETCH_BYTES {
        held.control.put_anchor(&Anchor {
            segment: place.segment,
            head,
            offset: end,
        });
    }
    held.control.ring(Signal::Published, u32::MAX);
    Ok(Written::Published)
}

impl View {
    /// Keeps zeros ahead of the frames. What cannot be filled is not: the append itself tells.
    fn fill_ahead(&mut self, site: &Site, bytes: u64) {
        let (needed, step) = (self.end + bytes, site.tuning.fill_bytes.max(1));
        if needed > self.filled {
            // Others may have filled it since this was looked up.
            self.filled = self.segment.file().size().unwrap_or(0).max(self.filled);
        }
        if needed <= self.filled || bytes >= step {
            self.filled = self.filled.max(needed);
            return;
        }
        let before = self
            .segment
            .header()
            .predecessor
            .map(|before| before.end_offset);
        let target = site.tuning.target_bytes(before).max(needed);
        let to = (self.filled + step).min(target).max(needed);
        if fill_with_zeros(&**self.segment.file(), self.filled, to).is_ok() {
            self.filled = to;
        }
    }
}
