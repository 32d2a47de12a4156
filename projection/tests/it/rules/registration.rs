//! Registration and generations (REG).

use std::sync::{Arc, Barrier};

use tenure_core::decide::decide;
use tenure_core::generation::Generation;
use tenure_core::id::{Name, NameFault, Token, TokenFault};
use tenure_core::refusal::{Code, Relation};
use tenure_core::state::State;
use tenure_projection::error::Failure;

use crate::balky::{Balky, Trouble};
use crate::scene::Scene;
use crate::scene::line::{Words, call};

/// REG-1
#[test]
fn an_absent_name_becomes_active_at_generation_one() {
    let scene = Scene::new();
    scene.check(
        "session api  => absent
         register api => api@1
         session api  => active@1 open=0 inbox=0
         log 1        => registered",
    );
}

/// REG-2
#[test]
fn a_retired_name_becomes_active_at_the_next_generation() {
    let scene = Scene::new();
    scene.play("register api \n register web \n retire api@1");
    let before = scene.number("api");
    scene.check(
        "register api => api@2
         log 4        => registered fenced",
    );
    assert_eq!(scene.number("api"), before, "its number never changes");
}

/// REG-3, A01, A14, A18, E13: nobody is attached to a session that somebody holds, be it the same process.
#[test]
fn an_active_name_is_never_bumped_silently() {
    let scene = Scene::new();
    scene.check(
        "register api key=k1 engine=claude => api@1
         register api key=k1 engine=claude => api@1 again
         register api key=k2 => already-active: api is active as api@1; only adopt takes over
         register api        => already-active: ..
         session api         => active@1 open=0 inbox=0",
    );
    assert_eq!(scene.frames(), 2, "one grant and one recorded refusal");
    let refusal = scene.refusal("register api");
    assert_eq!(refusal.current.as_deref(), Some("api@1"));
    assert_eq!(refusal.relation, Some(Relation::Taken));
    let state = scene.state();
    let holder = refusal.holder.expect("it names the holder");
    assert_eq!(state.pool.string(holder.engine.expect("named")), "claude");
    assert_eq!(holder.bearing.process.expect("recorded").pid, 77);
    assert_eq!(refusal.since.expect("since when").position.0, 1);
    assert!(refusal.next.iter().any(|n| n.command == "tenure adopt api"));
}

/// Everything that writes under a token, about a dispatch `d2` and an envelope `e2` of the session.
const WRITES: &[&str] = &[
    "accept d2",
    "decline d2",
    "report d2 done body=late",
    "cancel d2",
    "fail d2",
    "note hello",
    "observe busy wrote=/w/x",
    "send api hello",
    "deliver e2",
    "ack e2",
    "dispatch other api",
    "adopt api",
];

/// What decides, without the record of refusals.
fn authority(state: &State) -> impl PartialEq + std::fmt::Debug + use<> {
    let sessions = state.sessions.iter().cloned().map(|mut session| {
        session.last_seen = session.registered_at;
        session
    });
    (
        sessions.collect::<Vec<_>>(),
        state.dispatches.clone(),
        state.live.clone(),
        state.envelopes.clone(),
        state.findings.clone(),
    )
}

/// REG-4, REG-5, REG-6, REG-7, REG-9, DIS-7, OUT-8, E01, E02: one definition of current, asked by every write.
#[test]
fn every_write_path_checks_the_generation() {
    let scene = Scene::new();
    scene.play(
        "register api \n retire api@1 \n register api \n adopt api as=api@2
         dispatch item api \n accept d1 as=api@3 \n dispatch item2 api",
    );
    assert_eq!(scene.run("session api"), "active@3 open=2 inbox=2");
    let before = authority(&scene.state());
    let writes = WRITES.iter().copied().chain(["retire"]);
    for write in writes.clone() {
        for (generation, code) in [
            (0, Code::StaleGeneration),
            (1, Code::StaleGeneration),
            (2, Code::StaleGeneration),
            (4, Code::NeverIssued),
            (u64::MAX, Code::NeverIssued),
        ] {
            let line = if write == "retire" {
                "retire api"
            } else {
                write
            };
            let mut call = call(&Words::parse(line));
            call.token = Some(Token {
                name: Name::parse("api").expect("a name"),
                generation: Generation {
                    incarnation: 1,
                    number: generation,
                },
                secret: None,
            });
            let Err(Failure::Refused(refusal)) = scene.store.execute(call) else {
                panic!("{write} at {generation} was not refused");
            };
            assert_eq!(refusal.code, code, "{write} at {generation}");
            assert_eq!(refusal.current.as_deref(), Some("api@3"));
            assert!(refusal.holder.is_some(), "it says who holds it");
            assert!(
                authority(&scene.state()) == before,
                "{write} at {generation} changed something"
            );
        }
    }
    scene.play("retire api@3");
    for write in writes {
        let line = if write == "retire" {
            "retire api@2"
        } else {
            write
        };
        let token = if write == "retire" { "" } else { " as=api@3" };
        let answer = scene.run(&format!("{line}{token}"));
        let code = if write == "retire" {
            "stale-generation"
        } else {
            "retired"
        };
        assert!(answer.starts_with(code), "{write}: {answer}");
    }
}

