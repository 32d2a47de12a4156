//! What embedders implement to derive something of their own from a log.

use tenure_core::event::Entry;
use tenure_core::state::State;

/// Something derived from a log, entry by entry.
///
/// Entries come in the order of positions, each once, and only those that stand: an entry whose fence was not
/// current at its position is shown to no projection (F2).
pub trait Projection {
    /// Folds one entry. `state` is what the entry was decided on: everything before it, and not it.
    fn apply(&mut self, entry: &Entry, state: &State);
}

impl<F: FnMut(&Entry, &State)> Projection for F {
    fn apply(&mut self, entry: &Entry, state: &State) {
        self(entry, state);
    }
}
