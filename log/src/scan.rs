//! Reading frames one after the other: the one way through a segment, for replay, catch-up, recovery, `verify`,
//! `inspect` and salvage. [`Cursor`] takes the good frames in order; [`Walk`] goes on behind damage and accounts for
//! every byte; [`survey`](survey()) sums up what a segment holds for the recovery table.

mod ahead;
mod lanes;
mod source;
mod survey;
mod walk;

pub(crate) use ahead::Ahead;
pub use source::{ReadAt, Source, Window, read_full};
pub use survey::{After, Run, Stop, survey};
pub use walk::{Link, Span, Step, Walk, Zeros};

use crate::fault::Fault;
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::frame::{Depth, FrameRef, Header, Place, decode};
use crate::position::{Epoch, Head, Incarnation, Position};
use crate::zoo::planted;

/// What is held against a frame beside its header and facts CRC, position, epoch and incarnation, which always are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Checks {
    /// The chain: one BLAKE3 over header and facts, the dearest check by far. It finds edits that recomputed the CRCs.
    pub chain: bool,
    /// The CRC of texts and bodies.
    pub whole: bool,
}

impl Checks {
    /// Full replay: the facts' CRC only.
    pub const REPLAY: Checks = Checks {
        chain: false,
        whole: false,
    };
    /// Catch-up and open over the tail: the chain too.
    pub const CATCH_UP: Checks = Checks {
        chain: true,
        whole: false,
    };
    /// Everything: `verify`, and a tail in doubt.
    pub const ALL: Checks = Checks {
        chain: true,
        whole: true,
    };

    fn depth(self) -> Depth {
        if self.whole {
            Depth::Whole
        } else {
            Depth::Facts
        }
    }
}

/// Takes the frames of one segment in order. It holds no bytes: each step is given those at its offset.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    segment: Place,
    segment_incarnation: Incarnation,
    checks: Checks,
    offset: u64,
    head: Head,
    epoch: Epoch,
    incarnation: Incarnation,
    durable: Position,
}

impl Cursor {
    /// At the first frame of the segment.
    #[must_use]
    pub fn new(header: &SegmentHeader, checks: Checks) -> Cursor {
        Cursor::resume(header, checks, header.start(), SEGMENT_HEADER_BYTES as u64)
    }

    /// At `offset`, behind the frame that `head` names.
    #[must_use]
    pub fn resume(header: &SegmentHeader, checks: Checks, head: Head, offset: u64) -> Cursor {
        Cursor {
            segment: Place::in_segment(header.salt, header.first, header.epoch),
            segment_incarnation: header.incarnation,
            checks,
            offset,
            head,
            epoch: Epoch::default(),
            incarnation: Incarnation(1),
            durable: Position::ZERO,
        }
    }

    /// The offset of the next frame.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The last frame taken, or what stands before the first.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// The highest durable position any frame taken so far states.
    #[must_use]
    pub fn durable(&self) -> Position {
        self.durable
    }

    /// Takes the frame at the start of `bytes`, which stand at [`Cursor::offset`], and moves behind it.
    ///
    /// # Errors
    /// The first [`Fault`] met; the cursor then stays. With [`Fault::Short`] more bytes may help, if there are any.
    // Inlined up to whoever hands the frame on: what it says of itself is 100 bytes, which every call in between would
    // copy once.
    #[inline(always)]
    pub fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<FrameRef<'a>, Fault> {
        let (frame, len) = decode(&self.segment.at(self.offset), bytes, self.checks.depth())?;
        self.follows(&frame)?;
        self.pass(&frame, len);
        Ok(frame)
    }

    /// Whether a good frame is the one that comes next.
    #[inline(always)]
    fn follows(&self, frame: &FrameRef<'_>) -> Result<(), Fault> {
        let header = &frame.header;
        let expected = self.head.position.next();
        if header.position != expected && !planted("gap-accepted") {
            return Err(Fault::Position {
                expected,
                found: header.position,
            });
        }
        if header.epoch < self.epoch {
            return Err(Fault::Epoch {
                segment: self.segment.epoch(),
                found: header.epoch,
            });
        }
        if header.incarnation < self.incarnation {
            return Err(self.incarnation_fault(header));
        }
        self.may_follow(frame)?;
        if self.checks.chain && !planted("chain-ignored") {
            let computed = header.chain_after(self.head.chain, frame.facts);
            if header.chain != computed {
                return Err(Fault::Chain {
                    stored: header.chain,
                    computed,
                });
            }
        }
        Ok(())
    }

    /// Whether a good frame behind something bad belongs to this segment's time.
    #[inline(always)]
    fn may_follow(&self, frame: &FrameRef<'_>) -> Result<(), Fault> {
        let stated = frame.header.incarnation;
        if stated.0 == 0 || stated > self.segment_incarnation {
            return Err(self.incarnation_fault(&frame.header));
        }
        Ok(())
    }

    fn incarnation_fault(&self, header: &Header) -> Fault {
        Fault::Incarnation {
            segment: self.segment_incarnation,
            found: header.incarnation,
        }
    }

    #[inline(always)]
    fn pass(&mut self, frame: &FrameRef<'_>, len: usize) {
        self.head = frame.header.head();
        self.epoch = frame.header.epoch;
        self.incarnation = frame.header.incarnation;
        self.durable = self.durable.max(frame.header.durable);
        self.offset += len as u64;
    }
}
