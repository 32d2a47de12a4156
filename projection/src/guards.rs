//! Guards around a git checkout: whose paths a commit takes along, which locks git left behind, which commands
//! change what others work on.
//!
//! They inform and, where a policy says so, they refuse; they exclude nobody. `docs/guards.md` has the tables.

mod commit;
mod locks;
mod refs;
mod repository;
mod shell;
mod switch;

pub use commit::{Along, Claim, Located, Staged, locate_staged};
pub use locks::{
    Doubt, Kept, LockFile, LockVerdict, Locks, Removed, judge_lock, locks, owners, unlock,
};
pub use refs::RefClaim;
pub use repository::{GitRepository, GuardError, Worktree};
pub use shell::{Change, GitCommand, changing, classify, only_looks};
pub use switch::{Switch, head};
