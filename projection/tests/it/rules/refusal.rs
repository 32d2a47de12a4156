//! Refusals: recorded, coalesced, counted, and what they carried is kept (AUD-2).

use tenure_core::limits::{
    REFUSAL_OPEN_FRAMES, REFUSALS_OPEN_MAX, REFUSED_BODIES_MAX, REFUSED_BODY_BYTES_MAX,
};
use tenure_core::refusal::{Code, Refusal};
use tenure_core::state::RefusalRecord;
use tenure_log::journal::{CounterTag, Journal};
use tenure_projection::call::Verb;
use tenure_projection::error::Failure;
use tenure_projection::views::Lens;

use crate::scene::Scene;
use crate::scene::line::{Words, call};

/// A scene in which `api@1` is stale.
fn stale() -> Scene {
    let scene = Scene::new();
    scene.play("register api \n dispatch item api \n accept d1 as=api@1 \n adopt api as=api@1");
    scene
}

fn report(scene: &Scene, body: &[u8]) -> Refusal {
    let mut call = call(&Words::parse("report d1 done as=api@1 body=x"));
    if let Verb::Report { body: carried, .. } = &mut call.verb {
        *carried = Some(body.to_vec());
    }
    match scene.store.execute(call) {
        Err(Failure::Refused(refusal)) => *refusal,
        other => panic!("it was not refused: {other:?}"),
    }
}

fn records(scene: &Scene) -> Vec<RefusalRecord> {
    scene.state().refusals.iter().skip(1).cloned().collect()
}

/// AUD-2: the first is an event, with what it carried; a repeat is only counted.
#[test]
fn the_first_refusal_is_recorded_with_what_it_carried() {
    let scene = stale();
    report(&scene, b"the whole report");
    let frames = scene.frames();
    for _ in 0..8 {
        report(&scene, b"the whole report");
    }
    assert_eq!(scene.frames(), frames);
    let record = &records(&scene)[0];
    assert_eq!(Code::from_number(record.code), Some(Code::StaleGeneration));
    assert_eq!(record.session, Some(scene.number("api")));
    assert_eq!(record.presented.expect("named").number, 1);
    assert_eq!(record.current.expect("named").number, 2);
    let state = scene.state();
    assert_eq!(state.pool.string(record.subject), "d1");
    let lens = Lens {
        state: &state,
        host: scene.store.host(),
        shelf: &*scene.store,
    };
    let view = lens
        .refusal(tenure_core::id::RefusalNo(1))
        .expect("it reads")
        .expect("there");
    assert_eq!(
        view.stored.expect("it is stored").bodies,
        [b"the whole report"]
    );
    assert_eq!(scene.log.counters().get(CounterTag(1)), 9);
}

/// Differing bodies are kept up to 64; later ones only count.
#[test]
fn differing_bodies_are_kept_up_to_a_number() {
    let scene = stale();
    for n in 0..REFUSED_BODIES_MAX + 10 {
        report(&scene, format!("body {n}").as_bytes());
        report(&scene, b"body 0");
    }
    let record = &records(&scene)[0];
    assert_eq!(record.bodies.len(), REFUSED_BODIES_MAX);
    let kept = |body: &[u8]| {
        let refusal = report(&scene, body);
        let state = scene.state();
        let lens = Lens {
            state: &state,
            host: scene.store.host(),
            shelf: &*scene.store,
        };
        lens.refused(&refusal, Some(body))
            .stored
            .is_some_and(|s| s.body_kept)
    };
    assert!(kept(b"body 63"));
    assert!(!kept(b"body 64"), "and the answer says so");
}

/// Differing bodies are kept up to a mebibyte; the first always is.
#[test]
fn differing_bodies_are_kept_up_to_a_size() {
    let most = usize::try_from(REFUSED_BODY_BYTES_MAX).expect("it fits");
    let scene = stale();
    report(&scene, &vec![1; most]);
    report(&scene, b"x");
    assert_eq!(records(&scene)[0].bodies.len(), 1, "it is full");
    let scene = stale();
    report(&scene, b"x");
    report(&scene, &vec![1; most]);
    assert_eq!(records(&scene)[0].bodies.len(), 1, "one byte too much");
    report(&scene, &vec![1; most - 1]);
    let record = &records(&scene)[0];
    assert_eq!(
        (record.bodies.len(), record.body_bytes),
        (2, REFUSED_BODY_BYTES_MAX)
    );
}

