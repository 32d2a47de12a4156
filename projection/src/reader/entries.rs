//! The entries of a log as an iterator.

use std::iter::FusedIterator;

use tenure_core::event::Entry;
use tenure_core::id::Position;
use tenure_log::frame::Depth;
use tenure_log::journal::Frames;
use tenure_log::position;

use super::Reader;
use crate::entry;
use crate::error::Error;

/// Entries in the order of positions; made by [`Reader::entries`]. After an error it is over.
#[must_use = "iterators are lazy and do nothing unless they are consumed"]
pub struct Entries<'r> {
    frames: Option<Box<dyn Frames + 'r>>,
    until: Position,
}

impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entries(until position {})", self.until)
    }
}

impl Reader {
    /// The entries from `from` on, up to the newest that can be shown now. Each is decoded whether it stood at its
    /// position or not; a [`Projector`](crate::projector::Projector) judges that.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn entries(&self, from: Position) -> Result<Entries<'_>, Error> {
        let until = Position(self.head()?.position.0);
        let before = position::Position(from.0.saturating_sub(1));
        let frames = match until < from {
            true => None,
            false => Some(self.source.read_from(before, Depth::Whole)?),
        };
        Ok(Entries { frames, until })
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let decoded = match self.frames.as_mut()?.next() {
            None => None,
            Some(Ok(frame)) if frame.header.position.0 > self.until.0 => None,
            Some(Ok(frame)) => Some(entry::decode(&frame)),
            Some(Err(error)) => Some(Err(error.into())),
        };
        if !matches!(decoded, Some(Ok(_))) {
            self.frames = None;
        }
        decoded
    }
}

impl FusedIterator for Entries<'_> {}
