//! Sums up what one segment holds: the run of frames without a break, why it ends, and what stands behind.

use std::io;

use super::{Source, Span, Step, Walk};
use crate::fault::Fault;
use crate::format::{SegmentHeader, SegmentName};
use crate::frame::Header;
use crate::position::{Head, Position};
use crate::zoo::planted;

/// What a segment was found to hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// The segment.
    pub segment: SegmentName,
    /// What stands before the first frame.
    pub start: Head,
    /// The last frame before the first break; `start` when there is none.
    pub end: Head,
    /// The offset behind that frame.
    pub end_offset: u64,
    /// Why the run ends there.
    pub stop: Stop,
    /// The good frames behind the break.
    pub after: Option<After>,
    /// The highest durable position that any good header states, those behind the break included.
    pub durable: Position,
    /// The offset behind the last byte that is not zero.
    pub dirty_end: u64,
}

/// Why a run of frames ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The file, or the part of it that belongs to the log, is full.
    End,
    /// Zeros up to the end.
    Zeros,
    /// Something that is no good frame; with its header when that is good. [`Fault::Zeros`] when something else than zeros
    /// stands behind them.
    Bad(Fault, Option<Header>),
}

/// Good frames behind something bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct After {
    /// The offset of the first.
    pub offset: u64,
    /// The lowest position among them.
    pub first: Position,
    /// The highest position among them.
    pub last: Position,
    /// How many they are.
    pub frames: u64,
}

/// Walks to the end and sums up; `each` sees every stretch.
///
/// # Errors
/// The system's answer where bytes have to be read.
pub fn survey<S: Source>(
    header: &SegmentHeader,
    walk: &mut Walk<S>,
    each: &mut dyn FnMut(Span, &Step<'_>),
) -> io::Result<Run> {
    let mut run = Run {
        segment: header.name(),
        start: walk.head(),
        end: walk.head(),
        end_offset: walk.offset(),
        stop: Stop::End,
        after: None,
        durable: Position::ZERO,
        dirty_end: walk.offset(),
    };
    let end = walk.end();
    while let Some((span, step)) = walk.next()? {
        each(span, &step);
        match step {
            Step::Frame(frame, _) => run.pass(span, &frame.header),
            Step::Bad(fault, header) => {
                // A header whose CRC is right is evidence, whatever became of the parts behind it.
                let stated = header.map_or(Position::ZERO, |header| header.durable);
                run.durable = run.durable.max(stated);
                run.stop_at(span, Stop::Bad(fault, header));
            }
            Step::Zeros if span.end() == end || planted("zeros-end-the-log") => {
                run.stop_at_zeros(Stop::Zeros)
            }
            Step::Zeros => run.stop_at_zeros(Stop::Bad(Fault::Zeros, None)),
        }
    }
    run.durable = run.durable.max(walk.durable());
    Ok(run)
}

impl Run {
    fn pass(&mut self, span: Span, header: &Header) {
        self.dirty_end = span.end();
        if self.stop == Stop::End {
            self.end = header.head();
            self.end_offset = span.end();
            return;
        }
        let after = self.after.get_or_insert(After {
            offset: span.offset,
            first: header.position,
            last: header.position,
            frames: 0,
        });
        after.first = after.first.min(header.position);
        after.last = after.last.max(header.position);
        after.frames += 1;
    }

    fn stop_at(&mut self, span: Span, stop: Stop) {
        self.dirty_end = span.end();
        self.stop_at_zeros(stop);
    }

    fn stop_at_zeros(&mut self, stop: Stop) {
        if self.stop == Stop::End {
            self.stop = stop;
        }
    }
}
