//! Where the new store is written, and how it comes to its place in one step; and that nobody writes to the damaged
//! one meanwhile.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tenure_log::bundle::MARKER;
use tenure_log::error::Error as LogError;
use tenure_log::lock::{Kind, LockFile, Locks};
use tenure_log::segment::SEGMENTS_FOLDER;
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{Directory, Opening, Storage};

use crate::error::Error;
use crate::host::{Wanted, openers};

fn failed<'p>(op: &'static str, path: &'p Path) -> impl Fn(io::Error) -> Error + 'p {
    move |error| LogError::from_io(op, path, error).into()
}

/// The damaged store, as it was when the salvage began.
#[derive(Debug)]
pub(super) struct Guard {
    path: PathBuf,
    segments: Vec<(std::ffi::OsString, u64, SystemTime)>,
}

impl Guard {
    pub(super) fn over(path: &Path) -> Result<Guard, Error> {
        let path = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::from(LogError::NotAStore {
                path: path.to_owned(),
            }),
            _ => failed("look at", path)(error),
        })?;
        // What was made from a bundle lacks contents on purpose, and is only looked at: its copy would be too.
        if fs::symlink_metadata(path.join(MARKER)).is_ok() {
            return Err(LogError::ReadOnlyCopy { path }.into());
        }
        let segments = segments(&path)?;
        Ok(Guard { path, segments })
    }

    /// How many bytes its segment files have.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|(_, bytes, _)| bytes).sum()
    }

    /// Nobody wrote to it since.
    pub(super) fn is_unchanged(&self) -> Result<(), Error> {
        if segments(&self.path)? == self.segments {
            return Ok(());
        }
        Err(self.busy("somebody wrote to it while it was read".to_owned()))
    }

    /// No process that can be seen from here has it open.
    pub(super) fn nobody_has_it_open(&self) -> Result<(), Error> {
        let seen = fs::metadata(&self.path).map_err(failed("look at", &self.path))?;
        let wanted = Wanted {
            device: seen.dev(),
            inode: seen.ino(),
            uid: seen.uid(),
            directories: &[],
        };
        let own = std::process::id();
        let others = openers(&wanted).found;
        let others: Vec<String> = others
            .iter()
            .filter(|opener| opener.pid != own)
            .map(|opener| format!("process {} ({})", opener.pid, opener.name))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        let who = others.join(", ");
        Err(self.busy(format!("{who} has it open; end it, then salvage again")))
    }

    fn busy(&self, what: String) -> Error {
        let holder = format!("{}: {what}", self.path.display());
        let waited = Duration::ZERO;
        LogError::Busy { waited, holder }.into()
    }

    /// Takes the append lock of the newest epoch, so that nobody can append; nothing where there is none.
    fn hold(&self) -> Result<Option<Held>, Error> {
        let dir: Arc<dyn Directory> = Disk
            .directory(&self.path, Opening::Existing)
            .map_err(failed("open", &self.path))?;
        let locks = Locks::new(dir);
        let Some(epoch) = locks.newest()? else {
            return Ok(None);
        };
        let Some(lock) = locks.open_apart(Kind::Append, epoch.0)? else {
            return Ok(None);
        };
        match lock.file.try_lock().map_err(failed("lock", &self.path))? {
            true => Ok(Some(Held(lock))),
            false => Err(self.busy("somebody is appending to it".to_owned())),
        }
    }
}

/// A lock that is given back.
struct Held(LockFile);

impl Drop for Held {
    fn drop(&mut self) {
        // Closing the file gives it back in any case.
        let _ = self.0.file.unlock();
    }
}

fn segments(path: &Path) -> Result<Vec<(std::ffi::OsString, u64, SystemTime)>, Error> {
    let folder = path.join(SEGMENTS_FOLDER);
    let listed = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = path.to_owned();
            return Err(LogError::NotAStore { path }.into());
        }
        listed => listed.map_err(failed("list", &folder))?,
    };
    let mut files = Vec::new();
    for file in listed {
        let file = file.map_err(failed("list", &folder))?;
        let seen = file.metadata().map_err(failed("look at", &folder))?;
        let modified = seen.modified().map_err(failed("look at", &folder))?;
        files.push((file.file_name(), seen.len(), modified));
    }
    files.sort();
    Ok(files)
}

