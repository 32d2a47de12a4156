//! The entries of a log as an iterator.

use std::iter::FusedIterator;

use tenure_core::event::Entry;
use tenure_core::id::Position;
use tenure_log::frame::Depth;
use tenure_log::journal::Frames;
use tenure_log::position;

use super::Reader;
use crate::error::Error;
use crate::store::marks;
use crate::{ahead, entry};

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

    /// Shows the entries from `from` to `to`, both included, to `each`, decoded in place of one another; on a second
    /// processor where they are many.
    ///
    /// # Errors
    /// When the log cannot be read, or an entry does not decode: those before it were shown.
    pub(crate) fn each_entry(
        &self,
        from: Position,
        to: Position,
        mut each: impl FnMut(&Entry),
    ) -> Result<(), Error> {
        if to < from {
            return Ok(());
        }
        let before = position::Position(from.0.saturating_sub(1));
        if ahead::pays(to.0 - before.0) {
            let open = || marks::read_from(&*self.source, before, Depth::Whole);
            let until = position::Position(to.0);
            return ahead::decoded(open, until, |entry, _| each(entry)).map(drop);
        }
        let mut decoded = Entry::default();
        self.frames(from, to, Depth::Whole, |frame| {
            entry::decode_into(&mut decoded, frame)?;
            each(&decoded);
            Ok(true)
        })
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
