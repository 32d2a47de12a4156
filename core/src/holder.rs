//! Who a grant was made to, and whether that process can be proven dead. Evidence, never authority.
//!
//! The probe looks; this module judges. First matching row decides (rows LIV-2 to LIV-12):
//!
//! | row | what was seen | verdict |
//! |---|---|---|
//! | no-process | the record names no process | unknowable |
//! | other-host | the record is of another host | unknowable |
//! | other-boot | boot ids differ, and this host's own list of past boots has the recorded one | dead |
//! | foreign-boot | boot ids differ, and the list does not have it (a cloned image shares host ids) | unknowable |
//! | no-boot | no boot id was recorded, or this host tells none | as the pid rule below, never dead |
//! | other-pidns | recorded in another pid namespace, or in one that is not known | unknowable |
//! | no-such-process | the kernel answers ESRCH for the pid | dead |
//! | denied | the kernel denies the question | alive |
//! | probe-failed | any other error | unknowable |
//! | other-inode | the pid exists with another pidfs inode | dead |
//! | same-inode | the pid exists with the same pidfs inode | alive |
//! | other-start | the pid exists with another start time, recorded in this time namespace | dead |
//! | same-start | the pid exists with the same start time | alive |
//! | no-start | the pid exists, and one of the start times is not known or not comparable | unknowable |
//!
//! A holder that was recorded by default (the parent of the command, which may be a subshell that ends with
//! the line) can be proven alive, never dead: dead becomes unknowable.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::generation::Generation;
use crate::id::{SessionNo, Time};
use crate::zoo::planted;

/// Identity of one boot of one kernel (`/proc/sys/kernel/random/boot_id`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct BootId(pub [u8; 16]);

impl core::fmt::Display for BootId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Identity of a host: a digest of its machine id. Cloned images share it, hence the list of past boots.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct HostId(pub [u8; 16]);

wire_enum! {
    /// How the recorded process was chosen.
    pub enum Source {
        /// The parent of the command, because nothing else was said.
        Default = 1 "default",
        /// Named by the caller, or the caller itself (`--pid`, `exec`, a library handle, a host's hook).
        Declared = 2 "declared",
    }
}

/// A process, as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Process {
    /// Its number in `pidns`.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start: Option<u64>,
    /// Inode of its pid namespace.
    pub pidns: Option<u64>,
    /// Inode of its time namespace: start times compare only within one.
    pub timens: Option<u64>,
    /// Inode of its pidfd, unique for one boot (Linux 6.9 and later).
    pub pidfs: Option<u64>,
    /// Whether it was an ancestor of the caller: evidence, never a condition (LIV-17).
    pub ancestor: bool,
    /// How it was chosen.
    pub source: Source,
}

/// Who holds: the record a grant keeps. Texts are kept beside it by whoever stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Bearing {
    /// The host.
    pub host: HostId,
    /// Its boot, where the system tells one.
    pub boot: Option<BootId>,
    /// The process, unless none was to be recorded.
    pub process: Option<Process>,
    /// Its user id.
    pub uid: u32,
    /// When the record was made.
    pub recorded: Time,
}

impl Bearing {
    /// Whether both records are certainly of one process: of one boot of one host and one pid namespace, with one pid,
    /// and with one pidfd inode or, where either has none, one start time of one time namespace. What is not known
    /// proves nothing, so two records without either are of two processes.
    #[must_use]
    pub fn is_same_process(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (self.process, other.process) else {
            return false;
        };
        let known = |a: Option<u64>, b: Option<u64>| a.is_some() && a == b;
        let started = known(one.start, two.start) && known(one.timens, two.timens);
        let same = match (one.pidfs, two.pidfs) {
            (Some(then), Some(now)) => then == now,
            _ => started,
        };
        self.host == other.host
            && self.boot.is_some()
            && self.boot == other.boot
            && known(one.pidns, two.pidns)
            && one.pid == two.pid
            && same
    }
}

/// What the kernel says of a pid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// ESRCH from `pidfd_open` or `kill`, never a missing `/proc` entry.
    NoSuchProcess,
    /// EPERM: there is something we may not ask.
    Denied,
    /// Any other error.
    Failed,
    /// A process with that number exists.
    Exists {
        /// Its start time in clock ticks since boot.
        start: Option<u64>,
        /// Its pidfd inode.
        pidfs: Option<u64>,
    },
}

/// What this host looks like, and what it says of the recorded pid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// This host.
    pub host: HostId,
    /// This boot.
    pub boot: Option<BootId>,
    /// Whether this host's own list of its past boots has the recorded boot.
    pub boot_listed: bool,
    /// This pid namespace.
    pub pidns: Option<u64>,
    /// This time namespace.
    pub timens: Option<u64>,
    /// The kernel's answer for the recorded pid.
    pub answer: Answer,
}

wire_enum! {
    /// Is the holder still there?
    pub enum Verdict {
        /// Proven gone.
        Dead = 1 "dead",
        /// Proven there.
        Alive = 2 "alive",
        /// Neither can be proven. Treated as alive.
        Unknowable = 3 "unknowable",
    }
}

