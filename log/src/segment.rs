//! Segment files: opening one, making the next, and the line of predecessors behind it.

pub mod line;

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::error::{Damage, Error, Next};
use crate::fault::Fault;
use crate::format::{FORMAT_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName, ZEROS};
use crate::frame::Place;
use crate::options::SEGMENTS_MAX;
use crate::position::Positions;
use crate::scan::ReadAt;
use crate::storage::{self, Access, Directory, Onto, Storage, StoredFile};
use crate::zoo::planted;

/// The folder of the segment files.
pub const SEGMENTS_FOLDER: &str = "segments";

/// A file of zeros that becomes the next segment.
const PREPARED_NAME: &str = "segments/prepared";

impl ReadAt for dyn StoredFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        StoredFile::read_at(self, into, offset)
    }

    fn size(&self) -> io::Result<u64> {
        StoredFile::size(self)
    }
}

/// An open segment file whose header was read.
pub struct Segment {
    header: SegmentHeader,
    file: Arc<dyn StoredFile>,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Segment({})", self.name())
    }
}

impl Segment {
    /// Opens the segment `name` and reads its header.
    ///
    /// # Errors
    /// When the file cannot be opened or read, its header is damaged or newer, or names another segment.
    pub fn open(dir: &dyn Directory, name: SegmentName, access: Access) -> Result<Segment, Error> {
        let path = file_name(name);
        let failed = |op, error| storage::failed(op, dir.path_of(&path), error);
        let file = match dir.open(&path, access) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(missing(
                    name,
                    Fault::Short {
                        have: 0,
                        need: SEGMENT_HEADER_BYTES as u64,
                    },
                ));
            }
            Err(error) => return Err(failed("open", error)),
        };
        let mut block = vec![0; SEGMENT_HEADER_BYTES];
        let read =
            storage::read_full(&*file, &mut block, 0).map_err(|error| failed("read", error))?;
        let header = match SegmentHeader::decode(&block[..read]) {
            Ok(header) if header.name() == name => header,
            Ok(_) => return Err(missing(name, Fault::SegmentField { field: "name" })),
            Err(Fault::NewerFormat { found, known }) => {
                return Err(Error::NewerFormat {
                    path: dir.path_of(&path),
                    found,
                    known,
                });
            }
            Err(fault) => return Err(missing(name, fault)),
        };
        Ok(Segment { header, file })
    }

    /// What the file says about itself.
    #[must_use]
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> SegmentName {
        self.header.name()
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn StoredFile> {
        &self.file
    }

    /// The start of the file, as a frame's place.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::in_segment(self.header.salt, self.header.first, self.header.epoch)
    }
}

/// Syncs the file and reads one byte back at `probe`, which is not zero: a sync that raced the
/// shutdown of the file system can succeed for bytes that are gone (facts/reliability.md, section 4.2).
///
/// # Errors
/// The system's answer, or `UnexpectedEof` when the byte is not there.
pub fn sync_and_probe(file: &dyn StoredFile, probe: u64) -> io::Result<()> {
    if !planted("no-data-sync") {
        file.sync()?;
    }
    if planted("no-probe") {
        return Ok(());
    }
    let mut byte = [0];
    if storage::read_full(file, &mut byte, probe)? == 0 || byte == [0] {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn missing(segment: SegmentName, fault: Fault) -> Error {
    let positions = Positions::from(segment.first);
    Error::Damaged(Box::new(Damage {
        segment,
        offset: 0,
        positions,
        fault,
        next: Next::RestoreFile,
    }))
}

/// The path of a segment beneath the store's directory.
#[must_use]
pub fn file_name(name: SegmentName) -> String {
    format!("{SEGMENTS_FOLDER}/{name}")
}

/// The names of all segment files, oldest first. Other files in the folder are none of the log's.
///
/// # Errors
/// When the folder cannot be listed, or holds more than [`SEGMENTS_MAX`] segments.
pub fn list(dir: &dyn Directory) -> Result<Vec<SegmentName>, Error> {
    let names = dir
        .list(SEGMENTS_FOLDER)
        .map_err(|error| storage::failed("list", dir.path_of(SEGMENTS_FOLDER), error))?;
    let mut segments: Vec<SegmentName> =
        names.iter().filter_map(|name| name.parse().ok()).collect();
    if segments.len() > SEGMENTS_MAX {
        let (offered, max) = (segments.len() as u64, SEGMENTS_MAX as u64);
        return Err(Error::LimitExceeded {
            what: "segments in a directory",
            offered,
            max,
        });
    }
    segments.sort_unstable();
    Ok(segments)
}

/// Why no segment was made.
#[derive(Debug)]
pub enum NotMade {
    /// Its name is taken: look at what is there.
    Taken,
    /// Nothing has that name; nothing happened.
    Failed(Error),
    /// The same: a holder that was stopped while it cleaned up, and gone past, took the scratch file away. Try again.
    Removed(Error),
    /// It may be there, and it may not outlive a power cut.
    Doubtful(Error),
}

/// Makes a segment file: header, `frames` behind it, zeros up to `bytes`; synced before it gets its
/// name, which never replaces another.
///
/// # Errors
/// See [`NotMade`].
pub fn make(
    storage: &dyn Storage,
    dir: &dyn Directory,
    header: &SegmentHeader,
    frames: &[u8],
    bytes: u64,
) -> Result<Segment, NotMade> {
    debug_assert_eq!(header.format, FORMAT_VERSION);
    let name = file_name(header.name());
    let scratch = scratch_name(storage).map_err(NotMade::Failed)?;
    let failed = |op, error| storage::failed(op, dir.path_of(&name), error);
    let written = write_scratch(dir, &scratch, header, frames, bytes);
    let named = written
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NotMade::Removed(failed("write", error)),
            _ => NotMade::Failed(failed("write", error)),
        })
        .and_then(|file| match dir.rename(&scratch, &name, Onto::Nothing) {
            Ok(()) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(NotMade::Taken),
            // At the birth of a store nobody holds a lock yet: who was first may have opened it meanwhile, and
            // taken away the scratch files of the others.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && dir.open(&name, Access::Read).is_ok() =>
            {
                Err(NotMade::Taken)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(NotMade::Removed(failed("name", error)))
            }
            Err(error) => Err(NotMade::Failed(failed("name", error))),
        });
    let file = named.inspect_err(|_| {
        // It may not exist; the first error is the one to report.
        let _ = dir.remove(&scratch);
    })?;
    if !planted("no-directory-sync") {
        dir.sync(SEGMENTS_FOLDER)
            .map_err(|error| NotMade::Doubtful(failed("sync the folder of", error)))?;
    }
    Ok(Segment {
        header: *header,
        file,
    })
}

