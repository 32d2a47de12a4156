//! The next segment: when one is full, when a life begins, and when an epoch takes over.
//!
//! A new segment's header closes the one before it, so everything up to that end is durable first.
//! Frames that come with a birth are in the file before it has a name.

use super::doubt::look;
use super::site::{Held, Site, raise_to};
use super::sync::{Older, make_durable};
use super::view::{Known, View};
use super::{Batch, Writer, Written, encode, publish};
use crate::control::Word;
use crate::error::Error;
use crate::format::{
    FORMAT_VERSION, Predecessor, SEGMENT_HEADER_BYTES, SegmentHeader, writer_version,
};
use crate::frame::{Depth, Draft, Frame, Place, carry_into};
use crate::journal::{Appended, Frames, TransactError};
use crate::lock::Patience;
use crate::position::{Epoch, Head, Incarnation, Salt};
use crate::reader::{From, Point, Walker, damage};
use crate::segment::line::Link;
use crate::segment::{self, NotMade, Segment};

/// Why a segment begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Birth {
    /// The one before is full, or was written by older rules.
    Rotation,
    /// A new life: what was written before is good nowhere in it.
    Life {
        /// The salt of the new life.
        salt: Salt,
        /// Its number.
        incarnation: Incarnation,
    },
}

impl Writer {
    /// Holds the append lock so that a segment can begin. One that holds no frame has the name that the
    /// next one would have, so the epoch is raised past it. None when others were faster: try again.
    pub(super) fn hold_past_empty<'s>(
        &mut self,
        site: &'s Site,
        patience: &mut Patience,
        held: Held<'_>,
        known: Head,
    ) -> Result<Option<(Held<'s>, Vec<Frame>)>, TransactError> {
        raise_to(&site.locks, &held.control, Epoch(held.word.epoch.0 + 1))?;
        drop(held);
        let held = site.hold(patience)?;
        let Some(ending) = look(site, &held)? else {
            return Ok(None);
        };
        let is_own = ending.view.segment.name().epoch == held.word.epoch;
        if is_own || !ending.view.is_empty() || ending.repair.is_some() {
            return Ok(None);
        }
        let known = Known {
            head: known,
            point: None,
        };
        let frames = ending.view.frames_after(site, &held.control, known)?;
        self.view = Some(ending.view);
        Ok(frames.map(|frames| (held, frames)))
    }

    /// Writes the drafts as the first frames of a new segment, which closes the view's.
    pub(super) fn append_in_new_segment(
        &mut self,
        site: &Site,
        held: Held<'_>,
        patience: &mut Patience,
        birth: Birth,
        drafts: &[Draft],
    ) -> Result<Appended, TransactError> {
        let view = self.view.take().expect("catching up leaves a view");
        let doubt = Word {
            in_doubt: true,
            ..held.word
        };
        // Set before anything is made: a holder that dies in between leaves a segment that nobody
        // else knows of, and the next one looks.
        if held.word != doubt && !held.control.swap(held.word, doubt) {
            return Err(TransactError::Moved {
                appended: Vec::new(),
            });
        }
        // The writer's file may have been opened behind a failure that only another one was told of.
        let older = Older::Any;
        make_durable(site, &held.control, &view.segment, &view.place(), older)?;
        let header = header_after(site, &view, doubt.epoch, birth);
        let place = Place::in_segment(header.salt, header.first, header.epoch);
        let at = (place, SEGMENT_HEADER_BYTES as u64, view.head);
        self.buffer.clear();
        let batch = encode(
            &mut self.buffer,
            at,
            view.head.position,
            header.incarnation,
            drafts,
        )?;
        let segment = match make(site, &header, &self.buffer) {
            Ok(segment) => segment,
            Err(NotMade::Failed(error)) => {
                if held.control.swap(doubt, held.word) {
                    self.view = Some(view);
                    return Err(error.into());
                }
                return Err(TransactError::Moved {
                    appended: Vec::new(),
                });
            }
            // In doubt: whoever comes next finds what is there.
            Err(NotMade::Taken | NotMade::Removed(_)) => {
                return Err(TransactError::Moved {
                    appended: Vec::new(),
                });
            }
            Err(NotMade::Doubtful(error)) => return Err(batch.unknown(error)),
        };
        let born = match born(site, segment, &view) {
            Ok(born) => born,
            Err(error) => return Err(batch.unknown(error)),
        };
        self.publish_birth(site, held, patience, (doubt, born, batch))
    }

    fn publish_birth(
        &mut self,
        site: &Site,
        held: Held<'_>,
        patience: &mut Patience,
        (doubt, mut born, batch): (Word, View, Batch),
    ) -> Result<Appended, TransactError> {
        match publish(site, &held, doubt, &born, &batch, batch.heads.len()) {
            Ok(Written::Published) => {
                let base = (born.segment.name(), born.end);
                born.pass(batch.head(), &batch.ends);
                // The file was synced with these frames in it, and its name was.
                held.control.raise_durable(born.head.position);
                self.view = Some(born);
                drop(held);
                Ok(batch.appended(Some(base)))
            }
            Ok(Written::Overtaken | Written::Partly(..)) => {
                drop(held);
                self.ask(site, patience, batch)
            }
            Err(error) => Err(batch.unknown(error)),
        }
    }

    /// In a new epoch: makes its own segment, which closes the older epoch's at the durable position
    /// and carries the verified frames above it over. None when the epoch was raised meanwhile.
    ///
    /// Nothing of the old file has to be synced: up to the durable position it is, and what stands
    /// above is written again. That holds after a failed sync as well, where a second one proves nothing.
    pub(super) fn succeed(
        &self,
        site: &Site,
        held: &Held<'_>,
        old: &View,
    ) -> Result<Option<View>, Error> {
        let start = old.segment.header().start();
        let durable = held
            .control
            .durable()
            .clamp(start.position, old.head.position);
        let line = |end: &View| vec![Link::of(end.segment.clone(), None)];
        let until = Point {
            segment: old.segment.name(),
            head: old.head,
            offset: old.end,
        };
        let mut walker = Walker::new(
            &*site.dir,
            line(old),
            From::Position(start.position),
            until,
            Depth::Whole,
            None,
        )?;
        let mut closed = View {
            segment: old.segment.clone(),
            head: start,
            last: SEGMENT_HEADER_BYTES as u64,
            end: SEGMENT_HEADER_BYTES as u64,
            filled: old.filled,
        };
        while closed.head.position < durable {
            let Some(frame) = walker.next() else { break };
            closed.head = frame?.header.head();
            closed.end = walker.at().map_or(closed.end, |point| point.offset);
        }
        let mut header = header_after(site, &closed, held.word.epoch, Birth::Rotation);
        header.rules = old.segment.header().rules;
        let place = Place::in_segment(header.salt, header.first, header.epoch);
        let (mut frames, mut last) = (Vec::new(), SEGMENT_HEADER_BYTES as u64);
        while let Some(frame) = walker.next() {
            let frame = frame?;
            last = SEGMENT_HEADER_BYTES as u64 + frames.len() as u64;
            carry_into(&mut frames, &place.at(last), &frame)
                .map_err(|fault| damage(&old.segment, closed.end, frame.header.position, fault))?;
        }
        let segment = match make(site, &header, &frames) {
            Ok(segment) => segment,
            Err(NotMade::Taken | NotMade::Removed(_)) => return Ok(None),
            Err(NotMade::Failed(error) | NotMade::Doubtful(error)) => return Err(error),
        };
        let mut view = born(site, segment, old)?;
        (view.last, view.end) = (last, view.end + frames.len() as u64);
        Ok(Some(view))
    }
}

