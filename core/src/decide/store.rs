//! The store's own frames.

use alloc::vec;

use crate::command::{AcceptFinding, Count, Lose, SetAside, Settle, Settlement};
use crate::event::{
    FindingAccepted, HomeAccepted, IncarnationRaised, PositionLost, RefusalsCounted,
    SessionRegained, TailSetAside,
};
use crate::state::State;

use super::Decision;
use super::guard::Ask;

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

/// A store that was copied, restored or salvaged begins a new life, in which no older token is current.
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

/// A torn tail is recorded once, by the name under which its bytes are kept.
pub(super) fn set_aside(ask: Ask<'_>, c: &SetAside) -> Decision {
    if ask.state.has_set_aside(ask.request.texts.get(c.file)) {
        return Decision::nothing();
    }
    Decision::plain(vec![
        TailSetAside {
            first: c.first,
            epoch: c.epoch,
            offset: c.offset,
            bytes: c.bytes,
            file: c.file,
        }
        .into(),
    ])
}

/// A salvage writes what it knows of a frame that it could not read.
pub(super) fn lose(c: &Lose) -> Decision {
    let lost = PositionLost {
        first: c.first,
        epoch: c.epoch,
        offset: c.offset,
        found: c.found,
        life: c.life,
    };
    let regained = c.regained.map(|r| SessionRegained {
        session: r.session,
        name: r.name,
    });
    let mut events = vec![lost.into()];
    events.extend(regained.map(Into::into));
    Decision::plain(events)
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
