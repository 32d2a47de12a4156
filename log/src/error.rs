//! What can go wrong in the log, for callers: each says what was found and what to do next.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::fault::Fault;
use crate::format::SegmentName;
use crate::position::{Epoch, Head, Position, Positions, StoreId};

/// Bytes that are not what was written. Never repaired by guessing: the store is not written to any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("damage in segment {segment} at offset {offset} ({positions}): {fault}; {next}")]
pub struct Damage {
    /// The segment file.
    pub segment: SegmentName,
    /// The offset in it where the first bad frame begins, or where it ends too early.
    pub offset: u64,
    /// The positions that cannot be read there, as far as that is known.
    pub positions: Positions,
    /// What is wrong there.
    pub fault: Fault,
    /// What to do next.
    pub next: Next,
}

/// What to do next about something found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Next {
    /// Nothing.
    Nothing,
    /// Append something: the next writer repairs it.
    Append,
    /// Look again: a writer is at work.
    LookAgain,
    /// Copy what is good into a new store.
    Salvage,
    /// Restore the missing or cut file from a copy.
    RestoreFile,
    /// Take the file out of the store: it belongs elsewhere.
    TakeOut,
    /// Use the newer program.
    NewerProgram,
    /// Look for the copy that was acknowledged.
    OtherCopy,
    /// Make the file readable, or repair the disk, then look again.
    MakeReadable,
}

impl std::fmt::Display for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Next::Nothing => "nothing has to be done",
            Next::Append => "the next append moves the bytes to quarantine and goes on",
            Next::LookAgain => "a writer is at work, look again",
            Next::Salvage => "copy what is good into a new store with `salvage`",
            Next::RestoreFile => {
                "restore the file from a backup, or copy what is good into a new store with `salvage`"
            }
            Next::TakeOut => "take the file out of the store",
            Next::NewerProgram => "use the newer program",
            Next::OtherCopy => {
                "look for the copy of the store that has it, before anything is appended to this one"
            }
            Next::MakeReadable => "make the file readable to this user, or look after the disk, then look again",
        })
    }
}

/// Everything the log answers instead of a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The append lock did not come free in time, and its holder did not stand still long enough to be replaced.
    #[error("busy: waited {waited:?} for {holder}; try again")]
    Busy {
        /// How long was waited.
        waited: Duration,
        /// Who holds what, as far as it can be seen.
        holder: String,
    },
    /// The operating system refused an operation.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no space; nothing was written.
    #[error("no space left for {}; nothing was appended, free some space and try again", path.display())]
    NoSpace {
        /// The file.
        path: PathBuf,
    },
    /// The system allows this user less than is needed.
    #[error("no permission to {op} {}; it has to belong to this user and be open to it", path.display())]
    Permission {
        /// The operation, as a verb.
        op: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// There is no store here.
    #[error("no store at {}; name another directory, or create one", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the store belongs to another user, is open to others, or is not a regular file with one link.
    #[error("{} is not safe to use: {why}; give the store files of its own, owned by this user with mode 0600", path.display())]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The store was written by a newer program.
    #[error("{} has format version {found}, this program knows up to {known}; use the newer program", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// A segment of another store stands in this one's directory.
    #[error(
        "segment {segment} belongs to store {found}, this is store {expected}; take the file out"
    )]
    ForeignStore {
        /// The segment.
        segment: SegmentName,
        /// The store it names.
        found: StoreId,
        /// The store of the directory.
        expected: StoreId,
    },
    /// Damage. The store is not written to.
    #[error(transparent)]
    Damaged(Box<Damage>),
    /// The file system is mounted read-only.
    #[error("{} is on a file system mounted read-only; reading works, appending does not", path.display())]
    ReadOnlyFs {
        /// The file.
        path: PathBuf,
    },
    /// The store was made from a bundle: it is a copy for looking at, and is never appended to.
    #[error("{} is a read-only copy, made from a bundle; reading works, appending does not", path.display())]
    ReadOnlyCopy {
        /// The store's directory.
        path: PathBuf,
    },
    /// A file system whose locks or syncs are not what the log relies on.
    #[error("file system {kind} is not one to append on; allow it by name if you accept its risks")]
    RefusedFileSystem {
        /// The kind of file system.
        kind: String,
    },
    /// A sync failed in this epoch: what was not acknowledged is unknown. Only a new epoch goes on.
    #[error(
        "a sync failed in writer epoch {epoch}; what was not acknowledged is unknown, open the store again"
    )]
    Poisoned {
        /// The epoch whose sync failed.
        epoch: Epoch,
    },
    /// A handle used in a process forked from the one that opened it.
    #[error(
        "the handle was opened by process {opened_by} and used by process {used_by}; open the store again after a fork"
    )]
    ForkedHandle {
        /// The process that opened it.
        opened_by: u32,
        /// The process that used it.
        used_by: u32,
    },
    /// More than a limit allows was offered; nothing was appended.
    #[error("{what} is {offered}, at most {max} is allowed; nothing was appended")]
    LimitExceeded {
        /// What is limited.
        what: &'static str,
        /// What was offered.
        offered: u64,
        /// What is allowed.
        max: u64,
    },
    /// The handle was closed.
    #[error("the log was closed; open it again")]
    Closed,
    /// The store stands elsewhere than where it was last written: copied, moved or restored.
    #[error("the store was last written at {}, now it is at {}; say which it is with `store accept moved|copied|restored`", was.display(), is.display())]
    HomeChanged {
        /// Where it was.
        was: PathBuf,
        /// Where it is.
        is: PathBuf,
    },
    /// There is something where a new store should be written.
    #[error("{} is not empty; name a directory that is not there", path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// The log ends before a position that was asked for.
    #[error("the log ends at position {head}, position {asked} was asked for")]
    BeyondHead {
        /// The last position there is.
        head: Position,
        /// The position asked for.
        asked: Position,
    },
    /// What the caller takes for the log's past is not: the log was restored, or it is another one.
    #[error("position {} with chain {} is not in this log, whose head is {}; read it again from the start", known.position, known.chain, head.position)]
    Diverged {
        /// What the caller knew.
        known: Head,
        /// The head of the log.
        head: Head,
    },
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Error {
        Error::Damaged(Box::new(damage))
    }
}

impl Error {
    /// The error for what the system answered to `op` on `path`, sorted by what the caller can do about it.
    #[must_use]
    pub fn from_io(op: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Error {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace { path },
            io::ErrorKind::PermissionDenied => Error::Permission { op, path },
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnlyFs { path },
            _ => Error::Io { op, path, source },
        }
    }
}
