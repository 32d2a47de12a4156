//! Frames about trees that no program of ours wrote.

use tenure_core::event::{
    Claimed, Delegated, Event, Fence, FenceKind, Published, Reconciled, Reconciliation, Recovered,
    ReleaseCause, Released, Reserved, RolledBack, TreeFence, Unreserved,
};
use tenure_core::generation::Epoch;
use tenure_core::id::SessionNo;
use tenure_core::text::BodyId;

use super::super::forged::frames::{
    adopted, bearer, carried, fenced, grant, noted, registered, retired, write,
};
use crate::scene::Scene;

pub(super) const MAIN: SessionNo = SessionNo(0);
pub(super) const ONE: SessionNo = SessionNo(1);
pub(super) const TWO: SessionNo = SessionNo(2);
const WEB: SessionNo = SessionNo(3);
const GONE: SessionNo = SessionNo(4);
pub(super) const FRESH: SessionNo = SessionNo(5);
const TEXTS: &[&str] = &["fresh", "gone", "main", "one"];

/// Root `main` at epoch 1 with `one` and `two`; `web` alone; `gone` retired.
pub(super) fn scene(more: &str) -> Scene {
    let scene = Scene::new();
    scene.play(
        "register main pid=500
         register one parent=main@1
         register two parent=one@1
         register web pid=501
         register gone
         retire gone@1",
    );
    scene.play(more);
    scene
}

pub(super) fn of(fence: Fence, root: SessionNo, epoch: u64) -> Fence {
    Fence {
        tree: Some(TreeFence {
            root,
            epoch: Epoch(epoch),
        }),
        ..fence
    }
}

fn claim(root: SessionNo, epoch: u64) -> Fence {
    of(
        Fence {
            kind: FenceKind::Claim,
            ..Fence::NONE
        },
        root,
        epoch,
    )
}

pub(super) fn delegated(session: SessionNo, root: SessionNo, parent: SessionNo) -> Event {
    Delegated {
        session,
        root,
        parent,
    }
    .into()
}

pub(super) fn claimed(root: SessionNo, epoch: u64) -> Event {
    Claimed {
        root,
        epoch: Epoch(epoch),
        bearer: bearer(),
        forced: None,
    }
    .into()
}

fn released(root: SessionNo, epoch: u64, how: ReleaseCause) -> Event {
    Released {
        root,
        epoch: Epoch(epoch),
        how,
        reason: None,
    }
    .into()
}

fn rolled_back(root: SessionNo, epoch: u64) -> Event {
    let epoch = Epoch(epoch);
    RolledBack { root, epoch }.into()
}

fn unreserved(root: SessionNo, epoch: u64) -> Event {
    let epoch = Epoch(epoch);
    Unreserved { root, epoch }.into()
}

fn recovered(session: SessionNo) -> Event {
    let body = BodyId(0);
    Recovered { session, body }.into()
}

fn reconciled(session: SessionNo) -> Event {
    let how = Reconciliation::Interrupted;
    Reconciled { session, how }.into()
}

/// A scene, a fence and events that stand there, and the other fences under which the same events must not.
struct Case {
    before: &'static str,
    fence: Fence,
    events: Vec<Event>,
    not_under: Vec<Fence>,
}

