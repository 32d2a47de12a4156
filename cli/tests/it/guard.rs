//! guard: hooks in real repositories, asked by real git.

mod branches;
mod commit;
mod hooks;
mod locks;
mod refs;
mod removable;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::terminal::{Ran, Terminal};

/// A user with a repository `r`, in which `shared/a` and `own/b` are committed. `web` works on `shared`, by d1, and
/// `api` does not; both are held by this process.
pub struct Ground {
    pub user: Terminal,
}

impl Ground {
    pub fn new() -> Self {
        let ground = Self::bare();
        let us = std::process::id();
        ground.user.play(&format!(
            "register api --pid {us}
             register web --pid {us} --engine codex
             dispatch item --to web --write r/shared
             accept d1 --as web@1"
        ));
        ground
    }

    /// The same, with nobody in the store.
    pub fn bare() -> Self {
        let ground = Self {
            user: Terminal::new(),
        };
        fs::create_dir(ground.at("r")).expect("made");
        ground.git("init -q -b main");
        ground.write("shared/a", "1");
        ground.write("own/b", "1");
        ground.git("add .");
        ground.git("commit -qm first");
        ground
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.user.path().canonicalize().expect("there").join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.at("r").join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// Git in `r`, without anybody's settings.
    pub fn command(&self, line: &str) -> Command {
        self.command_in(&self.at("r"), line)
    }

    pub fn command_in(&self, dir: &Path, line: &str) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(line.split(' '))
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a path"))
            .env("HOME", self.user.path())
            .env("TENURE_ACTOR", "tester")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(std::process::Stdio::null());
        command
    }

    pub fn try_git(&self, line: &str) -> Ran {
        Terminal::finish(&mut self.command(line))
    }

    #[track_caller]
    pub fn git(&self, line: &str) -> String {
        self.try_git(line).ended(0).out
    }

    /// Git under a token.
    pub fn under(&self, token: &str, line: &str) -> Ran {
        Terminal::finish(self.command(line).env("TENURE_TOKEN", token))
    }

    /// The program in `r`.
    pub fn tenure(&self, line: &str) -> Ran {
        let words: Vec<&str> = line.split(' ').collect();
        Terminal::finish(self.user.command(&words).current_dir(self.at("r")))
    }

    pub fn head(&self) -> String {
        self.git("rev-parse HEAD")
    }

    /// Every file below a directory with its content and whether it may be run; links are not followed.
    pub fn tree(&self, path: &str) -> Vec<(PathBuf, Vec<u8>, bool)> {
        use std::os::unix::fs::PermissionsExt;
        let mut files = Vec::new();
        let mut ahead = vec![self.at(path)];
        while let Some(next) = ahead.pop() {
            let meta = next.symlink_metadata().expect("there");
            if meta.is_dir() {
                ahead.extend(
                    fs::read_dir(&next)
                        .expect("listed")
                        .map(|e| e.expect("one").path()),
                );
            } else if meta.is_symlink() {
                let target = fs::read_link(&next).expect("a link");
                files.push((
                    next,
                    target.to_string_lossy().into_owned().into_bytes(),
                    false,
                ));
            } else {
                let runs = meta.permissions().mode() & 0o111 != 0;
                files.push((next.clone(), fs::read(&next).expect("read"), runs));
            }
        }
        files.sort();
        files
    }

    pub fn script(&self, path: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.at("r").join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
    }
}
