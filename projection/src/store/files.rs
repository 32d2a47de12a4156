//! Derived files that are written together: a snapshot and what stands beside it.

use tenure_log::journal::Blobs;
use tenure_log::storage::Pieces;

use crate::error::Error;

/// Files to be written, and those that are not needed once they are.
#[derive(Default)]
pub(crate) struct Files {
    written: Vec<(String, Box<dyn Pieces>)>,
    over: Vec<String>,
}

impl Files {
    /// Has a file written.
    pub fn write(&mut self, name: impl Into<String>, content: impl Pieces + 'static) {
        self.written.push((name.into(), Box::new(content)));
    }

    /// Has a file removed.
    pub fn remove(&mut self, name: impl Into<String>) {
        self.over.push(name.into());
    }

    /// Writes and removes them.
    ///
    /// # Errors
    /// When one cannot be written or removed. Each is whole or as it was, so that nothing is lost.
    pub fn save(self, blobs: &dyn Blobs) -> Result<(), Error> {
        blobs.write_together(&self.written)?;
        for name in &self.over {
            blobs.remove(name)?;
        }
        Ok(())
    }
}
