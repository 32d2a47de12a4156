//! Samples of what is about trees, and of fences that name one.

use tenure_core::command::{
    AdoptClaimed, AdoptTree, Claim, Command, Publish, Recover, RegisterChild, Release, ReleaseDead,
    Reserve, Rollback,
};
use tenure_core::event::{
    Claimed, Delegated, Event, Fence, FenceKind, Published, Reconciled, Reconciliation, Recovered,
    ReleaseCause, Released, Reserved, RolledBack, TreeFence, Unreserved,
};
use tenure_core::generation::Epoch;
use tenure_core::id::SessionNo;
use tenure_core::text::BodyId;

use super::{GENERATION, bearer, scope, text};

const EPOCH: Epoch = Epoch(300);

pub fn commands() -> Vec<Command> {
    let (name, epoch) = (text(0), EPOCH);
    vec![
        RegisterChild {
            name,
            bearer: bearer(),
            labels: vec![(text(7), text(8))],
            checkout: Some(scope()),
        }
        .into(),
        Reserve {
            name,
            bearer: bearer(),
            labels: vec![],
            checkout: None,
        }
        .into(),
        Publish {
            name,
            epoch: Some(epoch),
        }
        .into(),
        Claim {
            name,
            bearer: bearer(),
        }
        .into(),
        AdoptTree {
            name,
            bearer: bearer(),
            labels: vec![],
        }
        .into(),
        AdoptClaimed {
            name,
            bearer: bearer(),
            labels: vec![],
            epoch,
        }
        .into(),
        Rollback { name, epoch }.into(),
        Recover {
            name,
            epoch,
            body: BodyId(0),
        }
        .into(),
        Release {
            name,
            epoch: None,
            reason: Some(text(9)),
        }
        .into(),
        ReleaseDead { name }.into(),
    ]
}

pub fn events() -> Vec<Event> {
    let (session, root, epoch) = (SessionNo(3), SessionNo(2), EPOCH);
    vec![
        Delegated {
            session,
            root,
            parent: SessionNo(1),
        }
        .into(),
        Reserved { root }.into(),
        Published { root }.into(),
        Claimed {
            root,
            epoch,
            bearer: bearer(),
            forced: Some(text(9)),
        }
        .into(),
        RolledBack { root, epoch }.into(),
        Recovered {
            session,
            body: BodyId(0),
        }
        .into(),
        Released {
            root,
            epoch,
            how: ReleaseCause::Proven,
            reason: None,
        }
        .into(),
        Unreserved { root, epoch }.into(),
        Reconciled {
            session,
            how: Reconciliation::ParentCancelled,
        }
        .into(),
    ]
}

/// Fences that name a tree, under the names of their golden lines.
pub fn fences() -> [(&'static str, Fence); 2] {
    let tree = Some(TreeFence {
        root: SessionNo(2),
        epoch: Epoch(1 << 40),
    });
    let child = Fence {
        kind: FenceKind::Grant,
        session: Some(SessionNo(3)),
        named: None,
        granted: Some(GENERATION),
        tree,
    };
    let claim = Fence {
        kind: FenceKind::Claim,
        tree,
        ..Fence::NONE
    };
    [("fence-child", child), ("fence-claim", claim)]
}
