//! Landmarks: where a frame stands, kept by whoever wants to go on reading behind it another time.

use std::io;

use super::{From, Point, Walker};
use crate::control::Page;
use crate::control::place::HeadPlace;
use crate::error::Error;
use crate::format::SegmentName;
use crate::frame::{Depth, FRAME_BYTES_MAX, decode};
use crate::position::{Chain, Epoch, Head, Position, StoreId};
use crate::segment::line::{Link, Segments};
use crate::segment::{Segment, file_name};
use crate::storage::{self, Directory};

/// Where a frame stands. A hint that is looked at again before it is used: a log that was taken over, salvaged
/// or restored meanwhile may have the frame elsewhere, or another one in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Landmark {
    /// The frame.
    pub head: Head,
    /// The segment it stands in.
    pub segment: SegmentName,
    /// The offset of its first byte.
    pub offset: u64,
    /// The offset behind its last.
    pub end: u64,
}

impl Landmark {
    /// Bytes of a landmark written down.
    pub const BYTES: usize = 56;

    /// Written down.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let words = [
            self.head.position.0,
            self.segment.first.0,
            self.segment.epoch.0,
            self.offset,
            self.end,
        ];
        let mut bytes = [0; Self::BYTES];
        let (chain, rest) = bytes.split_at_mut(16);
        chain.copy_from_slice(&self.head.chain.0);
        for (slot, word) in rest.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`Landmark::to_bytes`] wrote.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Landmark {
        let (chain, rest) = bytes.split_first_chunk::<16>().expect("it is longer");
        let mut words = rest
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().expect("five words stand behind the chain");
        Landmark {
            head: Head {
                position: Position(next()),
                chain: Chain(*chain),
            },
            segment: SegmentName {
                first: Position(next()),
                epoch: Epoch(next()),
            },
            offset: next(),
            end: next(),
        }
    }

    fn point(&self) -> Point {
        Point {
            segment: self.segment,
            head: self.head,
            offset: self.end,
        }
    }

    /// Whether the frame stands there, whole.
    fn holds(&self, segment: &Segment) -> io::Result<bool> {
        let Some(len) = self.end.checked_sub(self.offset) else {
            return Ok(false);
        };
        let Ok(len) = usize::try_from(len) else {
            return Ok(false);
        };
        if len > FRAME_BYTES_MAX {
            return Ok(false);
        }
        let mut bytes = vec![0; len];
        let read = storage::read_full(&**segment.file(), &mut bytes, self.offset)?;
        let judged = decode(
            &segment.place().at(self.offset),
            &bytes[..read],
            Depth::Whole,
        );
        Ok(judged.is_ok_and(|(frame, bytes)| frame.header.head() == self.head && bytes == len))
    }
}

impl std::convert::From<HeadPlace> for Landmark {
    fn from(place: HeadPlace) -> Landmark {
        let HeadPlace {
            head,
            segment,
            offset,
            end,
        } = place;
        Landmark {
            head,
            segment,
            offset,
            end,
        }
    }
}

impl std::convert::From<Landmark> for HeadPlace {
    fn from(mark: Landmark) -> HeadPlace {
        let Landmark {
            head,
            segment,
            offset,
            end,
        } = mark;
        HeadPlace {
            head,
            segment,
            offset,
            end,
        }
    }
}

/// The segments from the one with the landmark's frame up to `newest`, if it really stands there.
pub(super) fn line_to<'s>(
    dir: &dyn Directory,
    segments: &'s Segments,
    store: StoreId,
    newest: SegmentName,
    mark: &Landmark,
) -> Result<Option<Vec<Link<'s>>>, Error> {
    if mark.head.position == Position::ZERO {
        return Ok(None);
    }
    let newest = segments.get(newest, store)?;
    let line = segments.line(newest, mark.head.position.before())?;
    let Some(first) = line
        .first()
        .filter(|link| link.header.name() == mark.segment)
    else {
        return Ok(None);
    };
    // Behind a stated end stands what an older epoch wrote, and nobody acknowledged.
    if first
        .closed
        .is_some_and(|closed| closed.end_offset < mark.end)
    {
        return Ok(None);
    }
    let failed = |error| storage::failed("read", dir.path_of(&file_name(mark.segment)), error);
    let segment = first.segment()?;
    let stands = mark.holds(&segment).map_err(failed)?;
    Ok(stands.then_some(line))
}

/// The frames behind the landmark, up to the one at `place`; none when the landmark does not stand.
pub(crate) fn walk_behind<'d>(
    dir: &'d dyn Directory,
    segments: &'d Segments,
    store: StoreId,
    place: &HeadPlace,
    page: Option<&Page>,
    (mark, depth): (&Landmark, Depth),
) -> Result<Option<Walker<'d>>, Error> {
    if mark.head.position > place.head.position {
        return Ok(None);
    }
    let Some(mut line) = line_to(dir, segments, store, place.segment, mark)? else {
        return Ok(None);
    };
    if line[0].closed.is_some_and(|closed| closed.end == mark.head) {
        line.remove(0);
    }
    let until = Landmark::from(*place).point();
    Walker::new(dir, line, From::Point(mark.point()), until, depth, page).map(Some)
}
