//! Bindings: who has an item (BND).

use tenure_core::apply::{Applied, apply};
use tenure_core::event::{Entry, Event, Fence, FenceKind, Fenced, Registered};
use tenure_core::generation::Generation;
use tenure_core::id::{EnvelopeNo, Moment, Position, SessionNo, Time};
use tenure_core::state::{CancelReason, DispatchState, EnvelopeState};
use tenure_core::text::Texts;
use tenure_projection::authority::{Authority, When};
use tenure_projection::projector::Projector;

use crate::scene::Scene;

/// BND-1: from acceptance to each kind of end.
#[test]
fn a_binding_is_active_from_acceptance_to_an_end() {
    for (end, state) in [
        ("report d1 done as=api@1", "done"),
        ("cancel d1", "cancelled"),
        ("retire api@1", "cancelled"),
    ] {
        let scene = Scene::new();
        scene.play("register api \n dispatch item api");
        let bound = |scene: &Scene| {
            let state = scene.state();
            let live = state.live_of(SessionNo(0)).map(|(n, _)| n);
            live.filter(|n| {
                state
                    .dispatch(*n)
                    .is_some_and(|row| row.state == DispatchState::Accepted)
            })
            .count()
        };
        assert_eq!(bound(&scene), 0, "queued is not bound");
        scene.play("accept d1 as=api@1");
        assert_eq!(bound(&scene), 1);
        scene.play(end);
        assert_eq!(bound(&scene), 0, "{end}");
        assert_eq!(scene.run("work"), format!("d1 {state} api@1"));
    }
}

/// BND-2, DIS-9, OUT-5: whatever a register finds open of an older generation, from an import say, ends as fenced,
/// with the reason. A retire leaves nothing open, so the state is made by hand.
#[test]
fn a_register_fences_every_binding_of_older_generations() {
    let scene = Scene::new();
    scene.play(
        "register api \n dispatch one api \n accept d1 as=api@1 \n dispatch two api
         send api hello \n send api answer re=d1",
    );
    let mut state = scene.state();
    state.sessions[0].retired = true;
    let mut texts = Texts::default();
    let name = texts.add(b"api");
    let generation = |number| Generation {
        incarnation: 1,
        number,
    };
    let Some(Event::Registered(first)) = scene.entries()[0].events.first().cloned() else {
        panic!("the first entry registers");
    };
    let entry = Entry {
        bodies: Vec::new(),
        at: Moment {
            position: Position(99),
            time: Time(5),
        },
        incarnation: 1,
        fence: Fence {
            kind: FenceKind::Grant,
            session: Some(SessionNo(0)),
            named: Some(generation(1)),
            granted: Some(generation(2)),
            tree: None,
        },
        texts,
        events: vec![
            Registered {
                name,
                generation: generation(2),
                ..first
            }
            .into(),
            Fenced {
                session: SessionNo(0),
                below: generation(2),
                first_review: state.next_envelope(),
            }
            .into(),
        ],
        unknown: None,
    };
    assert_eq!(apply(&mut state, &entry), Applied::Honoured);
    for row in state.dispatches.iter().skip(1) {
        assert_eq!(
            (row.state, row.generation.number),
            (DispatchState::Fenced, 1)
        );
        assert_eq!(row.since.position, Position(99));
    }
    for row in state.envelopes.iter().take(5).skip(1) {
        let over = (EnvelopeState::Cancelled, CancelReason::FencedGeneration);
        assert_eq!((row.state, row.reason), over);
    }
    assert!(state.live.is_empty());
    assert_eq!(state.live_dispatch_of(b"one"), None, "its item is free");
    assert_eq!(
        state.sessions[0].inbox,
        [EnvelopeNo(5)],
        "the review of the reply"
    );
}

/// BND-3, ADO-1: an adopt carries what is live to the new generation, the same at every replay.
#[test]
fn an_adopt_carries_live_work_and_pending_mail() {
    let scene = Scene::new();
    scene.play(
        "register api \n dispatch one api \n dispatch two api \n dispatch tre api \n send api hello
         accept d1 as=api@1 \n accept d3 as=api@1 \n report d3 done as=api@1
         deliver e4 as=api@1 \n deliver e2 as=api@1 \n ack e2 as=api@1",
    );
    scene.check(
        "adopt api as=api@1 => api@2
         work      => d1 accepted api@2; d2 queued api@2; d3 done api@1
         inbox api => e1 work pending@2; e2 work acknowledged@1; e3 work acknowledged@1; e4 message pending@2
         session api => active@2 open=2 inbox=2
         log 12    => adopted carried
         accept d2 as=api@2 => alone
         report d1 done as=api@2 => done",
    );
    let again = scene.another();
    for view in ["work", "inbox api", "session api"] {
        assert_eq!(scene.run_on(&again, view), scene.run(view));
    }
}

/// BND-4: at no position of a busy log has an item two active bindings.
#[test]
fn an_item_has_at_most_one_binding_at_any_position() {
    let scene = Scene::new();
    scene.play("register a \n register b");
    for round in 0..20 {
        let (dispatch, next) = (3 * round + 1, 3 * round + 2);
        scene.play(&format!("dispatch item a \n accept d{dispatch} as=a@1"));
        scene.check("dispatch item b => duplicate-item: ..");
        scene.play(&format!(
            "report d{dispatch} failed as=a@1 \n dispatch item b"
        ));
        scene.play(&format!(
            "accept d{next} as=b@1 \n cancel d{next} \n dispatch item a"
        ));
        scene.play(&format!("decline d{} as=a@1", next + 1));
    }
    let mut projector = Projector::new();
    for entry in scene.entries() {
        projector.feed(&entry, &mut []);
        let state = projector.state();
        let mut items: Vec<_> = state.live.iter().map(|(_, d)| d.item.clone()).collect();
        items.sort();
        items.dedup();
        assert_eq!(items.len(), state.live.len());
    }
}

/// BND-5, AUD-1: who had an item, at a position and at a time, from the log alone.
#[test]
fn the_log_alone_says_who_had_an_item() {
    let scene = Scene::new();
    scene.play(
        "register api \n register web \n dispatch item api \n accept d1 as=api@1
         adopt api as=api@1 \n report d1 failed as=api@2 \n dispatch item web \n accept d2 as=web@1",
    );
    let mut authority = Authority::new();
    Projector::new()
        .read(&scene.another(), None, &mut [&mut authority])
        .expect("it reads");
    let at = |when| {
        authority
            .item_at(b"item", when)
            .map(|i| (i.session.0, i.generation.number))
    };
    let expected = [
        None,
        None,
        None,
        Some((0, 1)),
        Some((0, 2)),
        None,
        None,
        Some((1, 1)),
    ];
    for (n, holder) in expected.into_iter().enumerate() {
        assert_eq!(
            at(When::At(Position(n as u64 + 1))),
            holder,
            "at position {}",
            n + 1
        );
        let time = scene.entries()[n].at.time;
        assert_eq!(
            at(When::Time(time)),
            holder,
            "at the time of position {}",
            n + 1
        );
    }
    assert_eq!(at(When::Now), Some((1, 1)));
}
