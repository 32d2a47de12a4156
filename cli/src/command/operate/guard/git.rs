//! Asking git. Looking never refreshes an index and takes no lock (`GIT_OPTIONAL_LOCKS=0`, D09).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_projection::guards::Staged;

use crate::exit::Cause;
use crate::fault::{Fault, Stop};

/// A setting as git has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// system, global, local, worktree or command.
    pub scope: String,
    /// As it is written.
    pub value: OsString,
    /// As git takes it; a relative one begins where a hook runs.
    pub path: PathBuf,
}

/// Git in a directory.
fn git(at: &Path, words: &[&OsStr]) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(at)
        .args(words)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null());
    command
}

/// Git in a directory, whatever repository the environment names.
fn elsewhere(at: &Path, words: &[&OsStr]) -> Command {
    let mut command = git(at, words);
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
    ] {
        command.env_remove(name);
    }
    command
}

/// What a command prints, without the end of its line; `None` when it says no (exit 1, nothing on standard error).
fn ask(mut command: Command) -> Result<Option<Vec<u8>>, Stop> {
    let output = command
        .output()
        .map_err(|error| Fault::new(Cause::Io, format!("git cannot be run: {error}")))?;
    if output.status.success() {
        let mut text = output.stdout;
        if text.last() == Some(&b'\n') {
            text.pop();
        }
        return Ok(Some(text));
    }
    if output.status.code() == Some(1) && output.stderr.is_empty() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it said nothing");
    Err(Fault::new(Cause::Io, format!("git failed: {said}")).into())
}

/// Where git looks for hooks when it works in the checkout `top`.
///
/// # Errors
/// When git fails.
pub fn hooks_directory(top: &Path) -> Result<PathBuf, Stop> {
    let words = ["rev-parse", "--git-path", "hooks"].map(OsStr::new);
    let path = ask(elsewhere(top, &words))?.unwrap_or_default();
    Ok(top.join(OsStr::from_bytes(&path)))
}

/// `core.hooksPath` as it applies in the checkout `top`; `None` where it is not set.
///
/// # Errors
/// When git fails.
pub fn hooks_path(top: &Path) -> Result<Option<Setting>, Stop> {
    let words = ["config", "--show-scope", "-z", "--get", "core.hooksPath"].map(OsStr::new);
    let Some(text) = ask(elsewhere(top, &words))? else {
        return Ok(None);
    };
    let mut parts = text.split(|b| *b == 0);
    let scope = parts.next().unwrap_or_default();
    let value = parts.next().unwrap_or_default();
    let words = ["config", "--type=path", "--get", "core.hooksPath"].map(OsStr::new);
    let path = ask(elsewhere(top, &words))?.unwrap_or_default();
    Ok(Some(Setting {
        scope: String::from_utf8_lossy(scope).into_owned(),
        value: OsString::from_vec(value.to_vec()),
        path: OsString::from_vec(path).into(),
    }))
}

/// Sets `core.hooksPath` for the repository, or for this worktree alone; `None` takes the setting away.
///
/// # Errors
/// When git fails.
pub fn set_hooks_path(top: &Path, scope: &str, value: Option<&OsStr>) -> Result<(), Stop> {
    let level = OsStr::new(if scope == "worktree" {
        "--worktree"
    } else {
        "--local"
    });
    let key = OsStr::new("core.hooksPath");
    let config = OsStr::new("config");
    let asked = match value {
        Some(value) => ask(elsewhere(top, &[config, level, key, value])),
        None => ask(elsewhere(top, &[config, level, OsStr::new("--unset"), key])),
    };
    asked.map(|_| ())
}

/// The paths that differ from what is committed, and those that git does not know, from the top of the checkout.
///
/// # Errors
/// When git fails.
pub fn changed(top: &Path) -> Result<Vec<Vec<u8>>, Stop> {
    let words = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
    ];
    let text = ask(elsewhere(top, &words.map(OsStr::new)))?.unwrap_or_default();
    let lines = text.split(|b| *b == 0).filter_map(|line| line.get(3..));
    Ok(lines.map(<[u8]>::to_vec).collect())
}

/// The paths that the commit being made would change, in the checkout that the environment names: git tells its hooks
/// which index is committed.
///
/// # Errors
/// When git fails.
pub fn staged(top: &Path) -> Result<Vec<Staged>, Stop> {
    let words = [
        "diff",
        "--cached",
        "--no-renames",
        "--no-ext-diff",
        "--name-status",
        "-z",
    ];
    let text = ask(git(top, &words.map(OsStr::new)))?.unwrap_or_default();
    let mut fields = text.split(|b| *b == 0);
    let mut staged = Vec::new();
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        if !path.is_empty() {
            staged.push(Staged {
                path: path.to_vec(),
                deleted: status.first() == Some(&b'D'),
            });
        }
    }
    Ok(staged)
}
