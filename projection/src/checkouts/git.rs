//! The repository that a directory belongs to, found as git finds it: upwards to a `.git`, through `gitdir:` and
//! `commondir`. No git process runs, and no variable of the environment counts.
//!
//! | what stands at `.git` | then |
//! |---|---|
//! | a directory with `HEAD`, `objects` and `refs` | this is the checkout |
//! | another directory | the search goes on above, as git's does |
//! | a file `gitdir: X`, and X is such a directory (a submodule), or one whose `commondir` is (a linked worktree) | this is the checkout |
//! | any other file | no repository: git refuses to work here, so there is nothing to share |
//!
//! The search ends where another file system begins, as git's does.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tenure_core::limits::PATH_BYTES_MAX;
use tenure_core::path::{Inode, Repository};

use super::{CheckoutError, identity};

/// Bytes read of a file that holds one path.
const POINTER_BYTES_MAX: u64 = PATH_BYTES_MAX as u64 + 64;

/// The repository of the last of `directories`, which begin at the root.
pub(super) fn repository(
    directories: &[(&Path, Inode)],
) -> Result<Option<Repository<Vec<u8>>>, CheckoutError> {
    let Some((_, deepest)) = directories.last() else {
        return Ok(None);
    };
    let device = deepest.device;
    for (top, inode) in directories.iter().rev() {
        if inode.device != device {
            break;
        }
        match common_directory(top).map_err(|source| CheckoutError::Unreadable {
            path: top.join(".git"),
            source,
        })? {
            Found::Nothing => {}
            Found::Broken => break,
            Found::Checkout(Checkout { common, .. }) => {
                return Ok(Some(Repository {
                    inode: identity::of(&common).ok(),
                    common: common.into_os_string().into_vec(),
                    top: top.as_os_str().as_bytes().to_vec(),
                }));
            }
        }
    }
    Ok(None)
}

/// The directories of a checkout that are git's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Checkout {
    /// Its own: index, `HEAD`, locks of both.
    pub(crate) git: PathBuf,
    /// That of the repository: refs, objects, configuration.
    pub(crate) common: PathBuf,
}

/// What git has of the checkout whose top is `top`, canonical; `None` if it is none.
///
/// # Errors
/// The system's answer, where it does not let us look.
pub(crate) fn checkout(top: &Path) -> io::Result<Option<Checkout>> {
    Ok(match common_directory(top)? {
        Found::Checkout(checkout) => Some(checkout),
        Found::Nothing | Found::Broken => None,
    })
}

/// The path that the one-line file `path` holds, as it stands there; `None` where there is no such file.
///
/// # Errors
/// The system's answer.
pub(crate) fn pointer(path: &Path) -> io::Result<Option<PathBuf>> {
    Ok(read_pointer(path)?.map(|text| path_from(&text).to_path_buf()))
}

enum Found {
    Nothing,
    Broken,
    Checkout(Checkout),
}

/// The git directories of the checkout whose top is `top`, if it is one.
fn common_directory(top: &Path) -> io::Result<Found> {
    let dot_git = top.join(".git");
    let kind: FileType = match dot_git.metadata() {
        Ok(meta) => meta.file_type(),
        Err(error) => return absent(error).map(|()| Found::Nothing),
    };
    if kind.is_dir() {
        return Ok(match both_of(&dot_git)? {
            Some(checkout) => Found::Checkout(checkout),
            None => Found::Nothing,
        });
    }
    if !kind.is_file() {
        return Ok(Found::Nothing);
    }
    let Some(text) = read_pointer(&dot_git)? else {
        return Ok(Found::Broken);
    };
    let target = text.strip_prefix(b"gitdir: ").filter(|t| !t.is_empty());
    let Some(target) = target else {
        return Ok(Found::Broken);
    };
    let git = top.join(path_from(target));
    Ok(match both_of(&git)? {
        Some(checkout) => Found::Checkout(checkout),
        None => Found::Broken,
    })
}

fn both_of(git: &Path) -> io::Result<Option<Checkout>> {
    let Some(common) = common_of(git)? else {
        return Ok(None);
    };
    match git.canonicalize() {
        Ok(git) => Ok(Some(Checkout { git, common })),
        Err(error) => absent(error).map(|()| None),
    }
}

/// The common directory of the git directory `git`, canonical; `None` if it is no git directory.
fn common_of(git: &Path) -> io::Result<Option<PathBuf>> {
    let common = match read_pointer(&git.join("commondir"))? {
        Some(target) => git.join(path_from(&target)),
        None => git.to_path_buf(),
    };
    let head = exists(&git.join("HEAD"))?;
    if !(head && exists(&common.join("objects"))? && exists(&common.join("refs"))?) {
        return Ok(None);
    }
    match common.canonicalize() {
        Ok(common) => Ok(Some(common)),
        Err(error) => absent(error).map(|()| None),
    }
}

fn exists(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) => absent(error).map(|()| false),
    }
}

/// The text of a file that holds one path, without the end of its line; `None` if there is no such file, or
/// none that git would take.
fn read_pointer(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // Without NONBLOCK, opening a fifo somebody planted waits for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(error) => return absent(error.into()).map(|()| None),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(POINTER_BYTES_MAX + 1).read_to_end(&mut text)?;
    while matches!(text.last(), Some(b'\n' | b'\r')) {
        text.pop();
    }
    let fits = text.len() <= PATH_BYTES_MAX && !text.contains(&0);
    Ok(fits.then_some(text))
}

fn path_from(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// Passes on every error but absence. A name that is too long or leads in a circle is as good as absent.
fn absent(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP) => Ok(()),
        _ => Err(error),
    }
}
