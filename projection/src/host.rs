//! The only clock and process probe in the libraries: who and where this process is, what a grant records of a
//! holder, and what the kernel says of that holder later.
//!
//! The probe looks and the core judges ([`judge`](tenure_core::holder::judge)). Nothing here decides anything:
//! where the system does not answer, the field stays `None` or the answer [`Answer::Failed`], and the verdict
//! becomes unknowable. Linux is probed; elsewhere every question about a process is answered that way.
//!
//! | recorded | why it belongs together |
//! |---|---|
//! | pid and pid namespace | the pid as the recorder sees it, in the recorder's namespace: a number from one namespace under the inode of another would prove a death that never happened |
//! | start time and time namespace | the kernel shifts the start time by the offsets of the reader's time namespace, whatever namespace the process is in, so the reader's is recorded |
//! | pidfd inode | unique for one boot where pidfds live in pidfs (Linux 6.9 and later); elsewhere all pidfds share one inode, and none is recorded |

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tenure_core::holder::{Answer, Bearing, BootId, HostId, Process, Sighting, Source};
use tenure_core::id::Time;
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;

use crate::zoo::planted;

mod kept;
mod openers;
mod pinned;
mod procfs;
#[cfg(any(test, feature = "testkit"))]
mod scripted;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
use elsewhere as kernel;
#[cfg(target_os = "linux")]
use linux as kernel;

#[cfg(any(test, feature = "testkit"))]
pub use scripted::Scripted;

pub use openers::{Hold, Opener, Openers, Wanted, openers};
pub use pinned::Pinned;

use kept::Kept;

/// The machine, as far as authority cares: a clock that informs, and evidence about processes.
pub trait Host: Send + Sync + fmt::Debug {
    /// The wall clock. It informs people and decides nothing (LIV-11, C16).
    fn now(&self) -> Time;

    /// Who asks.
    fn this(&self) -> This;

    /// What a grant records of the chosen process (REG-16, LIV-1).
    ///
    /// [`ProcessChoice::Parent`] records no process where no parent is visible: the first process of a
    /// container has none.
    ///
    /// # Errors
    /// [`HostError`] when a process that was named does not exist or is none.
    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError>;

    /// What can be seen of a recorded holder. A record of another host, boot or pid namespace is never
    /// tested against the processes here (C08, C11).
    fn sight(&self, record: &Bearing) -> Sighting;

    /// Keeps this boot in the list that later proves it past. Called when something is recorded; looks at a small file
    /// at the first call.
    ///
    /// # Errors
    /// [`HostError`] when it cannot be kept. Records of this boot will then be unknowable after the next
    /// one, which is safe.
    fn remember_boot(&self) -> Result<(), HostError>;
}

/// Who asks: this host, boot and process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct This {
    /// The host.
    pub id: HostId,
    /// Its name, for people; no identity (C07). Shared, since every call asks.
    pub name: Arc<str>,
    /// Its boot, where the system tells one.
    pub boot: Option<BootId>,
    /// The effective user id.
    pub uid: u32,
    /// The process id.
    pub pid: u32,
}

/// A process above this one, as it calls itself: a hint who it is, and proof of nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ancestor {
    /// Its number in this pid namespace.
    pub pid: u32,
    /// The name of its program, cut as the kernel cuts it; empty where the system does not tell.
    pub name: Vec<u8>,
    /// Its arguments, the program's own name first; one that is empty where the system does not tell.
    pub arguments: Vec<Vec<u8>>,
}

/// The processes above this one, the parent first. Ends where the system shows no more of them.
pub fn ancestors() -> impl Iterator<Item = Ancestor> {
    kernel::ancestors()
}

/// Which process a grant is made to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessChoice {
    /// None: the verdict will be unknowable.
    None,
    /// The parent of this process, because nothing was said. It can prove life, never death.
    Parent,
    /// This process.
    Itself,
    /// The process with this number in the caller's pid namespace (LIV-17).
    Pid(u32),
}

