//! Under the append lock, with doubt about what stands behind the published head: look, judge by the
//! table of `docs/recovery.md`, carry the verdict out, and say what the head is.

use std::sync::Arc;

use super::Writer;
use super::site::{Held, Site, raise_to};
use super::view::{Stands, View, look_at};
use crate::control::anchor::{Anchor, STRETCH_BYTES};
use crate::control::{Control, Signal, Word};
use crate::error::Error;
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::position::{Epoch, Position};
use crate::recovery::{
    Found, Judgement, Lineage, Repair, Writer as Live, keep_torn, plan, zero_torn,
};
use crate::scan::{Checks, Cursor, Run, Span, Step, Walk, Window, survey};
use crate::segment::{self, SEGMENTS_FOLDER, Segment, file_name};

/// Where the newest segment ends, as found.
pub(super) struct Ending {
    pub(super) view: View,
    pub(super) repair: Option<Repair>,
}

impl Writer {
    /// Settles the doubt; false when the epoch was raised meanwhile.
    ///
    /// # Errors
    /// When the log cannot be read, is damaged, or a torn tail cannot be put away. The doubt stays.
    pub(super) fn settle(&mut self, site: &Site, held: &mut Held<'_>) -> Result<bool, Error> {
        let doubt = Word {
            in_doubt: true,
            ..held.word
        };
        if held.word != doubt && !held.control.swap(held.word, doubt) {
            return Ok(false);
        }
        // Whoever named the newest segment may have died before its name was durable.
        for folder in ["", SEGMENTS_FOLDER] {
            site.dir
                .sync(folder)
                .map_err(|error| site.failed("sync", folder, error))?;
        }
        segment::remove_scratch(&*site.dir)?;
        let Some(ending) = look(site, held)? else {
            return Ok(false);
        };
        let is_own = ending.view.segment.name().epoch == doubt.epoch;
        let view = if is_own {
            if !make_end(site, held, doubt.epoch, &ending)? {
                return Ok(false);
            }
            ending.view
        } else {
            match self.succeed(site, held, &ending.view)? {
                Some(view) => view,
                None => return Ok(false),
            }
        };
        // Whether a sync of these frames was begun and failed before its leader died is not known.
        held.control.raise_target(view.head.position);
        held.control.put_place(doubt.epoch, &view.place());
        let settled = Word {
            head: view.head.position,
            in_doubt: false,
            ..doubt
        };
        if !held.control.swap(doubt, settled) {
            return Ok(false);
        }
        held.word = settled;
        if !is_own {
            // The segment was synced before it had a name. Not said before the swap: an overtaken
            // holder's segment is late, and what it carried is durable in no other.
            held.control.raise_durable(view.head.position);
        }
        held.control.ring(Signal::Published, u32::MAX);
        self.view = Some(view);
        Ok(true)
    }
}

/// Whether the page says that a frame was published which does not stand there, and does not say that it was durable: then
/// it is to be settled before anything is read by the page.
///
/// # Errors
/// When the segment cannot be read.
pub(crate) fn is_ahead(site: &Site, control: &Control) -> Result<bool, Error> {
    let mark = control.mark().map(|mark| mark.head.position);
    let durable = control.durable().max(mark.unwrap_or_default());
    let Some(place) = control
        .place()
        .filter(|place| place.head.position > durable)
    else {
        return Ok(false);
    };
    let segment = site.segments.get(place.segment, site.store)?;
    Ok(look_at(site, &segment, &place)? == Stands::Not)
}

/// Looks at the segments' headers and at the newest one's frames. None when a newer epoch has a
/// segment already.
pub(super) fn look(site: &Site, held: &Held<'_>) -> Result<Option<Ending>, Error> {
    // Before the segments are read: a mark may be ahead of bytes that were read earlier.
    let control = &held.control;
    let mark = control
        .mark()
        .map_or(Position::ZERO, |mark| mark.head.position);
    let durable = control.durable().max(mark);
    // What this boot published has to stand there, durable or not: a position is given once.
    let published = durable.max(held.word.head);
    let files = site.segments.files()?;
    if let Some(newer) = files.last()
        && newer.name.epoch > held.word.epoch
    {
        // The epoch was raised meanwhile. Or its lock was removed, and the number is not given to a
        // second one.
        let next = match site.locks.newest()? {
            Some(locked) if locked >= newer.name.epoch => locked,
            _ => Epoch(newer.name.epoch.0 + 1),
        };
        raise_to(&site.locks, control, next)?;
        return Ok(None);
    }
    let lineage = Lineage::of(Some(site.store), &files);
    let newest = match lineage.newest {
        Some(header) => Some(survey_newest(site, control, &header)?),
        None => None,
    };
    let mut found = Found {
        obstacles: lineage.obstacles,
        structure: lineage.damage,
        slot: published,
        closed: Vec::new(),
        newest: newest.as_ref().map(|(.., run)| run.clone()),
        late: Vec::new(),
        writer: Live::Gone,
    };
    let (judgement, is_ahead) = judged(&mut found, durable);
    let newest_epoch = lineage.newest.as_ref().map(|header| header.epoch);
    if is_ahead && newest_epoch == Some(held.word.epoch) {
        // The positions that are gone are given again by a new epoch, which whoever lives after all has to read from.
        raise_to(&site.locks, control, Epoch(held.word.epoch.0 + 1))?;
        return Ok(None);
    }
    let (end, repair) = match judgement {
        Judgement::Obstructed(obstacles) => {
            return Err(obstacles
                .first()
                .map_or_else(|| not_a_store(site), |first| first.to_error()));
        }
        Judgement::Damaged(damages) => {
            return Err(damages
                .first()
                .map_or_else(|| not_a_store(site), |first| Error::from(*first)));
        }
        Judgement::Torn(repair) => (repair.end, Some(repair)),
        Judgement::Clean(Some(end)) | Judgement::InFlight(end) => (end, None),
        Judgement::Clean(None) => return Err(not_a_store(site)),
    };
    let (segment, last, _) = newest.ok_or_else(|| not_a_store(site))?;
    let failed = |error| site.failed("look at", &file_name(end.segment), error);
    let filled = segment.file().size().map_err(failed)?;
    let view = View {
        segment,
        head: end.head,
        last,
        end: end.offset,
        filled,
    };
    Ok(Some(Ending { view, repair }))
}

