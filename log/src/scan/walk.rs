//! A way through a whole segment that damage does not end: every byte is accounted for, frame by frame.

use std::io;

use super::{Ahead, Checks, Cursor, Source};
use crate::fault::Fault;
use crate::format::{FRAME_ALIGNMENT, SegmentHeader};
use crate::frame::{
    FRAME_HEADER_BYTES, FRAME_MAGIC, FrameRef, Header, decode, decode_header, parts_of_good,
    stated_bytes,
};
use crate::position::{Head, Position};
use crate::zoo::planted;

/// A stretch of a segment file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Span {
    /// The offset behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// How a frame hangs together with the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// It stands directly behind the good frame it follows.
    Follows,
    /// It stands behind something bad: good in itself and at its own place, but its chain cannot be held against anything.
    Detached,
}

/// What stands in a [`Span`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<'a> {
    /// A good frame.
    Frame(FrameRef<'a>, Link),
    /// Bytes that are no good frame. With a header when that one is good, so that position and lengths are known.
    Bad(Fault, Option<Header>),
    /// Only zeros.
    Zeros,
}

/// Whether zeros where a frame would begin are read to the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeros {
    /// They are: the first opener after a boot, a writer in doubt, `verify`.
    Check,
    /// They are believed to go on to the end: a segment in use whose last write is known to be whole.
    Trust,
}

/// Goes through one segment from its first frame to `end`.
#[derive(Debug)]
pub struct Walk<S> {
    source: S,
    cursor: Cursor,
    ahead: Ahead,
    end: u64,
    link: Link,
    zeros: Zeros,
}

/// What the first look at an offset says; the bytes are fetched again for what is handed out.
enum Look {
    Frame {
        bytes: usize,
        link: Link,
    },
    Bad {
        fault: Fault,
        header: Option<Header>,
        bytes: u64,
    },
    Zeros {
        bytes: u64,
    },
}

impl<S: Source> Walk<S> {
    /// Over a whole segment. `stated_end` is the offset at which the successor's header ends it; the end of the file
    /// where there is none.
    pub fn new(
        source: S,
        header: &SegmentHeader,
        checks: Checks,
        stated_end: Option<u64>,
    ) -> Walk<S> {
        Walk::resume(source, Cursor::new(header, checks), stated_end)
    }

    /// From where a cursor stands.
    pub fn resume(source: S, cursor: Cursor, stated_end: Option<u64>) -> Walk<S> {
        let end = stated_end.map_or(source.len(), |end| end.min(source.len()));
        Walk {
            source,
            cursor,
            ahead: Ahead::new(),
            end,
            link: Link::Follows,
            zeros: Zeros::Check,
        }
    }

    /// The same walk, with zeros read to the end or not.
    #[must_use]
    pub fn with_zeros(self, zeros: Zeros) -> Walk<S> {
        Walk { zeros, ..self }
    }

    /// The same walk, knowing nothing of what stands before: the first frame is taken whatever its position and chain.
    #[must_use]
    pub fn detached(self) -> Walk<S> {
        Walk {
            link: Link::Detached,
            ..self
        }
    }

    /// Where the walk stands.
    pub fn offset(&self) -> u64 {
        self.cursor.offset
    }

    /// The last good frame, or what stands before the first.
    pub fn head(&self) -> Head {
        self.cursor.head
    }

    /// The highest durable position stated by any good frame so far.
    pub fn durable(&self) -> Position {
        self.cursor.durable
    }

