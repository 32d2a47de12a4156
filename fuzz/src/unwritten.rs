//! A salvage of which only the choice of frames counts: nothing is written about what is lost.

use tenure_log::frame::{Draft, FrameRef};
use tenure_log::position::{Incarnation, Position};
use tenure_log::salvage::{Lost, Report, Scribe};

/// Keeps the frames that `F` says, and writes no note.
pub struct Unwritten<F>(F);

impl<F: FnMut(&FrameRef<'_>) -> bool> Unwritten<F> {
    /// With whoever says whether a frame is kept.
    pub fn new(keeps: F) -> Self {
        Self(keeps)
    }
}

impl<F: FnMut(&FrameRef<'_>) -> bool> Scribe for Unwritten<F> {
    fn keeps(&mut self, frame: &FrameRef<'_>) -> bool {
        (self.0)(frame)
    }

    fn lost(&mut self, _: Position, _: Incarnation, _: &Lost) -> Draft {
        Draft::default()
    }

    fn raised(&mut self, _: &Report) -> Draft {
        Draft::default()
    }

    fn passed(&mut self, _: u64) {}
}
