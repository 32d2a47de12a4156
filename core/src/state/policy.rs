//! Policies, and what a holder was told of others.

use bincode::{Decode, Encode};

use crate::disclosure::Rule;
use crate::generation::Generation;
use crate::id::{Moment, SessionNo};
use crate::path::Scope;
use crate::text::Symbol;

/// What applies in a place.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Policy {
    /// Where: in it and below it.
    pub scope: Scope<Symbol>,
    /// What.
    pub rule: Rule,
    /// Whether the path is one place on every host (DSC-13).
    pub shared: bool,
    /// Since when.
    pub at: Moment,
}

/// The current holder of a session was shown another one at work where it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Told {
    /// The session it was shown.
    pub peer: SessionNo,
    /// Its generation then.
    pub generation: Generation,
    /// Where that stands in the log.
    pub at: Moment,
}
