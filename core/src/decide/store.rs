//! The store's own frames.

use alloc::vec;

use crate::command::{AcceptFinding, Count, Settle, Settlement};
use crate::event::{FindingAccepted, HomeAccepted, IncarnationRaised, RefusalsCounted};
use crate::state::State;

use super::Decision;

/// Logs how often a refusal was repeated; only upward.
pub(super) fn count(state: &State, c: &Count) -> Decision {
    let known = state.refusal(c.refusal).map_or(0, |r| r.count);
    if c.count <= known {
        return Decision::nothing();
    }
    Decision::plain(vec![
        RefusalsCounted {
            refusal: c.refusal,
            count: c.count,
        }
        .into(),
    ])
}

/// A store that was copied or restored begins a new life, in which no older token is current.
pub(super) fn settle(state: &State, c: &Settle) -> Decision {
    let home = HomeAccepted { reason: c.reason };
    if c.how == Settlement::Moved || c.incarnation <= state.incarnation {
        return Decision::plain(vec![home.into()]);
    }
    let raised = IncarnationRaised {
        incarnation: c.incarnation,
        how: c.how,
        reason: c.reason,
    };
    Decision::plain(vec![raised.into(), home.into()])
}

/// A finding that stopped appends is acknowledged; what is no finding, or no longer, needs nothing.
pub(super) fn accept_finding(state: &State, c: &AcceptFinding) -> Decision {
    if !state.findings.contains(&c.position) {
        return Decision::nothing();
    }
    Decision::plain(vec![
        FindingAccepted {
            position: c.position,
            reason: c.reason,
        }
        .into(),
    ])
}
