//! Who has a file open, or is git at work in a directory: what can be seen of it from here (GIT-4).
//!
//! | what is seen of a process | counts as |
//! |---|---|
//! | one of its descriptors is the file | it has it |
//! | its name begins with `git`, and it works in one of the directories, or names one on its command line or in `GIT_DIR`, `GIT_INDEX_FILE` or `GIT_WORK_TREE` | it may have it: git closes `index.lock` while an editor or a hook runs |
//! | its user could have made the file, and it does not let us look | unseen |
//! | it has ended meanwhile | nothing |

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{kernel, procfs};

/// Inode of the first pid namespace of a machine, the only one from which every process is seen
/// (`PROC_PID_INIT_INO` of the kernel).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// How a process is at a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hold {
    /// It has it open.
    Open,
    /// It is git at work in the repository, and may have made it.
    AtWork,
}

/// A process that is at a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opener {
    /// Its number.
    pub pid: u32,
    /// What it calls itself; any bytes, as text.
    pub name: String,
    /// How it is at it.
    pub hold: Hold,
}

/// What could be seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Openers {
    /// Who is at it, in the order of pids.
    pub found: Vec<Opener>,
    /// Processes that may be at it and do not let us look.
    pub unseen: usize,
    /// Processes outside our pid namespace, or all of them, are not seen from here.
    pub inner: bool,
}

/// The file that is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its device.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Whose it is: whoever made it had this user id.
    pub uid: u32,
    /// Canonical directories in which git would be at work on it.
    pub directories: &'a [PathBuf],
}

/// Looks at every process there is.
#[must_use]
pub fn openers(wanted: &Wanted<'_>) -> Openers {
    let mut openers = Openers {
        inner: !kernel::proc_is_ours() || kernel::pid_namespace() != Some(FIRST_PID_NAMESPACE),
        ..Openers::default()
    };
    let Ok(processes) = fs::read_dir("/proc") else {
        openers.inner = true;
        return openers;
    };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        match look(&process.path(), wanted) {
            Ok(Some((name, hold))) => openers.found.push(Opener { pid, name, hold }),
            Ok(None) => {}
            // It has ended.
            Err(error) if is_gone(&error) => {}
            Err(_) if may_have_made(&process.path(), wanted.uid) => openers.unseen += 1,
            Err(_) => {}
        }
    }
    openers.found.sort_by_key(|opener| opener.pid);
    openers
}

fn is_gone(error: &io::Error) -> bool {
    let code = rustix::io::Errno::from_io_error(error);
    error.kind() == io::ErrorKind::NotFound || code == Some(rustix::io::Errno::SRCH)
}

/// Whether the process has the user id of whoever made the file. What cannot be read may be anybody.
fn may_have_made(process: &Path, uid: u32) -> bool {
    match fs::read(process.join("status")) {
        Ok(text) => procfs::status(&text).is_none_or(|status| status.uid == uid),
        Err(error) => !is_gone(&error),
    }
}

fn look(process: &Path, wanted: &Wanted<'_>) -> io::Result<Option<(String, Hold)>> {
    let name = || -> io::Result<String> {
        let name = fs::read(process.join("comm"))?;
        Ok(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
    };
    for descriptor in fs::read_dir(process.join("fd"))? {
        let Ok(descriptor) = descriptor else { continue };
        // Closed meanwhile, or something that has no file.
        let Ok(file) = fs::metadata(descriptor.path()) else {
            continue;
        };
        if (file.dev(), file.ino()) == (wanted.device, wanted.inode) {
            return Ok(Some((name()?, Hold::Open)));
        }
    }
    let name = name()?;
    let at_work = name.starts_with("git") && works_in(process, wanted.directories)?;
    Ok(at_work.then_some((name, Hold::AtWork)))
}

/// Whether a git process works in one of the directories.
fn works_in(process: &Path, directories: &[PathBuf]) -> io::Result<bool> {
    let inside = |path: &Path| directories.iter().any(|dir| path.starts_with(dir));
    let cwd = fs::read_link(process.join("cwd"))?;
    if inside(&cwd) {
        return Ok(true);
    }
    let named = |bytes: &[u8]| {
        let path = cwd.join(OsStr::from_bytes(bytes));
        // What is named may be a link, or not exist any more.
        inside(&path) || path.canonicalize().is_ok_and(|path| inside(&path))
    };
    let environment = fs::read(process.join("environ"))?;
    let values = environment.split(|b| *b == 0).filter_map(|variable| {
        let equals = variable.iter().position(|b| *b == b'=')?;
        let (name, value) = variable.split_at(equals);
        let counts = [&b"GIT_DIR"[..], b"GIT_INDEX_FILE", b"GIT_WORK_TREE"].contains(&name);
        counts.then_some(&value[1..])
    });
    if values.into_iter().any(named) {
        return Ok(true);
    }
    let words = fs::read(process.join("cmdline"))?;
    Ok(words.split(|b| *b == 0).any(|word| {
        let value = word
            .iter()
            .position(|b| *b == b'=')
            .map(|at| &word[at + 1..]);
        [Some(word), value]
            .into_iter()
            .flatten()
            .any(|path| path.contains(&b'/') && named(path))
    }))
}
