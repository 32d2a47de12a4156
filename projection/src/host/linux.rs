//! Linux: pidfds, `kill`, and `/proc`.
//!
//! | `pidfd_open` | `kill(pid, 0)` | answer |
//! |---|---|---|
//! | ok | not asked | exists; no such process if the pidfd polls as exited |
//! | ESRCH | not asked | no such process |
//! | EINVAL, ENOENT | not asked | exists: the number is that of a thread, whose start time differs |
//! | anything else | ok | exists, its inode not known |
//! | anything else | ESRCH | no such process |
//! | anything else | EPERM | denied |
//! | anything else | anything else | failed |
//!
//! The second question is for kernels before 5.3, for sandboxes that answer "not permitted" to calls they do not
//! know, and for want of descriptors.
//!
//! A zombie has exited: it holds nothing and writes nothing, and only its parent's negligence keeps the number.
//! What tells is the pidfd, which polls as exited when the last thread has ended. State `Z` in `/proc` does not
//! tell: it is also that of a process whose first thread ended while others work.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use tenure_core::holder::{Answer, Process, Source};

use super::{Ancestor, HostError, procfs};

/// `PID_FS_MAGIC`: where pidfds have an inode of their own.
const PIDFS: u32 = 0x5049_4446;
/// Ancestors looked at; a longer chain is a loop of processes that end while we look.
const ANCESTORS_MAX: usize = 4096;

/// What has a pid.
#[derive(Debug)]
enum Standing<P> {
    /// A process, pinned by this.
    Pinned(P),
    /// A process that could not be pinned.
    Unpinned,
    /// A thread of a process with another number.
    Thread,
    /// Nothing.
    Gone,
    /// Something that denies the question.
    Denied,
    /// Cannot tell.
    Unsure,
}

/// The table above. The only place that reads an error as an answer (C14, C15).
fn standing<P>(
    opened: Result<P, Errno>,
    exited: impl FnOnce(&P) -> bool,
    kill: impl FnOnce() -> Result<(), Errno>,
) -> Standing<P> {
    match opened {
        Ok(pinned) if exited(&pinned) => Standing::Gone,
        Ok(pinned) => Standing::Pinned(pinned),
        Err(Errno::SRCH) => Standing::Gone,
        Err(Errno::INVAL | Errno::NOENT) => Standing::Thread,
        Err(_) => match kill() {
            Ok(()) => Standing::Unpinned,
            Err(Errno::SRCH) => Standing::Gone,
            Err(Errno::PERM) => Standing::Denied,
            Err(_) => Standing::Unsure,
        },
    }
}

fn look(pid: Pid) -> Standing<OwnedFd> {
    standing(pidfd_open(pid, PidfdFlags::empty()), has_exited, || {
        test_kill_process(pid)
    })
}

fn has_exited(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // No answer is no proof.
    poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::IN)
}

/// A number that the kernel could have given out.
fn process_id(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// By what it is told whether what was read of this process still holds: another number or namespace of processes is
/// that of a fork, the offsets of another namespace of times shift its start, another `/proc` may show others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    pid: u32,
    pidns: Option<u64>,
    timens: Option<u64>,
    proc_device: u64,
}

impl Place {
    /// None where there is no `/proc`.
    fn here() -> Option<Self> {
        Some(Self {
            pid: std::process::id(),
            pidns: pid_namespace(),
            timens: time_namespace(),
            proc_device: std::fs::metadata("/proc").ok()?.dev(),
        })
    }
}

/// What never changes of this process, in one place: read at its first grant, and not at every one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ourselves {
    place: Place,
    start: u64,
    pidfs: Option<u64>,
}

impl Ourselves {
    /// The namespaces of processes and of times.
    pub(super) fn namespaces(self) -> (Option<u64>, Option<u64>) {
        (self.place.pidns, self.place.timens)
    }
}

/// What is known of this process, once it was asked for.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<Ourselves>>);

impl Known {
    /// None where it cannot all be read; then it is read piece by piece, like anybody's.
    pub(super) fn ourselves(&self) -> Option<Ourselves> {
        let place = Place::here()?;
        // A lock that a thread held when this process forked is never given back.
        let known = self.0.try_lock().and_then(|known| *known);
        if let Some(known) = known.filter(|known| known.place == place) {
            return Some(known);
        }
        let Standing::Pinned(pidfd) = look(process_id(place.pid)?) else {
            return None;
        };
        let read = Ourselves {
            place,
            start: start(place.pid)?,
            pidfs: pidfs_inode(&pidfd),
        };
        if let Some(mut known) = self.0.try_lock() {
            *known = Some(read);
        }
        Some(read)
    }
}