/// Why the host cannot record something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The number is outside the range of process ids.
    #[error("{pid} is no process id: a whole number from 1 to {}", i32::MAX)]
    NoProcessId {
        /// What was offered.
        pid: u32,
    },
    /// Nothing has the number, or what had it has exited.
    #[error("no process has the id {pid}")]
    NoSuchProcess {
        /// What was offered.
        pid: u32,
    },
    /// The number is that of a thread.
    #[error("{pid} is the id of a thread; name the process it belongs to")]
    Thread {
        /// What was offered.
        pid: u32,
    },
    /// There is no directory for the state of this user.
    #[error("no state directory: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoStateDirectory,
    /// The system tells no boot id.
    #[error("this system tells no boot id")]
    NoBoot,
    /// The directory is on a file system that other machines may write too.
    #[error("the state directory {path:?} is on {kind}, which may be shared between machines")]
    Shared {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: String,
    },
    /// The directory cannot be used.
    #[error("cannot use the state directory {path:?}")]
    State {
        /// The directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// The real machine.
#[derive(Debug)]
pub struct System {
    id: HostId,
    name: Arc<str>,
    boot: Option<BootId>,
    kept: Option<Kept>,
    known: kernel::Known,
}

impl System {
    /// The machine, with what it has to remember kept in `state_dir`/`tenure-host` (mode 0700).
    ///
    /// Writes there only on a machine without a machine id, and then a random one. Without either, the host
    /// is identified by its boot: every later boot is another host, and its records unknowable.
    #[must_use]
    pub fn new(state_dir: &Path) -> Self {
        Self::with(Some(Kept::new(state_dir)))
    }

    /// The machine, with the state directory of this user: `$XDG_STATE_HOME`, else `~/.local/state`. Without
    /// one, nothing is remembered.
    #[must_use]
    pub fn of_this_user() -> Self {
        Self::with(state_directory().as_deref().map(Kept::new))
    }

    fn with(kept: Option<Kept>) -> Self {
        let boot = Disk.boot().ok().map(|boot| BootId(boot.0));
        let id = kept::machine_identity(&machine_id())
            .or_else(|| kept.as_ref()?.identity().ok())
            .unwrap_or_else(|| kept::boot_identity(boot));
        Self {
            id,
            name: kernel::host_name().into(),
            boot,
            kept,
            known: kernel::Known::default(),
        }
    }

    fn process(&self, choice: ProcessChoice) -> Result<Option<(Process, u32)>, HostError> {
        match choice {
            ProcessChoice::None => Ok(None),
            ProcessChoice::Itself => self.recorded(std::process::id(), Source::Declared),
            ProcessChoice::Pid(pid) => self.recorded(pid, Source::Declared),
            ProcessChoice::Parent => match kernel::parent() {
                None => Ok(None),
                Some(pid) => match self.recorded(pid, Source::Default) {
                    // It has just ended, and whoever adopted this process is not what was meant.
                    Err(HostError::NoSuchProcess { .. }) => Ok(None),
                    answer => answer,
                },
            },
        }
    }

    fn recorded(&self, pid: u32, source: Source) -> Result<Option<(Process, u32)>, HostError> {
        kernel::record(&self.known, pid, source).map(Some)
    }

    fn answer(
        &self,
        record: &Bearing,
        pidns: Option<u64>,
        ourselves: Option<kernel::Ourselves>,
    ) -> Answer {
        match record.process {
            Some(process)
                if record.host == self.id
                    && record.boot == self.boot
                    && process.pidns.is_some()
                    && process.pidns == pidns =>
            {
                if planted("wall-clock-lease") && self.now().0 > record.recorded.0 + 3_600_000_000 {
                    return Answer::NoSuchProcess;
                }
                kernel::answer(ourselves, process.pid)
            }
            // The judge does not look at it.
            _ => Answer::Failed,
        }
    }
}

impl Host for System {
    fn now(&self) -> Time {
        let micros = |d: std::time::Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
        Time(match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(before) => micros(before.duration()).saturating_neg(),
        })
    }

    fn this(&self) -> This {
        This {
            id: self.id,
            name: self.name.clone(),
            boot: self.boot,
            uid: rustix::process::geteuid().as_raw(),
            pid: std::process::id(),
        }
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        let recorded = self.process(choice)?;
        Ok(Bearing {
            host: self.id,
            boot: self.boot,
            process: recorded.map(|(process, _)| process),
            uid: recorded.map_or_else(|| rustix::process::geteuid().as_raw(), |(_, uid)| uid),
            recorded: self.now(),
        })
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        let ourselves = self.known.ourselves();
        let (pidns, timens) = match ourselves {
            Some(known) => known.namespaces(),
            None => (kernel::pid_namespace(), kernel::time_namespace()),
        };
        let listed = |boot| {
            Some(boot) != self.boot
                && self
                    .kept
                    .as_ref()
                    .is_some_and(|kept| kept.is_past(boot, self.boot))
        };
        Sighting {
            host: self.id,
            boot: self.boot,
            boot_listed: record.host == self.id && record.boot.is_some_and(listed),
            pidns,
            timens,
            answer: self.answer(record, pidns, ourselves),
        }
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        let kept = self.kept.as_ref().ok_or(HostError::NoStateDirectory)?;
        kept.remember(self.boot.ok_or(HostError::NoBoot)?)
    }
}

/// The directory for state of this user: `$XDG_STATE_HOME`, else `~/.local/state`; relative ones do not count.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))
}

/// The text of the machine's id; empty where there is none. A machine is not another one because a read failed for a
/// moment: a store made meanwhile would be another machine's for ever.
fn machine_id() -> Vec<u8> {
    const TRIES: usize = 3;
    for _ in 0..TRIES {
        match std::fs::read("/etc/machine-id") {
            Ok(text) => return text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
            Err(_) => {}
        }
    }
    Vec::new()
}
