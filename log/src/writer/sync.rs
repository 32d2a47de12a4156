//! One sync, led by whoever holds the numbered sync lock.

use std::sync::Arc;

use parking_lot::Mutex;

use super::site::Site;
use crate::control::place::{DurableMark, HeadPlace};
use crate::control::{Control, Signal};
use crate::error::Error;
use crate::format::SEGMENT_HEADER_BYTES;
use crate::frame::Depth;
use crate::journal::Frames;
use crate::position::Position;
use crate::reader::{From, Point, Walker};
use crate::segment::line::Link;
use crate::segment::{Segment, file_name, sync_and_probe};
use crate::storage::{self, Access};

/// The segment that leaders of this process sync. Not the writer's: the system tells each open file
/// of a failure once, so whoever syncs needs one that nobody else syncs at the time.
#[derive(Debug, Default)]
pub(super) struct Leader {
    segment: Mutex<Option<Arc<Segment>>>,
}

/// What came of an attempt to lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Led {
    /// Everything that was published is durable.
    Sync,
    /// Somebody else leads.
    Nothing,
    /// Where the head stands is not settled.
    Unsettled,
}

impl Leader {
    /// Makes everything that is published durable: target, sync, probe, durable position, waiters.
    ///
    /// Only the newest segment has to be synced: every one before it was, before this one had a name.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when the sync fails, or one of this epoch's has.
    pub(super) fn lead(&self, site: &Site, control: &Control) -> Result<Led, Error> {
        let Some(place) = control.place() else {
            return Ok(Led::Unsettled);
        };
        let epoch = place.segment.epoch;
        if control.poisoned(epoch) {
            return Err(Error::Poisoned { epoch });
        }
        let kept = self
            .segment
            .lock()
            .take()
            .filter(|segment| segment.name() == place.segment);
        let segment = match kept {
            Some(segment) => segment,
            None => Arc::new(Segment::open(&*site.dir, place.segment, Access::Write)?),
        };
        make_durable(site, control, &segment, &place)?;
        *self.segment.lock() = Some(segment);
        control.put_mark(&DurableMark {
            head: place.head,
            segment: place.segment,
            end: place.end,
        });
        control.ring(Signal::Synced, u32::MAX);
        Ok(Led::Sync)
    }
}

/// Makes the frames of the newest segment durable up to `place`.
///
/// # Errors
/// [`Error::Poisoned`] when the sync fails: then what it should have written is unknown, to everybody.
pub(super) fn make_durable(
    site: &Site,
    control: &Control,
    segment: &Arc<Segment>,
    place: &HeadPlace,
) -> Result<(), Error> {
    let durable = control.durable();
    if place.head.position <= durable {
        return Ok(());
    }
    if control.target() > durable {
        // A sync was begun and nobody said that it succeeded. If it failed, the system may take its
        // pages for clean now, and another sync would succeed without them.
        write_again(site, control, segment, durable, place)?;
    }
    control.raise_target(place.head.position);
    let holds_none = place.offset == place.end;
    let synced = sync_and_probe(&**segment.file(), if holds_none { 0 } else { place.offset });
    if synced.is_err() {
        let epoch = place.segment.epoch;
        control.poison_epoch(epoch);
        return Err(Error::Poisoned { epoch });
    }
    control.raise_durable(place.head.position);
    Ok(())
}

/// Writes the frames above the durable position again, from bytes that were held against every checksum.
fn write_again(
    site: &Site,
    control: &Control,
    segment: &Arc<Segment>,
    durable: Position,
    place: &HeadPlace,
) -> Result<(), Error> {
    let start = segment.header().start().position;
    let after = durable.max(start);
    let until = Point {
        segment: place.segment,
        head: place.head,
        offset: place.end,
    };
    let line = vec![Link {
        segment: segment.clone(),
        closed: None,
    }];
    let from = From::Position(after);
    let mut walker = Walker::new(&*site.dir, line, from, until, Depth::Whole, Some(control))?;
    let mut begin = None;
    let mut offset = SEGMENT_HEADER_BYTES as u64;
    while let Some(frame) = walker.next() {
        let bytes = frame?.header.frame_bytes() as u64;
        offset = walker.at().map_or(offset, |point| point.offset);
        begin = begin.or(Some(offset - bytes));
    }
    let Some(begin) = begin else { return Ok(()) };
    let failed = |error| site.failed("write again", &file_name(place.segment), error);
    let mut bytes = vec![0; usize::try_from(place.end - begin).unwrap_or(usize::MAX)];
    let read = storage::read_full(&**segment.file(), &mut bytes, begin).map_err(failed)?;
    storage::write_full(&**segment.file(), &bytes[..read], begin).map_err(failed)
}
