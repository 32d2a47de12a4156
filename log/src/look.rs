//! A store's segment files as those see them who only look: names, sizes, bytes. No lock is taken and no byte changed,
//! and nothing is expected of the directory, which may be a damaged copy.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::control::{CONTROL_BYTES, CONTROL_NAME};
use crate::fault::Fault;
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName};
use crate::scan::{ReadAt, read_full};
use crate::seal::{SEAL_BYTES_MAX, SEALS_FOLDER, Seal};
use crate::storage::{Access, Directory, StoredFile};

#[cfg(feature = "testkit")]
mod copied;

#[cfg(feature = "testkit")]
pub use copied::Copied;

/// Where the files of a store are read from, by several threads at once.
pub trait Look: Sync {
    /// The names in the segments directory, in any order; none when it is not there.
    ///
    /// # Errors
    /// The system's answer.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens one of them for reading.
    ///
    /// # Errors
    /// The system's answer; also for what is not a regular file.
    fn open(&self, name: &str) -> io::Result<Box<dyn ReadAt>>;

    /// The control page's bytes; none when there is no such file.
    ///
    /// # Errors
    /// The system's answer.
    fn control(&self) -> io::Result<Option<Vec<u8>>>;

    /// The bytes of a segment's seal; none when it has none.
    ///
    /// # Errors
    /// The system's answer.
    fn seal(&self, segment: SegmentName) -> io::Result<Option<Vec<u8>>>;
}

/// The segments of a store directory, read directly.
#[derive(Clone, Debug)]
pub struct PlainDirectory {
    store: PathBuf,
    segments: PathBuf,
}

impl PlainDirectory {
    /// The store at `directory`.
    #[must_use]
    pub fn new(directory: &Path) -> PlainDirectory {
        PlainDirectory {
            store: directory.to_owned(),
            segments: directory.join("segments"),
        }
    }
}

impl Look for PlainDirectory {
    fn names(&self) -> io::Result<Vec<String>> {
        match std::fs::read_dir(&self.segments) {
            Ok(entries) => entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(open_plain(&self.segments.join(name))?))
    }

    fn control(&self) -> io::Result<Option<Vec<u8>>> {
        match open_plain(&self.store.join(CONTROL_NAME)) {
            Ok(file) => read_up_to(&file, CONTROL_BYTES).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn seal(&self, segment: SegmentName) -> io::Result<Option<Vec<u8>>> {
        let path = self.store.join(SEALS_FOLDER).join(Seal::file_name(segment));
        match open_plain(&path) {
            Ok(file) => read_up_to(&file, SEAL_BYTES_MAX).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A store's directory, through the storage it is used with.
impl Look for Arc<dyn Directory> {
    fn names(&self) -> io::Result<Vec<String>> {
        match self.list("segments") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadAt>> {
        let file = Directory::open(&**self, &format!("segments/{name}"), Access::Read)?;
        Ok(Box::new(Stored(file)))
    }

    fn control(&self) -> io::Result<Option<Vec<u8>>> {
        match Directory::open(&**self, CONTROL_NAME, Access::Read) {
            Ok(file) => read_up_to(&Stored(file), CONTROL_BYTES).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn seal(&self, segment: SegmentName) -> io::Result<Option<Vec<u8>>> {
        let path = format!("{SEALS_FOLDER}/{}", Seal::file_name(segment));
        match Directory::open(&**self, &path, Access::Read) {
            Ok(file) => read_up_to(&Stored(file), SEAL_BYTES_MAX).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

struct Stored(Arc<dyn StoredFile>);

impl ReadAt for Stored {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

fn read_up_to(file: &dyn ReadAt, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let read = read_full(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Opens a regular file for reading: links are not followed, and a pipe is refused instead of waited for.
///
/// # Errors
/// The system's answer; `InvalidInput` for what is not a regular file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    Ok(file)
}

/// Reads a segment's header from the start of its file, and the file's size.
///
/// # Errors
/// The system's answer; what is wrong with the bytes stands inside.
pub fn read_header(file: &dyn ReadAt) -> io::Result<(u64, Result<SegmentHeader, Fault>)> {
    let mut block = [0; SEGMENT_HEADER_BYTES];
    let read = read_full(file, &mut block, 0)?;
    Ok((file.size()?, SegmentHeader::decode(&block[..read])))
}
