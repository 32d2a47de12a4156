//! Frames that no program of ours could have written: honoured by nobody, changing nothing but the list of
//! findings, and stopping appends until somebody has looked (F2).

use tenure_core::apply::{Applied, apply};
use tenure_core::decide::stands;
use tenure_core::event::{Entry, Event, Fence, FenceKind};
use tenure_core::id::{Moment, Position};
use tenure_core::state::State;

use crate::scene::Scene;

pub mod frames;
mod history;
mod lists;
mod rights;

use frames::*;
use lists::{bad, good};

/// `api@2` has accepted d1, was given d2 by `web`, and has e3 pending and e4 read; `web@1` has d3 accepted where
/// d2 would write; `gone@1` is retired. The next numbers are d4, e6, r2.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register api \n register web \n register gone \n adopt api as=api@1
         dispatch one api \n dispatch two api as=web@1 writes=/w \n send api hello \n send api more
         dispatch tre web writes=/w \n accept d1 as=api@2 \n accept d3 as=web@1 \n ack e4 as=api@2
         retire gone@1 \n role take api gone as=web@1 \n record a as=api@2",
    );
    scene.refusal("note late as=api@1");
    scene.check(
        "work => d1 accepted api@2; d2 queued api@2; d3 accepted web@1 \n refusals => r1 ..",
    );
    scene
}

/// Everything but the list of findings and the position.
fn without_findings(mut state: State) -> State {
    state.findings.clear();
    state.dishonoured.clear();
    state.at = Moment::default();
    state
}

fn assert_finding(scene: &Scene, before: &State, what: &dyn std::fmt::Debug) {
    let position = Position(scene.frames());
    let after = scene.state();
    assert_eq!(after.findings, [position], "{what:?} was honoured");
    assert!(
        without_findings(after) == without_findings(before.clone()),
        "{what:?} changed something"
    );
    scene.check("note fine as=api@2 => failed: the frame at position..");
    let frames = scene.frames();
    scene.check(&format!(
        "finding {position} => done \n note fine as=api@2 => done"
    ));
    assert_eq!(scene.frames(), frames + 2);
}

/// F2, REG-9: what decides is whether the fence names what is current at its position; each kind of event is
/// honoured under its own fence and no other.
#[test]
fn each_kind_of_event_is_honoured_under_its_own_fence_only() {
    let others = [
        Fence::NONE,
        write(API, 1),
        write(API, 2),
        write(API, 3),
        write(WEB, 1),
        write(WEB, 2),
        write(GONE, 1),
        write(NOBODY, 1),
        grant(API, Some(2), 3),
        grant(API, Some(1), 2),
        grant(API, Some(2), 4),
        grant(API, None, 3),
        grant(GONE, Some(1), 2),
        grant(NOBODY, None, 1),
        grant(NOBODY, Some(1), 1),
        Fence {
            kind: FenceKind::None,
            ..write(API, 2)
        },
        Fence {
            granted: Some(generation(2)),
            ..write(API, 2)
        },
        Fence {
            session: None,
            ..write(API, 2)
        },
        Fence {
            named: None,
            ..write(API, 2)
        },
        Fence {
            granted: None,
            ..grant(API, Some(2), 3)
        },
    ];
    let good = [good(), history::good(), rights::good()].concat();
    let stands =
        |fence: &Fence, events: &[Event]| good.iter().any(|(f, e)| f == fence && e == events);
    let mut kinds = std::collections::BTreeSet::new();
    for (fence, events) in &good {
        let scene = scene();
        scene.forge(fence, TEXTS, events);
        assert_eq!(
            scene.run("findings"),
            "",
            "{events:?} stands under {fence:?}"
        );
        kinds.extend(events.iter().map(Event::kind));
        for other in &others {
            // What an operator gave may be ended under any token, and an empty frame says nothing.
            let open = *events == [cancelled(1, false)] && other.kind == FenceKind::Write;
            let idle = events.is_empty() && other.kind != FenceKind::Grant;
            if stands(other, events) || open || idle {
                continue;
            }
            let scene = self::scene();
            let before = scene.state();
            scene.forge(other, TEXTS, events);
            assert_finding(&scene, &before, &(other, events));
        }
    }
    let (raised, attended, lost, regained, seals) = (20, 58, 71, 72, "73, 74");
    // Those of trees have fences of their own, and a test of their own.
    let of_trees = |kind: u16| (30..40).contains(&kind);
    let others = Event::KINDS.iter().filter(|(kind, _)| !of_trees(*kind));
    assert_eq!(
        kinds.len() + 6,
        others.count(),
        "all but {raised}, {attended}, {lost}, {regained} and {seals}, which need a scene of their own"
    );
}

/// F2, B20: a fence that is current is not enough: the content has to be one that could be decided there.
#[test]
fn what_could_not_be_decided_there_is_a_finding() {
    for (fence, events) in [bad(), history::bad(), rights::bad()].concat() {
        let scene = scene();
        let before = scene.state();
        scene.forge(&fence, TEXTS, &events);
        assert_finding(&scene, &before, &(fence, events));
    }
}

/// Numbers at their end add up to no more than their end.
#[test]
fn counts_and_sizes_do_not_overflow() {
    let scene = scene();
    for _ in 0..3 {
        scene.forge(&Fence::NONE, TEXTS, &[counted(1)]);
        scene.forge(&Fence::NONE, TEXTS, &[refused(1)]);
    }
    let record = &scene.state().refusals[1];
    assert_eq!((record.count, record.body_bytes), (u64::MAX, u64::MAX));
    scene.refusal("note late as=api@1");
    scene.refusal("note other as=api@1");
    assert_eq!(scene.run("findings"), "");
}

/// Several findings: each is looked at by itself, oldest first or not, and none is honoured afterwards.
#[test]
fn findings_are_acknowledged_one_by_one() {
    let scene = scene();
    let first = scene.frames() + 1;
    for _ in 0..3 {
        scene.forge(&write(API, 1), TEXTS, &[noted(API)]);
    }
    let (second, third) = (first + 1, first + 2);
    scene.check(&format!(
        "findings          => {first} {second} {third}
         note x as=api@2   => failed: the frame at position {first} did not stand when it was written (3 such frames)..
         finding {second}  => done
         findings          => {first} {third}
         finding 1         => done again
         note x as=api@2   => failed: ..
         finding {first}   => done
         finding {third}   => done
         findings          =>
         note x as=api@2   => done"
    ));
    assert_eq!(scene.run_on(&scene.another(), "findings"), "");
}

/// F2: work that was reported blocked is seen to once, and no other work is.
#[test]
fn only_blocked_work_is_seen_to() {
    let scene = scene();
    scene.play("report d1 blocked as=api@2");
    for fence in [Fence::NONE, write(API, 2), write(WEB, 1)] {
        let mut state = scene.state();
        let entry = Entry {
            at: Moment {
                position: Position(scene.frames() + 1),
                ..Moment::default()
            },
            fence,
            events: vec![rights::attended(1)],
            ..Entry::default()
        };
        let entry = Entry {
            incarnation: 1,
            ..entry
        };
        assert!(stands(&state, &entry), "{fence:?}");
        assert_eq!(apply(&mut state, &entry), Applied::Honoured);
        assert!(!stands(&state, &entry), "once");
    }
}