/// What is found, and whether the page is ahead of the log: frames that it says were published, and not that they were
/// durable, are gone. The file system was shut down and mounted again within this boot, and had written the page and not the
/// frames. Nobody was told that they are there, so the page counts only as far as it says that something was durable.
fn judged(found: &mut Found, durable: Position) -> (Judgement, bool) {
    let judgement = plan(found).judgement;
    if durable >= found.slot || !matches!(judgement, Judgement::Damaged(_)) {
        return (judgement, false);
    }
    found.slot = durable;
    match plan(found).judgement {
        Judgement::Damaged(_) => (judgement, false),
        lesser => (lesser, true),
    }
}

/// The newest segment, the offset of its last frame before any break, and what it holds.
fn survey_newest(
    site: &Site,
    control: &Control,
    header: &SegmentHeader,
) -> Result<(Arc<Segment>, u64, Run), Error> {
    let name = header.name();
    let newest = site.segments.get(name, site.store)?;
    let failed = |error| site.failed("read", &file_name(name), error);
    let window = Window::new(&**newest.file()).map_err(failed)?;
    // Up to the published head everything was whole when it was published; a page of this boot says
    // where that is, and the frame there says whether it is true.
    let published = match control.place() {
        Some(place) if place.segment == name && look_at(site, &newest, &place)? != Stands::Not => {
            Some(place)
        }
        _ => None,
    };
    let (cursor, mut last) = match published {
        Some(place) => (
            Cursor::resume(header, Checks::ALL, place.head, place.end),
            place.offset,
        ),
        None => (
            Cursor::new(header, Checks::ALL),
            SEGMENT_HEADER_BYTES as u64,
        ),
    };
    let mut walk = Walk::resume(window, cursor, None);
    let mut whole = true;
    let mut note = |span: Span, step: &Step<'_>| {
        whole &= matches!(step, Step::Frame(..));
        if let Step::Frame(frame, _) = step
            && whole
        {
            last = span.offset;
            if span.offset / STRETCH_BYTES != span.end() / STRETCH_BYTES {
                let head = frame.header.head();
                control.put_anchor(&Anchor {
                    segment: name,
                    head,
                    offset: span.end(),
                });
            }
        }
    };
    let run = survey(header, &mut walk, &mut note).map_err(failed)?;
    Ok((newest, last, run))
}

fn not_a_store(site: &Site) -> Error {
    Error::NotAStore {
        path: site.dir.path().to_owned(),
    }
}

/// Makes the end of the epoch's own segment one that nothing comes back behind: puts torn bytes away, and
/// makes the zeros there durable. Who wrote zeros that were only found may have died before they were;
/// without them, an old frame could come back behind a new one after a power cut. False when the epoch
/// is over.
fn make_end(site: &Site, held: &Held<'_>, epoch: Epoch, ending: &Ending) -> Result<bool, Error> {
    let control = &held.control;
    if control.is_zeroing(epoch) {
        // Whoever was at it died, and may have been told of a sync that failed. Another one would
        // succeed without the zeros that this one should have written.
        control.poison_epoch(epoch);
        return Ok(false);
    }
    if let Some(repair) = &ending.repair {
        let mut random = [0; 8];
        let drawn = site.storage.random(&mut random);
        drawn.map_err(|error| site.failed("draw random numbers for", "a torn tail", error))?;
        match keep_torn(&*site.dir, repair, u64::from_le_bytes(random)) {
            Ok(torn) => site.torn.lock().push(torn),
            // Overtaken: whoever was first took the scratch file away.
            Err(_) if control.word().epoch != epoch => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    control.begin_zeros(epoch);
    let zeroed = match &ending.repair {
        Some(repair) => zero_torn(&*site.dir, repair),
        None => {
            let segment = &ending.view.segment;
            let failed = |error| site.failed("sync", &file_name(segment.name()), error);
            segment.file().sync().map_err(failed)
        }
    };
    match zeroed {
        Ok(()) => control.end_zeros(epoch),
        // No sync was made: what was written is still to be synced.
        Err(error @ Error::NoSpace { .. }) => {
            control.end_zeros(epoch);
            return Err(error);
        }
        Err(_) => {
            control.poison_epoch(epoch);
            return Err(Error::Poisoned { epoch });
        }
    }
    Ok(true)
}
