//! Branches of descent: which records continue which, and where several continue one.

use std::collections::HashMap;

use super::finding::{About, Finding, Findings, Kind};
use super::shape::Host;
use super::{Reading, Record, claude, codex, gemini};

/// Where a branch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It continues nothing.
    Start,
    /// It continues a record of another branch.
    Fork {
        /// That branch, by its number in [`Branches::branches`]; always a smaller one.
        of: usize,
        /// That record, by its number in [`Reading::records`].
        at: usize,
    },
    /// It continues a record that is not in the file.
    Lost,
    /// Records whose branch cannot be told. They continue nothing, not even each other.
    Unplaced,
}

impl Origin {
    /// The printed word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Fork { .. } => "fork",
            Self::Lost => "lost",
            Self::Unplaced => "unplaced",
        }
    }
}

/// A line of descent: the file's own, or one that leaves it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// Where it begins.
    pub origin: Origin,
    /// Whether it is a subagent's.
    pub sidechain: bool,
    /// Its own records, by their numbers in [`Reading::records`]: each behind the one that it continues.
    pub records: Vec<usize>,
}

/// A transcript taken apart: every record stands in exactly one branch, besides those that only repeat another.
#[derive(Clone, Debug, Default)]
pub struct Branches {
    /// The branches; the first is the one that a resume goes on with, where the host follows one at all. A file without
    /// records has none.
    pub branches: Vec<Branch>,
    /// Records that are in the file already, byte for byte and under the same id.
    pub repeated: Vec<usize>,
    /// What was found in how the records hang together.
    pub findings: Findings,
}

impl Branches {
    /// How many records stand elsewhere than in the first branch: where the host follows one, what a resume does not
    /// see.
    #[must_use]
    pub fn unreachable(&self) -> usize {
        let others = self.branches.iter().skip(1);
        others.map(|branch| branch.records.len()).sum()
    }
}

/// Takes a transcript apart by the rules of its host. One of no known host is one branch.
#[must_use]
pub fn separate(reading: &Reading) -> Branches {
    match reading.host {
        Some(Host::Claude) => claude::separate(reading),
        Some(Host::Codex) => codex::separate(reading),
        Some(Host::Gemini) => gemini::separate(reading),
        None => whole(reading, Findings::default()),
    }
}

/// Everything in one branch, as it stands.
pub(super) fn whole(reading: &Reading, findings: Findings) -> Branches {
    let records: Vec<usize> = (0..reading.records.len()).collect();
    let branch = Branch {
        origin: Origin::Start,
        sidechain: false,
        records,
    };
    Branches {
        branches: Some(branch)
            .filter(|b| !b.records.is_empty())
            .into_iter()
            .collect(),
        repeated: Vec::new(),
        findings,
    }
}

/// A finding about a record.
pub(super) fn finding(kind: Kind, record: &Record, about: About) -> Finding {
    Finding {
        kind,
        offset: record.span.offset,
        bytes: record.span.bytes,
        line: record.line,
        about,
    }
}

/// A branch that is being put together.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub origin: Origin,
    pub sidechain: bool,
    pub records: Vec<usize>,
}

impl Draft {
    pub fn new(origin: Origin, sidechain: bool) -> Self {
        Self {
            origin,
            sidechain,
            records: Vec::new(),
        }
    }
}

/// Puts branches in order: the one that a resume goes on with first, then each behind those that it comes from, then
/// what could not be placed. A draft comes behind the one that it is a branch of.
pub(super) fn ordered(drafts: Vec<Draft>, first: usize, unplaced: Vec<usize>) -> Vec<Branch> {
    let mut depths: Vec<usize> = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        depths.push(match draft.origin {
            Origin::Fork { of, .. } => depths[of] + 1,
            _ => 0,
        });
    }
    let mut order: Vec<usize> = (0..drafts.len())
        .filter(|n| !drafts[*n].records.is_empty())
        .collect();
    order.sort_by_cached_key(|n| (*n != first, depths[*n], drafts[*n].records.first().copied()));
    let numbers: HashMap<usize, usize> = order
        .iter()
        .enumerate()
        .map(|(new, old)| (*old, new))
        .collect();
    let mut branches: Vec<Branch> = Vec::with_capacity(order.len() + 1);
    for old in order {
        let draft = &drafts[old];
        branches.push(Branch {
            origin: match draft.origin {
                Origin::Fork { of, at } => Origin::Fork {
                    of: numbers[&of],
                    at,
                },
                other => other,
            },
            sidechain: draft.sidechain,
            records: draft.records.clone(),
        });
    }
    if !unplaced.is_empty() {
        branches.push(Branch {
            origin: Origin::Unplaced,
            sidechain: false,
            records: unplaced,
        });
    }
    branches
}
