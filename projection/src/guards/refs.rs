//! Which refs another session claims by what it works on (GIT-11).
//!
//! | row | ref | items that claim it |
//! |---|---|---|
//! | branch | `refs/heads/NAME` | `branch:NAME`, `commit:NAME`, `pr:NAME`, `publication:NAME` |
//! | tag | `refs/tags/NAME` | `tag:NAME`, `publication:NAME` |
//! | other | every other ref | none |

use tenure_core::holder::Verdict;
use tenure_core::id::{DispatchNo, SessionNo};
use tenure_core::state::DispatchState;

use crate::views::{HolderView, Lens};

/// What claims a branch: whoever commits on it, proposes it, or publishes it moves it.
const OF_BRANCH: &[&str] = &["branch", "commit", "pr", "publication"];
/// What claims a tag.
const OF_TAG: &[&str] = &["tag", "publication"];

/// A ref that another session claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefClaim {
    /// The ref, as git spells it.
    pub reference: Vec<u8>,
    /// The item by which it is claimed.
    pub item: String,
    /// The dispatch that the session accepted.
    pub dispatch: DispatchNo,
    /// Which session.
    pub session: SessionNo,
    /// Its name.
    pub name: String,
    /// Who holds its tree, with the verdict on that.
    pub holder: HolderView,
}

impl Lens<'_> {
    /// Who claims a ref that `asker` moves: sessions other than it that work on an item of the table, and whose holder
    /// is not provably dead.
    #[must_use]
    pub fn claims_of(&self, asker: Option<SessionNo>, reference: &[u8]) -> Vec<RefClaim> {
        let (kinds, name) = if let Some(name) = reference.strip_prefix(b"refs/heads/") {
            (OF_BRANCH, name)
        } else if let Some(name) = reference.strip_prefix(b"refs/tags/") {
            (OF_TAG, name)
        } else {
            return Vec::new();
        };
        let items = kinds
            .iter()
            .map(|kind| [kind.as_bytes(), b":", name].concat());
        let claims = items.filter_map(|item| self.claim_by(asker, reference, &item));
        claims.collect()
    }

    fn claim_by(
        &self,
        asker: Option<SessionNo>,
        reference: &[u8],
        item: &[u8],
    ) -> Option<RefClaim> {
        let dispatch = self.state.live_dispatch_of(item)?;
        let row = self.state.dispatch(dispatch)?;
        if row.state != DispatchState::Accepted || Some(row.session) == asker {
            return None;
        }
        let root = self.state.session(row.session)?.root;
        let holder = self.holder(&self.state.tree_holder(root)?.0);
        (holder.verdict != Verdict::Dead).then(|| RefClaim {
            reference: reference.to_vec(),
            item: String::from_utf8_lossy(item).into_owned(),
            dispatch,
            session: row.session,
            name: self.state.name(row.session),
            holder,
        })
    }
}
