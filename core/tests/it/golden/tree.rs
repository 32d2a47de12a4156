//! Samples of what is about trees, and of fences that name one.

use tenure_core::codec::v1;
use tenure_core::command::{
    AdoptClaimed, AdoptTree, Claim, Command, Publish, Recover, RegisterChild, Release, ReleaseDead,
    Reserve, Rollback,
};
use tenure_core::event::{
    Claimed, Delegated, Event, Fence, FenceKind, Published, Reconciled, Reconciliation, Recovered,
    ReleaseCause, Released, Reserved, RolledBack, TreeFence, Unreserved,
};
use tenure_core::generation::Epoch;
use tenure_core::id::{Moment, Position, SessionNo, Time};
use tenure_core::text::BodyId;

use super::{GENERATION, bearer, encoded, fenced, request, scope, text};

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

/// A fence that names a tree is 16 bytes longer, and everything behind it is found all the same.
#[test]
fn a_fence_that_names_a_tree_decodes_to_the_same() {
    let at = Moment {
        position: Position(9),
        time: Time(1_800_000_000_000_000),
    };
    for (name, fence) in fences() {
        for command in super::commands() {
            let parts = fenced(&fence, command.clone(), &super::events());
            let entry = v1::decode_entry(&parts.facts, &parts.texts, at, 1).expect("it decodes");
            assert_eq!(
                (entry.fence, entry.events),
                (fence, super::events()),
                "{name}"
            );
            let asked = v1::decode_request(&parts.facts, &parts.texts, &parts.bodies, at.time);
            let asked = asked.expect("it decodes");
            assert_eq!(v1::decode_key(&parts.facts), Ok(asked.input.key));
            assert_eq!(asked, request(command.clone()));
            let plain = encoded(command, &super::events());
            let plain = v1::decode_entry(&plain.facts, &plain.texts, at, 1).expect("it decodes");
            assert_eq!(entry.bodies, plain.bodies, "{name}");
            assert_eq!(entry.bodies.len(), 1, "{name}");
            let body = v1::decode_body(&parts.facts, &parts.texts, &parts.bodies, 0);
            assert_eq!(body, Ok(Some(&b"body"[..])));
            let cut = v1::decode_fence(&parts.facts[..v1::FENCE_BYTES + 15], 1);
            assert_eq!(cut, Err(v1::Fault::Short(v1::FENCE_BYTES + 15)));
            let mut odd = parts.facts.clone();
            odd[v1::FENCE_BYTES + 4] = 1;
            assert_eq!(v1::decode_fence(&odd, 1), Err(v1::Fault::Fence));
        }
    }
}