/// How many bytes the frames behind a position have.
fn bytes_behind(scene: &Scene, before: u64) -> usize {
    let frames = scene.all();
    let added = &frames[before as usize..];
    added.iter().map(|f| f.header.frame_bytes()).sum()
}

/// AUD-2: a hundred thousand refusals of a stale caller grow the log by a small fixed amount; the count is logged
/// at each power of ten. `TENURE_REFUSALS` asks for more: a million come to the same bound.
#[test]
fn a_hundred_thousand_refusals_are_a_handful_of_frames() {
    let asked = std::env::var("TENURE_REFUSALS").ok();
    let refusals: u64 = asked.and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let scene = stale();
    let before = scene.frames();
    for _ in 0..refusals {
        report(&scene, b"again and again");
    }
    let counted: Vec<_> = scene.entries()[before as usize..]
        .iter()
        .map(|e| e.events[0].word())
        .collect();
    let powers = vec!["refusals-counted"; refusals.ilog10() as usize];
    assert_eq!(counted, [&["refused"], &powers[..]].concat());
    assert_eq!(records(&scene)[0].count, 10_u64.pow(refusals.ilog10()));
    let counters = scene.log.counters();
    assert_eq!(counters.get(CounterTag(1)), refusals, "and no other number");
    let same = bytes_behind(&scene, before);

    // As many that each say something else: what is kept of them is bounded, what is counted is not.
    let scene = stale();
    let before = scene.frames();
    for n in 0..refusals {
        report(&scene, format!("attempt {n}").as_bytes());
    }
    assert_eq!(scene.log.counters().get(CounterTag(1)), refusals);
    assert_eq!(records(&scene)[0].bodies.len(), REFUSED_BODIES_MAX);
    let differing = bytes_behind(&scene, before);
    println!("{refusals} refusals: {same} bytes, differing ones {differing} bytes");
    assert!(
        same < 2 << 10 && differing < 64 << 10,
        "{same} and {differing}"
    );
}

/// What differs in session, generation, command or subject is another record.
#[test]
fn refusals_are_alike_by_session_generation_command_and_subject() {
    let scene = stale();
    scene.play("register web \n adopt api as=api@2 \n dispatch other api");
    for line in [
        "report d1 done as=api@1",
        "report d1 failed as=api@1",
        "report d1 done as=api@2",
        "report d2 done as=api@1",
        "accept d1 as=api@1",
        "report d1 done as=web@1",
        "note x as=api@1",
        "note x as=api@1 on=d1",
        "dispatch item web",
        "dispatch item web as=web@1",
    ] {
        scene.refusal(line);
    }
    scene.check(
        "refusals => r1 stale-generation d1 x1 bodies=0; r2 stale-generation d1 x1 bodies=0; \
r3 stale-generation d2 x1 bodies=0; r4 stale-generation d1 x1 bodies=0; r5 not-your-envelope d1 x1 bodies=0; \
r6 stale-generation api x1 bodies=1; r7 duplicate-item item x1 bodies=0; r8 duplicate-item item x1 bodies=0",
    );
    let sessions: Vec<_> = records(&scene)
        .iter()
        .map(|r| r.session.expect("its").0)
        .collect();
    assert_eq!(
        sessions,
        [0, 0, 0, 0, 1, 0, 0, 1],
        "of who asked, or without a token of whom it is about"
    );
}

/// More than 256 records share one, unknown names and calls without a token always do.
#[test]
fn what_has_no_record_of_its_own_shares_one() {
    let scene = stale();
    scene.play("register web");
    for n in 0..400 {
        scene.refusal(&format!("note x as=nobody{n}@1"));
        scene.refusal(&format!("adopt nobody{n}"));
        scene.refusal(&format!("dispatch x{n} nobody{n} as=web@1"));
        scene.refusal("note y");
    }
    assert_eq!(records(&scene).len(), 1);
    assert_eq!(records(&scene)[0].session, None);
    for n in 1..=REFUSALS_OPEN_MAX {
        scene.refusal(&format!("report d{n} done as=api@1 body=b{n}"));
    }
    assert_eq!(records(&scene).len(), REFUSALS_OPEN_MAX + 1);
    let frames = scene.frames();
    for n in 300..1300 {
        scene.refusal(&format!("report d{n} done as=api@1"));
    }
    assert_eq!(records(&scene).len(), REFUSALS_OPEN_MAX + 1);
    let logged = scene.frames() - frames;
    assert!(logged < 5, "{logged} frames for a thousand refusals");
    let slots: std::collections::BTreeSet<_> = records(&scene).iter().map(|r| r.slot).collect();
    assert_eq!(slots.len(), REFUSALS_OPEN_MAX + 1, "each counts by itself");
    scene.refusal("report d9999 done as=api@1 body=kept");
    let shared = &records(&scene)[0];
    assert!(
        shared.bodies.len() >= 2,
        "bodies of others are kept there too"
    );
}

