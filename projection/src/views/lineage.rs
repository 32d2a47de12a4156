//! Where a session comes from, and what was branched from it (BRN-23).

use std::collections::BTreeMap;

use tenure_core::id::SessionNo;

use super::{BranchView, Lens};

/// How a session stands to the one that was asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kinship {
    /// One that it was branched from, directly or not.
    Ancestor,
    /// The session itself.
    Itself,
    /// One that was branched from it, directly or not.
    Branch,
}

impl Kinship {
    /// The printed word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ancestor => "ancestor",
            Self::Itself => "itself",
            Self::Branch => "branch",
        }
    }
}

/// One session of a lineage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineageView {
    /// Its name.
    pub session: String,
    /// How it stands to the one asked about.
    pub kinship: Kinship,
    /// How many branches lie between it and the oldest ancestor.
    pub depth: usize,
    /// Whether it is active; retired otherwise.
    pub active: bool,
    /// How many records its history has.
    pub records: u64,
    /// Where it was branched; `None` for the oldest ancestor.
    pub branch: Option<BranchView>,
}

impl Lens<'_> {
    /// The ancestors of a session, oldest first, then itself, then its branches: each followed by its own, in the
    /// order in which they were made.
    #[must_use]
    pub fn lineage(&self, session: SessionNo) -> Vec<LineageView> {
        let mut views = Vec::new();
        for ancestor in self.ancestors(session) {
            views.extend(self.kin(ancestor, Kinship::Ancestor, views.len()));
        }
        let mut branches: BTreeMap<SessionNo, Vec<SessionNo>> = BTreeMap::new();
        for (number, record) in self.state.sessions.iter().enumerate() {
            if let Some(origin) = record.history.origin {
                let of = branches.entry(origin.source).or_default();
                of.push(SessionNo(number as u64));
            }
        }
        let mut open = vec![(session, views.len(), Kinship::Itself)];
        while let Some((number, depth, kinship)) = open.pop() {
            views.extend(self.kin(number, kinship, depth));
            let of = branches.get(&number).map_or(&[][..], |of| of);
            let below = of.iter().rev().map(|b| (*b, depth + 1, Kinship::Branch));
            open.extend(below);
        }
        views
    }

    /// The ancestors of a session, oldest first.
    fn ancestors(&self, session: SessionNo) -> Vec<SessionNo> {
        let mut ancestors = Vec::new();
        let source = |number| self.state.session(number)?.history.origin.map(|o| o.source);
        let mut next = source(session);
        while let Some(number) = next {
            ancestors.push(number);
            next = source(number);
        }
        ancestors.reverse();
        ancestors
    }

    fn kin(&self, number: SessionNo, kinship: Kinship, depth: usize) -> Option<LineageView> {
        let record = self.state.session(number)?;
        Some(LineageView {
            session: self.name(number),
            kinship,
            depth,
            active: !record.retired,
            records: record.history.count(),
            branch: self.branch(record),
        })
    }
}