fn scratch_name(storage: &dyn Storage) -> Result<String, Error> {
    let mut random = [0; 8];
    storage
        .random(&mut random)
        .map_err(|error| storage::failed("draw random numbers for", SEGMENTS_FOLDER, error))?;
    Ok(format!(
        "{SEGMENTS_FOLDER}/{:016x}.tmp",
        u64::from_le_bytes(random)
    ))
}

fn write_scratch(
    dir: &dyn Directory,
    scratch: &str,
    header: &SegmentHeader,
    frames: &[u8],
    bytes: u64,
) -> io::Result<Arc<dyn StoredFile>> {
    // A prepared file is claimed by giving it a name that only this process knows: a holder that was
    // stopped here never writes into a file that another one has since made a segment of.
    let file = match dir.rename(PREPARED_NAME, scratch, Onto::Nothing) {
        Ok(()) => dir.open(scratch, Access::Write)?,
        Err(_) => dir.open(scratch, Access::CreateNew)?,
    };
    storage::write_full(&*file, &header.encode(), 0)?;
    storage::write_full(&*file, frames, SEGMENT_HEADER_BYTES as u64)?;
    let from = file
        .size()?
        .max(SEGMENT_HEADER_BYTES as u64 + frames.len() as u64);
    fill_with_zeros(&*file, from, bytes)?;
    sync_and_probe(&*file, 0)?;
    Ok(file)
}

/// Writes zeros from `from` up to `to`: an append into them changes no metadata.
///
/// # Errors
/// The system's answer; some zeros may have been written.
pub fn fill_with_zeros(file: &dyn StoredFile, from: u64, to: u64) -> io::Result<()> {
    let mut offset = from;
    while offset < to {
        let piece = (to - offset).min(ZEROS.len() as u64) as usize;
        storage::write_full(file, &ZEROS[..piece], offset)?;
        offset += piece as u64;
    }
    Ok(())
}

/// Writes zeros over `from..to`, beginning at the end: a crash in the middle leaves the first bad
/// bytes where they are, so that the next recovery finds them again.
///
/// # Errors
/// The system's answer; the zeros reach down to some offset.
pub fn zero_backwards(file: &dyn StoredFile, from: u64, to: u64) -> io::Result<()> {
    let mut end = to;
    while end > from {
        let piece = (end - from).min(ZEROS.len() as u64);
        storage::write_full(file, &ZEROS[..piece as usize], end - piece)?;
        end -= piece;
    }
    Ok(())
}

/// Makes the file of zeros that the next segment is made of, unless there is one or another process
/// is at it.
///
/// # Errors
/// When it cannot be made; nothing depends on it.
pub fn prepare(
    storage: &dyn Storage,
    dir: &dyn Directory,
    lock: &dyn StoredFile,
    bytes: u64,
) -> Result<bool, Error> {
    let failed = |error| storage::failed("prepare", dir.path_of(PREPARED_NAME), error);
    if !lock.try_lock().map_err(failed)? {
        return Ok(false);
    }
    let made = (|| {
        if dir.open(PREPARED_NAME, Access::Read).is_ok() {
            return Ok(false);
        }
        let scratch = scratch_name(storage)?;
        let filled = (|| {
            let file = dir.open(&scratch, Access::CreateNew)?;
            fill_with_zeros(&*file, 0, bytes)?;
            file.sync()?;
            dir.rename(&scratch, PREPARED_NAME, Onto::Nothing)
        })();
        filled.map(|()| true).map_err(|error| {
            let _ = dir.remove(&scratch);
            failed(error)
        })
    })();
    lock.unlock().map_err(failed)?;
    made
}

/// Removes files that nobody will finish. Only under the append lock: whoever was stopped while it
/// made a segment then fails to name it.
///
/// # Errors
/// When the folder cannot be listed.
pub fn remove_scratch(dir: &dyn Directory) -> Result<(), Error> {
    let names = dir
        .list(SEGMENTS_FOLDER)
        .map_err(|error| storage::failed("list", dir.path_of(SEGMENTS_FOLDER), error))?;
    for name in names.iter().filter(|name| name.ends_with(".tmp")) {
        // Whoever else removes it does the same.
        let _ = dir.remove(&format!("{SEGMENTS_FOLDER}/{name}"));
    }
    Ok(())
}
