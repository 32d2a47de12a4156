//! What a writer knows of the log: the head, the segment it stands in, and how to read up to it.

use std::io;
use std::sync::Arc;

use super::site::Site;
use crate::control::Control;
use crate::control::place::HeadPlace;
use crate::error::Error;
use crate::format::SegmentName;
use crate::frame::{Depth, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Frame, decode};
use crate::journal::Frames;
use crate::position::Head;
use crate::reader::{From, Point, Walker};
use crate::scan::{Checks, Cursor};
use crate::segment::{Segment, file_name};
use crate::storage::{self, Access};

/// The most bytes of others' frames that are read at once, without a walk: some thousand frames.
const ADVANCE_BYTES_MAX: u64 = 256 << 10;

/// A writer's place in the log: always between two frames it has read, or written.
#[derive(Debug)]
pub struct View {
    /// The newest segment.
    pub segment: Arc<Segment>,
    /// The newest frame.
    pub head: Head,
    /// The offset of that frame; equal to `end` when the segment holds none.
    pub last: u64,
    /// The offset behind it.
    pub end: u64,
    /// The size of the file: up to here are zeros behind `end`.
    pub filled: u64,
}

/// The frames that a view passed on its way to the true head.
#[derive(Debug)]
pub(super) struct Passed {
    /// Where it stood before.
    pub(super) from: Head,
    /// Oldest first, and without a gap up to where it stands now.
    pub(super) frames: Vec<Frame>,
}

impl Passed {
    /// The frames behind `known`; none when that is not on the way: then the log is looked at.
    pub(super) fn behind(self, known: Head) -> Option<Vec<Frame>> {
        let Self { from, mut frames } = self;
        let count = known.position.0.checked_sub(from.position.0)?;
        let count = usize::try_from(count).ok()?;
        let stands = match count.checked_sub(1) {
            None => known == from,
            Some(last) => frames.get(last)?.header.head() == known,
        };
        stands.then(|| frames.split_off(count))
    }
}

/// A head that has to be in the log, and perhaps where it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) head: Head,
    pub(crate) point: Option<Point>,
}

impl View {
    /// Whether the page says what this view says.
    #[must_use]
    pub fn is_at(&self, place: &HeadPlace) -> bool {
        place.head == self.head && place.segment == self.segment.name() && place.end == self.end
    }