wire_enum! {
    /// One reason for a verdict; the rows of the table.
    pub enum Proof {
        /// Row no-process.
        NoProcess = 1 "no process was recorded",
        /// Row other-host.
        OtherHost = 2 "recorded on another host",
        /// Row other-boot.
        OtherBoot = 3 "recorded in an earlier boot of this host",
        /// Row foreign-boot.
        ForeignBoot = 4 "recorded in a boot that this host does not remember",
        /// Row no-boot.
        NoBoot = 5 "no boot id to compare",
        /// Row other-pidns.
        OtherPidns = 6 "recorded in another pid namespace",
        /// Row no-such-process.
        NoSuchProcess = 7 "no process has the recorded pid",
        /// Row denied.
        Denied = 8 "a process has the recorded pid and denies the question",
        /// Row probe-failed.
        ProbeFailed = 9 "the system could not say whether the process exists",
        /// Row other-inode.
        OtherInode = 10 "the pid now belongs to another process (pidfd inode differs)",
        /// Row same-inode.
        SameInode = 11 "the recorded process exists (same pidfd inode)",
        /// Row other-start.
        OtherStart = 12 "the pid now belongs to another process (start time differs)",
        /// Row same-start.
        SameStart = 13 "the recorded process exists (same start time)",
        /// Row no-start.
        NoStart = 14 "a process has the recorded pid, and its start time cannot be compared",
        /// A default record cannot prove death.
        ByDefault = 15 "the process was recorded by default, which can prove life but not death",
        /// The evidence names another grant than the current one.
        OtherGrant = 16 "the evidence is about another grant",
        /// No evidence was given.
        NotProbed = 17 "nobody looked",
    }
}

/// Evidence about one grant's holder, as given to a decision and stored with it.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Evidence {
    /// The session it is about.
    pub session: SessionNo,
    /// The grant it is about.
    pub generation: Generation,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub proofs: Vec<Proof>,
}

impl Evidence {
    /// Whether the verdict is the one that its reasons give; the reverse of [`judge`], for whoever reads a
    /// verdict later.
    #[must_use]
    pub fn follows(&self) -> bool {
        use Proof as P;
        let verdict = match self.proofs[..] {
            [P::OtherBoot | P::NoSuchProcess | P::OtherInode | P::OtherStart] => Verdict::Dead,
            [P::Denied | P::SameInode | P::SameStart] => Verdict::Alive,
            [P::Denied | P::SameInode | P::SameStart, P::NoBoot] => Verdict::Alive,
            _ => Verdict::Unknowable,
        };
        self.verdict == verdict
    }
}

/// Judges a record by a sighting: the table at the head of this module.
#[must_use]
pub fn judge(record: &Bearing, seen: &Sighting) -> (Verdict, Vec<Proof>) {
    let (verdict, mut proofs) = judge_process(record, seen);
    let by_default = record.process.is_some_and(|p| p.source == Source::Default);
    if verdict == Verdict::Dead && by_default {
        proofs.push(Proof::ByDefault);
        return (Verdict::Unknowable, proofs);
    }
    (verdict, proofs)
}

fn judge_process(record: &Bearing, seen: &Sighting) -> (Verdict, Vec<Proof>) {
    let one = |verdict, proof| (verdict, alloc::vec![proof]);
    let Some(process) = record.process else {
        return one(Verdict::Unknowable, Proof::NoProcess);
    };
    if record.host != seen.host {
        return one(Verdict::Unknowable, Proof::OtherHost);
    }
    let boots_known = match (record.boot, seen.boot) {
        (Some(then), Some(now)) if then != now => {
            return if seen.boot_listed {
                one(Verdict::Dead, Proof::OtherBoot)
            } else {
                one(Verdict::Unknowable, Proof::ForeignBoot)
            };
        }
        (Some(_), Some(_)) => true,
        _ => false,
    };
    let (verdict, proof) = judge_pid(&process, seen);
    if boots_known {
        one(verdict, proof)
    } else if verdict == Verdict::Dead {
        (Verdict::Unknowable, alloc::vec![proof, Proof::NoBoot])
    } else {
        (verdict, alloc::vec![proof, Proof::NoBoot])
    }
}

fn judge_pid(process: &Process, seen: &Sighting) -> (Verdict, Proof) {
    if process.pidns.is_none() || process.pidns != seen.pidns {
        return (Verdict::Unknowable, Proof::OtherPidns);
    }
    match seen.answer {
        Answer::NoSuchProcess => (Verdict::Dead, Proof::NoSuchProcess),
        Answer::Denied => (Verdict::Alive, Proof::Denied),
        Answer::Failed => (Verdict::Unknowable, Proof::ProbeFailed),
        Answer::Exists { .. } if planted("pid-is-enough") => (Verdict::Alive, Proof::SameStart),
        Answer::Exists { start, pidfs } => match (process.pidfs, pidfs) {
            (Some(then), Some(now)) if then != now => (Verdict::Dead, Proof::OtherInode),
            (Some(_), Some(_)) => (Verdict::Alive, Proof::SameInode),
            _ => judge_start(process, start, seen),
        },
    }
}

fn judge_start(process: &Process, now: Option<u64>, seen: &Sighting) -> (Verdict, Proof) {
    let comparable = process.timens.is_some() && process.timens == seen.timens;
    match (process.start, now) {
        (Some(_), Some(_)) if planted("start-ignored") => (Verdict::Alive, Proof::SameStart),
        (Some(then), Some(now)) if then == now && comparable => (Verdict::Alive, Proof::SameStart),
        (Some(then), Some(now)) if then != now && comparable => (Verdict::Dead, Proof::OtherStart),
        _ => (Verdict::Unknowable, Proof::NoStart),
    }
}