fn cases() -> Vec<Case> {
    let case = |before, fence, events: Vec<Event>, not_under: Vec<Fence>| Case {
        before,
        fence,
        events,
        not_under,
    };
    let (given, proven, retires) = (
        ReleaseCause::Given,
        ReleaseCause::Proven,
        ReleaseCause::RootRetired,
    );
    let (claims, reserves) = (
        "claim one force=x pid=500",
        "retire web@1 \n reserve web pid=501",
    );
    let again = || vec![registered(GONE, 1, 2), fenced(GONE, 2, 1)];
    vec![
        case(
            "",
            of(grant(FRESH, None, 1), MAIN, 1),
            vec![registered(FRESH, 0, 1), delegated(FRESH, MAIN, ONE)],
            vec![
                grant(FRESH, None, 1),
                of(grant(FRESH, None, 1), MAIN, 2),
                of(grant(FRESH, None, 1), WEB, 1),
                of(grant(FRESH, None, 1), ONE, 1),
            ],
        ),
        case(
            "",
            grant(GONE, Some(1), 2),
            again(),
            vec![
                of(grant(GONE, Some(1), 2), MAIN, 1),
                of(grant(GONE, Some(1), 2), GONE, 1),
            ],
        ),
        case(
            "",
            grant(FRESH, None, 1),
            vec![registered(FRESH, 0, 1), Reserved { root: FRESH }.into()],
            vec![
                of(grant(FRESH, None, 1), MAIN, 1),
                of(grant(FRESH, None, 1), FRESH, 1),
            ],
        ),
        case(
            "",
            of(grant(TWO, Some(1), 2), MAIN, 1),
            vec![adopted(TWO, 2), carried(TWO, 2), reconciled(TWO)],
            vec![
                grant(TWO, Some(1), 2),
                of(grant(TWO, Some(1), 2), MAIN, 2),
                of(grant(TWO, Some(1), 2), WEB, 1),
            ],
        ),
        case(
            "",
            of(grant(TWO, Some(1), 2), MAIN, 2),
            vec![claimed(MAIN, 2), adopted(TWO, 2), carried(TWO, 2)],
            vec![
                of(grant(TWO, Some(1), 2), MAIN, 1),
                grant(TWO, Some(1), 2),
                claim(MAIN, 2),
                of(grant(WEB, Some(1), 2), MAIN, 2),
            ],
        ),
        case(
            "",
            claim(MAIN, 2),
            vec![claimed(MAIN, 2)],
            vec![
                claim(MAIN, 1),
                claim(MAIN, 3),
                claim(WEB, 2),
                Fence::NONE,
                of(write(ONE, 1), MAIN, 2),
            ],
        ),
        case(
            claims,
            claim(MAIN, 3),
            vec![rolled_back(MAIN, 3)],
            vec![
                claim(MAIN, 2),
                claim(WEB, 2),
                of(write(ONE, 1), MAIN, 3),
                Fence::NONE,
            ],
        ),
        case(
            claims,
            claim(MAIN, 2),
            vec![recovered(TWO)],
            vec![
                claim(MAIN, 3),
                claim(WEB, 1),
                write(TWO, 1),
                of(write(TWO, 1), MAIN, 2),
            ],
        ),
        case(
            "",
            of(write(TWO, 1), MAIN, 2),
            vec![released(MAIN, 2, given)],
            vec![
                write(TWO, 1),
                of(write(TWO, 1), MAIN, 1),
                of(write(WEB, 1), MAIN, 2),
                of(write(TWO, 2), MAIN, 2),
                Fence::NONE,
            ],
        ),
        case(
            "",
            claim(MAIN, 2),
            vec![released(MAIN, 2, proven)],
            vec![claim(MAIN, 1), of(write(TWO, 1), MAIN, 2), Fence::NONE],
        ),
        case(
            "",
            claim(WEB, 2),
            vec![released(WEB, 2, proven)],
            vec![claim(WEB, 1), claim(MAIN, 2)],
        ),
        case(
            "",
            of(write(MAIN, 1), MAIN, 2),
            vec![retired(MAIN, 1, false), released(MAIN, 2, retires)],
            vec![
                write(MAIN, 1),
                of(write(ONE, 1), MAIN, 2),
                claim(MAIN, 2),
                Fence::NONE,
            ],
        ),
        case(
            "",
            claim(MAIN, 2),
            vec![retired(MAIN, 1, true), released(MAIN, 2, retires)],
            vec![Fence::NONE, of(write(MAIN, 1), MAIN, 2)],
        ),
        case(
            reserves,
            claim(WEB, 3),
            vec![unreserved(WEB, 3)],
            vec![
                claim(WEB, 2),
                claim(MAIN, 2),
                Fence::NONE,
                of(write(ONE, 1), WEB, 3),
            ],
        ),
        case(
            reserves,
            of(write(WEB, 2), WEB, 3),
            vec![unreserved(WEB, 3)],
            vec![write(WEB, 2)],
        ),
        case(
            reserves,
            of(write(WEB, 2), WEB, 2),
            vec![Published { root: WEB }.into()],
            vec![
                write(WEB, 2),
                of(write(WEB, 2), WEB, 3),
                of(write(MAIN, 1), WEB, 2),
                Fence::NONE,
            ],
        ),
        case(
            reserves,
            claim(WEB, 2),
            vec![Published { root: WEB }.into()],
            vec![claim(WEB, 3), claim(MAIN, 1)],
        ),
    ]
}