/// REG-8, E04: a call that needs a token and has none is refused before anything is looked up.
#[test]
fn a_missing_token_is_refused_before_any_lookup() {
    let scene = Scene::new();
    for line in [
        "accept d9",
        "decline d9",
        "report d9 done",
        "note hello",
        "observe busy",
        "deliver e9",
        "ack e9",
        "retire nobody",
    ] {
        let refusal = scene.refusal(line);
        assert_eq!(refusal.code, Code::MissingToken, "{line}");
    }
    assert_eq!(scene.run("refusals"), "r1 missing-token other x2 bodies=1");
}

/// E04: missing, empty, zero, negative, broken and overlong generations are told apart.
#[test]
fn a_token_that_names_no_generation_is_no_token() {
    let parse = |text: &str| text.parse::<Token>();
    assert_eq!(parse("api"), Err(TokenFault::NoGeneration));
    assert_eq!(parse("@1"), Err(TokenFault::Name(NameFault::Empty)));
    assert_eq!(parse("api@1~"), Err(TokenFault::EmptySecret));
    for text in [
        "",
        "0",
        "-1",
        "+1",
        "01",
        "1.0",
        "0.1",
        "1.",
        ".1",
        "1.1.1",
        " 1",
        "1 ",
        "x",
        "1_0",
        "99999999999999999999",
        "\u{661}",
    ] {
        let fault = parse(&format!("api@{text}"));
        assert_eq!(fault, Err(TokenFault::Generation(text.into())));
    }
    let secret = "00112233445566778899aabbccddeeff";
    let token = parse(&format!("api@2.4~{secret}")).expect("a token");
    assert_eq!(token.to_string(), "api@2.4");
    assert!(!format!("{token:?}").contains(secret));
    assert_eq!(token.reveal(), format!("api@2.4~{secret}"));
    assert_eq!(
        parse("api@2.4~s3cret").map_err(|fault| fault.to_string()),
        Err(
            "what stands behind '~' is no secret: a secret is 32 hexadecimal digits in lower case"
                .into()
        )
    );
    assert_eq!(parse("api@1.4").expect("a token").to_string(), "api@4");
}

/// REG-10: an append that was authorised and paused before the lock is refused when the generation moved on.
#[test]
fn the_check_and_the_append_are_one_step() {
    let scene = Arc::new(Scene::new());
    scene.play("register api \n dispatch item api \n accept d1 as=api@1");
    let balky = Arc::new(Balky::new(&scene.log));
    let paused = scene.upon(balky.clone());
    let (there, other) = (Arc::clone(&scene), scene.another());
    balky.pauses_for(move || {
        there.check_on(&other, "retire api@1 => done \n register api => api@2");
    });
    scene.check_on(
        &paused,
        "report d1 done as=api@1 body=late => stale-generation: ..",
    );
    scene.check("session api => active@2 open=0 inbox=0 \n log 6 => refused");
}

