//! Idempotency keys: one call, one answer (DIS-17).

use std::sync::{Arc, Barrier};

use tenure_core::id::Position;
use tenure_core::refusal::Code;
use tenure_projection::call::IdempotencyKey;
use tenure_projection::error::Trace;
use tenure_projection::reader::Known;

use crate::balky::{Balky, Trouble};
use crate::scene::Scene;

/// A scene in which every kind of command can be done once.
fn ready() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register api \n register web
         dispatch one api writes=/w \n dispatch two api \n dispatch tre api \n dispatch for api
         dispatch fiv api \n accept d3 as=api@1 \n accept d4 as=api@1 \n send api hello \n send api more",
    );
    scene
}

/// Each command with its answer.
const COMMANDS: &[(&str, &str)] = &[
    ("register new engine=claude label=a:b", "new@1"),
    ("adopt web as=web@1", "web@2"),
    ("dispatch item api title=T writes=/x body=B", "d6 e8"),
    ("accept d1 as=api@1", "alone"),
    ("decline d2 as=api@1 reason=no", "done"),
    ("report d3 done as=api@1 body=B", "done"),
    ("cancel d4 reason=no", "done"),
    ("fail d5 reason=no", "done"),
    ("note hello as=api@1 on=d1", "done"),
    ("observe busy as=api@1 wrote=/x", "done"),
    ("send api hello re=d1", "e8"),
    ("deliver e6 as=api@1", "done"),
    ("ack e7 as=api@1", "done"),
    ("retire api@1 reason=bye", "done"),
];

/// DIS-17, E15: the same key and call, through this handle, another, and one opened later, is the first answer.
#[test]
fn the_same_call_under_its_key_is_answered_once() {
    for (line, answer) in COMMANDS {
        let scene = ready();
        let other = scene.another();
        other.view(|_| ()).expect("it reads");
        let first = scene.done(&format!("{line} key=k"));
        assert!(!first.repeated);
        let frames = scene.frames();
        for store in [&scene.store, &other, &scene.another()] {
            let again = scene.run_on(store, &format!("{line} key=k"));
            assert_eq!(again, format!("{answer} again"), "{line}");
        }
        let again = scene.done(&format!("{line} key=k"));
        assert_eq!(
            (again.receipt, again.at),
            (first.receipt, first.at),
            "{line}"
        );
        assert_eq!(again.answer, first.answer, "{line}");
        assert_eq!(scene.frames(), frames, "{line} was appended again");
    }
}

/// DIS-17, E15: the same key for anything else is refused, wherever that would lead, and says where it was used.
#[test]
fn a_key_used_for_another_call_is_refused() {
    let changes: &[(&str, &[&str])] = &[
        (
            "dispatch item api title=T writes=/x body=B",
            &[
                "dispatch other api title=T writes=/x body=B",
                "dispatch item web title=T writes=/x body=B",
                "dispatch item api@1 title=T writes=/x body=B",
                "dispatch item api title=U writes=/x body=B",
                "dispatch item api writes=/x body=B",
                "dispatch item api title=T writes=/y body=B",
                "dispatch item api title=T writes=/x,/y body=B",
                "dispatch item api title=T body=B",
                "dispatch item api title=T writes=/x body=C",
                "dispatch item api title=T writes=/x",
                "dispatch item api title=T writes=/x body=B as=api@1",
                "dispatch item api title=T writes=/x body=B force=x",
            ],
        ),
        (
            "report d3 done as=api@1 body=B",
            &[
                "report d3 failed as=api@1 body=B",
                "report d4 done as=api@1 body=B",
                "report d3 done as=api@1",
                "report d3 done as=web@1 body=B",
                "report d3 done as=api@9 body=B",
                "report d3 done body=B",
                "accept d3 as=api@1",
            ],
        ),
        (
            "register new engine=claude label=a:b",
            &[
                "register other engine=claude label=a:b",
                "register new engine=codex label=a:b",
                "register new label=a:b",
                "register new engine=claude label=a:c",
                "register new engine=claude label=b:b",
                "register new engine=claude label=a:b checkout=/w",
                "adopt new engine=claude label=a:b",
            ],
        ),
        (
            "send api hello re=d1",
            &[
                "send api hello re=e1",
                "send api hello",
                "send web hello re=d1",
            ],
        ),
        (
            "note hello as=api@1 on=d1",
            &["note hello as=api@1", "note other as=api@1 on=d1"],
        ),
        (
            "observe busy as=api@1 wrote=/x",
            &["observe busy as=api@1", "observe free as=api@1 wrote=/x"],
        ),
        (
            "cancel d4 reason=no",
            &[
                "cancel d4 reason=yes",
                "cancel d5 reason=no",
                "fail d4 reason=no",
            ],
        ),
        (
            "deliver e6 as=api@1",
            &["deliver e7 as=api@1", "ack e6 as=api@1"],
        ),
        (
            "retire api@1 reason=bye",
            &["retire api@1 reason=now", "retire api@1 idle reason=bye"],
        ),
    ];
    for (line, others) in changes {
        let scene = ready();
        let first = scene.done(&format!("{line} key=k"));
        for other in *others {
            let refusal = scene.refusal(&format!("{other} key=k"));
            assert_eq!(refusal.code, Code::KeyReused, "{other}");
            assert_eq!(refusal.recorded_at, Some(first.at.position), "{other}");
        }
        let again = scene.done(&format!("{line} key=k"));
        assert_eq!(again.at, first.at, "{line}: it binds what it bound");
    }
}

