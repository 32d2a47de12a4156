//! The gate: a process of this program that waits until it is the recorded holder, then becomes the command.
//!
//! It is started as `tenure ...gate PARENT FD -- CMD...` and reads a passport from the pipe its parent holds at
//! `/proc/PARENT/fd/FD`. Nothing is inherited for it, so nothing is left open in the command. A parent that ends
//! without opening the gate leaves it at the end of the pipe, and it ends too.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};

use tenure_projection::core::id::Token;

use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::output::escape;
use crate::private_file::PrivateFile;

/// The first argument that starts a gate. No command of the program can be called so.
const GATE: &str = "...gate";
/// A command that cannot be found, and one that cannot be run: what shells return.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// What the command finds in its environment.
pub struct Passport {
    /// The store's directory.
    pub store: PathBuf,
    /// The session's name.
    pub session: String,
    /// The generation granted.
    pub generation: String,
    /// Where the token is.
    pub token_file: PathBuf,
}

impl Passport {
    const NAMES: [&str; 4] = [
        "TENURE_STORE",
        "TENURE_SESSION",
        "TENURE_GENERATION",
        "TENURE_TOKEN_FILE",
    ];

    /// The values, each ended by a zero byte: no value can have one in it.
    fn bytes(&self) -> Vec<u8> {
        let values = [
            self.store.as_os_str().as_bytes(),
            self.session.as_bytes(),
            self.generation.as_bytes(),
            self.token_file.as_os_str().as_bytes(),
        ];
        values
            .iter()
            .flat_map(|v| v.iter().copied().chain([0]))
            .collect()
    }
}

/// A gate with a process behind it.
pub struct Gate {
    child: Child,
    reader: PipeReader,
    writer: PipeWriter,
}

impl Gate {
    /// Starts a process that will become `command`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &[OsString]) -> Result<Self, Stop> {
        let failed = |error: io::Error| {
            Fault::new(Cause::Io, format!("the command cannot be started: {error}"))
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let child = Command::new(program)
            .arg(GATE)
            .arg(std::process::id().to_string())
            .arg(reader.as_raw_fd().to_string())
            .arg("--")
            .args(command)
            .spawn()
            .map_err(failed)?;
        Ok(Self {
            child,
            reader,
            writer,
        })
    }

    /// The process behind it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it become the command. The pipe's other end has to be kept while it may still be on its way to the
    /// gate: it opens it through `/proc`, which may be long after everything was written.
    ///
    /// # Errors
    /// When it has ended.
    pub fn open(mut self, passport: &Passport) -> Result<(Child, PipeReader), Stop> {
        let written = self.writer.write_all(&passport.bytes());
        written.map_err(|error| {
            Fault::new(
                Cause::Io,
                format!("the command has ended before it began: {error}"),
            )
        })?;
        Ok((self.child, self.reader))
    }

    /// Lets it end.
    pub fn close(self) {
        let Self {
            mut child, writer, ..
        } = self;
        drop(writer);
        // It ends by itself at the end of the pipe; whether it can be waited for changes nothing.
        let _ = child.wait();
    }
}

/// A directory of this user alone for the token of one command, removed at its end.
pub struct Home {
    dir: PathBuf,
}

impl Home {
    /// Makes it, in `$XDG_RUNTIME_DIR` or the directory for temporary files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make() -> Result<Self, Stop> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let base = runtime
            .filter(|p| p.is_absolute() && p.is_dir())
            .unwrap_or_else(std::env::temp_dir);
        let mut attempt = 0;
        loop {
            let dir = base.join(format!("tenure-exec-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(Self { dir }),
                // Left by a process of the same number that was killed, or put there by somebody else.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {
                    attempt += 1
                }
                Err(error) => return Err(Fault::file("create", &dir, error).into()),
            }
        }
    }

    /// Where the token is.
    #[must_use]
    pub fn token_file(&self) -> PathBuf {
        self.dir.join("token")
    }

    /// Writes the token.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&mut self, token: &Token) -> Result<(), Stop> {
        PrivateFile::prepare(&self.token_file())?.commit(&token.reveal())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What cannot be removed is this user's own and holds a token that is of no use any more.
        let _ = fs::remove_file(self.token_file());
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The exit code of a command as shells give it: that of a command ended by signal N is 128 + N.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status
        .signal()
        .and_then(|n| u8::try_from(n).ok())
        .map(|n| 128_u8.wrapping_add(n));
    status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .or(signal)
        .unwrap_or(u8::MAX)
}

/// Waits at the gate if this process was started for that. Returns only when it was not, or when the command did
/// not run.
pub fn pass() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != OsStr::new(GATE) {
        return None;
    }
    let (parent, fd) = (args.next()?, args.next()?);
    let command: Vec<OsString> = args.skip(1).collect();
    Some(match wait(&parent, &fd) {
        Some(values) => become_command(&command, &values),
        None => ExitCode::from(Cause::Fault.exit().number()),
    })
}

fn wait(parent: &OsStr, fd: &OsStr) -> Option<Vec<OsString>> {
    if parent.to_str()?.parse() != Ok(parent_id()) {
        return None;
    }
    let mut bytes = Vec::new();
    let pipe = Path::new("/proc").join(parent).join("fd").join(fd);
    File::open(pipe).ok()?.read_to_end(&mut bytes).ok()?;
    let values = bytes
        .strip_suffix(&[0])?
        .split(|b| *b == 0)
        .map(|v| OsStr::from_bytes(v).to_owned());
    let values: Vec<OsString> = values.collect();
    (values.len() == Passport::NAMES.len()).then_some(values)
}

fn become_command(command: &[OsString], values: &[OsString]) -> ExitCode {
    let Some((program, args)) = command.split_first() else {
        return ExitCode::from(Cause::Usage.exit().number());
    };
    let error = Command::new(program)
        .args(args)
        .envs(Passport::NAMES.iter().zip(values))
        .env_remove("TENURE_TOKEN")
        .exec();
    let program = program.to_string_lossy();
    eprintln!("tenure: {} cannot be run: {error}", escape::line(&program));
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_RUN
    })
}
