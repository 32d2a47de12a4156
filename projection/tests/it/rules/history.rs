//! Histories: record, compare-and-append, activities.

use tenure_core::event::{Fence, FenceKind, Recorded};
use tenure_core::generation::Generation;
use tenure_core::history::HistoryHash;
use tenure_core::id::{Position, SessionNo};
use tenure_core::limits::{ACTIVITIES_OPEN_MAX, LABEL_BYTES_MAX, RECORD_BYTES_MAX};
use tenure_core::state::History;
use tenure_core::text::{BodyId, TextId};
use tenure_projection::call::{Call, Verb};
use tenure_projection::error::{Error, Failure};

use crate::scene::Scene;

fn history(scene: &Scene, name: &str) -> History {
    scene.session(name).history
}

fn record(kind: &str, bytes: usize) -> Call {
    Call::new(Verb::Record {
        kind: kind.to_owned(),
        body: vec![b'x'; bytes],
        expect: None,
        opens: None,
        closes: None,
    })
    .under(&"api@1".parse().expect("a token"))
}

/// REG-4, REG-8, E01: a record is a write like any other: its token is checked, and what is refused changes nothing.
#[test]
fn a_record_needs_a_current_token() {
    let scene = Scene::new();
    scene.play("register api \n register web \n record one as=api@1 \n adopt api force=stuck");
    let before = history(&scene, "api");
    scene.check(
        "record two as=api@1 => stale-generation: ..
         record two as=api@3 => never-issued: ..
         record two          => missing-token: ..
         record two as=ops@1 => unknown-session: ..",
    );
    assert_eq!(history(&scene, "api"), before);
    scene.check("record two as=api@2 => record 2 \n record one as=web@1 => record 1");
}

/// A11: an append that was computed against another record is refused, whoever made the newer one.
#[test]
fn an_expectation_is_compared_with_the_newest_record() {
    let scene = Scene::new();
    scene.play("register api");
    scene.check(
        "record one as=api@1 expect=0 => record 1
         record two as=api@1 expect=0 => position-moved: the newest record of api is at position 2, and an empty history was expected
         record two as=api@1 expect=1 => position-moved: the newest record of api is at position 2, and position 1 was expected
         note aside as=api@1          => done
         record two as=api@1 expect=2 => record 2
         record tre as=api@1 expect=2 => position-moved: ..",
    );
    let refusal = scene.refusal("record tre as=api@1 expect=2");
    assert_eq!(refusal.presented.as_deref(), Some("2"));
    assert_eq!(refusal.current.as_deref(), Some("5"));
}

/// A11: of two threads that computed against the same record exactly one appends.
#[test]
fn of_two_that_expect_the_same_record_one_appends() {
    let scene = Scene::new();
    scene.play("register api \n record one as=api@1");
    for round in 0..20 {
        let expect = history(&scene, "api").tip_position();
        let line = format!("record more as=api@1 expect={expect}");
        let (scene, line) = (&scene, &line);
        let answers: Vec<String> = std::thread::scope(|threads| {
            let run = || threads.spawn(move || scene.run_on(&scene.another(), line));
            let runs: Vec<_> = (0..2).map(|_| run()).collect();
            runs.into_iter()
                .map(|r| r.join().expect("it ends"))
                .collect()
        });
        let won = answers.iter().filter(|a| a.starts_with("record ")).count();
        let lost = answers
            .iter()
            .filter(|a| a.starts_with("position-moved"))
            .count();
        assert_eq!((won, lost), (1, 1), "round {round}: {answers:?}");
    }
}

/// What is open is known, an id is taken while it is open, and what is not open cannot be closed (B20: an id used
/// again stops no reader).
#[test]
fn activities_are_opened_and_closed_by_records() {
    let scene = Scene::new();
    scene.play("register api");
    scene.check(
        "record ask as=api@1 opens=call:one     => record 1
         record ask as=api@1 opens=call:one     => name-taken: call:one of api is open since position 2
         record ask as=api@1 opens=approval:one => record 2
         record run as=api@1 opens=run:one      => record 3
         record end as=api@1 closes=call:two    => not-pending: call:two of api is not open
         record end as=api@1 closes=call:one    => record 4
         record end as=api@1 closes=call:one    => not-pending: ..
         record ask as=api@1 opens=call:one     => record 5",
    );
    let now = history(&scene, "api");
    let open: Vec<_> = now.open.iter().map(|a| a.kind.as_str()).collect();
    assert_eq!(open, ["approval", "run", "call"]);
    assert_eq!((now.depth(), now.cut, now.count()), (2, None, 5));
    scene.check(
        "record end as=api@1 closes=call:one     => record 6
         record end as=api@1 closes=approval:one => record 7
         retire api@1 => done",
    );
    let after = history(&scene, "api");
    assert_eq!((after.open.len(), after.cut), (0, after.tip));
}