/// A record that nothing came under for long is closed: later refusals are kept again, and counted from one.
#[test]
fn a_record_closes_when_nothing_comes_under_it() {
    let scene = stale();
    for n in 1..=REFUSALS_OPEN_MAX {
        scene.refusal(&format!("report d{n} done as=api@1"));
    }
    for _ in 0..30 {
        scene.refusal("report d1 done as=api@1");
    }
    let last = records(&scene)
        .last()
        .expect("there are some")
        .last
        .position
        .0;
    let store = scene.another();
    let note = |n: u64| {
        let submit = |_| {
            store
                .submit(call(&Words::parse("note x as=api@2")))
                .expect("it goes")
        };
        let tickets: Vec<_> = (0..n).map(submit).collect();
        tickets
            .into_iter()
            .for_each(|t| drop(t.wait().expect("it is done")));
    };
    note(last + REFUSAL_OPEN_FRAMES - scene.frames() - 1);
    scene.refusal("report d256 done as=api@1 body=late");
    assert_eq!(
        records(&scene).len(),
        REFUSALS_OPEN_MAX,
        "one frame before it closes"
    );
    note(1);
    scene.refusal("report d1 done as=api@1 body=late");
    let all = records(&scene);
    assert_eq!(all.len(), REFUSALS_OPEN_MAX + 1);
    let (old, new) = (&all[0], all.last().expect("there"));
    assert_eq!((old.subject, old.count), (new.subject, 10));
    assert_eq!((new.count, new.bodies.len()), (1, 1));
    let tag = tenure_log::journal::CounterTag(u64::from(new.slot));
    assert_eq!(scene.log.counters().get(tag), 1);
}

/// Counts go on from what the log says when the counters are lost.
#[test]
fn counts_outlive_their_counters() {
    let scene = stale();
    for _ in 0..25 {
        report(&scene, b"x");
    }
    let tag = tenure_log::journal::CounterTag(1);
    assert_eq!(scene.log.counters().take(tag), 25);
    for _ in 0..90 {
        report(&scene, b"x");
    }
    assert_eq!(
        scene.log.counters().get(tag),
        100,
        "15 were only in the page"
    );
    assert_eq!(records(&scene)[0].count, 100);
}

/// A refused contact is heard of by its session; what others try behind its back is not.
#[test]
fn a_session_is_seen_when_its_own_token_is_presented() {
    let scene = stale();
    scene.play("register web");
    let seen = |scene: &Scene| scene.session("api").last_seen.position.0;
    let before = seen(&scene);
    scene.refusal("adopt api");
    scene.refusal("adopt api as=web@1");
    scene.refusal("register api");
    scene.refusal("dispatch item web");
    scene.refusal("deliver e1 as=web@1");
    assert_eq!(seen(&scene), before);
    scene.refusal("note late as=api@1");
    assert_eq!(seen(&scene), scene.frames());
    let before = seen(&scene);
    scene.play("send api hello");
    assert_eq!(seen(&scene), before);
    scene.play("ack e2 as=api@2");
    assert_eq!(seen(&scene), scene.frames());
}

/// A02, E08, E17: what concerns one session does not concern the next; every later write of the lost one is
/// refused too.
#[test]
fn one_lost_session_does_not_stop_others() {
    let scene = stale();
    scene.play("register web \n register ops");
    for n in 0..5 {
        scene.check(&format!(
            "note n{n} as=api@1 => stale-generation: .. \n note n{n} as=web@1 => done \n note n{n} as=ops@1 => done"
        ));
    }
}
