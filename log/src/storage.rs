//! The one door to the outside: every file operation, lock, clock, wait and process question of the
//! log goes through these traits, so that the simulator runs the production code.
//!
//! Names are relative to a store's directory and never made from input. Errors are plain
//! [`io::Error`]s; [`failed`] turns them into the log's own.

pub mod disk;
#[cfg(feature = "testkit")]
pub mod sim;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use crate::error::Error;

/// The machine as the log sees it.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Opens a directory, making it (mode 0700) where `opening` says so and it is not there.
    ///
    /// # Errors
    /// The system's answer; [`Unfit`] inside when it belongs to another user or is open to others.
    fn directory(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn Directory>>;

    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// The boot of the machine: what is in memory is void when it changes.
    ///
    /// # Errors
    /// When the system does not say.
    fn boot(&self) -> io::Result<BootId>;

    /// This process.
    fn process(&self) -> ProcessId;

    /// Waits until `word` is woken or no longer `expected`, at most `bound`; may return early.
    fn wait(&self, word: &AtomicU32, expected: u32, bound: Duration);

    /// Wakes up to `count` waiters on `word`, in every process that shares it.
    fn wake(&self, word: &AtomicU32, count: u32);

    /// Fills `into` with random bytes.
    ///
    /// # Errors
    /// When the system has none.
    fn random(&self, into: &mut [u8]) -> io::Result<()>;

    /// Puts bytes away in a file without a name, among the system's temporary ones: it is gone with what this gives.
    /// None where there is no such place.
    ///
    /// # Errors
    /// The system's answer, as when there is no room.
    fn put_away(&self, _bytes: &[u8]) -> io::Result<Option<Arc<dyn SealedBytes>>> {
        Ok(None)
    }

    /// Called before every change of shared memory. Nothing on a real machine; the simulator lets
    /// other processes run here.
    fn step(&self) {}
}

/// A directory, held open.
pub trait Directory: Send + Sync + fmt::Debug {
    /// Where it was when it was opened; for messages.
    fn path(&self) -> &Path;

    /// Device and inode number.
    ///
    /// # Errors
    /// The system's answer.
    fn identity(&self) -> io::Result<FileIdentity>;

    /// What kind of file system it is on.
    ///
    /// # Errors
    /// The system's answer.
    fn file_system(&self) -> io::Result<FileSystem>;

    /// Makes a directory (mode 0700); it may exist.
    ///
    /// # Errors
    /// The system's answer.
    fn make_directory(&self, name: &str) -> io::Result<()>;

    /// The names in the directory `name`, in no order.
    ///
    /// # Errors
    /// The system's answer.
    fn list(&self, name: &str) -> io::Result<Vec<String>>;

    /// Opens the regular file `name`.
    ///
    /// # Errors
    /// The system's answer; [`Unfit`] inside when it is not a regular file with one link that
    /// belongs to this user alone.
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn StoredFile>>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// The system's answer; `AlreadyExists` when `to` is taken and `onto` forbids it.
    fn rename(&self, from: &str, to: &str, onto: Onto) -> io::Result<()>;

    /// Removes the name of a file.
    ///
    /// # Errors
    /// The system's answer.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names in the directory `name` durable; an empty name is this directory.
    ///
    /// # Errors
    /// The system's answer.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// The path of `name`, for messages.
    fn path_of(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// An open file. Its locks and its mappings live as long as it does.
pub trait StoredFile: Send + Sync + fmt::Debug {
    /// Reads at `offset`; fewer bytes than asked for at the end of the file.
    ///
    /// # Errors
    /// The system's answer.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset` with one system call and returns how many bytes it took.
    ///
    /// # Errors
    /// The system's answer; then no byte was taken.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// The size in bytes.
    ///
    /// # Errors
    /// The system's answer.
    fn size(&self) -> io::Result<u64>;

    /// Makes contents and size durable.
    ///
    /// # Errors
    /// The system's answer. Some of what was written may then be lost, whatever a later call says.
    fn sync(&self) -> io::Result<()>;

    /// Takes the file's lock if nobody has it.
    ///
    /// # Errors
    /// The system's answer.
    fn try_lock(&self) -> io::Result<bool>;

    /// Gives the lock back.
    ///
    /// # Errors
    /// The system's answer.
    fn unlock(&self) -> io::Result<()>;

    /// Device and inode number.
    ///
    /// # Errors
    /// The system's answer.
    fn identity(&self) -> io::Result<FileIdentity>;

    /// Whether the file still has a name.
    ///
    /// # Errors
    /// The system's answer.
    fn is_linked(&self) -> io::Result<bool>;

    /// Maps the file as memory shared with every process that maps it.
    ///
    /// # Errors
    /// The system's answer.
    fn map_shared(&self, access: Access) -> io::Result<Arc<dyn SharedMemory>>;

    /// Maps the first `bytes` bytes of a file that nobody changes or cuts any more.
    ///
    /// # Errors
    /// The system's answer; `UnexpectedEof` when the file is shorter.
    fn map_sealed(&self, bytes: u64) -> io::Result<Arc<dyn SealedBytes>>;
}

/// Memory shared between processes: words only, so that every access is atomic.
pub trait SharedMemory: Send + Sync + fmt::Debug {
    /// The word at `index`, counted in words of eight bytes.
    ///
    /// # Panics
    /// When the memory is shorter.
    fn word(&self, index: usize) -> &AtomicU64;

    /// The half word at `index`, counted in words of four bytes, for waiting on. No half word is
    /// part of a word used through [`SharedMemory::word`].
    ///
    /// # Panics
    /// When the memory is shorter.
    fn half_word(&self, index: usize) -> &AtomicU32;
}

/// Bytes that do not change.
pub trait SealedBytes: Send + Sync + fmt::Debug {
    /// All of them.
    fn bytes(&self) -> &[u8];
}

/// Whether a directory is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// It has to be there.
    Existing,
    /// It is made when it is not there.
    Create,
}

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
    /// Reading and writing, and it must not be there yet.
    CreateNew,
    /// Reading and writing; made empty when it is not there.
    CreateOrOpen,
}

