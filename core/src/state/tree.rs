//! A tree: a root session and the sessions delegated from it, held together (`docs/trees.md`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::generation::{Epoch, Generation, Standing};
use crate::id::{Moment, SessionNo};
use crate::text::Symbol;

use super::{Granted, Holder, Session, State};

wire_enum! {
    /// How a tree stands, whoever asks.
    pub enum TreeStanding {
        /// Nobody holds it.
        Unowned = 1 "unowned",
        /// Its root was reserved: held, and in no list.
        PendingPublish = 2 "pending-publish",
        /// Claimed, and no session adopted yet.
        Adopting = 3 "adopting",
        /// Held.
        Owned = 4 "owned",
    }
}

/// Who took a tree over by a claim, until its root is granted under the same epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Claimer {
    /// Who.
    pub holder: Holder,
    /// Since when.
    pub since: Moment,
}

/// One change of an epoch, kept so that whoever lost by it can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct TreeNote {
    /// The epoch after it.
    pub epoch: Epoch,
    /// What it was.
    pub how: Granted,
    /// When.
    pub at: Moment,
    /// By whom, where somebody holds the tree after it.
    pub actor: Option<Symbol>,
    /// Why, where a reason was given.
    pub reason: Option<Symbol>,
}

/// What a session knows as a root. A session that was delegated keeps its own, so that no epoch repeats should
/// it become a root again.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
#[repr(C)]
pub struct Tree {
    /// The current epoch: first, beside what a session has of its own that every frame looks at.
    pub epoch: Epoch,
    /// How it stands.
    pub standing: TreeStanding,
    /// Whether anything was ever delegated from it, or it was ever claimed: from then on its frames name its
    /// epoch, and evidence about its holder names a position.
    pub grown: bool,
    /// Who claimed it; `None` where the root's own grant says who holds it.
    pub claimer: Option<Box<Claimer>>,
    /// The sessions delegated from it, at any depth, in the order in which they joined.
    pub members: Vec<SessionNo>,
    /// Claims, releases and rollbacks, oldest first.
    pub notes: Vec<TreeNote>,
}

impl Tree {
    /// The tree of a root that was just registered for the first time.
    pub(crate) fn new() -> Self {
        Self {
            epoch: Epoch::FIRST,
            standing: TreeStanding::Owned,
            grown: false,
            claimer: None,
            members: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl State {
    /// The tree that a session is in.
    #[must_use]
    pub fn tree(&self, session: SessionNo) -> Option<&Tree> {
        let root = self.session(session)?.root;
        self.session(root).map(|root| &root.tree)
    }

    /// How a session stands towards tokens.
    #[must_use]
    pub fn standing(&self, session: SessionNo) -> Option<Standing> {
        Some(self.standing_of(session, self.session(session)?))
    }

    /// The same of a session that was looked up, of that number.
    pub(super) fn standing_of(&self, session: SessionNo, record: &Session) -> Standing {
        // Most sessions are roots: what holds of their tree stands beside them.
        let tree = match record.root == session {
            true => Some(&record.tree),
            false => self.session(record.root).map(|root| &root.tree),
        };
        match record.holder {
            _ if record.retired => Standing::Retired,
            None => Standing::Ungranted,
            Some(_) if tree.map(|t| t.epoch) != Some(record.epoch) => Standing::Lapsed,
            Some(_) => Standing::Granted,
        }
    }

    /// Who holds the tree of `root`, and since when.
    #[must_use]
    pub fn tree_holder(&self, root: SessionNo) -> Option<(Holder, Moment)> {
        let record = self.session(root)?;
        if record.tree.standing == TreeStanding::Unowned {
            return None;
        }
        match &record.tree.claimer {
            Some(claimer) => Some((claimer.holder, claimer.since)),
            None => record.holder.map(|holder| (holder, record.since())),
        }
    }

    /// How evidence about the tree's holder names its holding, so that a verdict about one never counts for
    /// another: the root and its generation, or else the root and the position since which it is held
    /// (`docs/trees.md`).
    #[must_use]
    pub fn holding(&self, root: SessionNo) -> Option<(SessionNo, Generation)> {
        let record = self.session(root)?;
        if !record.tree.grown {
            return Some((root, record.generation));
        }
        let (_, since) = self.tree_holder(root)?;
        Some((
            root,
            Generation {
                incarnation: self.incarnation,
                number: since.position.0,
            },
        ))
    }

    /// Who writes as the session: who it was granted to, while that grant is current. `None` where no token of it
    /// is.
    #[must_use]
    pub fn writer(&self, session: SessionNo) -> Option<Holder> {
        let current = self.standing(session) == Some(Standing::Granted);
        self.session(session)?.holder.filter(|_| current)
    }

    /// Whom to ask about a session: who writes as it, else who holds its tree. Of a retired session, who held it
    /// last.
    #[must_use]
    pub fn holder(&self, session: SessionNo) -> Option<Holder> {
        let record = self.session(session)?;
        if record.retired {
            return record.holder;
        }
        let of_tree = || self.tree_holder(record.root).map(|(holder, _)| holder);
        self.writer(session).or_else(of_tree)
    }

    /// Since when a session stands as it does: its newest grant or end, or what happened to its tree behind that.
    #[must_use]
    pub fn since(&self, session: SessionNo) -> Option<Moment> {
        let record = self.session(session)?;
        let note = self.tree_note_of(session);
        Some(note.map_or_else(|| record.since(), |note| note.at))
    }

    /// By what the token of an active session lapsed last.
    #[must_use]
    pub fn tree_note_of(&self, session: SessionNo) -> Option<TreeNote> {
        let lapsed = self.standing(session) == Some(Standing::Lapsed);
        self.tree(session)?.notes.last().copied().filter(|_| lapsed)
    }

    /// Whether a session may be shown: not below a root that is reserved and not published.
    #[must_use]
    pub fn is_published(&self, session: SessionNo) -> bool {
        let standing = self.tree(session).map(|t| t.standing);
        standing.is_some_and(|s| s != TreeStanding::PendingPublish)
    }

    /// A root and everything delegated from it.
    pub fn sessions_of_tree(&self, root: SessionNo) -> impl Iterator<Item = (SessionNo, &Session)> {
        let members = self.session(root).map_or(&[][..], |s| &s.tree.members);
        core::iter::once(root)
            .chain(members.iter().copied())
            .filter_map(|n| Some((n, self.session(n)?)))
    }
}
