//! What a guard asks the ledger, and what follows: the tables of `docs/guards.md`.

use std::path::Path;

use tenure_projection::core::generation::Lapse;
use tenure_projection::guards::{Along, Claim, GitRepository, GuardError};

use crate::exit::Cause;
use crate::fault::{Fault, Stop};

use super::Policy;

/// The repository of a checkout.
///
/// # Errors
/// When there is none.
pub fn repository(path: Option<&Path>) -> Result<GitRepository, Stop> {
    let here = Path::new(".");
    GitRepository::at(path.unwrap_or(here)).map_err(|error| of_guard(&error))
}

/// Why a repository cannot be looked at.
#[must_use]
pub fn of_guard(error: &GuardError) -> Stop {
    let cause = match error {
        GuardError::NoCheckout { .. } => Cause::Usage,
        _ => Cause::Io,
    };
    Fault::new(cause, error.to_string()).into()
}

/// What follows from what was found: the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// Nothing to say.
    Clean,
    /// Others are about, and nothing of theirs is taken along.
    Told,
    /// Paths of others are taken along, and it is said.
    Disclosed,
    /// Paths of others are taken along, and the policy refuses that.
    Refused,
    /// More paths of others are deleted than may be without somebody saying so.
    Mass,
    /// Whoever commits is not who it says it is any more.
    StaleToken,
}

impl Row {
    /// Whether git goes on.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Clean | Self::Told | Self::Disclosed)
    }

    /// Whether somebody may pass it on purpose.
    #[must_use]
    pub fn can_be_passed(self) -> bool {
        matches!(self, Self::Disclosed | Self::Refused | Self::Mass)
    }
}

/// The table.
#[must_use]
pub fn row(lapse: Option<Lapse>, along: &[Along], policy: Policy, deletions_max: u32) -> Row {
    if lapse.is_some() {
        return Row::StaleToken;
    }
    let foreign = || along.iter().filter(|a| a.claim == Claim::Foreign);
    let deleted: usize = foreign().map(Along::deleted).sum();
    match (foreign().next(), policy) {
        _ if deleted > deletions_max as usize => Row::Mass,
        (Some(_), Policy::Refuse) => Row::Refused,
        (Some(_), Policy::Disclose) => Row::Disclosed,
        (None, _) if along.is_empty() => Row::Clean,
        (None, _) => Row::Told,
    }
}
