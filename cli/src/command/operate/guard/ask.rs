//! What a guard asks the ledger, and what follows: the tables of `docs/guards.md`.

use std::path::Path;

use tenure_projection::core::disclosure::Rule;
use tenure_projection::guards::{Along, Claim, GitRepository, GuardError};

use crate::exit::Cause;
use crate::fault::{Fault, Stop};

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
    /// Paths of others are taken along, which this holder is told for the first time: the repeat goes on.
    Warned,
    /// The repeat.
    Repeated,
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
        matches!(
            self,
            Self::Clean | Self::Told | Self::Disclosed | Self::Repeated
        )
    }

    /// Whether somebody may pass it on purpose: it stops git, and is about files.
    #[must_use]
    pub fn can_be_passed(self) -> bool {
        matches!(self, Self::Warned | Self::Refused | Self::Mass)
    }
}

/// The table. `named`: whoever commits presents a token, so that it can be remembered what was said to it.
#[must_use]
pub fn row(along: &[Along], named: bool, deletions_max: u32) -> Row {
    let foreign: Vec<&Along> = along.iter().filter(|a| a.claim == Claim::Foreign).collect();
    let deleted: usize = foreign.iter().map(|a| a.deleted()).sum();
    let Some(rule) = foreign.iter().map(|a| a.rule).max() else {
        return if along.is_empty() {
            Row::Clean
        } else {
            Row::Told
        };
    };
    let warned = || {
        foreign
            .iter()
            .filter(|a| a.rule == Rule::WarnOnce)
            .all(|a| a.known)
    };
    match rule {
        _ if deleted > deletions_max as usize => Row::Mass,
        Rule::Refuse => Row::Refused,
        Rule::WarnOnce if named && !warned() => Row::Warned,
        Rule::WarnOnce if named => Row::Repeated,
        // Without a token nobody can say whether it was said before.
        Rule::WarnOnce | Rule::Disclose => Row::Disclosed,
    }
}

#[cfg(test)]
mod tests {
    use tenure_projection::core::disclosure::Presence;
    use tenure_projection::core::id::SessionNo;
    use tenure_projection::guards::Staged;

    use super::*;

    fn along(claim: Claim, rule: Rule, known: bool, deleted: usize) -> Along {
        let path = |n: usize| Staged {
            path: format!("{n}").into_bytes(),
            deleted: n > 0,
        };
        Along {
            session: SessionNo(0),
            name: "web".into(),
            former: None,
            claim,
            holder: None,
            source: Presence::Declared,
            dispatches: Vec::new(),
            rule,
            known,
            paths: (0..=deleted).map(path).collect(),
        }
    }

    /// GIT-2, GIT-9, GIT-12, DSC-11: every combination of two claims, of what was said before, of a token and of deletions
    /// around the threshold gives the row that the table of the page names.
    #[test]
    fn every_combination_gives_the_row_of_the_table() {
        let claims = [Claim::Foreign, Claim::Former, Claim::Present, Claim::Stale];
        let mut all = Vec::new();
        for claim in claims {
            for rule in Rule::ALL {
                for known in [true, false] {
                    for deleted in [0, 1, 2] {
                        all.push(along(claim, *rule, known, deleted));
                    }
                }
            }
        }
        assert_eq!(row(&[], true, 0), Row::Clean);
        let mut seen = std::collections::BTreeSet::new();
        for first in &all {
            for second in &all {
                for named in [true, false] {
                    let both = [first.clone(), second.clone()];
                    let foreign: Vec<&Along> =
                        both.iter().filter(|a| a.claim == Claim::Foreign).collect();
                    let any = |rule| foreign.iter().any(|a| a.rule == rule);
                    let new = foreign.iter().any(|a| a.rule == Rule::WarnOnce && !a.known);
                    let deleted: usize = foreign.iter().map(|a| a.deleted()).sum();
                    let expected = if foreign.is_empty() {
                        Row::Told
                    } else if deleted > 2 {
                        Row::Mass
                    } else if any(Rule::Refuse) {
                        Row::Refused
                    } else if !any(Rule::WarnOnce) || !named {
                        Row::Disclosed
                    } else if new {
                        Row::Warned
                    } else {
                        Row::Repeated
                    };
                    assert_eq!(row(&both, named, 2), expected, "{both:?} {named}");
                    seen.insert(format!("{expected:?}"));
                }
            }
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
    }

    /// GIT-13: what stops git and is about files can be passed on purpose; who is superseded cannot.
    #[test]
    fn what_stops_git_can_be_passed_except_by_the_superseded() {
        let rows = [
            (Row::Clean, true, false),
            (Row::Told, true, false),
            (Row::Disclosed, true, false),
            (Row::Repeated, true, false),
            (Row::Warned, false, true),
            (Row::Refused, false, true),
            (Row::Mass, false, true),
            (Row::StaleToken, false, false),
        ];
        for (row, passes, can_be) in rows {
            assert_eq!(
                (row.passes(), row.can_be_passed()),
                (passes, can_be),
                "{row:?}"
            );
        }
    }
}
