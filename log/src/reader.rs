//! Reading frames across segments: closed ones through a mapping, the one in use by copies, so that
//! bytes never change between their checksum and their use.

pub mod landmark;
pub mod open;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

use crate::control::Page;
use crate::error::{Damage, Error, Next};
use crate::fault::Fault;
use crate::format::SegmentName;
use crate::frame::{Depth, FRAME_HEADER_BYTES, FrameRef, stated_bytes};
use crate::journal::Frames;
use crate::position::{Head, Position, Positions};
use crate::scan::{Ahead, Checks, Cursor, ReadAt, Source, Window};
use crate::segment::line::Link;
use crate::segment::{Segment, file_name};
use crate::storage::{self, Directory, SealedBytes, StoredFile};
use landmark::Landmark;

#[derive(Debug)]
struct Sealed {
    map: Mmap,
}

impl SealedBytes for Sealed {
    fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// Maps the first `bytes` bytes of a sealed file.
pub(crate) fn map_sealed(file: &File, bytes: u64) -> io::Result<Arc<dyn SealedBytes>> {
    // Beyond the end of its file, a mapping kills the process that reads it.
    if file.metadata()?.len() < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let len = usize::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: a closed segment is never changed nor cut by anyone who keeps to the format, and all
    // that is read from it is held against its checksums first.
    let map = unsafe { MmapOptions::new().len(len).map(file)? };
    Ok(Arc::new(Sealed { map }))
}

/// A file up to an offset, as if it ended there.
#[derive(Debug)]
struct Until {
    file: Arc<dyn StoredFile>,
    end: u64,
}

impl ReadAt for Until {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let want = into.len().min(left);
        self.file.read_at(&mut into[..want], offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.end)
    }
}

#[derive(Debug)]
enum Bytes {
    /// The frames ahead in what was copied are looked at together.
    Copied(Window<Until>, Box<Ahead>),
    Mapped(Arc<dyn SealedBytes>),
}

/// A point between two frames: the frame before it, and the offset behind that one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) segment: SegmentName,
    pub(crate) head: Head,
    pub(crate) offset: u64,
}

/// Frames of consecutive segments.
#[derive(Debug)]
pub(crate) struct Walker<'d> {
    dir: &'d dyn Directory,
    line: VecDeque<Link<'d>>,
    /// The last frame of the walk.
    until: Point,
    whole: bool,
    chained: bool,
    /// Frames up to here are passed over; the chain there has to be this, where it is known.
    skip: (Position, Option<Head>),
    open: Option<Open>,
    failed: bool,
    /// The newest frame of the segments before the open one that was handed out or passed over.
    before: Option<Landmark>,
}

#[derive(Debug)]
struct Open {
    segment: Arc<Segment>,
    cursor: Cursor,
    bytes: Bytes,
    end: u64,
    /// The offset of the newest frame taken.
    taken: Option<u64>,
}

/// Where a walk begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// Behind this position.
    Position(Position),
    /// Behind this head, which has to be in the log.
    Head(Head),
    /// At this point, which was read before.
    Point(Point),
    /// Behind this head, which has to be in the log; the point before it was read before.
    Past(Point, Head),
}

