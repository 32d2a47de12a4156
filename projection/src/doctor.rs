//! Who is still there: every claim with its verdict, and files that older schemes left. `docs/liveness.md` has the
//! tables.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tenure_core::holder::{Proof, Verdict};
use tenure_core::id::{RoleNo, SessionNo};
use tenure_core::state::TreeStanding;

use crate::views::{HolderView, Lens};

mod leftovers;

pub use leftovers::{Leftover, leftovers};

/// Why a holder is provably dead: the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Death {
    /// Row earlier-boot.
    EarlierBoot,
    /// Row no-process.
    NoProcess,
    /// Row recycled.
    Recycled,
}

impl Death {
    /// Every one, in the order of counts.
    pub const ALL: [Self; 3] = [Self::EarlierBoot, Self::NoProcess, Self::Recycled];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EarlierBoot => "earlier-boot",
            Self::NoProcess => "no-process",
            Self::Recycled => "recycled",
        }
    }

    /// As people count it: `3 of an earlier boot`.
    #[must_use]
    pub fn counted(self) -> &'static str {
        match self {
            Self::EarlierBoot => "of an earlier boot",
            Self::NoProcess => "without process",
            Self::Recycled => "of a recycled pid",
        }
    }

    /// What proved it; `None` where nothing did.
    #[must_use]
    pub fn of(holder: &HolderView) -> Option<Self> {
        if holder.verdict != Verdict::Dead {
            return None;
        }
        holder.evidence.iter().find_map(|proof| match proof {
            Proof::OtherBoot => Some(Self::EarlierBoot),
            Proof::NoSuchProcess => Some(Self::NoProcess),
            Proof::OtherInode | Proof::OtherStart => Some(Self::Recycled),
            _ => None,
        })
    }
}

/// What is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    /// A session, alone in its tree.
    Session,
    /// A tree, by its root.
    Tree,
    /// A session of the tree of this root: held with it.
    Member(String),
    /// A role, by this session.
    Role(String),
}

impl Held {
    /// Its word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Session | Self::Member(_) => "session",
            Self::Tree => "tree",
            Self::Role(_) => "role",
        }
    }
}

/// A claim with its verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimView {
    /// What is held.
    pub held: Held,
    /// The session, or `ROLE@SCOPE`.
    pub name: String,
    /// For a role: which.
    pub role: Option<RoleNo>,
    /// Who holds it, with the verdict and the evidence.
    pub holder: HolderView,
    /// Why its holder is provably dead.
    pub death: Option<Death>,
}

impl ClaimView {
    /// Whether it is released by itself: a session of a tree and a role of a dead session end with what they are
    /// held through.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        match self.held {
            Held::Session | Held::Tree => true,
            Held::Member(_) => false,
            Held::Role(_) => self.role.is_some(),
        }
    }
}

impl Lens<'_> {
    /// Every claim on a session, a tree or a role: what nobody holds is none.
    #[must_use]
    pub fn claims(&self) -> Vec<ClaimView> {
        let numbers = || (0..self.state.sessions.len()).map(|n| SessionNo(n as u64));
        let mut claims: Vec<ClaimView> = numbers().filter_map(|n| self.session_claim(n)).collect();
        let roles = (0..self.state.roles.len()).map(|n| RoleNo(n as u64));
        claims.extend(roles.filter_map(|n| self.role_claim(n)));
        claims
    }

    fn session_claim(&self, number: SessionNo) -> Option<ClaimView> {
        let record = self.state.session(number)?;
        let (holder, _) = self.state.tree_holder(record.root)?;
        let root = self.state.session(record.root)?;
        let alone = root.tree.members.is_empty();
        let pending = root.tree.standing == TreeStanding::PendingPublish;
        // A retired root may still be what its children are held through.
        if record.retired && (alone || number != record.root) && !pending {
            return None;
        }
        let held = match number == record.root {
            true if alone => Held::Session,
            true => Held::Tree,
            false => Held::Member(self.state.name(record.root)),
        };
        let holder = self.holder(&holder);
        Some(ClaimView {
            held,
            name: self.state.name(number),
            role: None,
            death: Death::of(&holder),
            holder,
        })
    }

    fn role_claim(&self, number: RoleNo) -> Option<ClaimView> {
        let holding = self.state.role(number)?.holding.as_ref()?;
        let view = self.role(number)?;
        let holder = view.holder?;
        let death = Death::of(&holder);
        // With a process of its own it can end while its session goes on.
        let own = holding.process.is_some();
        Some(ClaimView {
            held: Held::Role(self.state.name(holding.session)),
            name: format!("{}@{}", view.role, view.scope),
            role: Some(number).filter(|_| own),
            holder,
            death,
        })
    }

    /// The top directories of the checkouts that sessions are present in, each once.
    #[must_use]
    pub fn checkouts(&self) -> Vec<PathBuf> {
        let here = self.host.this().id;
        let mut tops: Vec<PathBuf> = Vec::new();
        for number in 0..self.state.sessions.len() {
            let number = SessionNo(number as u64);
            if !self.state.is_active(number) {
                continue;
            }
            let local = self
                .state
                .presence(number)
                .filter(|(_, _, scope)| scope.host == here);
            tops.extend(local.filter_map(|(_, _, scope)| {
                let top = self.state.pool.get(scope.repository.as_ref()?.top);
                Some(PathBuf::from(OsStr::from_bytes(top)))
            }));
        }
        tops.sort();
        tops.dedup();
        tops
    }
}
