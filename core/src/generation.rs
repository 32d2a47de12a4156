//! The comparison this project exists for: is the presented generation the current one?

use core::fmt;

use bincode::{Decode, Encode};

use crate::zoo::planted;

/// The fencing number of a session. It grows at every grant, never repeats and never goes back; the
/// incarnation of the log is part of it and is compared first, so that no token from a lost tail can ever
/// be accepted again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub struct Generation {
    /// The log's own life, from 1.
    pub incarnation: u64,
    /// The number within it, from 1.
    pub number: u64,
}

impl Generation {
    /// The first generation of a name in `incarnation`.
    #[must_use]
    pub fn first(incarnation: u64) -> Self {
        Self {
            incarnation,
            number: 1,
        }
    }

    /// What the next grant in `incarnation` gives; `None` when the number is used up.
    #[must_use]
    pub fn next(self, incarnation: u64) -> Option<Self> {
        Some(Self {
            incarnation,
            number: self.number.checked_add(1)?,
        })
    }

    /// Reads `G` or `I.G`: whole numbers from 1, without sign, leading zero or anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let whole = |t: &str| -> Option<u64> {
            let plain = !t.starts_with('0') && t.bytes().all(|b| b.is_ascii_digit());
            if plain { t.parse().ok() } else { None }
        };
        match text.split_once('.') {
            Some((incarnation, number)) => Some(Self {
                incarnation: whole(incarnation)?,
                number: whole(number)?,
            }),
            None => Some(Self {
                incarnation: 1,
                number: whole(text)?,
            }),
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.incarnation == 1 {
            write!(f, "{}", self.number)
        } else {
            write!(f, "{}.{}", self.incarnation, self.number)
        }
    }
}

/// The fencing number of a tree: grows whenever the tree changes hands as a whole or is given back, and never
/// repeats. A token is current only under the epoch that its generation was granted under (`docs/trees.md`).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    bincode::Encode,
    bincode::Decode,
)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of a tree that was just made.
    pub const FIRST: Self = Self(1);

    /// The one after it; `None` when the numbers are used up.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a session stands towards tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Somebody was granted the current generation.
    Granted,
    /// The incarnation was raised and nobody has adopted since: the current number was never granted.
    Ungranted,
    /// Granted under an epoch of its tree that has passed: only an adopt makes it writable again.
    Lapsed,
    /// Given back; only a later register makes it active again.
    Retired,
}

/// Why a presented generation is not the current one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lapse {
    /// Superseded by a later grant, or lapsed with its tree.
    Stale,
    /// Newer than anything granted.
    NeverIssued,
    /// The current number, of a retired session.
    Retired,
}

/// The check of every write path (REG-4, REG-5, REG-6): the presented generation must equal the current one
/// and the session must be active.
///
/// | presented | granted | ungranted | lapsed | retired |
/// |---|---|---|---|---|
/// | older | stale | stale | stale | stale |
/// | equal | current | never issued | stale | retired |
/// | newer | never issued | never issued | never issued | never issued |
///
/// # Errors
/// The [`Lapse`] of the table.
pub fn check(current: Generation, standing: Standing, presented: Generation) -> Result<(), Lapse> {
    #[cfg(tenure_plant = "no_generation_check")]
    return Ok(());
    #[cfg(not(tenure_plant = "no_generation_check"))]
    if planted("generation-at-least") && presented > current {
        return Ok(());
    }
    #[cfg(not(tenure_plant = "no_generation_check"))]
    match presented.cmp(&current) {
        core::cmp::Ordering::Less => Err(Lapse::Stale),
        core::cmp::Ordering::Greater => Err(Lapse::NeverIssued),
        core::cmp::Ordering::Equal => match standing {
            Standing::Granted => Ok(()),
            Standing::Ungranted => Err(Lapse::NeverIssued),
            Standing::Lapsed => Err(Lapse::Stale),
            Standing::Retired => Err(Lapse::Retired),
        },
    }
}
