//! What ends a command early: a refusal, a fault, or not knowing. Each names the way out.

use std::io;
use std::path::{Path, PathBuf};

use tenure_projection::core::refusal::{Next, Refusal};
use tenure_projection::error::{Error, Failure, Trace};
use tenure_projection::log::error::Error as LogError;
use tenure_projection::views::RefusalView;

use crate::exit::{Cause, Exit};

/// Something failed that was not judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Which code is printed, and what the process ends with.
    pub cause: Cause,
    /// What was found, and what was offered.
    pub message: String,
    /// What may be done.
    pub next: Vec<Next>,
}

impl Fault {
    /// A fault without a way out yet.
    #[must_use]
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            next: Vec::new(),
        }
    }

    /// A command line that makes no sense.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Cause::Usage, message)
    }

    /// The same fault with a way out.
    #[must_use]
    pub fn then(mut self, command: impl Into<String>, effect: &'static str) -> Self {
        self.next.push(Next {
            command: command.into(),
            effect,
        });
        self
    }

    /// A file of the caller that cannot be read or written.
    #[must_use]
    pub fn file(op: &'static str, path: &Path, source: io::Error) -> Self {
        let created = matches!(op, "create" | "replace");
        match LogError::from_io(op, path, source) {
            LogError::Io { source, .. } if created => Self::new(
                Cause::CannotCreate,
                format!("{op} {}: {source}", path.display()),
            ),
            other => Self::new(cause_of(&other), other.to_string()),
        }
    }
}

/// Why a command stops.
#[derive(Debug)]
pub enum Stop {
    /// It was refused.
    Refused(Box<RefusalView>),
    /// It failed, and nothing happened.
    Failed(Fault),
    /// The reader of the output is gone; nobody is there to be told.
    OutputClosed,
}

impl Stop {
    /// What the process ends with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused(refusal) => refusal.code.map_or(Cause::Fault.exit(), Exit::of),
            Self::Failed(fault) => fault.cause.exit(),
            Self::OutputClosed => Exit::DONE,
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

/// Writing the answer failed.
impl From<io::Error> for Stop {
    fn from(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            io::ErrorKind::StorageFull => {
                Self::Failed(Fault::new(Cause::NoSpace, "no space left for the answer"))
            }
            _ => Self::Failed(Fault::new(
                Cause::Io,
                format!("the answer could not be written: {source}"),
            )),
        }
    }
}

fn cause_of(error: &LogError) -> Cause {
    match error {
        LogError::Busy { .. } => Cause::Busy,
        LogError::NoSpace { .. } => Cause::NoSpace,
        LogError::Permission { .. } => Cause::Permission,
        LogError::NotAStore { .. } => Cause::UnknownStore,
        LogError::Occupied { .. } => Cause::CannotCreate,
        LogError::ForeignOwner { .. } => Cause::ForeignOwner,
        LogError::NewerFormat { .. } => Cause::NewerFormat,
        LogError::ForeignStore { .. } => Cause::ForeignStore,
        LogError::Damaged(_) => Cause::Damaged,
        LogError::ReadOnlyFs { .. } => Cause::ReadOnly,
        LogError::ReadOnlyCopy { .. } => Cause::ReadOnlyCopy,
        LogError::RefusedFileSystem { .. } => Cause::RefusedFileSystem,
        LogError::LimitExceeded { .. } => Cause::LimitExceeded,
        LogError::HomeChanged { .. } => Cause::HomeChanged,
        LogError::BeyondHead { .. } => Cause::BadPosition,
        LogError::Diverged { .. } => Cause::Diverged,
        LogError::ForkedHandle { .. } | LogError::Closed => Cause::Fault,
        // A sync that failed, and whatever the system says that has no word of its own.
        _ => Cause::Io,
    }
}

