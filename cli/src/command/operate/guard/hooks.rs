//! The hook files of a repository: where git looks for them, what stands there, and how ours gets in and out.
//!
//! | where git looks | what stands there | in | out |
//! |---|---|---|---|
//! | the repository's own directory | nothing, or ours alone | our file | removed |
//! | | a script of a POSIX shell | our block behind its first line | the block is taken out |
//! | | any other program, or a link | renamed to `NAME.tenure-kept`, our file runs it afterwards | gets its name back |
//! | elsewhere (`core.hooksPath`) | anything | a directory of ours, whose hooks hand on to where git looked before | the setting as it was, the directory removed |

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tenure_projection::guards::GitRepository;

use crate::fault::{Fault, Stop};

use super::block::{self, Guarded, OURS, Settings};
use super::git::{self, Setting};

/// The directory of ours in a git directory.
const DIRECTORY: &str = "tenure-hooks";
/// In it, what `core.hooksPath` was: its scope, its value as it was written, and as git took it, each ended by a zero
/// byte.
const FORMER: &str = "former";
/// Behind the name of a hook that was there before.
const KEPT: &str = ".tenure-kept";

/// Hooks that may be there later, and that git does not treat otherwise for being there.
const HANDED_ON: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Where git looks for the hooks of a checkout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The checkout.
    pub top: PathBuf,
    /// The directory.
    pub directory: PathBuf,
    /// How it comes to look there.
    pub how: How,
}

/// How git comes to look there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// It is the repository's own directory.
    Own,
    /// `core.hooksPath` says so; ours would be this directory.
    Elsewhere {
        /// The setting.
        setting: Setting,
        /// The directory that ours would be.
        ours: PathBuf,
    },
    /// `core.hooksPath` names the directory of ours already, and was this before.
    Ours {
        /// The setting as it was.
        former: Setting,
    },
}

impl Place {
    /// Where git looks for the hooks of the checkout `top`, whose git directory is `git`.
    ///
    /// # Errors
    /// When git fails, or a directory cannot be looked at.
    pub fn of(repository: &GitRepository, top: &Path, git_dir: &Path) -> Result<Self, Stop> {
        let directory = git::hooks_directory(top)?;
        let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => a == b,
        };
        let how = match git::hooks_path(top)? {
            Some(setting) if !same(&directory, &repository.common.join("hooks")) => {
                let ours = match setting.scope.as_str() {
                    "worktree" => git_dir.join(DIRECTORY),
                    _ => repository.common.join(DIRECTORY),
                };
                if same(&directory, &ours) {
                    How::Ours {
                        former: former(&ours)?,
                    }
                } else {
                    How::Elsewhere { setting, ours }
                }
            }
            _ => How::Own,
        };
        Ok(Self {
            top: top.to_owned(),
            directory,
            how,
        })
    }

    /// The file of a hook.
    #[must_use]
    pub fn file(&self, hook: Guarded) -> PathBuf {
        self.directory.join(hook.name())
    }

    /// Puts our hooks in. Gives the files that they are in now.
    ///
    /// # Errors
    /// When a file cannot be written or git fails.
    pub fn install(&self, settings: &Settings) -> Result<Vec<PathBuf>, Stop> {
        match &self.how {
            How::Own => {
                make_directory(&self.directory)?;
                Guarded::ALL
                    .into_iter()
                    .map(|hook| put(&self.file(hook), hook, settings))
                    .collect()
            }
            How::Elsewhere { setting, ours } => {
                hand_on(ours, setting, &self.top, settings)?;
                git::set_hooks_path(&self.top, &setting.scope, Some(ours.as_os_str()))?;
                Ok(Guarded::ALL.map(|hook| ours.join(hook.name())).to_vec())
            }
            How::Ours { former } => {
                hand_on(&self.directory, former, &self.top, settings)?;
                Ok(Guarded::ALL.map(|hook| self.file(hook)).to_vec())
            }
        }
    }

    /// Takes them out. Gives the files that were changed.
    ///
    /// # Errors
    /// When a file cannot be written or git fails.
    pub fn uninstall(&self) -> Result<Vec<PathBuf>, Stop> {
        match &self.how {
            How::Own => {
                let mut changed = Vec::new();
                for hook in Guarded::ALL {
                    let file = self.file(hook);
                    if take_out(&file)? {
                        changed.push(file);
                    }
                }
                Ok(changed)
            }
            How::Elsewhere { .. } => Ok(Vec::new()),
            How::Ours { former } => {
                // What came from a wider scope applies again once ours is gone.
                let own = matches!(former.scope.as_str(), "local" | "worktree");
                let value = own.then_some(former.value.as_os_str());
                git::set_hooks_path(&self.top, &former.scope, value)?;
                let failed = |source| Fault::file("remove", &self.directory, source);
                fs::remove_dir_all(&self.directory).map_err(failed)?;
                Ok(vec![self.directory.clone()])
            }
        }
    }
}

