//! Lock files that git leaves: found, judged, and on request removed (GIT-4 to GIT-6).
//!
//! Git makes a lock by creating a file that must not exist, and gives it back by renaming or removing it; a git that
//! was killed leaves it. First matching row decides:
//!
//! | row | what was seen | verdict |
//! |---|---|---|
//! | held | a process has the file open | held |
//! | at-work | a git process works in the repository | held |
//! | foreign-uid | the file is another user's, and we are not root | unsure |
//! | unseen | a process of the file's user does not let us look | unsure |
//! | inner | processes outside our pid namespace are not seen | unsure |
//! | network | other machines may write the file system | unsure |
//! | left | none of these | left |

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenure_core::id::Time;
use tenure_log::storage::Trust;
use tenure_log::storage::disk::file_system_at;

use super::repository::{GitRepository, GuardError};
use crate::host::{Host, Opener, Openers, Wanted, openers};

/// Entries looked at below `refs` and `logs`; a repository with more is looked at in part, and that is said.
const ENTRIES_MAX: usize = 200_000;
/// The file whose kernel lock makes removals one at a time. It stays, and means nothing by itself.
const ORDER: &str = "tenure-unlock";
/// How long to wait for another removal.
const ORDER_WAIT: Duration = Duration::from_secs(2);

/// Why it cannot be said that nobody holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doubt {
    /// Row foreign-uid.
    ForeignUser,
    /// Row unseen: so many processes.
    Unseen(usize),
    /// Row inner.
    InnerNamespace,
    /// Row network.
    SharedFileSystem,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ForeignUser => {
                f.write_str("it is another user's, whose processes we may not look at")
            }
            Self::Unseen(n) => write!(f, "{n} processes of its owner do not let us look"),
            Self::InnerNamespace => {
                f.write_str("processes outside this pid namespace are not seen")
            }
            Self::SharedFileSystem => f.write_str("other machines may write this file system"),
        }
    }
}

/// Whether somebody holds a lock file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockVerdict {
    /// By these.
    Held(Vec<Opener>),
    /// It cannot be said.
    Unsure(Doubt),
    /// Nobody does: it was left.
    Left,
}

impl LockVerdict {
    /// Its word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Unsure(_) => "unsure",
            Self::Left => "left",
        }
    }
}

/// The table at the head of this module. `ours`: the file is ours, or we are root.
#[must_use]
pub fn judge_lock(ours: bool, seen: Openers, trust: Option<Trust>) -> LockVerdict {
    if !seen.found.is_empty() {
        return LockVerdict::Held(seen.found);
    }
    match () {
        () if !ours => LockVerdict::Unsure(Doubt::ForeignUser),
        () if seen.unseen > 0 => LockVerdict::Unsure(Doubt::Unseen(seen.unseen)),
        () if seen.inner => LockVerdict::Unsure(Doubt::InnerNamespace),
        () if !matches!(trust, Some(Trust::Durable | Trust::Memory)) => {
            LockVerdict::Unsure(Doubt::SharedFileSystem)
        }
        () => LockVerdict::Left,
    }
}

/// A lock file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Whose it is.
    pub uid: u32,
    /// When it was last written, by the clock of its file system.
    pub modified: Time,
    /// How long ago that is in microseconds; negative when it lies in the future. For people: it decides nothing.
    pub age_micros: i64,
    /// Whether somebody holds it.
    pub verdict: LockVerdict,
    seal: Seal,
}

/// What tells a file from one that took its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seal {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Seal {
    fn of(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The same file with the same content; a rename changes the time of the last change.
    fn is_moved(self, other: Self) -> bool {
        Self {
            changed: other.changed,
            ..self
        } == other
    }
}

/// The lock files of a repository.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Locks {
    /// By path.
    pub found: Vec<LockFile>,
    /// Whether there was more than could be looked at.
    pub cut: bool,
}

/// Every lock file of a repository and its worktrees, judged. Changes nothing.
///
/// # Errors
/// [`GuardError`] when a directory cannot be listed.
pub fn locks(host: &dyn Host, repository: &GitRepository) -> Result<Locks, GuardError> {
    let mut walk = Walk::default();
    let gits = repository.worktrees.iter().map(|tree| &tree.git);
    for git in gits {
        walk.list(git)?;
        walk.list(&git.join("reftable"))?;
        walk.descend(&git.join("refs"))?;
        walk.descend(&git.join("logs"))?;
    }
    walk.list(&repository.common.join("objects/info"))?;
    walk.paths.sort();
    walk.paths.dedup();
    let directories = repository.directories();
    let mut found = Vec::new();
    for path in &walk.paths {
        found.extend(look(host, path, &directories)?);
    }
    Ok(Locks {
        found,
        cut: walk.cut,
    })
}

#[derive(Default)]
struct Walk {
    paths: Vec<PathBuf>,
    entries: usize,
    cut: bool,
}

impl Walk {
    /// Takes the lock files of one directory; what is not there has none.
    fn list(&mut self, directory: &Path) -> Result<Vec<PathBuf>, GuardError> {
        let failed = |source| GuardError::io("list", directory, source);
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut below = Vec::new();
        for entry in entries {
            if self.entries >= ENTRIES_MAX {
                self.cut = true;
                break;
            }
            self.entries += 1;
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let path = entry.path();
            if kind.is_dir() {
                below.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "lock")
            {
                self.paths.push(path);
            }
        }
        Ok(below)
    }