/// A store that is being written beside its place. What was written is removed again when it does not get there.
#[derive(Debug)]
pub(super) struct Building {
    path: PathBuf,
    place: PathBuf,
    is_placed: bool,
}

impl Building {
    /// Makes a directory of its own beside `place`, where `is_there` says that something is and stays.
    pub(super) fn begin(place: &Path, is_there: bool) -> Result<Building, Error> {
        let place = absolute(place)?;
        if !is_there {
            is_free(&place)?;
        }
        let mut number = 1;
        let path = loop {
            let path = beside(&place, "salvage", number);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed("make", &path)(error)),
            }
        };
        Ok(Building {
            path,
            place,
            is_placed: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the store its name, if nothing has come to stand there.
    pub(super) fn name(mut self) -> Result<PathBuf, Error> {
        // A directory takes the place of an empty one, and of nothing else.
        fs::rename(&self.path, &self.place).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory => occupied(&self.place),
            _ => failed("name", &self.place)(error),
        })?;
        self.is_placed = true;
        sync_parent(&self.place)?;
        Ok(self.place.clone())
    }

    /// Exchanges the store with the damaged one in one step, which then gets a name of its own. While that happens the
    /// damaged one's append lock is held, and nobody has it open: before and after.
    pub(super) fn exchange(
        mut self,
        source: &Path,
        guard: &Guard,
    ) -> Result<(PathBuf, Option<PathBuf>), Error> {
        let held = guard.hold()?;
        guard.nobody_has_it_open()?;
        guard.is_unchanged()?;
        let swap = || {
            renameat_with(CWD, &self.path, CWD, &self.place, RenameFlags::EXCHANGE)
                .map_err(|errno| failed("exchange", source)(errno.into()))
        };
        swap()?;
        let moved = Guard {
            path: self.path.clone(),
            segments: Vec::new(),
        };
        if let Err(error) = moved.nobody_has_it_open() {
            // It came between the look and the exchange; it cannot have appended under the lock.
            swap()?;
            return Err(error);
        }
        self.is_placed = true;
        sync_parent(&self.place)?;
        let damaged = self.set_apart()?;
        drop(held);
        Ok((self.place.clone(), Some(damaged)))
    }

    /// Gives the damaged store the first name that is free.
    fn set_apart(&self) -> Result<PathBuf, Error> {
        for number in 1_u32.. {
            let damaged = beside(&self.place, "damaged", number);
            match renameat_with(CWD, &self.path, CWD, &damaged, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    sync_parent(&damaged)?;
                    return Ok(damaged);
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(errno) => return Err(failed("name", &damaged)(errno.into())),
            }
        }
        Ok(self.path.clone())
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if !self.is_placed {
            // What cannot be removed is a directory that nobody takes for the target.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// `PLACE.WORD-N`.
fn beside(place: &Path, word: &str, number: u32) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(format!(".{word}-{number}"));
    PathBuf::from(name)
}

/// The path without links on the way, and without a slash at its end; what it names need not be there.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    if let Ok(path) = fs::canonicalize(path) {
        return Ok(path);
    }
    let name = path.file_name().ok_or_else(|| occupied(path))?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = fs::canonicalize(parent).map_err(failed("look at", parent))?;
    Ok(parent.join(name))
}

fn occupied(path: &Path) -> Error {
    let path = path.to_owned();
    LogError::Occupied { path }.into()
}

fn is_free(place: &Path) -> Result<(), Error> {
    match fs::read_dir(place) {
        Ok(mut names) => match names.next() {
            None => Ok(()),
            Some(_) => Err(occupied(place)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(occupied(place)),
        Err(error) => Err(failed("list", place)(error)),
    }
}

fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(failed("sync", parent))
}