/// What the kernel says of `pid` in our namespace.
pub(super) fn answer(ourselves: Option<Ourselves>, pid: u32) -> Answer {
    let Some(id) = process_id(pid) else {
        return Answer::Failed;
    };
    // Whoever asks has not exited.
    if let Some(known) = ourselves.filter(|known| known.place.pid == pid) {
        return Answer::Exists {
            start: Some(known.start),
            pidfs: known.pidfs,
        };
    }
    let standing = look(id);
    // Read after the descriptor was taken. Whatever has the number by now: a start time other than the
    // recorded one shows that the recorded process has lost it.
    let start = || start(pid);
    match standing {
        Standing::Pinned(pidfd) => Answer::Exists {
            start: start(),
            pidfs: pidfs_inode(&pidfd),
        },
        Standing::Unpinned | Standing::Thread => Answer::Exists {
            start: start(),
            pidfs: None,
        },
        Standing::Gone => Answer::NoSuchProcess,
        Standing::Denied => Answer::Denied,
        Standing::Unsure => Answer::Failed,
    }
}

/// What to record of `pid`, and its user id.
pub(super) fn record(known: &Known, pid: u32, source: Source) -> Result<(Process, u32), HostError> {
    let id = process_id(pid).ok_or(HostError::NoProcessId { pid })?;
    if pid == std::process::id()
        && let Some(Ourselves {
            place,
            start,
            pidfs,
        }) = known.ourselves()
    {
        let process = Process {
            pid,
            start: Some(start),
            pidns: place.pidns,
            timens: place.timens,
            pidfs,
            ancestor: true,
            source,
        };
        return Ok((process, rustix::process::geteuid().as_raw()));
    }
    let pidfd = match look(id) {
        Standing::Pinned(pidfd) => Some(pidfd),
        Standing::Gone => return Err(HostError::NoSuchProcess { pid }),
        Standing::Thread => return Err(HostError::Thread { pid }),
        Standing::Unpinned | Standing::Denied | Standing::Unsure => None,
    };
    let process = Process {
        pid,
        start: start(pid),
        pidns: pid_namespace(),
        timens: time_namespace(),
        pidfs: pidfd.as_ref().and_then(pidfs_inode),
        ancestor: is_ancestor(pid),
        source,
    };
    let uid = status(pid).map_or_else(|| rustix::process::geteuid().as_raw(), |s| s.uid);
    // Still there, so everything read by its number was read of it.
    if pidfd.as_ref().is_some_and(has_exited) {
        return Err(HostError::NoSuchProcess { pid });
    }
    Ok((process, uid))
}

/// The parent, where our namespace shows it.
pub(super) fn parent() -> Option<u32> {
    let pid = rustix::process::getppid()?;
    u32::try_from(pid.as_raw_nonzero().get()).ok()
}

/// The processes above this one, the parent first, as far as `/proc` shows them.
pub(super) fn ancestors() -> impl Iterator<Item = Ancestor> {
    let ours = proc_is_ours();
    let above = move |pid: &u32| {
        let status = ours.then(|| read_status(&format!("/proc/{pid}/status")));
        status.flatten().map(|s| s.parent).filter(|pid| *pid > 0)
    };
    std::iter::successors(parent(), above)
        .take(ANCESTORS_MAX)
        .map(move |pid| {
            let file = |what| ours.then(|| std::fs::read(format!("/proc/{pid}/{what}")).ok());
            let read = |what| file(what).flatten().unwrap_or_default();
            let (mut name, line) = (read("comm"), read("cmdline"));
            if name.last() == Some(&b'\n') {
                name.pop();
            }
            let arguments = line.strip_suffix(b"\0").unwrap_or(&line);
            Ancestor {
                pid,
                name,
                arguments: arguments.split(|b| *b == 0).map(<[u8]>::to_vec).collect(),
            }
        })
}

/// Inode of our pid namespace.
pub(super) fn pid_namespace() -> Option<u64> {
    std::fs::metadata("/proc/self/ns/pid").ok().map(|m| m.ino())
}

