//! What is recorded about checkouts: guards that were passed on purpose, locks that were removed. Nothing in the
//! state follows from either, and nobody is refused: they are for whoever asks later.

use alloc::vec;

use crate::command::{BypassGuard, RemoveLock};
use crate::event::{GuardBypassed, LockRemoved};

use super::Decision;
use super::guard::Ask;

/// A guard is passed by whoever says why (GIT-13). The token presented need not be current: it is evidence, and the
/// frame stands on nothing.
pub(super) fn bypass_guard(ask: Ask<'_>, c: &BypassGuard) -> Decision {
    let session = ask.presented_session();
    let presented = ask.request.input.presented.map(|p| p.generation);
    Decision::plain(vec![
        GuardBypassed {
            hook: c.hook,
            session,
            presented: presented.filter(|_| session.is_some()),
            checkout: c.checkout,
            said: c.said,
            reason: c.reason,
        }
        .into(),
    ])
}

/// A lock that git left is gone (GIT-5).
pub(super) fn remove_lock(c: &RemoveLock) -> Decision {
    Decision::plain(vec![
        LockRemoved {
            path: c.path,
            uid: c.uid,
            bytes: c.bytes,
            modified: c.modified,
            reason: c.reason,
        }
        .into(),
    ])
}