/// What a rename does when the new name is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onto {
    /// It fails.
    Nothing,
    /// It replaces that file.
    Anything,
}

/// One boot of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BootId(pub [u8; 16]);

/// A process of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessId(pub u32);

/// Device and inode number of a directory or a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileIdentity {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
}

/// A file system, as far as the log cares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSystem {
    /// Its name, for `--allow-fs` and messages.
    pub kind: String,
    /// What it is good for.
    pub trust: Trust,
}

/// What a file system is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Locks and syncs work as the log relies on.
    Durable,
    /// Locks work, but nothing outlives a reboot.
    Memory,
    /// Locks or syncs may lie: appending is refused unless it is allowed by name.
    Doubtful,
}

/// A file or directory that is not safe to use; stands inside an [`io::Error`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Unfit {
    /// What is wrong with it.
    pub why: String,
}

impl Unfit {
    /// The error for a file of which `why` is true.
    #[must_use]
    pub fn error(why: impl Into<String>) -> io::Error {
        io::Error::other(Unfit { why: why.into() })
    }
}

/// The log's error for what `op` on `path` was answered.
#[must_use]
pub fn failed(op: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Error {
    let unfit = source
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Unfit>());
    match (unfit, source.kind()) {
        (Some(unfit), _) => Error::ForeignOwner {
            path: path.into(),
            why: unfit.why.clone(),
        },
        // A file-size limit is a full disk by another name: nothing was written, and room helps.
        (None, io::ErrorKind::FileTooLarge) => Error::NoSpace { path: path.into() },
        _ => Error::from_io(op, path, source),
    }
}

/// Reads until `into` is full or the file ends; returns how much was read.
///
/// # Errors
/// The system's answer.
pub fn read_full(file: &dyn StoredFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], offset + read as u64)? {
            0 => break,
            n => read += n,
        }
    }
    Ok(read)
}

/// Writes all of `bytes`, with as many calls as it takes.
///
/// # Errors
/// The system's answer; some bytes may have been written.
pub fn write_full(file: &dyn StoredFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], offset + written as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => written += n,
        }
    }
    Ok(())
}

/// Writes a derived file: all of it or nothing, durable on return. `folder` is the directory of
/// `name` and already there, empty for the store's own; `unique` is random.
///
/// # Errors
/// The system's answer, and the file then is as it was.
pub fn replace_file(
    dir: &dyn Directory,
    folder: &str,
    name: &str,
    unique: u64,
    bytes: &[u8],
) -> io::Result<()> {
    replace_files(dir, folder, unique, &[(name, &bytes)])
}

/// What a file is to hold, one piece behind the other, so that it need not be in memory as a whole.
pub trait Pieces {
    /// Gives each piece in order.
    ///
    /// # Errors
    /// When one cannot be had, and what `take` answers.
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

impl Pieces for &[u8] {
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        take(self)
    }
}

impl Pieces for Vec<u8> {
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        take(self)
    }
}

/// Pieces that are shorter are written together.
const WRITE_BYTES_MIN: usize = 1 << 16;

fn write_pieces(file: &dyn StoredFile, content: &dyn Pieces) -> io::Result<()> {
    let (mut together, mut at) = (Vec::new(), 0);
    let write = |bytes: &[u8], at: &mut u64| {
        write_full(file, bytes, *at)?;
        *at += bytes.len() as u64;
        io::Result::Ok(())
    };
    content.each(&mut |piece| {
        if !together.is_empty() && together.len() + piece.len() > WRITE_BYTES_MIN {
            write(&together, &mut at)?;
            together.clear();
        }
        if piece.len() >= WRITE_BYTES_MIN {
            return write(piece, &mut at);
        }
        together.extend_from_slice(piece);
        Ok(())
    })?;
    write(&together, &mut at)
}

/// As [`replace_file`], of several files of one folder: each is written whole or not at all, and all are durable on
/// return. That costs less than one after the other: what the first sync writes, the others find written, and the folder
/// is synced once.
///
/// # Errors
/// The system's answer; each file then is as it was, or new.
pub fn replace_files(
    dir: &dyn Directory,
    folder: &str,
    unique: u64,
    files: &[(&str, &dyn Pieces)],
) -> io::Result<()> {
    let within = |name: String| {
        if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        }
    };
    let scratch = |name: &str| within(format!(".{name}.{unique:016x}.tmp"));
    let outcome = (|| {
        let mut open = Vec::with_capacity(files.len());
        for (name, content) in files {
            let file = dir.open(&scratch(name), Access::CreateNew)?;
            write_pieces(&*file, *content)?;
            open.push(file);
        }
        open.iter().try_for_each(|file| file.sync())?;
        for (name, _) in files {
            let target = within((*name).to_owned());
            dir.rename(&scratch(name), &target, Onto::Anything)?;
        }
        dir.sync(folder)
    })();
    if outcome.is_err() {
        // The scratch files may not exist, and the first error is the one to report.
        for (name, _) in files {
            let _ = dir.remove(&scratch(name));
        }
    }
    outcome
}