/// Inode of our time namespace; 0 on a kernel that has only one.
pub(super) fn time_namespace() -> Option<u64> {
    match std::fs::metadata("/proc/self/ns/time") {
        Ok(meta) => Some(meta.ino()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => pid_namespace().map(|_| 0),
        Err(_) => None,
    }
}

/// The name of this host.
pub(super) fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

fn pidfs_inode(pidfd: &OwnedFd) -> Option<u64> {
    // The type is a number of 32 bits whatever width the platform gives the field.
    let kind = rustix::fs::fstatfs(pidfd.as_fd()).ok()?.f_type as u32;
    if kind != PIDFS {
        return None;
    }
    Some(rustix::fs::fstat(pidfd.as_fd()).ok()?.st_ino)
}

fn read_status(path: &str) -> Option<procfs::Status> {
    procfs::status(&std::fs::read(path).ok()?)
}

/// The status of `pid`, where `/proc` shows our namespace.
fn status(pid: u32) -> Option<procfs::Status> {
    proc_is_ours()
        .then(|| read_status(&format!("/proc/{pid}/status")))
        .flatten()
}

fn start(pid: u32) -> Option<u64> {
    if !proc_is_ours() {
        return None;
    }
    procfs::start_ticks(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Whether `/proc` shows our pid namespace.
pub(super) fn proc_is_ours() -> bool {
    read_status("/proc/self/status")
        .is_some_and(|ourselves| procfs::is_ours(&ourselves, std::process::id()))
}

/// Whether `pid` is this process or stands above it.
fn is_ancestor(pid: u32) -> bool {
    let mut at = Some(std::process::id());
    for _ in 0..ANCESTORS_MAX {
        match at {
            Some(0) | None => return false,
            Some(found) if found == pid => return true,
            Some(other) if other == std::process::id() => at = parent(),
            Some(other) => at = status(other).map(|s| s.parent),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERRNOS: [Errno; 12] = [
        Errno::SRCH,
        Errno::PERM,
        Errno::INVAL,
        Errno::NOENT,
        Errno::IO,
        Errno::NOSYS,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::ACCESS,
        Errno::AGAIN,
        Errno::NODEV,
    ];

    fn word(standing: &Standing<()>) -> &'static str {
        match standing {
            Standing::Pinned(()) => "pinned",
            Standing::Unpinned => "unpinned",
            Standing::Thread => "thread",
            Standing::Gone => "gone",
            Standing::Denied => "denied",
            Standing::Unsure => "unsure",
        }
    }

    /// C14, C15, LIV-6: of every error of either question, ESRCH alone is death and EPERM alone is denial.
    #[test]
    fn every_error_of_the_two_questions_is_read_as_the_table_says() {
        assert_eq!(
            word(&standing(Ok(()), |()| false, || unreachable!())),
            "pinned"
        );
        assert_eq!(
            word(&standing(Ok(()), |()| true, || unreachable!())),
            "gone"
        );
        for opened in ERRNOS {
            let first_says = match opened {
                Errno::SRCH => Some("gone"),
                Errno::INVAL | Errno::NOENT => Some("thread"),
                _ => None,
            };
            for killed in ERRNOS.map(Err).into_iter().chain([Ok(())]) {
                let second_says = match killed {
                    Ok(()) => "unpinned",
                    Err(Errno::SRCH) => "gone",
                    Err(Errno::PERM) => "denied",
                    Err(_) => "unsure",
                };
                let mut asked = false;
                let found = standing(
                    Err(opened),
                    |()| unreachable!(),
                    || {
                        asked = true;
                        killed
                    },
                );
                assert_eq!(
                    word(&found),
                    first_says.unwrap_or(second_says),
                    "{opened} {killed:?}"
                );
                assert_eq!(asked, first_says.is_none(), "{opened}");
            }
        }
    }

    /// LIV-1: what is kept of this process is what is read of it like of any other.
    #[test]
    fn what_is_known_of_this_process_is_what_is_read_of_it() {
        let pid = std::process::id();
        let keep = Known::default();
        assert!(keep.0.lock().is_none());
        let known = keep.ourselves().expect("everything can be read here");
        assert!(keep.0.lock().is_some());
        assert_eq!(Some(known.start), start(pid));
        let Standing::Pinned(pidfd) = look(process_id(pid).expect("ours")) else {
            panic!("not pinned");
        };
        assert_eq!(known.pidfs, pidfs_inode(&pidfd));
        let seen = Answer::Exists {
            start: Some(known.start),
            pidfs: known.pidfs,
        };
        assert_eq!(answer(Some(known), pid), seen);
        assert_eq!(answer(None, pid), seen);
        let (process, uid) = record(&keep, pid, Source::Declared).expect("recorded");
        assert_eq!(Some(process.start), Some(start(pid)));
        assert_eq!(process.pidns, pid_namespace());
        assert_eq!(process.timens, time_namespace());
        assert_eq!(process.ancestor, is_ancestor(pid));
        assert_eq!(Some(uid), status(pid).map(|s| s.uid));
    }

    /// Of a fork, or of a process that went to another namespace, nothing that is kept counts.
    #[test]
    fn what_is_known_is_of_one_place() {
        let here = Place::here().expect("there is a /proc");
        let ns = |n: Option<u64>| n.map(|n| n + 1);
        let others = [
            Place {
                pid: here.pid + 1,
                ..here
            },
            Place {
                pidns: ns(here.pidns),
                ..here
            },
            Place {
                timens: ns(here.timens),
                ..here
            },
            Place {
                proc_device: here.proc_device + 1,
                ..here
            },
        ];
        assert_eq!(Place::here(), Some(here));
        assert!(others.iter().all(|other| *other != here));
    }

    #[test]
    fn numbers_that_no_process_can_have_are_no_answer() {
        for pid in [0, i32::MAX as u32 + 1, u32::MAX] {
            assert_eq!(answer(None, pid), Answer::Failed, "{pid}");
            assert!(matches!(
                record(&Known::default(), pid, Source::Declared),
                Err(HostError::NoProcessId { .. })
            ));
        }
    }
}