    /// Where the walk ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The next stretch; none at the end. Always moves on, whatever the bytes are.
    ///
    /// # Errors
    /// The system's answer where bytes have to be read; the walk stays.
    #[expect(
        clippy::should_implement_trait,
        reason = "lends the frame from its own window"
    )]
    pub fn next(&mut self) -> io::Result<Option<(Span, Step<'_>)>> {
        let offset = self.cursor.offset;
        if offset >= self.end {
            return Ok(None);
        }
        match self.look()? {
            Look::Frame { bytes, link } => {
                let held = self.source.at(offset, bytes)?;
                let frame = parts_of_good(&held[..bytes]);
                self.cursor.pass(&frame, bytes);
                self.link = Link::Follows;
                Ok(Some((
                    Span {
                        offset,
                        bytes: bytes as u64,
                    },
                    Step::Frame(frame, link),
                )))
            }
            Look::Bad {
                fault,
                header,
                bytes,
            } => {
                self.skip(bytes);
                Ok(Some((Span { offset, bytes }, Step::Bad(fault, header))))
            }
            Look::Zeros { bytes } => {
                self.skip(bytes);
                Ok(Some((Span { offset, bytes }, Step::Zeros)))
            }
        }
    }

    fn skip(&mut self, bytes: u64) {
        self.cursor.offset += bytes;
        self.link = Link::Detached;
    }

    /// The bytes at `offset`, at least `want` of them, none from behind the end.
    fn at(&mut self, offset: u64, want: usize) -> io::Result<&[u8]> {
        bytes_before(&mut self.source, self.end, offset, want)
    }

    fn look(&mut self) -> io::Result<Look> {
        let offset = self.cursor.offset;
        let place = self.cursor.segment.at(offset);
        let depth = self.cursor.checks.depth();
        let (cursor, link) = (self.cursor, self.link);
        if link == Link::Follows {
            let held = bytes_before(&mut self.source, self.end, offset, FRAME_HEADER_BYTES)?;
            if let Some(bytes) = self.ahead.next_bytes(&self.cursor, held) {
                return Ok(Look::Frame { bytes, link });
            }
        }
        let header = match decode_header(&place, self.at(offset, FRAME_HEADER_BYTES)?) {
            Ok(header) => header,
            Err(Fault::Zeros) => return self.zeros(),
            Err(fault) if planted("salvage-trusts-length") => {
                let stated = stated_bytes(self.at(offset, FRAME_HEADER_BYTES)?) as u64;
                return Ok(Look::Bad {
                    fault,
                    header: None,
                    bytes: stated.min(self.end - offset),
                });
            }
            Err(fault) => {
                let bytes = self.bad_from(offset)?;
                return Ok(Look::Bad {
                    fault,
                    header: None,
                    bytes,
                });
            }
        };
        let judged = match decode(&place, self.at(offset, header.frame_bytes())?, depth) {
            Ok((frame, bytes)) => match link {
                Link::Follows => cursor.follows(&frame).map(|()| bytes),
                Link::Detached => cursor.may_follow(&frame).map(|()| bytes),
            },
            Err(fault) => Err(fault),
        };
        Ok(match judged {
            Ok(bytes) => Look::Frame { bytes, link },
            // The frame does not end before the segment does: only its header can be believed.
            Err(fault @ Fault::Short { .. }) => Look::Bad {
                fault,
                header: Some(header),
                bytes: self.bad_from(offset)?,
            },
            // The header is good, so its lengths are: what stands inside the frame is never looked at as frames.
            Err(fault) => Look::Bad {
                fault,
                header: Some(header),
                bytes: header.frame_bytes() as u64,
            },
        })
    }

    fn zeros(&mut self) -> io::Result<Look> {
        let from = self.cursor.offset;
        let mut offset = match self.zeros {
            Zeros::Check => from,
            Zeros::Trust => self.end,
        };
        while offset < self.end {
            let bytes = self.at(offset, CHUNK_BYTES)?;
            if bytes.is_empty() {
                break;
            }
            if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
                let at = offset + at as u64;
                return Ok(Look::Zeros {
                    bytes: at - at % FRAME_ALIGNMENT - from,
                });
            }
            offset += bytes.len() as u64;
        }
        Ok(Look::Zeros {
            bytes: self.end - from,
        })
    }

    /// How many bytes from `from` on are no good frame: up to the next good header, or up to the zeros that fill the
    /// rest. Candidates are judged by magic and header CRC, so that a walk costs a pass over the bytes, whatever they are.
    fn bad_from(&mut self, from: u64) -> io::Result<u64> {
        let place = self.cursor.segment;
        let mut bad_end = from + 1;
        let mut offset = from + FRAME_ALIGNMENT;
        while offset < self.end {
            let bytes = self.at(offset, CHUNK_BYTES)?;
            let Some(words) = bytes
                .get(..bytes.len() - bytes.len() % 8)
                .filter(|words| !words.is_empty())
            else {
                // Less than a word is left, too little for any frame.
                bad_end = if bytes.iter().all(|byte| *byte == 0) {
                    bad_end
                } else {
                    self.end
                };
                break;
            };
            let words_bytes = words.len() as u64;
            let mut candidate = None;
            for (index, word) in words.chunks_exact(8).enumerate() {
                let at = offset + index as u64 * FRAME_ALIGNMENT;
                if word[..4] == FRAME_MAGIC.to_le_bytes() {
                    candidate = Some(at);
                    break;
                }
                if word != [0; 8] {
                    bad_end = at + 8;
                }
            }
            match candidate {
                None => offset += words_bytes,
                Some(at) => {
                    if decode_header(&place.at(at), self.at(at, FRAME_HEADER_BYTES)?).is_ok() {
                        return Ok(at - from);
                    }
                    bad_end = at + 8;
                    offset = at + FRAME_ALIGNMENT;
                }
            }
        }
        Ok(bad_end.next_multiple_of(FRAME_ALIGNMENT).min(self.end) - from)
    }
}

/// The bytes at `offset`, at least `want` of them, none from behind `end`.
fn bytes_before<S: Source>(
    source: &mut S,
    end: u64,
    offset: u64,
    want: usize,
) -> io::Result<&[u8]> {
    let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
    let held = source.at(offset, want.min(left))?;
    Ok(&held[..held.len().min(left)])
}

const CHUNK_BYTES: usize = 64 << 10;