/// What the log says, with the commands that help. `dir` is the store's directory.
#[must_use]
pub fn of_log(error: &LogError, dir: &Path) -> Fault {
    let at = shell_word(dir);
    let fault = Fault::new(cause_of(error), error.to_string());
    let verify = format!("tenure verify {at}");
    match error {
        LogError::NotAStore { .. } => fault
            .then(format!("tenure init {at}"), "creates a store there")
            .then(
                "tenure register NAME",
                "creates the default store and registers a session",
            ),
        LogError::HomeChanged { .. } => fault
            .then(
                format!("tenure --store {at} store accept moved --reason TEXT"),
                "says that nothing else has these bytes; every token stays current",
            )
            .then(
                format!("tenure --store {at} store accept copied --reason TEXT"),
                "says that another store lives on from the same bytes; every token here is stale",
            )
            .then(
                format!("tenure --store {at} store accept restored --reason TEXT"),
                "says that an older copy was put back; every token is stale",
            ),
        LogError::RefusedFileSystem { kind } => fault.then(
            format!(
                "tenure --store {at} --allow-fs {} ...",
                crate::output::escape::line(kind)
            ),
            "accepts that its locks and syncs may not be what the log relies on",
        ),
        LogError::Damaged(_) => salvaging(
            fault.then(
                verify,
                "says what is damaged and what can still be read; changes nothing",
            ),
            &at,
        ),
        LogError::ForeignStore { segment, .. } => {
            let file = dir.join("segments").join(segment.to_string());
            fault
                .then(
                    format!("mv {} .", shell_word(&file)),
                    "takes the file out: it is another store's; keep it for whoever misses it",
                )
                .then(
                    verify,
                    "says then whether the rest is whole; changes nothing",
                )
        }
        LogError::NewerFormat { .. } => newer(fault, verify),
        LogError::ReadOnlyCopy { .. } => fault.then(
            format!("tenure --store {at} log"),
            "reads it; what is to be written goes to the store it was made of",
        ),
        LogError::Diverged { .. } => {
            fault.then(verify, "shows where the log ends now; changes nothing")
        }
        _ => fault,
    }
}

/// What only a newer program gets out of.
fn newer(fault: Fault, verify: String) -> Fault {
    fault
        .then(
            "tenure --version",
            "says which program this is; go on with the newer one that wrote there, nothing is lost",
        )
        .then(verify, "shows what this program can read of it; changes nothing")
}

/// A fault that only a new store gets out of. `at` is the damaged one's directory as a shell takes it.
fn salvaging(fault: Fault, at: &str) -> Fault {
    fault
        .then(
            format!("tenure salvage {at} --in-place --dry-run"),
            "says what would be kept and lost; changes nothing",
        )
        .then(
            format!("tenure salvage {at} --in-place"),
            "copies what is good into a new store in its place, and keeps this one beside it",
        )
}

/// What a store says, with the commands that help.
#[must_use]
pub fn of_store(error: &Error, dir: &Path) -> Fault {
    let at = shell_word(dir);
    let message = error.to_string();
    match error {
        Error::Log(log) => of_log(log, dir),
        Error::Facts { .. } => {
            let fault = Fault::new(Cause::Damaged, message).then(
                format!("tenure inspect {at}"),
                "shows the frames as they stand; changes nothing",
            );
            salvaging(fault, &at)
        }
        Error::Unproven | Error::Unbegun { .. } => {
            salvaging(Fault::new(Cause::Damaged, message), &at)
        }
        Error::NewerEvents { .. } => newer(
            Fault::new(Cause::NewerFormat, message),
            format!("tenure verify {at}"),
        ),
        Error::Findings { first, .. } => Fault::new(Cause::Damaged, message)
            .then(
                format!("tenure --store {at} why {first}"),
                "shows what was written there and why it does not stand; changes nothing",
            )
            .then(
                format!("tenure --store {at} store accept finding:{first} --reason TEXT"),
                "acknowledges that frame, so that the store can be written to again",
            ),
        Error::Limit { .. } | Error::TooLarge => Fault::new(Cause::LimitExceeded, message),
        Error::Empty(_) | Error::Scope { .. } | Error::Host(_) | Error::NotSealed => {
            Fault::usage(message)
        }
        Error::BeyondHead { .. } => Fault::new(Cause::BadPosition, message),
        Error::Redacted { .. } => Fault::new(Cause::Unsupported, message),
        _ => Fault::new(Cause::Fault, message),
    }
}

/// Why a call was not done; a refusal is shown by `show`, which knows the state.
pub fn of_failure(
    failure: Failure,
    dir: &Path,
    show: impl FnOnce(&Refusal) -> Result<RefusalView, Error>,
) -> Stop {
    match failure {
        Failure::Refused(refusal) => match show(&refusal) {
            Ok(view) => Stop::Refused(Box::new(view)),
            Err(error) => of_store(&error, dir).into(),
        },
        Failure::Unknown { trace, cause } => {
            let question = match trace {
                Trace::Key(key) => key.0,
                Trace::Receipt(receipt) => receipt.to_string(),
            };
            let fault = Fault::new(
                Cause::OutcomeUnknown,
                format!("it may have happened and may not: {cause}"),
            );
            Stop::Failed(fault.then(
                format!(
                    "tenure --store {} outcome {}",
                    shell_word(dir),
                    quoted(&question)
                ),
                "says whether it is in the log",
            ))
        }
        Failure::Failed(error) => Stop::Failed(of_store(&error, dir)),
        other => Stop::Failed(Fault::new(Cause::Fault, other.to_string())),
    }
}

/// A path as a shell takes it.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    quoted(&PathBuf::from(path).to_string_lossy())
}

/// A text as one word of a shell.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:+/-@=,~%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
