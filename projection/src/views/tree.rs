//! A tree as it stands.

use tenure_core::generation::Epoch;
use tenure_core::id::{Moment, SessionNo};
use tenure_core::state::TreeStanding;

use super::{HolderView, Lens, SessionView};

/// A root and everything delegated from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeView {
    /// Name of the root.
    pub root: String,
    /// How it stands, whoever asks.
    pub standing: TreeStanding,
    /// Its epoch.
    pub epoch: Epoch,
    /// Who holds it, with the verdict of now.
    pub holder: Option<HolderView>,
    /// Since when it is held, or since when nobody holds it.
    pub since: Moment,
    /// Its sessions, the root first, then in the order in which they joined.
    pub sessions: Vec<SessionView>,
}

impl Lens<'_> {
    /// The tree that a session is in.
    #[must_use]
    pub fn tree(&self, session: SessionNo) -> Option<TreeView> {
        let root = self.state.session(session)?.root;
        let tree = self.state.tree(root)?;
        let held = self.state.tree_holder(root);
        let dropped = tree.notes.last().map(|note| note.at);
        let since = held
            .map(|(_, since)| since)
            .or(dropped)
            .or_else(|| self.state.since(root))?;
        Some(TreeView {
            root: self.name(root),
            standing: tree.standing,
            epoch: tree.epoch,
            holder: held.map(|(holder, _)| self.holder(&holder)),
            since,
            sessions: self
                .state
                .sessions_of_tree(root)
                .filter_map(|(number, _)| self.session(number))
                .collect(),
        })
    }
}
