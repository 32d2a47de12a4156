//! What stands of the frames that are about trees.

use crate::event::{
    Claimed, Delegated, Event, FenceKind, Recovered, ReleaseCause, Released, TreeFence, Unreserved,
};
use crate::generation::{Epoch, Standing};
use crate::id::SessionNo;
use crate::state::{Tree, TreeStanding};

use super::Look;

impl<'a> Look<'a> {
    /// The tree of a session that is a root.
    fn own_tree(self, root: SessionNo) -> Option<&'a Tree> {
        let record = self.state.session(root)?;
        (record.root == root).then_some(&record.tree)
    }

    fn is_next(tree: &Tree, epoch: Epoch) -> bool {
        tree.epoch.next() == Some(epoch)
    }

    /// Whether the fence is about a tree that is there, or about the one that a child leaves for its own, at
    /// its epoch or the next.
    pub(super) fn names_a_tree(self, fence: TreeFence) -> bool {
        let Some(record) = self.state.session(fence.root) else {
            return false;
        };
        let theirs = record.root == fence.root || self.entry.fence.session == Some(fence.root);
        theirs && (record.tree.epoch == fence.epoch || Self::is_next(&record.tree, fence.epoch))
    }

    fn fence_of(self, root: SessionNo) -> Option<Epoch> {
        let tree = self.entry.fence.tree?;
        (tree.root == root).then_some(tree.epoch)
    }

    /// The fence is of this tree and gives its next epoch, which is `epoch`.
    fn ends(self, root: SessionNo, epoch: Epoch) -> bool {
        let next = self.own_tree(root).is_some_and(|t| Self::is_next(t, epoch));
        next && self.fence_of(root) == Some(epoch)
    }

    /// The fence is of this tree and leaves its epoch as it is.
    fn keeps(self, root: SessionNo) -> bool {
        let epoch = self.own_tree(root).map(|t| t.epoch);
        epoch.is_some() && self.fence_of(root) == epoch
    }

    fn grants_to(self, session: SessionNo) -> bool {
        self.entry.fence.kind == FenceKind::Grant && self.entry.fence.session == Some(session)
    }

    /// A fence that names a tree belongs to a grant or to an event about that tree: a replay of fences alone
    /// takes its word for the epoch.
    pub(super) fn tree_is_meant(self) -> bool {
        let about = |event: &Event| {
            matches!(
                event,
                Event::Published(_)
                    | Event::Claimed(_)
                    | Event::RolledBack(_)
                    | Event::Recovered(_)
                    | Event::Released(_)
                    | Event::Unreserved(_)
            )
        };
        self.entry.fence.tree.is_none()
            || self.entry.fence.kind == FenceKind::Grant
            || self.entry.events.iter().any(about)
    }

    /// Under a token of some session of the tree, or under its epoch.
    fn by_tree(self, root: SessionNo) -> bool {
        let session = self.entry.fence.session.and_then(|s| self.state.session(s));
        match self.entry.fence.kind {
            FenceKind::Write => session.is_some_and(|s| s.root == root),
            FenceKind::Claim => true,
            FenceKind::None | FenceKind::Grant => false,
        }
    }

    fn stands_so(self, root: SessionNo, standings: &[TreeStanding]) -> bool {
        self.own_tree(root)
            .is_some_and(|t| standings.contains(&t.standing))
    }

    /// Whether the frame ends a reservation of that root before anything else.
    pub(super) fn unreserves(self, root: SessionNo) -> bool {
        matches!(self.entry.events.first(), Some(Event::Unreserved(e)) if e.root == root)
    }

    /// Whether the frame drops the tree of the root that it retires.
    pub(super) fn drops_a_tree(self) -> bool {
        matches!(self.entry.events.get(1), Some(Event::Released(_)))
    }

    /// Whether the tree that a registered session comes to be in is the one that the fence says.
    pub(super) fn rooted(self, session: SessionNo) -> bool {
        let mut events = self.entry.events.iter();
        if events.any(|e| matches!(e, Event::Delegated(_))) {
            // Judged with that event.
            return true;
        }
        let Some(record) = self.state.session(session) else {
            return self.entry.fence.tree.is_none();
        };
        let tree = &record.tree;
        let own = record.root == session;
        match self.entry.fence.tree {
            None => own && !tree.grown && !self.unreserves(session),
            Some(fence) if fence.root != session => false,
            Some(fence) if Self::is_next(tree, fence.epoch) => true,
            // Under a token of the tree whose retired root it is.
            Some(_) => own && tree.standing == TreeStanding::Owned,
        }
    }

    /// Whether the epoch that a session is adopted under is its tree's.
    pub(super) fn adopted_in_tree(self, session: SessionNo) -> bool {
        let Some(record) = self.state.session(session) else {
            return false;
        };
        match self.entry.events.first() {
            Some(Event::Claimed(e)) => e.root == record.root,
            _ if self.entry.fence.tree.is_none() => record.root == session && !record.tree.grown,
            _ => self.keeps(record.root) && !self.stands_so(record.root, &[TreeStanding::Unowned]),
        }
    }

    pub(super) fn tree_event(self, event: &Event) -> bool {
        match event {
            Event::Delegated(e) => self.delegated(e),
            Event::Reserved(e) => self.grants_to(e.root),
            Event::Published(e) => {
                self.by_tree(e.root)
                    && self.keeps(e.root)
                    && self.stands_so(e.root, &[TreeStanding::PendingPublish])
            }
            Event::Claimed(e) => self.claimed(e),
            Event::RolledBack(e) => {
                self.entry.fence.kind == FenceKind::Claim
                    && self.ends(e.root, e.epoch)
                    && self.stands_so(e.root, &[TreeStanding::Adopting])
            }
            Event::Recovered(e) => self.recovered(e),
            Event::Released(e) => self.released(e),
            Event::Unreserved(e) => self.unreserved(e),
            Event::Reconciled(e) => self.grants_to(e.session),
            _ => false,
        }
    }

    fn delegated(self, e: &Delegated) -> bool {
        let in_tree = self
            .state
            .session(e.parent)
            .is_some_and(|p| p.root == e.root);
        let free = self
            .state
            .session(e.session)
            .is_none_or(|known| known.root != e.session || known.tree.members.is_empty());
        let owned = self.state.standing(e.parent) == Some(Standing::Granted)
            && self.keeps(e.root)
            && self.stands_so(e.root, &[TreeStanding::Owned, TreeStanding::PendingPublish]);
        in_tree
            && free
            && e.session != e.root
            && self.grants_to(e.session)
            && (owned || self.branches_and_claims(e))
    }

    /// Whether the frame claims the tree for a branch that stands where its source does (TRE-9).
    fn branches_and_claims(self, e: &Delegated) -> bool {
        let Some([Event::Claimed(claimed), .., Event::Branched(branch)]) = self.without_seal()
        else {
            return false;
        };
        let source = self.state.session(branch.source);
        claimed.root == e.root
            && source.is_some_and(|s| s.root == e.root && s.parent == Some(e.parent))
    }

    fn claimed(self, e: &Claimed) -> bool {
        matches!(self.entry.fence.kind, FenceKind::Claim | FenceKind::Grant)
            && self.ends(e.root, e.epoch)
            && !self.stands_so(e.root, &[TreeStanding::PendingPublish])
    }

    fn recovered(self, e: &Recovered) -> bool {
        let Some(record) = self.state.session(e.session) else {
            return false;
        };
        self.entry.fence.kind == FenceKind::Claim
            && !record.retired
            && self.keeps(record.root)
            && self.state.standing(e.session) != Some(Standing::Granted)
            && self.stands_so(record.root, &[TreeStanding::Adopting, TreeStanding::Owned])
    }

    fn released(self, e: &Released) -> bool {
        let standing = match e.how {
            ReleaseCause::Given => {
                self.by_tree(e.root) && self.stands_so(e.root, &[TreeStanding::Owned])
            }
            ReleaseCause::Proven => {
                self.entry.fence.kind == FenceKind::Claim
                    && self.stands_so(e.root, &[TreeStanding::Adopting, TreeStanding::Owned])
            }
            ReleaseCause::RootRetired => {
                matches!(self.entry.events.first(), Some(Event::Retired(r)) if r.session == e.root)
            }
        };
        standing && self.ends(e.root, e.epoch)
    }

    fn unreserved(self, e: &Unreserved) -> bool {
        let kind = match self.entry.fence.kind {
            FenceKind::Write | FenceKind::Grant => self.entry.fence.session == Some(e.root),
            FenceKind::Claim => true,
            FenceKind::None => false,
        };
        kind && self.ends(e.root, e.epoch)
            && self.stands_so(e.root, &[TreeStanding::PendingPublish])
    }
}