fn make_directory(path: &Path) -> Result<(), Stop> {
    fs::create_dir_all(path).map_err(|source| Fault::file("create", path, source).into())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Stop> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Fault::file("read", path, source).into()),
    }
}

/// Writes a hook as a whole, with the mode given: git may look at any moment.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Stop> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".tenure-{}", std::process::id()));
    let beside = path.with_file_name(name);
    let failed = |source| Stop::from(Fault::file("replace", path, source));
    fs::write(&beside, bytes).map_err(failed)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(mode)).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}

fn kept(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(KEPT);
    path.with_file_name(name)
}

/// Our file, which runs what was there before.
fn alone(hook: Guarded, settings: &Settings) -> Vec<u8> {
    let rest = format!(
        "tenure_kept=\"${{0%/*}}/{}{KEPT}\"\nif [ -x \"$tenure_kept\" ]; then exec \"$tenure_kept\" \"$@\"; fi\nexit 0\n",
        hook.name()
    );
    [
        format!("#!/bin/sh\n{OURS}\n").as_bytes(),
        &block::text(hook, settings),
        rest.as_bytes(),
    ]
    .concat()
}

fn is_ours(script: &[u8]) -> bool {
    script.split(|b| *b == b'\n').nth(1) == Some(OURS.as_bytes())
}

/// Whether a shell that understands our block runs the script.
fn is_shell(script: &[u8]) -> bool {
    let first = script.split(|b| *b == b'\n').next().unwrap_or_default();
    let Some(line) = first.strip_prefix(b"#!") else {
        return false;
    };
    let words = line
        .split(|b| b.is_ascii_whitespace())
        .filter(|w| !w.is_empty());
    let shells: [&[u8]; 5] = [b"sh", b"bash", b"dash", b"ksh", b"zsh"];
    let name = |word: &[u8]| {
        word.rsplit(|b| *b == b'/')
            .next()
            .unwrap_or_default()
            .to_vec()
    };
    let named: Vec<Vec<u8>> = words.map(name).filter(|w| !w.starts_with(b"-")).collect();
    match named.as_slice() {
        [env, shell, ..] if env == b"env" => shells.contains(&shell.as_slice()),
        [shell, ..] => shells.contains(&shell.as_slice()),
        [] => false,
    }
}

/// Puts our hook where `path` is.
fn put(path: &Path, hook: Guarded, settings: &Settings) -> Result<PathBuf, Stop> {
    let link = path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    let there = if link { None } else { read(path)? };
    let (bytes, mode) = match there {
        Some(script) if is_ours(&script) => (alone(hook, settings), 0o755),
        Some(script) if block::find(&script).is_some() || is_shell(&script) => (
            insert(&script, &block::text(hook, settings)),
            mode_of(path)?,
        ),
        _ => {
            if link || there.is_some() {
                let aside = kept(path);
                if aside.symlink_metadata().is_ok() {
                    let message =
                        format!("{} is in the way; look at it and move it", aside.display());
                    return Err(Fault::new(crate::exit::Cause::CannotCreate, message).into());
                }
                fs::rename(path, &aside).map_err(|e| Fault::file("replace", path, e))?;
            }
            (alone(hook, settings), 0o755)
        }
    };
    replace(path, &bytes, mode)?;
    Ok(path.to_owned())
}

