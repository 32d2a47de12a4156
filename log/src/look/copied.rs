//! A store's files copied into memory, so that they can be changed in every way and looked at as if they were read.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Look, PlainDirectory};
use crate::format::SegmentName;
use crate::scan::ReadAt;

/// A copy of a store's files.
#[derive(Clone, Debug)]
pub struct Copied {
    /// The segments, by the names of their files.
    pub segments: BTreeMap<String, Arc<Vec<u8>>>,
    /// The seals that there are.
    pub seals: BTreeMap<SegmentName, Vec<u8>>,
    /// The control page, if there is one.
    pub control: Option<Vec<u8>>,
}

impl Copied {
    /// Copies the store at `directory`. Files whose names are no segment's are left out.
    ///
    /// # Errors
    /// The system's answer.
    pub fn of(directory: &Path) -> io::Result<Copied> {
        let look = PlainDirectory::new(directory);
        let mut copied = Copied {
            segments: BTreeMap::new(),
            seals: BTreeMap::new(),
            control: look.control()?,
        };
        for name in look.names()? {
            let Ok(segment) = name.parse::<SegmentName>() else {
                continue;
            };
            let bytes = std::fs::read(directory.join("segments").join(&name))?;
            copied.segments.insert(name, Arc::new(bytes));
            let seal = look.seal(segment)?;
            copied.seals.extend(seal.map(|seal| (segment, seal)));
        }
        Ok(copied)
    }
}

struct Shared(Arc<Vec<u8>>);

impl ReadAt for Shared {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.0.get(offset as usize..).unwrap_or(&[]);
        let n = left.len().min(into.len());
        into[..n].copy_from_slice(&left[..n]);
        Ok(n)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

impl Look for Copied {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.segments.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadAt>> {
        let bytes = self.segments.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Shared(bytes.clone())))
    }

    fn control(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.control.clone())
    }

    fn seal(&self, segment: SegmentName) -> io::Result<Option<Vec<u8>>> {
        Ok(self.seals.get(&segment).cloned())
    }
}
