//! What can go wrong in a store besides a refusal.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::codec::v1;
use tenure_core::id::Position;
use tenure_core::refusal::Refusal;
use tenure_log::position::Receipt;

use crate::call::IdempotencyKey;
use crate::checkouts::CheckoutError;
use crate::host::HostError;

/// Whatever kept a store from answering. Nothing of the call is in the log.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log said so.
    #[error(transparent)]
    Log(Arc<tenure_log::error::Error>),
    /// A frame whose checksums hold, and whose content is none of this program's.
    #[error("the facts of the frame at position {position} do not decode: {fault}")]
    Facts {
        /// The frame.
        position: Position,
        /// What is wrong with it.
        fault: v1::Fault,
    },
    /// The log holds an event kind that a newer program wrote and that may decide about authority.
    #[error(
        "the log holds event kind {kind}, which this program does not know; use the program that wrote it"
    )]
    NewerEvents {
        /// The first such kind.
        kind: u16,
    },
    /// The log holds frames that did not stand at their positions; nothing is appended until somebody has
    /// looked at them.
    #[error(
        "the frame at position {first} did not stand when it was written ({count} such frames); look at it, \
         then say `tenure store accept finding:{first} --reason TEXT`"
    )]
    Findings {
        /// The first such frame.
        first: Position,
        /// How many there are.
        count: usize,
    },
    /// Positions are lost, and the incarnation that was to begin behind them is not there.
    #[error("positions of the log are lost, and no new incarnation has begun behind them")]
    Unproven,
    /// The log is in a life of which no event says how it began.
    #[error("the log is in incarnation {incarnation}, and no event says how it began")]
    Unbegun {
        /// The life.
        incarnation: u64,
    },
    /// A secret was chosen for a grant of a store that is not sealed.
    #[error("a secret was given for a grant, and this store is not sealed")]
    NotSealed,
    /// More than a limit allows was offered.
    #[error("{what} is {offered} long, at most {max} is allowed")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// What was offered.
        offered: usize,
        /// What is allowed.
        max: usize,
    },
    /// Something needs at least one character.
    #[error("{0} cannot be empty")]
    Empty(&'static str),
    /// A path cannot be a write scope.
    #[error("{} cannot be a write scope: {source}", path.display())]
    Scope {
        /// The path as given.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<CheckoutError>,
    },
    /// The process to be recorded could not be looked at.
    #[error("the process to be recorded as holder could not be looked at: {0}")]
    Host(Arc<HostError>),
    /// The system gave no random numbers.
    #[error("no random numbers: {0}")]
    Random(String),
    /// The log answered in a way that this program has no word for.
    #[error("{0}")]
    Described(String),
    /// A decision is too large to encode.
    #[error("the command is too large for one frame")]
    TooLarge,
    /// What was asked for was taken out of this copy of a store.
    #[error("{what} were taken out of this copy: what is asked by them cannot be told here")]
    Redacted {
        /// The class.
        what: &'static str,
    },
    /// A position that the log does not have.
    #[error("the log ends at position {head}, and position {asked} was asked for")]
    BeyondHead {
        /// The newest position.
        head: Position,
        /// The one asked for.
        asked: Position,
    },
}

impl From<tenure_log::error::Error> for Error {
    fn from(source: tenure_log::error::Error) -> Self {
        Self::Log(Arc::new(source))
    }
}

impl From<HostError> for Error {
    fn from(source: HostError) -> Self {
        Self::Host(Arc::new(source))
    }
}

/// By what an unknown outcome can be asked for later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trace {
    /// The caller's own key.
    Key(IdempotencyKey),
    /// Where the frame stands if it was written.
    Receipt(Receipt),
}

/// Why a call was not done.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// It was judged and refused. Normal; nothing of that kind is in the log.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// It may have happened. Ask with the trace.
    #[error("it may have happened and may not: {cause}")]
    Unknown {
        /// By what to ask.
        trace: Trace,
        /// What went wrong.
        cause: Error,
    },
    /// Nothing happened.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl From<tenure_log::error::Error> for Failure {
    fn from(source: tenure_log::error::Error) -> Self {
        Self::Failed(source.into())
    }
}
