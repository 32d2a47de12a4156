//! Reading.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

use crate::storage::SealedBytes;

#[derive(Debug)]
struct Sealed {
    map: Mmap,
}

impl SealedBytes for Sealed {
    fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// Maps the first `bytes` bytes of a sealed file.
pub(crate) fn map_sealed(file: &File, bytes: u64) -> io::Result<Arc<dyn SealedBytes>> {
    // Beyond the end of its file, a mapping kills the process that reads it.
    if file.metadata()?.len() < bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let len = usize::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: a closed segment is never changed nor cut by anyone who keeps to the format, and all
    // that is read from it is held against its checksums first.
    let map = unsafe { MmapOptions::new().len(len).map(file)? };
    Ok(Arc::new(Sealed { map }))
}