/// The mode of a script that stays itself. One that git passed over would be passed over with our block in it, so
/// whoever could read it can run it now.
fn mode_of(path: &Path) -> Result<u32, Stop> {
    let meta = fs::metadata(path).map_err(|e| Fault::file("read", path, e))?;
    let mode = meta.permissions().mode() & 0o7777;
    Ok(mode | (mode & 0o444) >> 2)
}

/// The script with our block behind its first line, and without any block that was in it.
fn insert(script: &[u8], text: &[u8]) -> Vec<u8> {
    let rest = without_block(script);
    let first = rest
        .iter()
        .position(|b| *b == b'\n')
        .map_or(rest.len(), |at| at + 1);
    let mut whole = rest[..first].to_vec();
    if whole.last() != Some(&b'\n') {
        whole.push(b'\n');
    }
    whole.extend_from_slice(text);
    whole.extend_from_slice(&rest[first..]);
    whole
}

fn without_block(script: &[u8]) -> Vec<u8> {
    match block::find(script) {
        Some(range) => [&script[..range.start], &script[range.end..]].concat(),
        None => script.to_vec(),
    }
}

/// Takes our hook out of where `path` is; whether there was anything of ours.
fn take_out(path: &Path) -> Result<bool, Stop> {
    let Some(script) = read(path)? else {
        return Ok(false);
    };
    let failed = |source| Stop::from(Fault::file("replace", path, source));
    if is_ours(&script) {
        let aside = kept(path);
        match fs::rename(&aside, path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::remove_file(path).map_err(failed)?;
            }
            Err(source) => return Err(failed(source)),
        }
        return Ok(true);
    }
    if block::find(&script).is_none() {
        return Ok(false);
    }
    replace(path, &without_block(&script), mode_of(path)?)?;
    Ok(true)
}

/// Writes the directory of ours, whose hooks hand on to where git looked before.
fn hand_on(ours: &Path, former: &Setting, top: &Path, settings: &Settings) -> Result<(), Stop> {
    make_directory(ours)?;
    let parts = [
        former.scope.as_bytes(),
        former.value.as_bytes(),
        former.path.as_os_str().as_bytes(),
    ];
    replace(
        &ours.join(FORMER),
        &[&parts.join(&0)[..], &[0]].concat(),
        0o644,
    )?;
    let mut names: Vec<String> = HANDED_ON.iter().map(|name| (*name).to_owned()).collect();
    // What git treats otherwise for being there is handed on only where it is.
    if let Ok(entries) = fs::read_dir(top.join(&former.path)) {
        let there = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        names.extend(there.filter(|name| is_hook(name)));
    }
    names.sort();
    names.dedup();
    for name in names {
        let mut script = format!("#!/bin/sh\n{OURS}\n").into_bytes();
        if let Some(hook) = Guarded::of(&name) {
            script.extend_from_slice(&block::text(hook, settings));
        }
        // What is relative begins where a hook runs, which is where git begins too.
        script.extend_from_slice(b"tenure_former=");
        script.extend_from_slice(&block::quoted(former.path.as_os_str()));
        let rest = format!(
            "\nif [ -x \"$tenure_former/{name}\" ]; then exec \"$tenure_former/{name}\" \"$@\"; fi\nexit 0\n"
        );
        script.extend_from_slice(rest.as_bytes());
        replace(&ours.join(name), &script, 0o755)?;
    }
    Ok(())
}

/// Names of hooks that git treats otherwise for being there.
fn is_hook(name: &str) -> bool {
    matches!(
        name,
        "push-to-checkout" | "proc-receive" | "fsmonitor-watchman"
    ) || name.starts_with("p4-")
}

fn former(ours: &Path) -> Result<Setting, Stop> {
    let path = ours.join(FORMER);
    let note = read(&path)?.unwrap_or_default();
    let parts: Vec<&[u8]> = note.split(|b| *b == 0).collect();
    let [scope, value, taken, []] = parts[..] else {
        let message = format!("{} does not say what core.hooksPath was", path.display());
        return Err(Fault::new(crate::exit::Cause::Configuration, message).into());
    };
    Ok(Setting {
        scope: String::from_utf8_lossy(scope).into_owned(),
        value: OsString::from_vec(value.to_vec()),
        path: OsString::from_vec(taken.to_vec()).into(),
    })
}
