//! A user at a terminal: a scratch directory, a store in it, and the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A scratch directory with a store.
pub struct Terminal {
    dir: TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// The only object printed.
    #[track_caller]
    pub fn object(&self) -> Value {
        let objects = self.objects();
        assert_eq!(objects.len(), 1, "{self:?}");
        objects.into_iter().next().expect("there is one")
    }

    /// Every object printed, one a line.
    #[track_caller]
    pub fn objects(&self) -> Vec<Value> {
        assert_eq!(self.err, "", "nothing goes to standard error with --json");
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// The same, once it is sure that it ended so.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }
}

impl Terminal {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory can be made"),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.file("store")
    }

    /// The program with these arguments: on this store, for `tester`, and with nothing of the environment that the
    /// tests run in.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command
            .args(args)
            .current_dir(self.path())
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("TENURE_") || text.starts_with("XDG_") {
                command.env_remove(&name);
            }
        }
        command
            .env("HOME", self.path())
            .env("TENURE_STORE", self.store())
            .env("TENURE_ACTOR", "tester")
            .env("TMPDIR", self.path());
        command
    }

    pub fn finish(command: &mut Command) -> Ran {
        let output = command.output().expect("the program runs");
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Runs a command line, its words separated by spaces.
    pub fn run(&self, line: &str) -> Ran {
        self.args(&line.split(' ').collect::<Vec<_>>())
    }

    pub fn args(&self, args: &[&str]) -> Ran {
        Self::finish(&mut self.command(args))
    }

    /// Runs a command line that has to end well, with --json, and gives its only object.
    #[track_caller]
    pub fn json(&self, line: &str) -> Value {
        let ran = self.run(&format!("--json {line}"));
        assert_eq!(ran.code, 0, "{line}: {}", ran.out);
        ran.object()
    }

    /// As [`Terminal::json`], for lists.
    #[track_caller]
    pub fn list(&self, line: &str) -> Vec<Value> {
        let ran = self.run(&format!("--json {line}"));
        assert_eq!(ran.code, 0, "{line}: {}", ran.out);
        ran.objects()
    }

    /// Runs command lines that all have to end well.
    #[track_caller]
    pub fn play(&self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let ran = self.run(line);
            assert_eq!(ran.code, 0, "{line}: {}{}", ran.out, ran.err);
        }
    }
}