/// What a call refused for its key carried is kept with the refusal.
#[test]
fn what_a_reused_key_carried_is_kept() {
    let scene = ready();
    scene.play("report d3 done as=api@1 body=first key=k");
    scene.check(
        "report d3 done as=api@1 body=second key=k => key-reused: the key was used for another command, at position 12
         refusals => r1 key-reused d3 x1 bodies=1",
    );
    let (_, position) = scene.state().refusals[1].bodies[0];
    let frame = &scene.all()[position.0 as usize - 1];
    let request = tenure_projection::entry::decode_request(&frame.by_ref()).expect("it decodes");
    assert_eq!(request.bodies.iter().next(), Some(&b"second"[..]));
    // The frame names the key and binds nothing, for whoever reads the log later too.
    scene.check_on(
        &scene.another(),
        "report d3 done as=api@1 body=first key=k  => done again
         report d3 done as=api@1 body=second key=k => key-reused: ..",
    );
}

/// A refusal binds no key, and neither does a command that had nothing to do.
#[test]
fn only_an_appended_command_binds_a_key() {
    let scene = ready();
    scene.check(
        "report d1 done as=api@1 key=k => no-binding: ..
         accept d1 as=api@1 key=k      => alone
         accept d1 as=api@1 key=other  => alone again
         note free as=api@1 key=other  => done
         report d1 done as=web@1 key=r => not-your-envelope: ..
         report d1 done as=api@1 key=r => done
         report d1 done as=api@1 key=r => done again",
    );
    scene.check_on(&scene.another(), "accept d1 as=api@1 key=k => alone again");
}

/// E15, AUD-2: a repeat under a token that is no longer current is refused as stale, and told where it stands.
#[test]
fn a_stale_repeat_is_told_where_it_stands() {
    let scene = ready();
    let report = scene.done("report d3 done as=api@1 body=B key=k");
    scene.play("adopt api as=api@1");
    for store in [&scene.store, &scene.another()] {
        let answer = scene.run_on(store, "report d3 done as=api@1 body=B key=k");
        assert_eq!(
            answer,
            "stale-generation: api@1 was superseded; api@2 is current"
        );
    }
    let refusal = scene.refusal("report d3 done as=api@1 body=B key=k");
    assert_eq!(refusal.recorded_at, Some(report.at.position));
    assert_eq!(scene.run("refusals"), "r1 stale-generation d3 x1 bodies=1");
    scene.play("retire api@2");
    let refusal = scene.refusal("report d3 done as=api@1 body=B key=k");
    assert_eq!(
        (refusal.code, refusal.recorded_at),
        (Code::StaleGeneration, Some(report.at.position))
    );
}

