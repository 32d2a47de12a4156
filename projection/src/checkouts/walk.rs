//! Following a path as the kernel does, and by its text where there is nothing to follow.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::CheckoutError;

/// Links followed on one path: as many as Linux follows.
pub(super) const LINKS_MAX: u32 = 40;

/// Where a walk has come to.
#[derive(Debug)]
pub(super) struct Walk {
    /// What exists: canonical, without links and dots.
    at: PathBuf,
    /// Whether that is a directory.
    directory: bool,
    /// What follows it and does not exist.
    missing: Vec<OsString>,
    links: u32,
}

enum Step {
    Root,
    Up,
    Into(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into(name.to_os_string())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

impl Walk {
    pub(super) fn from_root() -> Self {
        Self {
            at: PathBuf::from("/"),
            directory: true,
            missing: Vec::new(),
            links: 0,
        }
    }

    /// Goes on along `path`.
    pub(super) fn follow(&mut self, path: &Path) -> Result<(), CheckoutError> {
        // The next step is the last one.
        let mut ahead: Vec<Step> = steps(path).rev().collect();
        while let Some(step) = ahead.pop() {
            match step {
                Step::Root => {
                    self.at = PathBuf::from("/");
                    self.directory = true;
                    self.missing.clear();
                }
                Step::Up => self.leave(),
                Step::Into(name) => self.enter(name, &mut ahead)?,
            }
        }
        Ok(())
    }

    fn leave(&mut self) {
        // Above the root is the root.
        if self.missing.pop().is_none() && self.at.pop() {
            self.directory = true;
        }
    }

    fn enter(&mut self, name: OsString, ahead: &mut Vec<Step>) -> Result<(), CheckoutError> {
        if self.is_missing() {
            self.missing.push(name);
            return Ok(());
        }
        let path = self.at.join(&name);
        let kind = match path.symlink_metadata() {
            Ok(meta) => meta.file_type(),
            Err(error) if is_absence(error.kind()) => {
                self.missing.push(name);
                return Ok(());
            }
            Err(source) => return Err(CheckoutError::Unreadable { path, source }),
        };
        if !kind.is_symlink() {
            self.directory = kind.is_dir();
            self.at = path;
            return Ok(());
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(CheckoutError::Links { path });
        }
        match path.read_link() {
            Ok(target) => ahead.extend(steps(&target).rev()),
            Err(source) => return Err(CheckoutError::Unreadable { path, source }),
        }
        Ok(())
    }

    pub(super) fn is_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Whether what exists is a directory.
    pub(super) fn is_directory(&self) -> bool {
        self.directory
    }

    /// The deepest directory that exists.
    pub(super) fn directory(&self) -> &Path {
        if self.directory {
            &self.at
        } else {
            self.at.parent().unwrap_or(&self.at)
        }
    }

    /// The whole path.
    pub(super) fn path(&self) -> PathBuf {
        let mut path = self.at.clone();
        path.extend(&self.missing);
        path
    }
}

/// Nothing there, or nothing that could have anything in it.
fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
