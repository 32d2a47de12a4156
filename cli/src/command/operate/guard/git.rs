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
    Ok(by_status(&text))
}

/// Commits of branches that are shown of what a move loses.
const DROPPED_MAX: &str = "--max-count=1000";

/// The paths that commits change which no branch has any more once these branches moved: their names, and what they
/// move to (zeros: they go).
///
/// # Errors
/// When git fails.
pub fn dropped(top: &Path, branches: &[(&[u8], &[u8])]) -> Result<Vec<Staged>, Stop> {
    let fixed = [
        // Whoever shows signatures shows them elsewhere.
        "-c",
        "log.showSignature=false",
        "log",
        "--ignore-missing",
        "--format=",
        "--name-status",
        "--no-renames",
        "--no-ext-diff",
        "-z",
        DROPPED_MAX,
    ];
    let word = |parts: &[&[u8]]| OsString::from_vec(parts.concat());
    let mut words: Vec<OsString> = fixed.iter().map(OsString::from).collect();
    // A branch that is made is not there yet, and what is missing is ignored.
    words.extend(
        branches
            .iter()
            .map(|(name, _)| word(&[b"refs/heads/", name])),
    );
    words.push("--not".into());
    let moved = branches
        .iter()
        .filter(|(_, new)| new.iter().any(|b| *b != b'0'));
    words.extend(moved.map(|(_, new)| word(&[new])));
    words.extend(
        branches
            .iter()
            .map(|(name, _)| word(&[b"--exclude=", name])),
    );
    words.push("--branches".into());
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let text = ask(git(top, &words))?.unwrap_or_default();
    let mut lost = by_status(&text);
    lost.sort();
    lost.dedup();
    Ok(lost)
}

/// Status and path, each ended by a zero byte, as `-z --name-status` prints them.
fn by_status(text: &[u8]) -> Vec<Staged> {
    let mut fields = text.split(|b| *b == 0);
    let mut found = Vec::new();
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        if !path.is_empty() {
            found.push(Staged {
                path: path.to_vec(),
                deleted: status.first() == Some(&b'D'),
            });
        }
    }
    found
}

/// How many files below a directory are not committed: changed, staged, or new and not ignored.
///
/// # Errors
/// When git fails, also where there is no checkout.
pub fn uncommitted(at: &Path) -> Result<usize, Stop> {
    let words = [
        "status",
        "--porcelain",
        "--no-renames",
        "-z",
        "--untracked-files=all",
        "--",
        ".",
    ];
    let text = ask(elsewhere(at, &words.map(OsStr::new)))?.unwrap_or_default();
    Ok(text
        .split(|b| *b == 0)
        .filter(|line| !line.is_empty())
        .count())
}

/// How many commits of `HEAD` no branch, tag or remote has.
///
/// # Errors
/// When git fails.
pub fn on_no_branch(at: &Path) -> Result<usize, Stop> {
    let head = ["rev-parse", "--verify", "--quiet", "HEAD"].map(OsStr::new);
    if ask(elsewhere(at, &head))?.is_none() {
        // Nothing was committed yet.
        return Ok(0);
    }
    let words = [
        "rev-list",
        "--count",
        "HEAD",
        "--not",
        "--branches",
        "--tags",
        "--remotes",
    ];
    let text = ask(elsewhere(at, &words.map(OsStr::new)))?.unwrap_or_default();
    String::from_utf8_lossy(&text)
        .parse()
        .map_err(|_| Fault::new(Cause::Io, "git counted no commits".to_owned()).into())
}
