//! One sync, led by whoever holds the numbered sync lock.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::site::Site;
use crate::control::Control;
use crate::control::place::{DurableMark, HeadPlace};
use crate::error::Error;
use crate::position::Position;
use crate::scan::{Checks, Cursor};
use crate::segment::{Segment, file_name, sync_and_probe};
use crate::storage::{self, Access};
use crate::zoo::planted;

/// The segment that leaders of this process sync. Not the writer's: the system tells each open file
/// of a failure once, so whoever syncs needs one that nobody else syncs at the time.
#[derive(Debug, Default)]
pub(super) struct Leader {
    kept: Mutex<Option<Kept>>,
}

/// A segment open for syncing.
#[derive(Debug)]
struct Kept {
    segment: Arc<Segment>,
    /// Which frames may be older than the open file: of a sync that failed for them the system may have
    /// told another one, and not this.
    older: Older,
}

/// Frames that may be older than an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Older {
    /// Those up to a position: the head when it was opened.
    UpTo(Position),
    /// Every one: somebody was writing when it was opened, so what is published later may be older too.
    Any,
}

impl Older {
    /// For a file that was opened before the call.
    fn than_now(control: &Control) -> Older {
        let word = control.word();
        match word.in_doubt {
            true => Older::Any,
            false => Older::UpTo(word.head),
        }
    }

    fn is_above(self, durable: Position) -> bool {
        match self {
            Older::UpTo(position) => position > durable,
            Older::Any => true,
        }
    }
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
    /// Makes everything that is published durable: target, sync, probe, durable position. The waiters are woken when the
    /// sync lock is free again, so that one who is not covered can lead.
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
        let kept = self.kept.lock().take();
        let kept = match kept.filter(|kept| kept.segment.name() == place.segment) {
            Some(kept) => kept,
            None => {
                let segment = Segment::open(&*site.dir, place.segment, Access::Write)?;
                Kept {
                    segment: Arc::new(segment),
                    older: Older::than_now(control),
                }
            }
        };
        control.begin_sync(place.head.position);
        let mark = DurableMark {
            head: place.head,
            segment: place.segment,
            end: place.end,
        };
        if planted("mark-before-sync") {
            control.put_mark(&mark);
        }
        make_durable(site, control, &kept.segment, &place, kept.older)?;
        // One of which nothing is known is not used twice: the next one may know more.
        *self.kept.lock() = Some(kept).filter(|kept| kept.older != Older::Any);
        control.put_mark(&mark);
        Ok(Led::Sync)
    }
}

/// Makes the frames of the newest segment durable up to `place`; `older` ones may have been written
/// before `segment` was opened.
///
/// # Errors
/// [`Error::Poisoned`] when the sync fails: then what it should have written is unknown, to everybody.
pub(super) fn make_durable(
    site: &Site,
    control: &Control,
    segment: &Segment,
    place: &HeadPlace,
    older: Older,
) -> Result<(), Error> {
    let durable = control.durable();
    if place.head.position <= durable {
        return Ok(());
    }
    let synced = (|| {
        // A target above the durable position is a sync that was begun and of which nobody said that it
        // succeeded. If it failed, the system may take its pages for clean now, and another sync would
        // succeed without them.
        if control.target() > durable || older.is_above(durable) {
            write_again(control, segment, durable, place)?;
        }
        control.raise_target(place.head.position);
        let holds_none = place.offset == place.end;
        sync_and_probe(&**segment.file(), if holds_none { 0 } else { place.offset })
    })();
    match synced {
        Ok(()) if planted("sync-before-write") => {
            control.raise_durable(control.word().head);
            Ok(())
        }
        Ok(()) => {
            control.raise_durable(place.head.position);
            Ok(())
        }
        Err(_) if planted("retry-after-failed-sync") && segment.file().sync().is_ok() => {
            control.raise_durable(place.head.position);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            // Writing again over what is there takes no space; a file system that copies on write
            // may want some. Nothing was synced, so nothing is known to be lost.
            Err(site.failed("write again", &file_name(place.segment), error))
        }
        Err(_) => {
            let epoch = place.segment.epoch;
            control.poison_epoch(epoch);
            Err(Error::Poisoned { epoch })
        }
    }
}

/// Writes the frames above the durable position again: the very bytes that were held against every
/// checksum.
fn write_again(
    control: &Control,
    segment: &Segment,
    durable: Position,
    place: &HeadPlace,
) -> io::Result<()> {
    let header = segment.header();
    let after = durable.max(header.start().position);
    let from = match control.anchor(segment.name(), after) {
        Some(anchor) => Cursor::resume(header, Checks::ALL, anchor.head, anchor.offset),
        None => Cursor::new(header, Checks::ALL),
    };
    let (mut cursor, base) = (from, from.offset());
    let mut bytes =
        vec![0; usize::try_from(place.end.saturating_sub(base)).map_err(io::Error::other)?];
    let read = storage::read_full(&**segment.file(), &mut bytes, base)?;
    bytes.truncate(read);
    let mut begin = 0;
    while cursor.head().position < place.head.position {
        let at = (cursor.offset() - base) as usize;
        if cursor.head().position <= after {
            begin = at;
        }
        cursor
            .step(bytes.get(at..).unwrap_or_default())
            .map_err(io::Error::other)?;
    }
    if cursor.head() != place.head || cursor.offset() != place.end {
        return Err(io::Error::other("the published head is not where it was"));
    }
    storage::write_full(&**segment.file(), &bytes[begin..], base + begin as u64)
}
