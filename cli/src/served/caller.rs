//! On whose behalf this thread carries a command out: itself, or a process that asked over the socket.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tenure_projection::call::Verb;
use tenure_projection::core::holder::{Bearing, Sighting};
use tenure_projection::core::id::Time;
use tenure_projection::host::{Host, HostError, ProcessChoice, System, This};

/// A process that asked.
#[derive(Debug)]
pub struct Caller {
    /// Its working directory.
    pub cwd: PathBuf,
    /// What it said of `TENURE_TOKEN`.
    pub token: Option<String>,
    /// What it said of `TENURE_TOKEN_FILE`.
    pub token_file: Option<String>,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// Its number.
    pub pid: u32,
    /// The process that it wants a grant made to; for a hook, the agent host.
    pub bearing: Option<Bearing>,
    /// What it said of `TENURE_SESSION`.
    pub session: Option<String>,
}

thread_local! {
    static CALLER: RefCell<Option<Rc<Caller>>> = const { RefCell::new(None) };
    /// What this process has read of its own standard input, to ask with it.
    static READ: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    /// Whether the standard input of whoever asked was handed out: a second `-` would silently be empty.
    static TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// Keeps what was read of the standard input for whoever reads it next.
pub fn keep_input(bytes: Vec<u8>) {
    READ.set(Some(bytes));
}

/// Runs `f` on behalf of `caller`.
pub fn on_behalf<R>(caller: Caller, f: impl FnOnce() -> R) -> R {
    CALLER.set(Some(Rc::new(caller)));
    // A thread may carry out one command after the other, each with an input of its own.
    TAKEN.set(false);
    let done = f();
    CALLER.set(None);
    done
}

fn current() -> Option<Rc<Caller>> {
    CALLER.with_borrow(Clone::clone)
}

/// Whether this thread carries a command out for another process, or for the agent of a long-lived one.
#[must_use]
pub fn is_for_another() -> bool {
    current().is_some()
}

/// The process that whoever asked said a hook's agent host is; `None` where this process asks for itself.
#[must_use]
pub fn host_process() -> Option<Bearing> {
    current()?.bearing
}

/// A variable of the environment of whoever asked. Of another process only those of the token and the session are known.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    let Some(caller) = current() else {
        return std::env::var_os(name);
    };
    match name {
        "TENURE_TOKEN" => caller.token.clone().map(Into::into),
        "TENURE_TOKEN_FILE" => caller.token_file.clone().map(Into::into),
        "TENURE_SESSION" => caller.session.clone().map(Into::into),
        _ => None,
    }
}

/// A path as whoever asked means it.
#[must_use]
pub fn place(path: &Path) -> PathBuf {
    current().map_or_else(|| path.to_owned(), |caller| caller.cwd.join(path))
}

/// Puts the paths of a change where whoever asked means them.
pub fn settle(verb: &mut Verb) {
    let Some(caller) = current() else {
        return;
    };
    let paths: Vec<&mut PathBuf> = match verb {
        Verb::Register { checkout, .. }
        | Verb::RegisterChild { checkout, .. }
        | Verb::Branch { checkout, .. } => checkout.iter_mut().collect(),
        Verb::Dispatch { writes, .. } | Verb::CheckWrite { writes } => writes.iter_mut().collect(),
        Verb::Observe { wrote, .. } => wrote.iter_mut().collect(),
        _ => Vec::new(),
    };
    for path in paths {
        *path = caller.cwd.join(&*path);
    }
}

/// The standard input of whoever asked, for the first who reads it; `None` for any other.
#[must_use]
pub fn input() -> Option<Box<dyn Read>> {
    if TAKEN.replace(true) {
        return None;
    }
    Some(match current() {
        None => match READ.take() {
            Some(read) => Box::new(io::Cursor::new(read)),
            None => Box::new(io::stdin().lock()),
        },
        Some(caller) => Box::new(io::Cursor::new(caller.stdin.clone())),
    })
}

/// The machine, as whoever asked sees it: what is recorded of a process is what that one found.
#[derive(Debug)]
pub struct Behalf(pub System);

impl Host for Behalf {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn this(&self) -> This {
        let this = self.0.this();
        let pid = current().map_or(this.pid, |caller| caller.pid);
        This { pid, ..this }
    }

    fn bearing(&self, choice: ProcessChoice) -> Result<Bearing, HostError> {
        let Some(caller) = current() else {
            return self.0.bearing(choice);
        };
        match (caller.bearing, choice) {
            (Some(bearing), _) => Ok(Bearing {
                recorded: self.now(),
                ..bearing
            }),
            // Whoever asked did not say which process is its own.
            (None, ProcessChoice::Parent | ProcessChoice::Itself) => {
                self.0.bearing(ProcessChoice::None)
            }
            (None, choice) => self.0.bearing(choice),
        }
    }

    fn sight(&self, record: &Bearing) -> Sighting {
        self.0.sight(record)
    }

    fn remember_boot(&self) -> Result<(), HostError> {
        self.0.remember_boot()
    }
}