/// The number of activities that are open at a time is limited, at the limit and one past it.
#[test]
fn only_so_many_activities_are_open_at_a_time() {
    let scene = Scene::new();
    scene.play("register api");
    for n in 0..ACTIVITIES_OPEN_MAX {
        scene.play(&format!("record go as=api@1 opens=run:{n}"));
    }
    scene.check("record go as=api@1 opens=run:more => open-obligations: api has 1024 open..");
    scene.check("record go as=api@1 closes=run:7 => record 1025");
    scene.check("record go as=api@1 opens=run:more => record 1026");
}

/// A record has up to 16 MiB, whatever the segment before it holds, and its kind up to 256 bytes; one byte more is
/// refused before anything is decided (B11: size is no damage).
#[test]
fn a_record_is_as_large_as_the_limit_says() {
    let scene = Scene::new();
    scene.play("register api");
    let done = scene.store.execute(record("text", RECORD_BYTES_MAX));
    assert_eq!(done.expect("it is done").at.position, Position(2));
    assert_eq!(scene.all()[1].parts.bodies.len(), RECORD_BYTES_MAX + 16);
    let long = "k".repeat(LABEL_BYTES_MAX);
    scene.store.execute(record(&long, 0)).expect("it is done");
    for (call, max) in [
        (record("text", RECORD_BYTES_MAX + 1), RECORD_BYTES_MAX),
        (record(&format!("{long}k"), 0), LABEL_BYTES_MAX),
    ] {
        match scene.store.execute(call) {
            Err(Failure::Failed(Error::Limit { max: allowed, .. })) => assert_eq!(allowed, max),
            other => panic!("it was not refused: {other:?}"),
        }
    }
    let nameless = scene.store.execute(record("", 1));
    assert!(matches!(nameless, Err(Failure::Failed(Error::Empty(_)))));
    assert_eq!(scene.frames(), 3);
}

/// What a refused record carried is kept up to the size of a record of refusals; beyond it only the refusal is.
#[test]
fn a_refused_record_of_16_mib_does_not_grow_the_log_by_16_mib() {
    let scene = Scene::new();
    scene.play("register api \n adopt api force=stuck");
    let frames = scene.frames();
    for bytes in [RECORD_BYTES_MAX, 1 << 20] {
        let refused = scene.store.execute(record("text", bytes));
        assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    }
    let bodies: Vec<_> = scene.all()[frames as usize..]
        .iter()
        .map(|f| f.parts.bodies.len())
        .collect();
    assert_eq!(bodies, [0, (1 << 20) + 16]);
    scene.check("refusals => r1 stale-generation api x2 bodies=1");
}

/// DIS-17: the same record under the same key is appended once; another body under the key is refused.
#[test]
fn a_keyed_record_is_appended_once() {
    let scene = Scene::new();
    scene.play("register api");
    scene.check(
        "record one as=api@1 key=k kind=turn => record 1
         record one as=api@1 key=k kind=turn => record 1 again
         record two as=api@1 key=k kind=turn => key-reused: ..
         record one as=api@1 key=k kind=text => key-reused: ..
         record one as=api@1 key=k kind=turn opens=run:1 => key-reused: ..
         record one as=api@1 key=k kind=turn expect=2 => key-reused: ..
         record two as=api@1 => record 2",
    );
}

fn forged() -> Recorded {
    Recorded {
        session: SessionNo(0),
        index: 2,
        previous: Some(Position(2)),
        before: HistoryHash::default(),
        depth: 0,
        kind: TextId(0),
        body: BodyId(0),
        opens: None,
        closes: None,
    }
}

/// F2: a record whose index, record before, digest or depth is not what the history says is a finding, and so is one
/// under another session's token or without a body.
#[test]
fn a_record_that_does_not_continue_its_history_is_not_honoured() {
    let good = |scene: &Scene| Recorded {
        before: history(scene, "api").hash(),
        ..forged()
    };
    let bad: [fn(Recorded) -> Recorded; 7] = [
        |r| Recorded { index: 3, ..r },
        |r| Recorded {
            previous: None,
            ..r
        },
        |r| Recorded {
            previous: Some(Position(1)),
            ..r
        },
        |r| Recorded {
            before: HistoryHash([1; 16]),
            ..r
        },
        |r| Recorded { depth: 1, ..r },
        |r| Recorded {
            session: SessionNo(1),
            ..r
        },
        |r| Recorded {
            body: BodyId(1),
            ..r
        },
    ];
    let fence = Fence {
        kind: FenceKind::Write,
        session: Some(SessionNo(0)),
        named: Some(Generation::first(1)),
        granted: None,
        tree: None,
    };
    let append = |change: fn(Recorded) -> Recorded| {
        let scene = Scene::new();
        scene.play("register api \n record one as=api@1 \n register web");
        let record = change(good(&scene));
        scene.forge(&fence, &["text"], &[record.into()]);
        scene.run("findings")
    };
    assert_eq!(append(|r| r), "");
    for (n, change) in bad.into_iter().enumerate() {
        assert_eq!(append(change), "4", "number {n}");
    }
}