/// REG-3, E13: a grant is repeated while it is current, and refused with its place when it is not.
#[test]
fn a_grant_is_repeated_only_while_it_is_current() {
    let scene = Scene::new();
    scene.check(
        "register api key=r           => api@1
         adopt api as=api@1 key=a     => api@2
         adopt api as=api@1 key=a     => api@2 again
         register api key=r           => stale-generation: it is recorded at position 1, and api@2 is current now
         adopt api as=api@2           => api@3
         adopt api as=api@1 key=a     => stale-generation: it is recorded at position 2, and api@3 is current now
         retire api@3 key=b           => done
         retire api@3 key=b           => done again
         adopt api as=api@1 key=a     => stale-generation: it is recorded at position 2, and api was retired since
         register api key=r           => stale-generation: it is recorded at position 1, and api was retired since
         session api                  => retired@3 open=0 inbox=0
         register api key=s           => api@4
         retire api@3 key=b           => stale-generation: ..",
    );
    assert_eq!(
        scene.refusal("register api key=r").recorded_at,
        Some(Position(1))
    );
}

/// DIS-17: of many at once with one key, one is done and all have its answer.
#[test]
fn many_at_once_under_one_key_are_one() {
    for _ in 0..20 {
        let scene = Scene::new();
        let barrier = Barrier::new(8);
        let answers: Vec<String> = std::thread::scope(|threads| {
            let racer = |n: usize| {
                let (scene, barrier) = (&scene, &barrier);
                threads.spawn(move || {
                    let own = scene.another();
                    let store = if n.is_multiple_of(2) {
                        &scene.store
                    } else {
                        &own
                    };
                    barrier.wait();
                    scene.run_on(store, "register api key=k")
                })
            };
            let racers: Vec<_> = (0..8).map(racer).collect();
            racers
                .into_iter()
                .map(|r| r.join().expect("it ran"))
                .collect()
        });
        assert_eq!(
            answers.iter().filter(|a| *a == "api@1").count(),
            1,
            "{answers:?}"
        );
        assert_eq!(
            answers.iter().filter(|a| *a == "api@1 again").count(),
            7,
            "{answers:?}"
        );
        assert_eq!(scene.frames(), 1);
    }
}

/// A command that has to be decided again, since the log moved meanwhile, keeps its key.
#[test]
fn a_command_that_is_decided_again_keeps_its_key() {
    let scene = Arc::new(ready());
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    balky.meets(Trouble::Moved(0), 3);
    scene.check_on(
        &store,
        "accept d1 as=api@1 key=k => alone \n accept d1 as=api@1 key=k => alone again",
    );
    // Refused at first: there is no binding. Then the log moves, and there is one.
    balky.meets(Trouble::Moved(0), 1);
    let there = Arc::clone(&scene);
    balky.pauses_for(move || there.check("refusals => \n accept d2 as=api@1 => alone"));
    scene.check_on(&store, "report d2 done as=api@1 key=r => done");
    scene.check("report d2 done as=api@1 key=r => done again");
    assert_eq!(scene.run("findings"), "");
}

/// `outcome`: done or absent, by key and by receipt; one from elsewhere is absent.
#[test]
fn an_outcome_is_done_or_absent() {
    let scene = ready();
    let done = scene.done("note hello as=api@1 key=k");
    let known = |trace: &Trace| scene.another().outcome(trace).expect("it reads");
    let key = |k: &str| Trace::Key(IdempotencyKey(k.into()));
    let found = Known::Done {
        receipt: done.receipt,
        at: done.at,
    };
    assert_eq!(known(&key("k")), found);
    assert_eq!(known(&Trace::Receipt(done.receipt)), found);
    let absent = Known::Absent {
        searched: Position(scene.frames()),
    };
    assert_eq!(known(&key("other")), absent);
    let mut receipt = done.receipt;
    receipt.chain.0[0] ^= 1;
    assert_eq!(known(&Trace::Receipt(receipt)), absent, "another past");
    let mut receipt = done.receipt;
    receipt.position.0 += 1;
    assert_eq!(known(&Trace::Receipt(receipt)), absent, "beyond the head");
    receipt.position.0 = 0;
    assert_eq!(known(&Trace::Receipt(receipt)), absent);
    let other = Scene::new();
    other.play("register api");
    assert_eq!(
        other
            .store
            .outcome(&Trace::Receipt(done.receipt))
            .expect("it reads"),
        Known::Absent {
            searched: Position(1)
        }
    );
}