    fn descend(&mut self, directory: &Path) -> Result<(), GuardError> {
        let mut ahead = vec![directory.to_owned()];
        while let Some(next) = ahead.pop() {
            ahead.extend(self.list(&next)?);
        }
        Ok(())
    }
}

/// One lock file; `None` when it is gone.
fn look(
    host: &dyn Host,
    path: &Path,
    directories: &[PathBuf],
) -> Result<Option<LockFile>, GuardError> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(GuardError::io("look at", path, source)),
    };
    let seal = Seal::of(&meta);
    let us = host.this().uid;
    let seen = openers(&Wanted {
        device: seal.device,
        inode: seal.inode,
        uid: meta.uid(),
        directories,
    });
    let trust = path
        .parent()
        .and_then(|directory| file_system_at(directory).ok());
    let (seconds, nanos) = seal.modified;
    let modified = Time(
        seconds
            .saturating_mul(1_000_000)
            .saturating_add(nanos / 1000),
    );
    Ok(Some(LockFile {
        path: path.to_owned(),
        bytes: seal.bytes,
        uid: meta.uid(),
        modified,
        age_micros: host.now().0.saturating_sub(modified.0),
        verdict: judge_lock(
            us == 0 || us == meta.uid(),
            seen,
            trust.map(|kind| kind.trust),
        ),
        seal,
    }))
}

/// User ids in a repository, each with one thing that is theirs: more than one makes git fail with permissions.
///
/// # Errors
/// [`GuardError`] when something cannot be looked at.
pub fn owners(
    repository: &GitRepository,
    locks: &Locks,
) -> Result<BTreeMap<u32, PathBuf>, GuardError> {
    let mut owners = BTreeMap::new();
    let mut note = |path: PathBuf| match path.symlink_metadata() {
        Ok(meta) => {
            owners.entry(meta.uid()).or_insert(path);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(GuardError::io("look at", &path, source)),
    };
    for tree in &repository.worktrees {
        tree.top.clone().map_or(Ok(()), &mut note)?;
        for name in ["", "HEAD", "index", "logs", "refs"] {
            note(tree.git.join(name))?;
        }
    }
    for name in [
        "config",
        "packed-refs",
        "objects",
        "refs/heads",
        "refs/tags",
    ] {
        note(repository.common.join(name))?;
    }
    for lock in &locks.found {
        note(lock.path.clone())?;
    }
    Ok(owners)
}

/// A lock file that was removed, as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed(pub LockFile);

/// Why a lock file was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It is no lock file of this repository, or gone.
    NoLock,
    /// Somebody holds it, or that cannot be said.
    Judged(Box<LockFile>),
    /// Another one took its place while it was judged.
    Changed,
    /// Somebody else removes locks here.
    Busy,
}

/// Removes a lock file that was left, and no other. It is judged again, alone among those who remove by this
/// function, and compared with what was judged.
///
/// # Errors
/// [`GuardError`] when the repository cannot be looked at or the file not be removed.
pub fn unlock(
    host: &dyn Host,
    repository: &GitRepository,
    path: &Path,
) -> Result<Result<Removed, Kept>, GuardError> {
    let Some(_order) = take_turn(&repository.common)? else {
        return Ok(Err(Kept::Busy));
    };
    let wanted = canonical(path)?;
    let locks = locks(host, repository)?;
    let Some(lock) = locks.found.into_iter().find(|lock| lock.path == wanted) else {
        return Ok(Err(Kept::NoLock));
    };
    if lock.verdict != LockVerdict::Left {
        return Ok(Err(Kept::Judged(Box::new(lock))));
    }
    let failed = |source| GuardError::io("remove", &wanted, source);
    if Seal::of(&wanted.symlink_metadata().map_err(failed)?) != lock.seal {
        return Ok(Err(Kept::Changed));
    }
    // Moved before it is removed: if another took its place in this very moment, which only somebody who removes by
    // hand can bring about, it can be given back.
    let aside = repository
        .common
        .join(format!("tenure-removed-{}", std::process::id()));
    fs::rename(&wanted, &aside).map_err(failed)?;
    let moved = Seal::of(&aside.symlink_metadata().map_err(failed)?);
    if !lock.seal.is_moved(moved) {
        let given = fs::hard_link(&aside, &wanted);
        fs::remove_file(&aside).map_err(failed)?;
        return given.map(|()| Err(Kept::Changed)).map_err(failed);
    }
    fs::remove_file(&aside).map_err(failed)?;
    Ok(Ok(Removed(lock)))
}

/// The path with its directory resolved; the file itself may be a link, and is not followed.
fn canonical(path: &Path) -> Result<PathBuf, GuardError> {
    let failed = |source| GuardError::io("find", path, source);
    let absolute = std::path::absolute(path).map_err(failed)?;
    match (absolute.parent(), absolute.file_name()) {
        (Some(directory), Some(name)) => Ok(directory.canonicalize().map_err(failed)?.join(name)),
        _ => Ok(absolute),
    }
}

/// The kernel's lock on [`ORDER`]; `None` when somebody else has it for too long.
fn take_turn(common: &Path) -> Result<Option<File>, GuardError> {
    let path = common.join(ORDER);
    let failed = |source| GuardError::io("lock", &path, source);
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o666)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(&path)
        .map_err(failed)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) if begun.elapsed() < ORDER_WAIT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}
