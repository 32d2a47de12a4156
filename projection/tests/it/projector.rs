//! Projections along a log: from a state, to a position, on as it grows, past what does not stand.

use std::time::Duration;

use tenure_core::event::{Entry, Event, Fence, FenceKind};
use tenure_core::id::{Position, SessionNo};
use tenure_core::state::State;
use tenure_log::frame::Depth;
use tenure_log::journal::{Deadline, Journal};
use tenure_projection::entry;
use tenure_projection::error::Error;
use tenure_projection::projector::{Finding, Projector};
use tenure_projection::store::Store;

use crate::scene::Scene;

/// Appends copies of the frame at `position` to the log, as a program would that does not keep to the rules: one for each
/// change of its fence.
fn replay_frames(scene: &Scene, position: u64, alter: &[&dyn Fn(&mut Fence)]) {
    let mut copied = None;
    scene
        .store
        .frames(
            Position(position),
            Position(position),
            Depth::Whole,
            |frame| {
                let entry = entry::decode(frame)?;
                copied = Some((entry::decode_request(frame)?, entry));
                Ok(false)
            },
        )
        .expect("the log reads");
    let (request, entry) = copied.expect("the frame is there");
    let draft = |alter: &&dyn Fn(&mut Fence)| {
        let mut fence = entry.fence;
        alter(&mut fence);
        let decision = tenure_core::decide::Decision {
            fence,
            events: entry.events.clone(),
        };
        entry::draft(&request, &decision).expect("it fits into a frame")
    };
    let known = scene.log.head().expect("the log reads");
    let mut drafts: Vec<_> = alter.iter().map(draft).collect();
    scene
        .log
        .transact(known, Deadline::NEVER, &mut |_| std::mem::take(&mut drafts))
        .expect("a log in memory takes it");
}

fn replay_frame(scene: &Scene, position: u64, alter: impl Fn(&mut Fence)) {
    replay_frames(scene, position, &[&alter]);
}

/// An entry whose fence was not current is shown to no projection, changes nothing, and is reported.
#[test]
fn what_does_not_stand_is_passed_over_and_reported() {
    let scene = Scene::new();
    scene.play(
        "register api
         note one as=api@1
         adopt api force=why",
    );
    replay_frame(&scene, 2, |fence| assert_eq!(fence.kind, FenceKind::Write));
    let mut shown = Vec::new();
    let mut look = |entry: &Entry, _: &State| shown.push(entry.at.position.0);
    let mut projector = Projector::new();
    projector
        .read(&scene.store, None, &mut [&mut look])
        .expect("the log reads");
    assert_eq!(shown, [1, 2, 3]);
    assert_eq!(projector.position(), Position(4));
    assert_eq!(projector.findings(), [Finding::DoesNotStand(Position(4))]);
    assert_eq!(projector.state().findings, [Position(4)]);
}

#[test]
fn a_projection_sees_what_the_entry_was_decided_on() {
    let scene = Scene::new();
    scene.play(
        "register api
         adopt api force=why
         retire api@2",
    );
    let mut seen = Vec::new();
    let mut look = |entry: &Entry, before: &State| {
        let generation = before
            .session(SessionNo(0))
            .map_or(0, |s| s.generation.number);
        seen.push((entry.events[0].word(), before.at.position.0, generation));
    };
    Projector::new()
        .read(&scene.store, None, &mut [&mut look])
        .expect("the log reads");
    assert_eq!(
        seen,
        [("registered", 0, 0), ("adopted", 1, 1), ("retired", 2, 2)]
    );
}

/// LOG-3: going on from a state is the same as coming from the start.
#[test]
fn going_on_from_a_state_is_the_same_as_coming_from_the_start() {
    let scene = Scene::new();
    scene.play(
        "register api
         register web
         dispatch login api
         accept d1 as=api@1
         report d1 done as=api@1",
    );
    let mut whole = Projector::new();
    whole
        .read(&scene.store, None, &mut [])
        .expect("the log reads");
    for stop in 0..=5 {
        let mut half = Projector::new();
        half.read(&scene.store, Some(Position(stop)), &mut [])
            .expect("the log reads");
        assert_eq!(half.position(), Position(stop));
        let mut rest = Projector::from_state(half.state().clone());
        rest.read(&scene.store, None, &mut [])
            .expect("the log reads");
        assert_eq!(rest.state(), whole.state());
    }
}

#[test]
fn a_position_beyond_the_head_is_refused() {
    let scene = Scene::new();
    scene.play("register api");
    let mut projector = Projector::new();
    let beyond = |result: Result<(), Error>| match result {
        Err(Error::BeyondHead { head, asked }) => (head.0, asked.0),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        beyond(projector.read(&scene.store, Some(Position(2)), &mut [])),
        (1, 2)
    );
}

#[test]
fn following_waits_for_what_is_still_to_come() {
    let scene = Scene::new();
    scene.play("register api");
    let mut words = Vec::new();
    let mut look = |entry: &Entry, _: &State| words.extend(entry.events.iter().map(Event::word));
    let mut projector = Projector::new();
    projector
        .read(&scene.store, None, &mut [&mut look])
        .expect("the log reads");
    let nothing = Deadline::after(Duration::ZERO);
    assert!(
        !projector
            .follow(&scene.store, nothing, &mut [&mut look])
            .expect("the log reads")
    );
    std::thread::scope(|threads| {
        threads.spawn(|| scene.play("note one as=api@1"));
        assert!(
            projector
                .follow(&scene.store, Deadline::NEVER, &mut [&mut look])
                .expect("the log reads")
        );
    });
    assert_eq!(words, ["registered", "noted"]);
}

/// A log long enough to be decoded on a second processor gives what one gives that is read entry by entry: the same
/// entries shown in the same order, the same findings, the same state.
#[test]
fn a_long_log_gives_the_same_on_two_processors() {
    let scene = Scene::new();
    scene.play(
        "register api
         note one as=api@1
         adopt api force=why",
    );
    let current: &dyn Fn(&mut Fence) = &|fence| {
        let named = fence.named.as_mut().expect("a note names one");
        named.number += 1;
    };
    let alter: Vec<_> = (0..1000)
        .map(|n| {
            if n % 7 == 0 {
                &|_: &mut Fence| ()
            } else {
                current
            }
        })
        .collect();
    for _ in 0..17 {
        replay_frames(&scene, 2, &alter);
    }
    let replay = |long: bool| {
        let mut shown = Vec::new();
        let mut look = |entry: &Entry, state: &State| shown.push((entry.clone(), state.at));
        let mut projector = Projector::new();
        if long {
            projector.read(&scene.store, None, &mut [&mut look])
        } else {
            let entries = scene.store.entries(Position(1)).expect("the log reads");
            entries.into_iter().try_for_each(|entry| {
                projector.feed(&entry?, &mut [&mut look]);
                Ok(())
            })
        }
        .expect("the log reads");
        (projector, shown)
    };
    let ((fast, fast_shown), (slow, slow_shown)) = (replay(true), replay(false));
    assert_eq!(fast.position(), Position(17_003));
    assert!(fast_shown == slow_shown, "other entries were shown");
    assert_eq!(fast.findings(), slow.findings());
    assert_eq!(fast.findings().len(), 17 * 143);
    assert!(fast.state() == slow.state());
    let host = std::sync::Arc::new(crate::scene::Stage::of_machine(1));
    let log = std::sync::Arc::new(scene.log.clone());
    let opened = Store::over(log, host).expect("it opens");
    assert!(opened.view(Clone::clone).expect("it is readable") == *slow.state());
}
