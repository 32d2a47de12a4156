//! Carries out what the table says about a torn tail. Only who holds the append lock may.

use std::io;

use super::Repair;
use crate::error::Error;
use crate::storage::{self, Access, Directory, Onto, StoredFile};

/// The folder that keeps what was taken out of segments.
pub const QUARANTINE_FOLDER: &str = "quarantine";

/// Bytes moved at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// A repair that is cut short this often, each time behind the copy, has another cause than crashes.
const COPIES_MAX: u32 = 1000;

/// Copies the torn bytes to the quarantine, makes the copy durable, then zeroes them from the end backwards and makes that
/// durable. Returns the copy's name in the quarantine.
///
/// Doing it again after a crash in the middle is safe: before the copy is durable nothing is changed, and while zeros are
/// written the first bad frame stands until the last moment; whatever a power cut leaves of the zeros is a torn tail again.
/// A second copy gets a name of its own.
///
/// # Errors
/// When the system refuses; the tail is then still torn, wholly or in part.
pub fn carry_out(dir: &dyn Directory, repair: &Repair) -> Result<String, Error> {
    let path = format!("segments/{}", repair.end.segment);
    let failed = |op, error| storage::failed(op, dir.path_of(&path), error);
    let segment = dir
        .open(&path, Access::Write)
        .map_err(|error| failed("open", error))?;
    let quarantined = dir.path_of(QUARANTINE_FOLDER);
    let copy = keep(dir, &*segment, repair)
        .map_err(|error| storage::failed("write to", quarantined, error))?;
    zero_backwards(&*segment, repair).map_err(|error| failed("write zeros to", error))?;
    segment.sync().map_err(|error| failed("sync", error))?;
    Ok(copy)
}

fn keep(dir: &dyn Directory, segment: &dyn StoredFile, repair: &Repair) -> io::Result<String> {
    dir.make_directory(QUARANTINE_FOLDER)?;
    dir.sync("")?;
    let scratch = format!("{QUARANTINE_FOLDER}/torn.tmp");
    let file = match dir.open(&scratch, Access::CreateNew) {
        // Left by a repair that was cut short; under the append lock nobody else is at it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            dir.remove(&scratch)?;
            dir.open(&scratch, Access::CreateNew)?
        }
        opened => opened?,
    };
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
    for copy in 1..=COPIES_MAX {
        let name = format!("{}.{from}-{to}.{copy}.torn", repair.end.segment);
        match dir.rename(
            &scratch,
            &format!("{QUARANTINE_FOLDER}/{name}"),
            Onto::Nothing,
        ) {
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
