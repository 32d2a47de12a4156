//! Carries out what the table says about a torn tail. Only who holds the append lock may.

use std::io;

use super::Repair;
use crate::error::Error;
use crate::format::SegmentName;
use crate::position::decimal;
use crate::storage::{self, Access, Directory, Onto, StoredFile};
use crate::zoo::planted;

/// The folder that keeps what was taken out of segments.
pub const QUARANTINE_FOLDER: &str = "quarantine";

/// Bytes moved at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// A repair that is cut short this often, each time behind the copy, has another cause than crashes.
const COPIES_MAX: u32 = 1000;

/// A torn tail that was cut off. Nothing acknowledged stood there, unless the disk lost synced bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The segment.
    pub segment: SegmentName,
    /// Where the bytes stood.
    pub offset: u64,
    /// How many they were.
    pub bytes: u64,
    /// The file in `quarantine/` that holds them now.
    pub quarantine: String,
}

impl Torn {
    /// What the name of a file in quarantine says; none for other files.
    fn of_file(name: &str) -> Option<Torn> {
        let (rest, copy) = name.strip_suffix(".torn")?.rsplit_once('.')?;
        let (segment, range) = rest.rsplit_once('.')?;
        let (from, to) = range.split_once('-')?;
        let (offset, end) = (decimal(from)?, decimal(to)?);
        decimal(copy)?;
        Some(Torn {
            segment: segment.parse().ok()?,
            offset,
            bytes: end.checked_sub(offset)?,
            quarantine: name.to_owned(),
        })
    }
}

/// Every torn tail that is kept in the quarantine, in the order of names.
///
/// # Errors
/// When the quarantine is there and cannot be listed.
pub fn torn_tails(dir: &dyn Directory) -> Result<Vec<Torn>, Error> {
    let mut names = match dir.list(QUARANTINE_FOLDER) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(storage::failed(
                "list",
                dir.path_of(QUARANTINE_FOLDER),
                error,
            ));
        }
    };
    names.sort_unstable();
    Ok(names
        .iter()
        .filter_map(|name| Torn::of_file(name))
        .collect())
}

/// Copies the torn bytes to the quarantine and makes the copy durable; the segment is not changed. `unique` is a random
/// number: an overtaken holder of the append lock may wake up in the middle of this, beside the one who overtook it.
///
/// Doing it again after a crash gives a second copy, under a name of its own.
///
/// # Errors
/// When the system refuses, or another holder took the scratch file away.
pub fn keep_torn(dir: &dyn Directory, repair: &Repair, unique: u64) -> Result<Torn, Error> {
    let path = format!("segments/{}", repair.end.segment);
    let segment = dir
        .open(&path, Access::Read)
        .map_err(|error| storage::failed("open", dir.path_of(&path), error))?;
    let quarantine = keep(dir, &*segment, repair, unique)
        .map_err(|error| storage::failed("write to", dir.path_of(QUARANTINE_FOLDER), error))?;
    Ok(Torn {
        segment: repair.end.segment,
        offset: repair.end.offset,
        bytes: repair.dirty_end - repair.end.offset,
        quarantine,
    })
}

/// Zeroes the torn bytes from the end backwards and makes that durable, when they are in the quarantine.
///
/// While zeros are written the first bad frame stands until the last moment; whatever a power cut leaves of the zeros
/// is a torn tail again.
///
/// # Errors
/// When the system refuses; the tail is then still torn, wholly or in part, or seems not to be and comes back.
pub fn zero_torn(dir: &dyn Directory, repair: &Repair) -> Result<(), Error> {
    let path = format!("segments/{}", repair.end.segment);
    let failed = |op, error| storage::failed(op, dir.path_of(&path), error);
    let segment = dir
        .open(&path, Access::Write)
        .map_err(|error| failed("open", error))?;
    zero_backwards(&*segment, repair).map_err(|error| failed("write zeros to", error))?;
    segment.sync().map_err(|error| failed("sync", error))
}

fn keep(
    dir: &dyn Directory,
    segment: &dyn StoredFile,
    repair: &Repair,
    unique: u64,
) -> io::Result<String> {
    dir.make_directory(QUARANTINE_FOLDER)?;
    dir.sync("")?;
    // Left by repairs that were cut short.
    for name in dir.list(QUARANTINE_FOLDER)? {
        if name.ends_with(".tmp") {
            dir.remove(&format!("{QUARANTINE_FOLDER}/{name}"))?;
        }
    }
    let scratch = format!("{QUARANTINE_FOLDER}/{unique:016x}.tmp");
    let file = dir.open(&scratch, Access::CreateNew)?;
    let mut piece = vec![0; PIECE_BYTES as usize];
    let (from, to) = (repair.end.offset, repair.dirty_end);
    let mut offset = from;
    while offset < to {
        let want = (to - offset).min(PIECE_BYTES) as usize;
        let read = storage::read_full(segment, &mut piece[..want], offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        storage::write_full(&*file, &piece[..read], offset - from)?;
        offset += read as u64;
    }
    file.sync()?;
    let copies_max = if planted("recovery-once-only") {
        1
    } else {
        COPIES_MAX
    };
    let onto = if planted("quarantine-overwritten") {
        Onto::Anything
    } else {
        Onto::Nothing
    };
    for copy in 1..=copies_max {
        let name = format!("{}.{from}-{to}.{copy}.torn", repair.end.segment);
        match dir.rename(&scratch, &format!("{QUARANTINE_FOLDER}/{name}"), onto) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => {
                renamed?;
                dir.sync(QUARANTINE_FOLDER)?;
                return Ok(name);
            }
        }
    }
    Err(io::Error::other(format!(
        "{COPIES_MAX} copies of the same bytes are in quarantine"
    )))
}

fn zero_backwards(segment: &dyn StoredFile, repair: &Repair) -> io::Result<()> {
    let zeros = vec![0; PIECE_BYTES as usize];
    let mut end = repair.dirty_end;
    while end > repair.end.offset {
        let start = end.saturating_sub(PIECE_BYTES).max(repair.end.offset);
        storage::write_full(segment, &zeros[..(end - start) as usize], start)?;
        end = start;
    }
    Ok(())
}