    /// Whether the segment holds no frame yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.position < self.segment.header().first
    }

    /// Moves behind frames that were published.
    pub fn pass(&mut self, head: Head, ends: &[u64]) {
        let (last, end) = match ends {
            [.., last, end] => (*last, *end),
            [end] => (0, *end),
            [] => return,
        };
        (self.last, self.end) = (self.end + last, self.end + end);
        self.head = head;
        self.filled = self.filled.max(self.end);
    }

    /// The view at `place`, if there really is that frame and nothing behind it; none otherwise: the
    /// page alone never decides where bytes are written.
    ///
    /// # Errors
    /// When the segment cannot be opened or read.
    pub fn adopt(site: &Site, place: &HeadPlace) -> Result<Option<View>, Error> {
        let segment = site.segments.get(place.segment, site.store)?;
        if look_at(site, &segment, place)? != Stands::WithNothingBehind {
            return Ok(None);
        }
        let failed = |error| site.failed("look at", &file_name(place.segment), error);
        let filled = segment.file().size().map_err(failed)?;
        let HeadPlace {
            head,
            offset: last,
            end,
            ..
        } = *place;
        Ok(Some(View {
            segment,
            head,
            last,
            end,
            filled,
        }))
    }

    /// Moves to `place`, further on in the same segment, and gives the frames in between, oldest first: one read, and
    /// each frame held against every checksum and the chain from this head on. None, and nowhere else, when they are not
    /// all there, when something stands behind them, or when they are too many for one read.
    ///
    /// # Errors
    /// When the segment cannot be read.
    pub(super) fn advance(
        &mut self,
        site: &Site,
        place: &HeadPlace,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Vec<Frame>>, Error> {
        let bytes = place.end.checked_sub(self.end).unwrap_or(u64::MAX);
        let most = ADVANCE_BYTES_MAX.min(site.tuning.tail_bytes_max);
        if place.segment != self.segment.name() || bytes > most {
            return Ok(None);
        }
        let len = bytes as usize;
        buffer.clear();
        buffer.resize(len + FRAME_HEADER_BYTES, 0);
        let read = storage::read_full(&**self.segment.file(), buffer, self.end)
            .map_err(|error| site.failed("read", &file_name(place.segment), error))?;
        let Some((mut rest, behind)) = buffer[..read].split_at_checked(len) else {
            return Ok(None);
        };
        let mut cursor = Cursor::resume(self.segment.header(), Checks::ALL, self.head, self.end);
        let (mut frames, mut last) = (Vec::new(), self.last);
        while !rest.is_empty() {
            last = cursor.offset();
            let Ok(frame) = cursor.step(rest) else {
                return Ok(None);
            };
            rest = &rest[frame.header.frame_bytes()..];
            frames.push(frame.to_owned());
        }
        let found = (cursor.head(), last, cursor.offset());
        if found != (place.head, place.offset, place.end) || behind.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
        (self.head, self.last, self.end) = found;
        self.filled = self.filled.max(self.end);
        Ok(Some(frames))
    }

    /// Whether a segment follows behind `place`. Then the page is older than the log: the file system was shut down and
    /// mounted again within this boot, or an old copy was put back. Looked at once for each handle, which the first of
    /// these ends.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn is_closed(site: &Site, place: &HeadPlace) -> Result<bool, Error> {
        let next = SegmentName {
            first: place.head.position.next(),
            epoch: place.segment.epoch,
        };
        // One without a frame yet has this name itself.
        if next == place.segment {
            return Ok(false);
        }
        match site.dir.open(&file_name(next), Access::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(site.failed("look at", &file_name(next), error)),
        }
    }

    /// Where the head stands, for the control page.
    #[must_use]
    pub fn place(&self) -> HeadPlace {
        HeadPlace {
            head: self.head,
            segment: self.segment.name(),
            offset: self.last,
            end: self.end,
        }
    }

    /// The point behind the head.
    pub(crate) fn point(&self) -> Point {
        Point {
            segment: self.segment.name(),
            head: self.head,
            offset: self.end,
        }
    }

    fn walk<'s>(
        &self,
        site: &'s Site,
        control: &Control,
        known: Known,
    ) -> Result<Walker<'s>, Error> {
        let Known { head: known, point } = known;
        let from = match point {
            Some(point) if point.head == known => From::Point(point),
            Some(point) if point.head.position < known.position => From::Past(point, known),
            _ => From::Head(known),
        };
        if known.position > self.head.position {
            return Err(Error::Diverged {
                known,
                head: self.head,
            });
        }
        let line = site.segments.line(self.segment.clone(), known.position)?;
        Walker::new(
            &*site.dir,
            line,
            from,
            self.point(),
            Depth::Whole,
            Some(control),
        )
    }

    /// The frames behind `known`, oldest first; none when they are more than one transaction shows.
    ///
    /// # Errors
    /// [`Error::Diverged`] when that is not in this log, or when it cannot be read.
    pub(crate) fn frames_after(
        &self,
        site: &Site,
        control: &Control,
        known: Known,
    ) -> Result<Option<Vec<Frame>>, Error> {
        if known.head == self.head {
            return Ok(Some(Vec::new()));
        }
        let mut walker = self.walk(site, control, known)?;
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while let Some(frame) = walker.next() {
            let frame = frame?;
            bytes += frame.header.frame_bytes() as u64;
            if bytes > site.tuning.tail_bytes_max {
                return Ok(None);
            }
            frames.push(frame.to_owned());
        }
        Ok(Some(frames))
    }

    /// The heads of the first `count` frames behind `known`.
    ///
    /// # Errors
    /// As [`View::frames_after`].
    pub(crate) fn heads_after(
        &self,
        site: &Site,
        control: &Control,
        known: Known,
        count: usize,
    ) -> Result<Vec<Head>, Error> {
        let mut heads = Vec::with_capacity(count);
        if known.head.position >= self.head.position {
            return Ok(heads);
        }
        let mut walker = self.walk(site, control, known)?;
        while heads.len() < count
            && let Some(frame) = walker.next()
        {
            heads.push(frame?.header.head());
        }
        Ok(heads)
    }
}