/// Events that stand under no fence at all.
fn never() -> Vec<(&'static str, Fence, Vec<Event>)> {
    let given = ReleaseCause::Given;
    let child = || of(grant(FRESH, None, 1), MAIN, 1);
    vec![
        ("", child(), vec![delegated(FRESH, MAIN, ONE)]),
        (
            "",
            child(),
            vec![registered(FRESH, 0, 1), delegated(FRESH, MAIN, WEB)],
        ),
        (
            "",
            child(),
            vec![registered(FRESH, 0, 1), delegated(FRESH, WEB, WEB)],
        ),
        (
            "",
            child(),
            vec![registered(FRESH, 0, 1), delegated(TWO, MAIN, ONE)],
        ),
        (
            "release main as=main@1",
            child(),
            vec![registered(FRESH, 0, 1), delegated(FRESH, MAIN, ONE)],
        ),
        // A tree in the fence belongs to an event about that tree: a replay of fences takes its word.
        ("", of(write(ONE, 1), MAIN, 2), vec![noted(ONE)]),
        ("", of(write(ONE, 1), MAIN, 1), vec![]),
        ("", claim(MAIN, 2), vec![]),
        ("", claim(MAIN, 2), vec![noted(ONE)]),
        ("", of(Fence::NONE, MAIN, 2), vec![]),
        ("", claim(MAIN, 1), vec![Published { root: MAIN }.into()]),
        ("", claim(MAIN, 2), vec![rolled_back(MAIN, 2)]),
        ("", claim(MAIN, 1), vec![recovered(TWO)]),
        ("", claim(MAIN, 2), vec![unreserved(MAIN, 2)]),
        (
            "claim one force=x",
            claim(MAIN, 3),
            vec![released(MAIN, 3, given)],
        ),
        (
            "release main as=main@1",
            claim(MAIN, 3),
            vec![released(MAIN, 3, ReleaseCause::Proven)],
        ),
        (
            "",
            of(write(MAIN, 1), MAIN, 2),
            vec![released(MAIN, 2, ReleaseCause::RootRetired)],
        ),
        ("", write(MAIN, 1), vec![retired(MAIN, 1, false)]),
        (
            "",
            of(write(WEB, 1), WEB, 2),
            vec![
                retired(WEB, 1, false),
                released(WEB, 2, ReleaseCause::RootRetired),
            ],
        ),
        (
            "retire web@1 \n reserve web",
            claim(WEB, 3),
            vec![claimed(WEB, 3)],
        ),
        (
            "",
            grant(WEB, Some(1), 2),
            vec![adopted(WEB, 2), carried(WEB, 2), reconciled(ONE)],
        ),
    ]
}

/// F2, REG-9, TRE-3: each event about a tree is honoured under the fence that goes with it and no other, and where it
/// does not stand nothing is changed.
#[test]
fn events_about_trees_are_honoured_under_their_own_fences_only() {
    let mut kinds = std::collections::BTreeSet::new();
    for case in cases() {
        stands(case.before, &case.fence, &case.events);
        kinds.extend(case.events.iter().map(Event::kind));
        for other in &case.not_under {
            refuses(case.before, other, &case.events);
        }
    }
    for (before, fence, events) in never() {
        refuses(before, &fence, &events);
    }
    let of_trees = Event::KINDS
        .iter()
        .filter(|(kind, _)| (30..40).contains(kind));
    for (kind, word) in of_trees {
        assert!(kinds.contains(kind), "{word}");
    }
}

pub(super) fn stands(before: &str, fence: &Fence, events: &[Event]) {
    let scene = scene(before);
    scene.forge(fence, TEXTS, events);
    assert_eq!(scene.run("findings"), "", "{events:?} under {fence:?}");
}

pub(super) fn refuses(before: &str, fence: &Fence, events: &[Event]) {
    let scene = scene(before);
    let old = scene.state();
    scene.forge(fence, TEXTS, events);
    let new = scene.state();
    assert_eq!(
        new.findings,
        [new.at.position],
        "{events:?} stands under {fence:?}"
    );
    for (old, new) in old.sessions.iter().zip(&new.sessions) {
        assert_eq!(
            (old.generation, old.root, old.epoch, &old.tree),
            (new.generation, new.root, new.epoch, &new.tree)
        );
    }
    assert_eq!(old.sessions.len(), new.sessions.len());
}