/// The header of the segment of `epoch` that follows the one that ends at `view`.
fn header_after(site: &Site, view: &View, epoch: Epoch, birth: Birth) -> SegmentHeader {
    let before = view.segment.header();
    let (salt, incarnation) = match birth {
        Birth::Rotation => (before.salt, before.incarnation),
        Birth::Life { salt, incarnation } => (salt, incarnation),
    };
    SegmentHeader {
        format: FORMAT_VERSION,
        writer: writer_version(),
        rules: before.rules.max(site.rules),
        store: before.store,
        salt,
        incarnation,
        epoch,
        first: view.head.position.next(),
        chain: view.head.chain,
        predecessor: Some(Predecessor {
            name: before.name(),
            end_offset: view.end,
            end: view.head,
        }),
    }
}

fn make(site: &Site, header: &SegmentHeader, frames: &[u8]) -> Result<Segment, NotMade> {
    let before = header.predecessor.map(|before| before.end_offset);
    let bytes = (SEGMENT_HEADER_BYTES + frames.len()) as u64 + site.tuning.fill_bytes;
    let bytes = bytes.min(site.tuning.target_bytes(before));
    segment::make(&*site.storage, &*site.dir, header, frames, bytes)
}

/// The view behind the frames of a segment that was just made, before they are counted.
fn born(site: &Site, segment: Segment, before: &View) -> Result<View, Error> {
    let filled = segment
        .file()
        .size()
        .map_err(|error| site.failed("look at", &segment::file_name(segment.name()), error))?;
    let start = SEGMENT_HEADER_BYTES as u64;
    Ok(View {
        segment: site.segments.keep(segment),
        head: before.head,
        last: start,
        end: start,
        filled,
    })
}
