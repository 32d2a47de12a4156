//! Roles: exclusive rights within a scope, as `docs/roles.md` has them. The tables of that page, row by row.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::generation::Generation;
use crate::holder::{Proof, Verdict};
use crate::path::{Scope, same_place};

/// Where a role is exclusive. `P` is how a text is named: a text of a frame, or a symbol of a state.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct RoleScope<P> {
    /// A name, or the canonical path.
    pub text: P,
    /// The place, for a path.
    pub place: Option<Scope<P>>,
}

impl<P> RoleScope<P> {
    /// The same scope with its texts named otherwise.
    pub fn map<'s, Q>(&'s self, mut name: impl FnMut(&'s P) -> Q) -> RoleScope<Q> {
        RoleScope {
            text: name(&self.text),
            place: self.place.as_ref().map(|place| place.map(&mut name)),
        }
    }
}

impl RoleScope<&[u8]> {
    /// Whether both are one scope: the same name, or one place by whatever path (ROL-7).
    #[must_use]
    pub fn is(&self, other: &RoleScope<&[u8]>) -> bool {
        match (&self.place, &other.place) {
            (None, None) => self.text == other.text,
            (Some(mine), Some(theirs)) => same_place(mine, theirs),
            _ => false,
        }
    }
}

/// A role that a caller must hold for its command to be carried out (`--require ROLE@SCOPE`).
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Requirement<P> {
    /// Its name.
    pub role: P,
    /// Where.
    pub scope: RoleScope<P>,
}

/// Evidence about the process that a role was recorded with.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct ProcessEvidence {
    /// The holding it is about, by its role generation.
    pub generation: Generation,
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub proofs: Vec<Proof>,
}

/// Who holds a role, as somebody sees it who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Nobody.
    ByNobody,
    /// Whoever asks.
    ByAsker,
    /// Another session.
    ByAnother,
}

/// What becomes of a take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// Rows free, dead, vacant: it is the asker's from here on.
    Taken,
    /// Row own: it is the asker's already.
    Own,
    /// Row held: it stays where it is.
    Refused,
}

/// The table of takes (ROL-1, ROL-5).
///
/// | row | held by | its session has a holder | that holder, or the role's own process | then |
/// |---|---|---|---|---|
/// | free | nobody | | | taken |
/// | own | the asker | | | the same answer |
/// | vacant | another | no | | taken |
/// | dead | another | yes | dead | taken |
/// | held | another | yes | alive or unknowable | refused |
#[must_use]
pub fn take(held: Held, has_holder: bool, verdict: Verdict) -> Taking {
    match held {
        Held::ByNobody => Taking::Taken,
        Held::ByAsker => Taking::Own,
        Held::ByAnother if !has_holder || verdict == Verdict::Dead => Taking::Taken,
        Held::ByAnother => Taking::Refused,
    }
}

/// Whether somebody may act in a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acting {
    /// Row own.
    Allowed,
    /// Rows past, lost, nobody: it was, or is said to be, the asker's and is not.
    Stale,
    /// Row others: it is somebody else's.
    Refused,
}

/// The table of checks (ROL-2, ROL-3). `asked` is the role generation asked for.
///
/// | row | held by | asked | asker held it before | then |
/// |---|---|---|---|---|
/// | past | anybody | another than the current one | | stale |
/// | own | the asker | current or none | | allowed |
/// | lost | another | current or none | yes | stale |
/// | others | another | current or none | no | refused |
/// | nobody | nobody | current or none | | stale |
#[must_use]
pub fn act(
    held: Held,
    current: Option<Generation>,
    asked: Option<Generation>,
    before: bool,
) -> Acting {
    match held {
        _ if asked.is_some() && asked != current => Acting::Stale,
        Held::ByAsker => Acting::Allowed,
        Held::ByAnother if before => Acting::Stale,
        Held::ByAnother => Acting::Refused,
        Held::ByNobody => Acting::Stale,
    }
}