impl<'d> Walker<'d> {
    /// The frames of `line` behind `from`, up to `until`. `page` may know where to begin.
    pub(crate) fn new(
        dir: &'d dyn Directory,
        line: Vec<Link<'d>>,
        from: From,
        until: Point,
        depth: Depth,
        page: Option<&Page>,
    ) -> Result<Walker<'d>, Error> {
        let (after, known) = match from {
            From::Position(position) => (position, None),
            From::Head(head) | From::Point(Point { head, .. }) | From::Past(_, head) => {
                (head.position, Some(head))
            }
        };
        let mut walker = Walker {
            dir,
            line: line.into(),
            until,
            whole: depth == Depth::Whole,
            chained: known.is_some(),
            skip: (after, known),
            open: None,
            failed: false,
            before: None,
        };
        let Some(first) = walker.line.front().map(|link| link.header) else {
            return Ok(walker);
        };
        let start = first.start();
        if start.position == after && known.is_some_and(|known| known != start) {
            return Err(Error::Diverged {
                known: known.unwrap_or(start),
                head: until.head,
            });
        }
        let resumed = match from {
            From::Point(point) | From::Past(point, _) if point.segment == first.name() => {
                Some((point.head, point.offset))
            }
            _ => page
                .and_then(|page| page.anchor(first.name(), after.before()))
                .map(|anchor| (anchor.head, anchor.offset)),
        };
        walker.open_next(resumed)?;
        Ok(walker)
    }

    /// The newest frame handed out or passed over; none before the first.
    pub(crate) fn at(&self) -> Option<Point> {
        self.landmark().map(|mark| Point {
            segment: mark.segment,
            head: mark.head,
            offset: mark.end,
        })
    }

    fn failed(&self, op: &'static str, segment: &Segment, error: io::Error) -> Error {
        storage::failed(op, self.dir.path_of(&file_name(segment.name())), error)
    }

    fn open_next(&mut self, resumed: Option<(Head, u64)>) -> Result<bool, Error> {
        let Some(link) = self.line.pop_front() else {
            return Ok(false);
        };
        let (segment, closed) = (link.segment()?, link.closed);
        let end = closed.map_or(self.until.offset, |closed| closed.end_offset);
        // What is read far behind the head was written long ago: there the checksums are enough.
        let checks = Checks {
            chain: self.chained || closed.is_none(),
            whole: self.whole,
        };
        let cursor = match resumed {
            Some((head, offset)) => Cursor::resume(segment.header(), checks, head, offset),
            None => Cursor::new(segment.header(), checks),
        };
        let bytes = match closed {
            Some(_) => match segment.file().map_sealed(end) {
                Ok(sealed) => Bytes::Mapped(sealed),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let bytes = segment
                        .file()
                        .size()
                        .map_err(|error| self.failed("look at", &segment, error))?;
                    let fault = Fault::SegmentCut { bytes, stated: end };
                    return Err(damage(&segment, bytes, segment.header().first, fault));
                }
                Err(error) => return Err(self.failed("map", &segment, error)),
            },
            None => {
                let until = Until {
                    file: segment.file().clone(),
                    end,
                };
                let window = Window::new(until);
                let window = window.map_err(|error| self.failed("read", &segment, error))?;
                Bytes::Copied(window, Box::new(Ahead::new()))
            }
        };
        self.before = self.landmark();
        self.open = Some(Open {
            segment,
            cursor,
            bytes,
            end,
            taken: None,
        });
        Ok(true)
    }

    /// Whether the next frame of the open segment is to be handed out: the usual answer, found without a call.
    #[inline]
    fn is_at_next(&self) -> bool {
        self.open.as_ref().is_some_and(|open| {
            let position = open.cursor.head().position;
            position >= self.skip.0
                && position < self.until.head.position
                && open.cursor.offset() < open.end
        })
    }

    /// Moves to the next frame that is to be handed out; says whether there is one.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if self.is_at_next() {
                return Ok(true);
            }
            let Some(open) = &mut self.open else {
                return Ok(false);
            };
            if open.cursor.head().position >= self.until.head.position {
                return self.finish().map(|()| false);
            }
            if open.cursor.offset() >= open.end {
                if !self.open_next(None)? {
                    return self.finish().map(|()| false);
                }
                continue;
            }
            let head = open.take(self.dir)?.header.head();
            if let (at, Some(known)) = self.skip
                && head.position == at
                && head != known
            {
                return Err(Error::Diverged {
                    known,
                    head: self.until.head,
                });
            }
        }
    }

    /// At the end of the line: is this the frame that was published?
    fn finish(&mut self) -> Result<(), Error> {
        self.before = self.landmark();
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.line.clear();
        let head = open.cursor.head();
        if head.position < self.until.head.position {
            let fault = Fault::SegmentEnd {
                found: head,
                stated: self.until.head,
            };
            return Err(damage(
                &open.segment,
                open.cursor.offset(),
                head.position.next(),
                fault,
            ));
        }
        Ok(())
    }
}

impl Open {
    /// Takes the next frame.
    #[inline(always)]
    fn take(&mut self, dir: &dyn Directory) -> Result<FrameRef<'_>, Error> {
        let offset = self.cursor.offset();
        let held = match &mut self.bytes {
            Bytes::Mapped(sealed) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                sealed.bytes().get(from..).unwrap_or(&[])
            }
            Bytes::Copied(window, ahead) => match looked_at(window, ahead, &self.cursor) {
                Ok(Looked::Good(bytes)) => {
                    self.taken = Some(offset);
                    return Ok(self.cursor.step_over(bytes));
                }
                Ok(Looked::Unknown(held)) => held,
                Err(error) => {
                    let path = dir.path_of(&file_name(self.segment.name()));
                    return Err(storage::failed("read", path, error));
                }
            },
        };
        let bad = self.cursor.head().position.next();
        match self.cursor.step(held) {
            Ok(frame) => {
                self.taken = Some(offset);
                Ok(frame)
            }
            Err(fault) => Err(damage(&self.segment, offset, bad, fault)),
        }
    }
}

/// The next bytes of a window.
enum Looked<'w> {
    /// A frame that is known to be good.
    Good(&'w [u8]),
    /// As many as the next frame says it has; nothing of them was checked.
    Unknown(&'w [u8]),
}

fn looked_at<'w>(
    window: &'w mut Window<Until>,
    ahead: &mut Ahead,
    cursor: &Cursor,
) -> io::Result<Looked<'w>> {
    let offset = cursor.offset();
    let held = window.at(offset, FRAME_HEADER_BYTES)?;
    match ahead.next_bytes(cursor, held) {
        // It was seen there, and nothing was read since.
        Some(bytes) => Ok(Looked::Good(&window.at(offset, bytes)?[..bytes])),
        None => {
            let bytes = stated_bytes(held);
            Ok(Looked::Unknown(window.at(offset, bytes)?))
        }
    }
}

pub(crate) fn damage(segment: &Segment, offset: u64, bad: Position, fault: Fault) -> Error {
    Error::Damaged(Box::new(Damage {
        segment: segment.name(),
        offset,
        positions: Positions::from(bad),
        fault,
        next: Next::Salvage,
    }))
}

impl Frames for Walker<'_> {
    fn landmark(&self) -> Option<Landmark> {
        let open = self.open.as_ref();
        let taken = open.and_then(|open| open.taken.map(|offset| (open, offset)));
        let Some((open, offset)) = taken else {
            return self.before;
        };
        Some(Landmark {
            segment: open.segment.name(),
            head: open.cursor.head(),
            offset,
            end: open.cursor.offset(),
        })
    }

    fn next(&mut self) -> Option<Result<FrameRef<'_>, Error>> {
        if self.failed {
            return None;
        }
        if !self.is_at_next() {
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        let taken = self.open.as_mut()?.take(self.dir);
        self.failed = taken.is_err();
        Some(taken)
    }
}
