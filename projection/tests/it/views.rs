//! What people and programs are shown of a state.

use tenure_core::holder::{Answer as Seen, Verdict};
use tenure_core::id::{DispatchNo, EnvelopeNo, Position, RefusalNo};
use tenure_core::state::{DispatchState, EnvelopeState};
use tenure_log::frame::Depth;
use tenure_projection::error::Error;
use tenure_projection::views::{EventView, Field, Lens, events, shown};

use crate::scene::Scene;

fn look<R>(scene: &Scene, look: impl FnOnce(Lens<'_>) -> Result<R, Error>) -> R {
    let store = &scene.store;
    let host = store.host();
    store
        .view(|state| {
            look(Lens {
                state,
                host,
                shelf: &**store,
            })
        })
        .and_then(|inner| inner)
        .expect("the log reads")
}

fn body(scene: &Scene, envelope: u64) -> String {
    let view = look(scene, |lens| lens.envelope(EnvelopeNo(envelope)));
    let body = view
        .expect("the envelope is there")
        .body
        .expect("it has a text");
    String::from_utf8(body).expect("it is UTF-8")
}

/// NOT-1, DIS-8: item reference, reason, "nothing was claimed", "wait".
#[test]
fn the_notice_of_a_failed_assignment_says_all_four_things() {
    let scene = Scene::new();
    scene.play(
        "register api
         dispatch login api
         fail d1 reason=no-such-model",
    );
    let text = body(&scene, 2);
    for part in [
        "login",
        "d1",
        "no-such-model",
        "Nothing was claimed",
        "Wait",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// NOT-6: who joined, where, on what, and what to mind.
#[test]
fn the_notice_of_a_newcomer_says_who_joined_and_where() {
    let scene = Scene::new();
    scene.play(
        "register api engine=claude
         register web engine=codex
         dispatch login api writes=/nowhere/src title=Login
         accept d1 as=api@1
         dispatch style web writes=/nowhere/src/css title=Colours
         accept d2 as=web@1",
    );
    let text = body(&scene, 3);
    for part in [
        "web",
        "codex",
        "/nowhere/src/css",
        "style",
        "Colours",
        "d2",
        "Stage by explicit path",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("ended"));
    scene.play("report d2 done as=web@1");
    assert!(body(&scene, 3).contains("ended since: done"));
}

/// OUT-7: a review names the reply it is about and shows it.
#[test]
fn a_review_shows_the_reply_that_was_not_read() {
    let scene = Scene::new();
    scene.play(
        "register api
         register web
         dispatch login api
         send api the-answer re=d1 as=web@1
         retire api@1
         register api",
    );
    let text = body(&scene, 3);
    for part in ["web", "d1", "e2", "the-answer"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_dispatch_that_has_ended_keeps_its_words() {
    let scene = Scene::new();
    scene.play(
        "register api
         dispatch login api title=Login writes=/w/a,/w/b body=please
         accept d1 as=api@1
         report d1 blocked body=stuck as=api@1
         dispatch login api
         cancel d2 reason=changed
         dispatch login api
         retire api@1",
    );
    let view = |n| look(&scene, |lens| lens.dispatch(DispatchNo(n))).expect("it was given");
    let first = view(1);
    assert_eq!(
        (first.item.as_str(), first.title.as_deref()),
        ("login", Some("Login"))
    );
    assert_eq!(
        (first.state, first.writes.len()),
        (DispatchState::Blocked, 2)
    );
    assert_eq!(first.body.as_deref(), Some(&b"please"[..]));
    assert_eq!(first.report.as_deref(), Some(&b"stuck"[..]));
    assert_eq!(view(2).reason.as_deref(), Some("changed"));
    assert_eq!(view(3).reason.as_deref(), Some("session-retired"));
    assert_eq!(look(&scene, |lens| lens.dispatch(DispatchNo(4))), None);
}

/// E08, NOT-7: who lost is told what happened since, oldest first, with who and why.
#[test]
fn whoever_lost_is_told_what_happened_since() {
    let scene = Scene::new();
    scene.play(
        "register api
         adopt api force=hangs
         adopt api force=again
         retire api@3 reason=over",
    );
    let told = |token: &str| {
        let token = token.parse().expect("a token");
        let view = look(&scene, |lens| Ok(lens.check(&token))).expect("the session is there");
        let lost = view.lost.iter().map(|l| {
            format!(
                "{} {} {} {:?}",
                l.event(),
                l.generation,
                l.is_forced(),
                l.reason.as_deref()
            )
        });
        (view.is_current(), lost.collect::<Vec<_>>())
    };
    let (current, lost) = told("api@1");
    assert!(!current);
    assert_eq!(
        lost,
        [
            "adopted 2 true Some(\"hangs\")",
            "adopted 3 true Some(\"again\")",
            "retired 3 false Some(\"over\")",
        ]
    );
    assert_eq!(told("api@3").1, ["retired 3 false Some(\"over\")"]);
    assert_eq!(told("api@4"), (false, Vec::new()));
}

/// D1: a holder is judged when it is looked at, and the label says who it is.
#[test]
fn a_holder_is_shown_with_the_verdict_of_now() {
    let scene = Scene::new();
    scene.play("register api pid=42 engine=claude");
    let holder = || {
        let view = look(&scene, |lens| Ok(lens.sessions().next()));
        view.and_then(|s| s.holder).expect("it is held")
    };
    assert_eq!(
        (holder().verdict, holder().label().as_str()),
        (Verdict::Alive, "claude, pid 42 on stage1")
    );
    scene.stage.sees(42, Seen::NoSuchProcess);
    assert_eq!(holder().verdict, Verdict::Dead);
}

/// What a refused report carried is kept, and can be read again.
#[test]
fn a_kept_refusal_shows_what_it_carried() {
    let scene = Scene::new();
    scene.play(
        "register api
         dispatch login api
         accept d1 as=api@1
         adopt api force=hangs",
    );
    let refusal = scene.refusal("report d1 done body=green as=api@1");
    let carried = look(&scene, |lens| Ok(lens.refused(&refusal, Some(b"green"))));
    let stored = carried.stored.expect("it is recorded");
    assert!(stored.carried && stored.body_kept);
    assert_eq!(carried.lost.len(), 1);
    let other = look(&scene, |lens| {
        Ok(lens.refused(&refusal, Some(b"never sent")))
    });
    assert!(!other.stored.expect("it is recorded").body_kept);
    let kept = look(&scene, |lens| lens.refusal(RefusalNo(1))).expect("it is kept");
    let stored = kept.stored.expect("it is a record");
    assert_eq!(
        (stored.command, stored.bodies),
        ("report", vec![b"green".to_vec()])
    );
    assert_eq!(
        (kept.presented.as_deref(), kept.current.as_deref()),
        (Some("api@1"), Some("api@2"))
    );
}

fn all_events(scene: &Scene) -> Vec<EventView> {
    let mut views = Vec::new();
    let store = &scene.store;
    store
        .view(|state| {
            store.frames(Position(1), Position(u64::MAX), Depth::Whole, |frame| {
                views.extend(events(frame, state));
                Ok(true)
            })
        })
        .and_then(|inner| inner)
        .expect("the log reads");
    views
}

/// One of everything that can happen.
fn full_day() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register api engine=claude label=team:core
         register web
         dispatch login api writes=/w/a title=Login body=please as=web@1
         accept d1 as=api@1
         observe busy wrote=/w/a as=api@1
         note hello on=d1 as=api@1
         send api hi re=d1
         deliver e2 as=api@1
         ack e2 as=api@1
         report d1 done body=ok as=api@1
         dispatch style web
         decline d2 as=web@1
         dispatch style web
         fail d3
         retire web@1 reason=over
         register web
         adopt api force=why",
    );
    scene.run("note late as=api@1");
    scene
}

/// AUD-3: every event says who, about whom, and what else there is.
#[test]
fn every_event_is_spelled_out_with_its_actor() {
    let scene = full_day();
    let views = all_events(&scene);
    assert!(views.iter().all(|v| v.actor == "tester"), "{views:?}");
    let words: Vec<&str> = views.iter().map(|v| v.kind.as_str()).collect();
    assert_eq!(
        words,
        [
            "registered",
            "registered",
            "dispatched",
            "accepted",
            "observed",
            "noted",
            "sent",
            "delivered",
            "acknowledged",
            "reported",
            "dispatched",
            "declined",
            "dispatched",
            "assignment-failed",
            "retired",
            "registered",
            "fenced",
            "adopted",
            "carried",
            "refused",
        ]
    );
    let payload = |n: usize, name: &str| {
        let found = views[n].payload.iter().find(|(key, _)| *key == name);
        found
            .map(|(_, field)| field.clone())
            .unwrap_or_else(|| panic!("no {name} in {:?}", views[n]))
    };
    let text = |t: &str| Field::Text(t.to_owned());
    assert_eq!(views[0].session.as_deref(), Some("api"));
    assert_eq!(payload(0, "engine"), text("claude"));
    assert_eq!(
        payload(0, "labels"),
        Field::Pairs(vec![("team".into(), "core".into())])
    );
    assert_eq!(payload(2, "from"), text("web"));
    assert_eq!(payload(2, "writes"), Field::List(vec!["/w/a".into()]));
    assert_eq!(payload(2, "body"), Field::Body(b"please".to_vec()));
    assert_eq!(payload(5, "on"), text("d1"));
    assert_eq!(payload(9, "outcome"), text("done"));
    assert_eq!(views[9].session.as_deref(), Some("api"));
    assert_eq!(views[9].generation.map(|g| g.number), Some(1));
    assert_eq!(payload(17, "reason"), text("why"));
    assert_eq!(views[18].index, 1);
    assert_eq!(payload(19, "code"), text("stale-generation"));
    assert_eq!(payload(19, "body"), Field::Body(b"late".to_vec()));
}

#[test]
fn bytes_that_are_no_text_are_written_out() {
    assert_eq!(shown(b"a\xff\xfeb"), "a\\xff\\xfeb");
    assert_eq!(shown("grün".as_bytes()), "grün");
}

/// E24: an envelope says when it was issued, however late it is delivered; what was delivered late is not dropped by a clock.
#[test]
fn an_envelope_says_when_it_was_issued() {
    let scene = Scene::new();
    scene.play("register api \n send api opinion");
    let issued = scene.state().at.time;
    scene.stage.passes(15 * 3600);
    scene.play("note later as=api@1 \n deliver e1 as=api@1");
    let view = look(&scene, |lens| lens.envelope(EnvelopeNo(1))).expect("it is there");
    assert_eq!(view.issued, issued);
    let now = scene.state().at.time;
    assert_eq!((now.0 - view.issued.0) / 1_000_000 / 3600, 15);
    assert_eq!(view.state, EnvelopeState::Delivered);
    scene.play("adopt api as=api@1");
    let carried = look(&scene, |lens| lens.envelope(EnvelopeNo(1))).expect("it is there");
    assert_eq!((carried.issued, carried.generation.number), (issued, 2));
}
