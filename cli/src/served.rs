//! A served store: one process keeps it open and carries out the commands of others, who ask over a socket in the store's
//! directory. `docs/served.md` has the protocol.
//!
//! Whoever asks gets what it would have printed itself: the command runs in the server as it runs everywhere, with the
//! working directory, the input and the token of the process that asked, and what it prints goes back.

mod caller;
mod client;
mod http;
mod server;
mod wire;

#[cfg(feature = "mcp")]
pub use caller::{Caller, on_behalf};
pub use caller::{host_process, input, is_for_another, place, settle, variable};
pub use client::{Hooked, ask, relay};
pub use http::Web;
#[cfg(feature = "mcp")]
pub use server::parsed;
pub use server::serve;

use std::fs::{self, DirBuilder, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::app::Command;
use crate::exit::Cause;
use crate::fault::{Fault, Stop};

/// The longest path of a socket that every system takes, in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// What a server does with a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Service {
    /// Carries the change out. Whoever hears no answer does not know whether it happened.
    Change,
    /// Answers the question. Whoever hears no answer asks the files.
    Look,
    /// The same, of a question about files or processes of this machine: not over HTTP.
    LookHere,
    /// Answers it to askers that are not this program, which reads the log itself where much of it is read.
    LookLong,
}

impl Service {
    /// `None`: the command is not served.
    fn of(command: &Command) -> Option<Self> {
        let look = |here| if here { Self::LookHere } else { Self::Look };
        Some(match command {
            Command::Adopt(args) if args.is_of_one() => Self::Change,
            Command::Register(_)
            | Command::Retire(_)
            | Command::Dispatch(_)
            | Command::Accept(_)
            | Command::Decline(_)
            | Command::Report(_)
            | Command::Cancel(_)
            | Command::Fail(_)
            | Command::Handoff(_)
            | Command::Note(_)
            | Command::Observe(_)
            | Command::Send(_)
            | Command::Deliver(_)
            | Command::Ack(_)
            | Command::Record(_)
            | Command::Branch(_)
            | Command::Revert(_)
            | Command::Rename(_)
            | Command::Release(_) => Self::Change,
            Command::Status(args) => look(args.is_here()),
            Command::Check(args) => look(args.is_of_paths()),
            Command::Who(args) => look(args.is_of_path()),
            Command::Shared(_) | Command::Hook(_) => Self::LookHere,
            Command::Sessions(_)
            | Command::Show(_)
            | Command::Work(_)
            | Command::Inbox(_)
            | Command::Tree(_)
            | Command::Lineage(_)
            | Command::Why(_)
            | Command::Outcome(_)
            | Command::Receipt(_) => Self::Look,
            Command::Refusals(args) if args.only_lists() => Self::Look,
            Command::History(_) => Self::LookLong,
            _ => return None,
        })
    }
}

/// The directory of a store's socket: nobody but its user may look into it.
struct Door {
    dir: PathBuf,
    /// Kept open while a path below it is in use.
    opened: File,
}

impl Door {
    /// Finds it, and makes it where `make` says so; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be made or opened, or is not this user's alone.
    fn of(store: &Path, make: bool) -> Result<Option<Self>, Stop> {
        let dir = store.join("serve");
        if make {
            let made = DirBuilder::new().mode(0o700).create(&dir);
            if let Err(error) = made.or_else(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            }) {
                return Err(Fault::file("create", &dir, error).into());
            }
        }
        let Ok(meta) = fs::symlink_metadata(&dir) else {
            return Ok(None);
        };
        let own = meta.uid() == rustix::process::geteuid().as_raw();
        if !meta.is_dir() || !own || meta.mode() & 0o077 != 0 {
            let message = format!(
                "{} is open to others: nothing is asked there",
                dir.display()
            );
            return Err(Fault::new(Cause::Permission, message).into());
        }
        let opened = File::open(&dir).map_err(|error| Fault::file("read", &dir, error))?;
        Ok(Some(Self { dir, opened }))
    }

    /// Where another file of the server is.
    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Where the socket is.
    fn socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    /// The path of the socket, short enough for the address of a socket.
    fn address(&self) -> PathBuf {
        let socket = self.socket();
        if socket.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return socket;
        }
        Path::new("/proc/self/fd")
            .join(self.opened.as_raw_fd().to_string())
            .join("socket")
    }
}

/// Whether the process at the other end of a socket is this user's.
fn is_own(credentials: &rustix::net::UCred) -> bool {
    credentials.uid == rustix::process::geteuid()
}
