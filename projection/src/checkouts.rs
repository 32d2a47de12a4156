//! Where a path really is: its canonical spelling, the identities of the directories on it, and the repository
//! it belongs to.
//!
//! Only reads: no git process, no index, no lock (D09). What counts is the path that is named, not the directory
//! of the caller (DSC-9).
//!
//! | part of the path | how it is followed |
//! |---|---|
//! | exists | as the kernel does: links resolved, `..` taken after them (D14) |
//! | a link to nothing | its target is where the path goes on |
//! | below what does not exist, or below a file | by the text alone: `..` takes back the component before it |

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use tenure_core::limits::{ANCHORS_MAX, PATH_BYTES_MAX};
use tenure_core::path::{AROUND, Anchor, Inode, Scope};

use crate::host::Host;

pub(crate) mod git;
pub(crate) mod identity;
mod mounts;
mod walk;

use walk::Walk;

/// Why a path cannot be a scope.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckoutError {
    /// Nothing was given.
    #[error("a path needs at least one character")]
    Empty,
    /// A byte that no path can hold.
    #[error("a path cannot hold a NUL byte, as {path:?} does")]
    Nul {
        /// As given.
        path: PathBuf,
    },
    /// Longer than [`PATH_BYTES_MAX`], as given or once links are resolved.
    #[error("a path has at most {PATH_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A relative path needs an absolute directory to begin at.
    #[error("a relative path begins at an absolute directory, not at {base:?}")]
    BaseRelative {
        /// As given.
        base: PathBuf,
    },
    /// The directory that a relative path begins at is not there.
    #[error("the directory {base:?} that the path begins at does not exist")]
    BaseMissing {
        /// As given.
        base: PathBuf,
    },
    /// A relative path begins at something else.
    #[error("the path begins at {base:?}, which is not a directory")]
    BaseNotDirectory {
        /// As given.
        base: PathBuf,
    },
    /// Links that lead on and on.
    #[error(
        "more than {} symbolic links on the way, the last at {path:?}",
        walk::LINKS_MAX
    )]
    Links {
        /// Where it was given up.
        path: PathBuf,
    },
    /// The files of a repository itself are nobody's write scope (D11).
    #[error("{path:?} is inside the git directory {git:?}; name files of the checkout")]
    InsideGit {
        /// As given, from the root.
        path: PathBuf,
        /// The git directory.
        git: PathBuf,
    },
    /// The system does not let us look, so nothing can be said (DSC-12).
    #[error("cannot look at {path:?}")]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The scope that `path` names on `host`; a relative one begins at `base`. Whatever exists of the path is
/// resolved, the rest stands as written: a scope may be a file that is still to be made.
///
/// The path is kept as bytes. At most [`ANCHORS_MAX`] directories are identified, those nearest the path, and with
/// what is left of that number those that hold it elsewhere.
///
/// # Errors
/// [`CheckoutError`], with the first rule that is broken.
pub fn locate(host: &dyn Host, base: &Path, path: &Path) -> Result<Scope<Vec<u8>>, CheckoutError> {
    check_shape(path)?;
    let mut walk = Walk::from_root();
    if path.is_relative() {
        begin_at(&mut walk, base)?;
    }
    walk.follow(path)?;
    let canonical = walk.path();
    check_length(&canonical)?;
    let spelled = base.join(path);
    for known_as in [canonical.as_path(), &without_dots(&spelled)] {
        if let Some(git) = git_directory_on(known_as) {
            return Err(CheckoutError::InsideGit { path: spelled, git });
        }
    }
    let directories = directories(walk.directory())?;
    let repository = git::repository(&directories)?;
    let this = host.this();
    Ok(Scope {
        path: canonical.as_os_str().as_bytes().to_vec(),
        host: this.id,
        boot: this.boot,
        anchors: anchors(&directories, &mounts::around(walk.directory())),
        repository,
    })
}

fn check_shape(path: &Path) -> Result<(), CheckoutError> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(CheckoutError::Empty);
    }
    if bytes.contains(&0) {
        return Err(CheckoutError::Nul { path: path.into() });
    }
    check_length(path)
}

fn check_length(path: &Path) -> Result<(), CheckoutError> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        return Err(CheckoutError::TooLong { bytes });
    }
    Ok(())
}

fn begin_at(walk: &mut Walk, base: &Path) -> Result<(), CheckoutError> {
    check_shape(base)?;
    let base = base.to_path_buf();
    if base.is_relative() {
        return Err(CheckoutError::BaseRelative { base });
    }
    walk.follow(&base)?;
    if walk.is_missing() {
        return Err(CheckoutError::BaseMissing { base });
    }
    if !walk.is_directory() {
        return Err(CheckoutError::BaseNotDirectory { base });
    }
    Ok(())
}

/// The path with `.` and `..` taken by the text alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

/// The outermost component `.git`, with what leads to it. By name: it may be a link, or not exist yet.
fn git_directory_on(path: &Path) -> Option<PathBuf> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    ancestors
        .into_iter()
        .find(|ancestor| ancestor.file_name().is_some_and(|name| name == ".git"))
        .map(Path::to_path_buf)
}

/// Every directory from the root to `deepest`, with its identity.
fn directories(deepest: &Path) -> Result<Vec<(&Path, Inode)>, CheckoutError> {
    let mut directories = Vec::new();
    for path in deepest.ancestors() {
        match identity::of(path) {
            Ok(inode) => directories.push((path, inode)),
            Err(source) => {
                return Err(CheckoutError::Unreadable {
                    path: path.into(),
                    source,
                });
            }
        }
    }
    directories.reverse();
    Ok(directories)
}

/// Those on the path, and then those around it that are not.
fn anchors(directories: &[(&Path, Inode)], around: &[Inode]) -> Vec<Anchor> {
    let on_path = (0..)
        .zip(directories)
        .skip(directories.len().saturating_sub(ANCHORS_MAX))
        .map(|(depth, (_, inode))| Anchor {
            inode: *inode,
            depth,
        });
    let known = |inode: &&Inode| !directories.iter().any(|(_, known)| known == *inode);
    let around = around.iter().filter(known).map(|inode| Anchor {
        inode: *inode,
        depth: AROUND,
    });
    on_path.chain(around).take(ANCHORS_MAX).collect()
}
