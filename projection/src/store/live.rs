//! The state at the newest head that this handle knows.

use tenure_core::apply::{Applied, apply};
use tenure_core::event::Entry;
use tenure_core::state::State;
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::position::Head;

use crate::entry;
use crate::error::Error;
use crate::source::Source;

use crate::store::keys::{Keys, Prior};
use crate::store::snapshot;

/// State and head, always of one position.
pub(crate) struct Live {
    pub state: State,
    pub head: Head,
    /// Something was applied that may not be in the log: everything is rebuilt before it is used again.
    pub tainted: bool,
    /// Keys, once one was asked for.
    keys: Option<Keys>,
    /// Frames applied since the newest snapshot.
    pub since_snapshot: u64,
    /// Bytes of that snapshot.
    pub snapshot_bytes: u64,
}

impl Live {
    /// From the newest snapshot that fits, and the tail behind it.
    pub fn open(source: &dyn Source) -> Result<Self, Error> {
        let (state, head, snapshot_bytes) = match snapshot::load(source)? {
            Some(found) => (found.state, found.head, found.bytes),
            None => (State::new(), beginning(source)?, 0),
        };
        let mut live = Self {
            state,
            head,
            tainted: false,
            keys: None,
            since_snapshot: 0,
            snapshot_bytes,
        };
        live.read_on(source)?;
        Ok(live)
    }

    /// Reads what the journal has beyond this head; rebuilds if this state cannot be trusted.
    pub fn catch_up(&mut self, source: &dyn Source) -> Result<(), Error> {
        if self.tainted {
            *self = Self::open(source)?;
            return Ok(());
        }
        self.read_on(source)
    }

    fn read_on(&mut self, source: &dyn Source) -> Result<(), Error> {
        let newest = source.newest()?;
        let mut frames = source.read_from(self.head.position, Depth::Whole)?;
        while self.head.position < newest
            && let Some(frame) = frames.next()
        {
            self.fold(&frame?)?;
        }
        Ok(())
    }

    /// Folds one frame of the log.
    pub fn fold(&mut self, frame: &FrameRef<'_>) -> Result<(), Error> {
        let decoded = entry::decode(frame)?;
        if let Some(keys) = &mut self.keys {
            keys.note(frame)?;
        }
        let _: Applied = self.apply(&decoded, frame.header.head());
        Ok(())
    }

    /// Applies an entry that stands at `head`.
    pub fn apply(&mut self, entry: &Entry, head: Head) -> Applied {
        let applied = apply(&mut self.state, entry);
        self.head = head;
        self.since_snapshot += 1;
        applied
    }

    /// Reads the keys of the whole log, unless that was done before.
    pub fn load_keys(&mut self, source: &dyn Source) -> Result<(), Error> {
        if self.keys.is_none() {
            self.keys = Some(Keys::read(source, self.head)?);
        }
        Ok(())
    }

    /// What was recorded under a key, as far as keys were loaded.
    pub fn known_prior(&self, key: [u8; 16]) -> Option<Prior> {
        self.keys.as_ref().and_then(|k| k.get(key))
    }

    /// Notes a key that was just appended.
    pub fn note_key(&mut self, key: [u8; 16], prior: Prior) {
        if let Some(keys) = &mut self.keys {
            keys.insert(key, prior);
        }
    }
}

/// The head before the first frame. Its chain counts only while there is no frame: a walk from the start
/// compares it with nothing.
fn beginning(source: &dyn Source) -> Result<Head, Error> {
    let head = source.head()?;
    Ok(if head.position.0 == 0 {
        head
    } else {
        Head::default()
    })
}