/// REG-12, E11, E26: a grant that could not be written burns no number; one whose answer was lost is never
/// given twice.
#[test]
fn a_failed_grant_burns_no_number_and_a_lost_one_is_not_repeated() {
    let scene = Scene::new();
    scene.play("register api \n retire api@1");
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    balky.meets(Trouble::NoSpace, 1000);
    for _ in 0..1000 {
        scene.check_on(&store, "register api => failed: no space left..");
    }
    assert_eq!(scene.frames(), 2);
    scene.check_on(&store, "register api => api@2");

    balky.meets(Trouble::FrameLost, 1);
    scene.check_on(&store, "adopt api as=api@2 => unknown: ..");
    scene.check_on(&store, "adopt api as=api@2 => api@3");
    balky.meets(Trouble::AnswerLost, 1);
    scene.check_on(&store, "adopt api as=api@3 => unknown: ..");
    scene.check_on(
        &store,
        "adopt api as=api@3 => stale-generation: ..
         adopt api force=lost => api@5 former@4",
    );
    let granted: Vec<_> = scene
        .entries()
        .iter()
        .filter_map(|e| e.fence.granted)
        .collect();
    let numbers: Vec<_> = granted.iter().map(|g| g.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

/// REG-12, LOG-1: nobody is told of a grant that is not durable.
#[test]
fn a_grant_is_answered_when_it_is_durable_and_not_before() {
    let scene = Scene::new();
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    balky.holds_syncs();
    let (asked, said) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        threads.spawn(|| asked.send(scene.run_on(&store, "register api")));
        while scene.frames() == 0 {
            std::thread::yield_now();
        }
        assert!(said.try_recv().is_err(), "it stands, and nobody was told");
        balky.syncs();
        assert_eq!(said.recv().expect("an answer"), "api@1");
    });
    balky.fails_syncs();
    scene.check_on(&store, "adopt api as=api@1 => unknown: ..");
    scene.check_on(&store, "register web => unknown: ..");
    balky.syncs();
    scene.check("session api => active@2 open=0 inbox=0");
}

/// REG-13, A17: of many who register one retired name, one is granted the next generation.
#[test]
fn of_concurrent_registers_one_wins() {
    for _ in 0..20 {
        let scene = Scene::new();
        scene.play("register api \n retire api@1");
        let barrier = Barrier::new(8);
        let answers: Vec<String> = std::thread::scope(|threads| {
            let racer = |_| {
                threads.spawn(|| {
                    let store = scene.another();
                    barrier.wait();
                    scene.run_on(&store, "register api")
                })
            };
            let racers: Vec<_> = (0..8).map(racer).collect();
            racers
                .into_iter()
                .map(|r| r.join().expect("it ran"))
                .collect()
        });
        assert_eq!(answers.iter().filter(|a| *a == "api@2").count(), 1);
        let others = answers.iter().filter(|a| a.starts_with("already-active"));
        assert_eq!(others.count(), 7, "{answers:?}");
        scene.check("session api => active@2 open=0 inbox=0 \n findings => ");
    }
}

/// E11: generations that are used up are a refusal, not a number that comes again.
#[test]
fn a_session_whose_generations_are_used_up_is_refused() {
    let scene = Scene::new();
    scene.play("register api \n adopt api as=api@1 \n retire api@2 \n register api");
    let requests: Vec<_> = scene
        .all()
        .iter()
        .map(|f| tenure_projection::entry::decode_request(&f.by_ref()).expect("it decodes"))
        .collect();
    let mut state = scene.state();
    let next = |state: &State, number: u64, retired: bool, request: usize| {
        let mut state = state.clone();
        state.sessions[0].generation.number = number;
        state.sessions[0].retired = retired;
        let mut request = requests[request].clone();
        request.input.presented = None;
        request.input.force = Some(tenure_core::text::TextId(0));
        decide(&state, &request)
    };
    for (retired, request) in [(false, 1), (true, 3)] {
        let last = next(&state, u64::MAX - 1, retired, request).expect("the last number");
        assert_eq!(last.fence.granted.expect("it grants").number, u64::MAX);
        let refused = next(&state, u64::MAX, retired, request).expect_err("no number is left");
        assert_eq!(refused.code, Code::Held);
        assert!(refused.message.contains("used up"), "{}", refused.message);
    }
    state.sessions[0].generation.number = u64::MAX;
    let write = next(&state, u64::MAX, false, 2).expect("what is held can be given back");
    assert_eq!(write.events[0].word(), "retired");
}