/// Whether a frame stands where the page says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stands {
    /// It does not.
    Not,
    /// It does, and where the next one's header would be are zeros.
    WithNothingBehind,
    /// It does, and something stands behind it.
    WithSomethingBehind,
}

/// Looks at the frame at `place`, bodies included.
pub(super) fn look_at(site: &Site, segment: &Segment, place: &HeadPlace) -> Result<Stands, Error> {
    let len = usize::try_from(place.end.saturating_sub(place.offset)).unwrap_or(usize::MAX);
    if len > FRAME_BYTES_MAX {
        return Ok(Stands::Not);
    }
    let mut bytes = vec![0; len + FRAME_HEADER_BYTES];
    let read = storage::read_full(&**segment.file(), &mut bytes, place.offset)
        .map_err(|error| site.failed("read", &file_name(place.segment), error))?;
    let Some((frame, behind)) = bytes[..read].split_at_checked(len) else {
        return Ok(Stands::Not);
    };
    let found = if len == 0 {
        Some(segment.header().start())
    } else {
        let judged = decode(&segment.place().at(place.offset), frame, Depth::Whole);
        judged
            .ok()
            .filter(|(_, bytes)| *bytes == len)
            .map(|(frame, _)| frame.header.head())
    };
    Ok(if found != Some(place.head) {
        Stands::Not
    } else if behind.iter().all(|byte| *byte == 0) {
        Stands::WithNothingBehind
    } else {
        Stands::WithSomethingBehind
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Draft, Place, encode_into};
    use crate::position::{Epoch, Incarnation, Position, Salt};

    /// The frames at positions 4 to 6, and the head before them.
    fn passed() -> Passed {
        let place = Place::in_segment(Salt([7; 16]), Position(1), Epoch(1));
        let from = Head {
            position: Position(3),
            ..Head::default()
        };
        let (mut head, mut frames) = (from, Vec::new());
        for offset in [1000, 2000, 3000] {
            let (at, mut bytes) = (place.at(offset), Vec::new());
            let (life, draft) = (Incarnation(1), Draft::default());
            head = encode_into(&mut bytes, &at, head, Position(0), life, &draft).expect("small");
            let (frame, _) = decode(&at, &bytes, Depth::Whole).expect("good");
            frames.push(frame.to_owned());
        }
        Passed { from, frames }
    }

    #[test]
    fn a_caller_is_shown_what_stands_behind_the_head_that_it_knows() {
        let heads: Vec<Head> = passed().frames.iter().map(|f| f.header.head()).collect();
        let shown = |known| {
            let frames = passed().behind(known)?;
            Some(
                frames
                    .iter()
                    .map(|f| f.header.position.0)
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(shown(passed().from), Some(vec![4, 5, 6]));
        assert_eq!(shown(heads[0]), Some(vec![5, 6]));
        assert_eq!(shown(heads[2]), Some(vec![]));
        for (position, head) in [(2, heads[0]), (3, heads[0]), (5, heads[0]), (7, heads[2])] {
            let known = Head {
                position: Position(position),
                ..head
            };
            assert_eq!(shown(known), None, "{position} is not on the way");
        }
    }
}
