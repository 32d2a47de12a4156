//! Frames about places in a history that nobody decided.

use tenure_core::event::{Branched, Event, Fence, FenceKind, Recorded, Renamed, Reverted};
use tenure_core::generation::Generation;
use tenure_core::history::{HistoryHash, Point};
use tenure_core::id::{EnvelopeNo, Position, SessionNo};
use tenure_core::text::{BodyId, TextId};

use super::scene;

fn fence(kind: FenceKind, session: u64, named: Option<u64>, granted: Option<u64>) -> Fence {
    let generation = |number| Generation {
        incarnation: 1,
        number,
    };
    Fence {
        kind,
        session: Some(SessionNo(session)),
        named: named.map(generation),
        granted: granted.map(generation),
        tree: None,
    }
}

/// F2: a frame about a place in a history that could not have been decided there is a finding, and what it says is
/// neither read nor branched, also once somebody has looked at it.
#[test]
fn what_could_not_be_cut_is_not_honoured() {
    let forge = |fence: &Fence, event: Event| {
        let scene = scene();
        scene.play("record q as=api@1 opens=call:1");
        scene.forge(fence, &["text", "api", "no name\n"], &[event]);
        scene.run("findings")
    };
    let point = |position, index| {
        Some(Point {
            position: Position(position),
            index,
            hash: HistoryHash::default(),
        })
    };
    let write = fence(FenceKind::Write, 0, Some(1), None);
    let session = SessionNo(0);
    let renamed = |name| Renamed {
        session,
        name: TextId(name),
    };
    // A call is open.
    assert_eq!(
        forge(
            &write,
            Reverted {
                session,
                to: point(3, 2)
            }
            .into()
        ),
        "6"
    );
    assert_eq!(forge(&write, renamed(0).into()), "");
    assert_eq!(forge(&write, renamed(1).into()), "");
    assert_eq!(forge(&write, renamed(2).into()), "6");
    assert_eq!(forge(&write, renamed(9).into()), "6");
    // A branch needs its grant.
    let branched = Branched {
        session: SessionNo(1),
        source: session,
        at: point(3, 2),
        first_envelope: EnvelopeNo(1),
    };
    assert_eq!(
        forge(&fence(FenceKind::Grant, 1, None, Some(1)), branched.into()),
        "6"
    );
}

/// F2, A02: a record that was not honoured is no part of the history, whoever looks and however it was settled.
#[test]
fn a_record_that_did_not_stand_is_never_read() {
    let scene = scene();
    scene.play("adopt api as=api@1");
    let now = scene.session("api").history;
    let stale = fence(FenceKind::Write, 0, Some(1), None);
    let record = Recorded {
        session: SessionNo(0),
        index: 4,
        previous: Some(Position(4)),
        before: now.hash(),
        depth: 0,
        kind: TextId(0),
        body: BodyId(0),
        opens: None,
        closes: None,
    };
    scene.forge(&stale, &["text"], &[record.into()]);
    scene.check(
        "findings           => 6
         finding 6          => done
         record d as=api@2  => record 4
         history api        => a@2 b@3 c@4 d@8
         history api all    => a@2 b@3 c@4 d@8
         branch api one at=6 => bad-position: ..
         revert 6 as=api@2  => bad-position: ..",
    );
}
