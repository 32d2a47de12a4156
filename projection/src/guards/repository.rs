//! A repository with all of its worktrees, found without running git and without changing anything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::checkouts::git;

/// Why a repository, or something in it, cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// No directory from there upward is the top of a checkout.
    #[error("{path:?} is in no git checkout")]
    NoCheckout {
        /// Where the search began.
        path: PathBuf,
    },
    /// The system does not let us.
    #[error("cannot {op} {path:?}: {source}")]
    Io {
        /// What was tried.
        op: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl GuardError {
    pub(super) fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            op,
            path: path.to_owned(),
            source,
        }
    }
}

/// A working tree of a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worktree {
    /// Its top directory; `None` where it cannot be found any more, or where it never was (a bare repository).
    pub top: Option<PathBuf>,
    /// Its own git directory: index, `HEAD`, locks of both.
    pub git: PathBuf,
}

/// A repository, as seen from one of its checkouts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GitRepository {
    /// The top directory of the checkout it was found by.
    pub top: PathBuf,
    /// The git directory of that checkout.
    pub git: PathBuf,
    /// The git directory that all worktrees share: refs, objects, configuration, hooks.
    pub common: PathBuf,
    /// Every working tree, the main one first.
    pub worktrees: Vec<Worktree>,
}

impl GitRepository {
    /// The repository of the nearest checkout from `path` upward.
    ///
    /// # Errors
    /// [`GuardError`]; a bare repository has no checkout.
    pub fn at(path: &Path) -> Result<Self, GuardError> {
        let start = path
            .canonicalize()
            .map_err(|source| GuardError::io("find", path, source))?;
        for top in start.ancestors() {
            let found = git::checkout(top)
                .map_err(|source| GuardError::io("look at", &top.join(".git"), source))?;
            if let Some(checkout) = found {
                let worktrees = worktrees(&checkout, top)?;
                return Ok(Self {
                    top: top.to_owned(),
                    git: checkout.git,
                    common: checkout.common,
                    worktrees,
                });
            }
        }
        Err(GuardError::NoCheckout { path: start })
    }

    /// Directories in which git is at work when it works on this repository.
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        let tops = self.worktrees.iter().filter_map(|tree| tree.top.clone());
        let gits = self.worktrees.iter().map(|tree| tree.git.clone());
        let mut all: Vec<PathBuf> = tops.chain(gits).chain([self.common.clone()]).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// The main working tree, then the linked ones by name.
fn worktrees(found: &git::Checkout, top: &Path) -> Result<Vec<Worktree>, GuardError> {
    let main_top = match found.git == found.common {
        true => Some(top.to_owned()),
        // That of a submodule is elsewhere, and its configuration says where; from a linked worktree it is not
        // asked.
        false if found.common.file_name().is_some_and(|name| name == ".git") => {
            found.common.parent().map(Path::to_path_buf)
        }
        false => None,
    };
    let mut all = vec![Worktree {
        top: main_top,
        git: found.common.clone(),
    }];
    let linked = found.common.join("worktrees");
    let entries = match fs::read_dir(&linked) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
        Err(source) => return Err(GuardError::io("list", &linked, source)),
    };
    let mut directories = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| GuardError::io("list", &linked, source))?;
        directories.push(entry.path());
    }
    directories.sort();
    for git in directories {
        let pointer = git::pointer(&git.join("gitdir"))
            .map_err(|source| GuardError::io("read", &git.join("gitdir"), source))?;
        // `gitdir` names the `.git` file of the worktree, which may be gone.
        let top = pointer
            .map(|dot_git| git.join(dot_git))
            .and_then(|dot_git| dot_git.parent().and_then(|top| top.canonicalize().ok()));
        all.push(Worktree { top, git });
    }
    Ok(all)
}
