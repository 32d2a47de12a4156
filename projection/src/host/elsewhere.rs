//! Systems that are not probed: every question about a process is answered with "cannot tell".

use tenure_core::holder::{Answer, Process, Source};

use super::{Ancestor, HostError};

/// What is known of this process: nothing is asked here.
#[derive(Debug, Default)]
pub(super) struct Known;

/// Nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ourselves {}

impl Known {
    /// Nothing is known.
    pub(super) fn ourselves(&self) -> Option<Ourselves> {
        None
    }
}

impl Ourselves {
    /// There are none.
    pub(super) fn namespaces(self) -> (Option<u64>, Option<u64>) {
        match self {}
    }
}

/// What the kernel says of a pid: not asked here.
pub(super) fn answer(_ourselves: Option<Ourselves>, _pid: u32) -> Answer {
    Answer::Failed
}

/// Records the number and nothing that could prove anything.
pub(super) fn record(
    _known: &Known,
    pid: u32,
    source: Source,
) -> Result<(Process, u32), HostError> {
    let process = Process {
        pid,
        start: None,
        pidns: None,
        timens: None,
        pidfs: None,
        ancestor: parent() == Some(pid) || std::process::id() == pid,
        source,
    };
    Ok((process, rustix::process::geteuid().as_raw()))
}

/// The parent.
pub(super) fn parent() -> Option<u32> {
    let pid = rustix::process::getppid()?;
    u32::try_from(pid.as_raw_nonzero().get()).ok()
}

/// The parent alone, of which nothing is known but its number.
pub(super) fn ancestors() -> impl Iterator<Item = Ancestor> {
    parent().into_iter().map(|pid| Ancestor {
        pid,
        name: Vec::new(),
        arguments: Vec::new(),
    })
}

/// There are none.
pub(super) fn pid_namespace() -> Option<u64> {
    None
}

/// There are none.
pub(super) fn time_namespace() -> Option<u64> {
    None
}

/// It shows nothing.
pub(super) fn proc_is_ours() -> bool {
    false
}

/// The name of this host.
pub(super) fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
