//! What a state leaves in files without a name: old rows of a long replay, so that it takes no more memory the longer the
//! log is. Where there is no room for them, they stay in memory.

use std::sync::Arc;

use tenure_core::state::State;
use tenure_core::state::table::{Packed, Sink};
use tenure_log::storage::SealedBytes;

use crate::source::Source;

/// Has old rows of a state put away beside the log that it is made from.
pub(crate) fn put_away(state: &mut State, source: &Arc<dyn Source>) {
    let sink: Arc<dyn Sink> = Arc::new(Scratch(Arc::clone(source)));
    state.put_away_in(&sink);
}

struct Scratch(Arc<dyn Source>);

impl Sink for Scratch {
    fn put_away(&self, bytes: &[u8]) -> Option<Arc<dyn Packed>> {
        let file = self.0.blobs().put_away(bytes)?;
        Some(Arc::new(Unnamed(file)))
    }
}

/// Bytes that only this process has: they need no check, as those in its memory do not.
struct Unnamed(Arc<dyn SealedBytes>);

impl Packed for Unnamed {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self.0.bytes())
    }

    fn part(&self, number: usize, bytes: usize, _check: u32) -> Option<&[u8]> {
        self.0.bytes().get(number * bytes..(number + 1) * bytes)
    }
}
