//! Derived files in the folder `snapshots/`.

use std::io;
use std::sync::Arc;

use crate::error::Error;
use crate::journal::{Blobs, plain_name};
use crate::lock::SNAPSHOT_LOCK;
use crate::storage::{self, Access, Directory, Pieces, SealedBytes, Storage, StoredFile};

/// The folder of derived files.
pub const SNAPSHOTS_FOLDER: &str = "snapshots";

/// The most bytes of a derived file that are read: what is greater is not one of ours.
pub const BLOB_BYTES_MAX: u64 = 1 << 30;

/// The derived files of a store.
#[derive(Debug)]
pub struct FolderBlobs {
    storage: Arc<dyn Storage>,
    dir: Arc<dyn Directory>,
}

impl FolderBlobs {
    /// The derived files of the store in `dir`.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>, dir: Arc<dyn Directory>) -> FolderBlobs {
        FolderBlobs { storage, dir }
    }

    fn path(name: &str) -> Result<String, Error> {
        Ok(format!("{SNAPSHOTS_FOLDER}/{}", plain_name(name)?))
    }

    fn open(&self, path: &str) -> Result<Option<Arc<dyn StoredFile>>, Error> {
        match self.dir.open(path, Access::Read) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", path, error)),
        }
    }

    /// Bytes of a blob that is there.
    fn size(&self, file: &dyn StoredFile, path: &str) -> Result<u64, Error> {
        let size = file
            .size()
            .map_err(|error| self.failed("look at", path, error))?;
        if size > BLOB_BYTES_MAX {
            return Err(Error::LimitExceeded {
                what: "bytes of a derived file",
                offered: size,
                max: BLOB_BYTES_MAX,
            });
        }
        Ok(size)
    }

    fn failed(&self, op: &'static str, path: &str, error: io::Error) -> Error {
        storage::failed(op, self.dir.path_of(path), error)
    }

    /// Writes files with plain names; an error speaks of `path`.
    fn replace(&self, files: &[(&str, &dyn Pieces)], path: &str) -> Result<(), Error> {
        let mut random = [0; 8];
        let failed = |error| self.failed("write", path, error);
        self.storage.random(&mut random).map_err(failed)?;
        let unique = u64::from_le_bytes(random);
        storage::replace_files(&*self.dir, SNAPSHOTS_FOLDER, unique, files).map_err(failed)
    }
}

impl Blobs for FolderBlobs {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = FolderBlobs::path(name)?;
        let Some(file) = self.open(&path)? else {
            return Ok(None);
        };
        let size = self.size(&*file, &path)?;
        let mut bytes = vec![0; size as usize];
        let read = storage::read_full(&*file, &mut bytes, 0)
            .map_err(|error| self.failed("read", &path, error))?;
        bytes.truncate(read);
        Ok(Some(bytes))
    }

    fn read_part(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<Option<usize>, Error> {
        let path = FolderBlobs::path(name)?;
        let Some(file) = self.open(&path)? else {
            return Ok(None);
        };
        let read = storage::read_full(&*file, into, offset);
        read.map(Some)
            .map_err(|error| self.failed("read", &path, error))
    }

    fn map(&self, name: &str) -> Result<Option<Arc<dyn SealedBytes>>, Error> {
        let path = FolderBlobs::path(name)?;
        let Some(file) = self.open(&path)? else {
            return Ok(None);
        };
        match self.size(&*file, &path)? {
            0 => Ok(None),
            // A blob is replaced under its name and never written to.
            size => file
                .map_sealed(size)
                .map(Some)
                .map_err(|error| self.failed("map", &path, error)),
        }
    }

    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.replace(&[(name, &bytes)], &FolderBlobs::path(name)?)
    }

    fn write_together(&self, blobs: &[(String, Box<dyn Pieces>)]) -> Result<(), Error> {
        let mut files = Vec::with_capacity(blobs.len());
        for (name, content) in blobs {
            files.push((plain_name(name)?, &**content));
        }
        self.replace(&files, SNAPSHOTS_FOLDER)
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        let names = self.dir.list(SNAPSHOTS_FOLDER);
        let mut names = names.map_err(|error| self.failed("list", SNAPSHOTS_FOLDER, error))?;
        // Scratch files of writers begin with a dot.
        names.retain(|name| plain_name(name).is_ok());
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = FolderBlobs::path(name)?;
        match self.dir.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn put_away(&self, bytes: &[u8]) -> Option<Arc<dyn SealedBytes>> {
        self.storage.put_away(bytes).ok().flatten()
    }

    fn alone(&self) -> Result<Option<Box<dyn Send>>, Error> {
        // Opened for this call alone, so that it excludes threads too; closing it gives the lock back.
        let lock = self.dir.open(SNAPSHOT_LOCK, Access::CreateOrOpen);
        let lock = lock.map_err(|error| self.failed("open", SNAPSHOT_LOCK, error))?;
        let taken = lock.try_lock();
        let taken = taken.map_err(|error| self.failed("lock", SNAPSHOT_LOCK, error))?;
        Ok(taken.then(|| Box::new(Unlocked(lock)) as Box<dyn Send>))
    }
}

/// A lock that is given back when this is dropped.
struct Unlocked(Arc<dyn StoredFile>);

impl Drop for Unlocked {
    fn drop(&mut self) {
        // One that fails is given back with its descriptor.
        let _ = self.0.unlock();
    }
}
