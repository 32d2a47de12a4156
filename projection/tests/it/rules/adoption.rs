//! Adoption: taking over an active session (ADO, LIV as far as the store asks).

use std::sync::{Arc, Barrier};

use tenure_core::event::Event;
use tenure_core::holder::{Answer, Proof, Verdict};
use tenure_core::refusal::{Code, Relation};
use tenure_core::state::paged::{Shelf, Span};
use tenure_core::state::{Granted, State};

use crate::balky::Balky;
use crate::scene::Scene;

/// ADO-1, BND-3: what is pending moves along and stays deliverable.
#[test]
fn pending_mail_moves_with_the_session() {
    let scene = Scene::new();
    scene.check(
        "register api         => api@1
         send api one         => e1
         dispatch item api    => d1 e2
         adopt api as=api@1   => api@2
         inbox api            => e1 message pending@2; e2 work pending@2
         deliver e1 as=api@2  => done
         accept d1 as=api@2   => alone
         log 4                => adopted carried",
    );
}

/// ADO-2, ADO-12, A04, C18, LIV-12, LIV-15: a live holder is fenced without its help, and learns at its next
/// contact who took over, when and why.
#[test]
fn a_live_holder_is_fenced_by_force() {
    let scene = Scene::new();
    scene.play("register api pid=500");
    let refusal = scene.refusal("adopt api pid=501");
    assert_eq!(refusal.code, Code::Held);
    assert_eq!(refusal.relation, Some(Relation::Foreign));
    assert_eq!(
        refusal.evidence,
        Some((Verdict::Alive, vec![Proof::SameStart]))
    );
    assert_eq!(
        refusal
            .holder
            .expect("who")
            .bearing
            .process
            .expect("a process")
            .pid,
        500
    );
    assert!(refusal.message.contains("will not expire by itself"), "A06");
    assert!(
        refusal
            .next
            .iter()
            .any(|n| n.command.contains("--force --reason"))
    );
    scene.check(
        "adopt api force=moving pid=501 => api@2 former@1
         note late as=api@1             => stale-generation: api@1 was superseded; api@2 is current
         note fine as=api@2             => done",
    );
    let state = scene.state();
    let note = scene.session("api").grants[1];
    assert_eq!((note.how, note.generation.number), (Granted::Forced, 2));
    assert_eq!(state.pool.string(note.reason.expect("why")), "moving");
    assert_eq!(state.pool.string(note.actor.expect("who")), "tester");
    assert_eq!(note.at.position.0, 3, "when");
}

/// ADO-2: whoever lost a session is told of every grant since, however many there were, also by a state that was
/// opened from pages.
#[test]
fn every_grant_of_a_session_is_remembered() {
    struct Pages(Vec<u8>);
    impl Shelf for Pages {
        fn page(&self, at: Span) -> Option<&[u8]> {
            self.0.get(at.begin as usize..)?.get(..at.bytes as usize)
        }
    }
    let scene = Scene::new();
    scene.play("register api pid=500 \n register web pid=501");
    for grants in 1..40 {
        let (api, web) = (scene.number("api"), scene.number("web"));
        let layout = scene.state().lay_out().expect("it is laid out");
        let shelf = Arc::new(Pages(layout.pages));
        let (opened, _) = State::find_again(&layout.head, shelf).expect("it is found again");
        for state in [scene.state(), opened] {
            let numbers = |number| {
                let all = state.grants_of(number).into_iter();
                all.map(|note| note.generation.number).collect::<Vec<_>>()
            };
            assert_eq!(numbers(api), (1..=grants).collect::<Vec<_>>());
            assert_eq!(numbers(web), (1..=grants).collect::<Vec<_>>());
            assert_eq!(state, scene.state());
            let session = state.session(api).expect("it is there");
            assert!(session.grants.len() <= 8, "{}", session.grants.len());
        }
        scene.play("adopt api force=moving pid=500 \n adopt web force=moving pid=501");
    }
}

/// ADO-2, LIV-3, LIV-4, C01: a dead holder needs no force; the evidence is kept with the grant.
#[test]
fn a_dead_holder_is_adopted_with_nothing_more() {
    let reused = Answer::Exists {
        start: Some(1),
        pidfs: None,
    };
    for (answer, proof) in [
        (Answer::NoSuchProcess, Proof::NoSuchProcess),
        (reused, Proof::OtherStart),
    ] {
        let scene = Scene::new();
        scene.play("register api pid=500");
        scene.stage.sees(500, answer);
        scene.check("adopt api => api@2 \n note late as=api@1 => stale-generation: ..");
        let frame = &scene.all()[1];
        let request =
            tenure_projection::entry::decode_request(&frame.by_ref()).expect("it decodes");
        let evidence = request.input.evidence.expect("it is kept");
        assert_eq!(
            (evidence.verdict, evidence.proofs),
            (Verdict::Dead, vec![proof])
        );
        assert_eq!((evidence.session.0, evidence.generation.number), (0, 1));
        let Some(Event::Adopted(adopted)) = scene.entries()[1].events.first().cloned() else {
            panic!("it adopts");
        };
        assert!(
            !adopted.former && adopted.forced.is_none(),
            "a dead holder writes no files"
        );
    }
}

/// LIV-5, LIV-6, LIV-7, LIV-8, C07, C11, C14, C15: alive and unknowable are both held.
#[test]
fn whoever_is_not_provably_dead_is_held() {
    let alive = Answer::Exists {
        start: Some(1000),
        pidfs: None,
    };
    let bare = Answer::Exists {
        start: None,
        pidfs: None,
    };
    for (answer, verdict) in [
        (alive, Verdict::Alive),
        (Answer::Denied, Verdict::Alive),
        (Answer::Failed, Verdict::Unknowable),
        (bare, Verdict::Unknowable),
    ] {
        let scene = Scene::new();
        scene.play("register api pid=500");
        scene.stage.sees(500, answer);
        let refusal = scene.refusal("adopt api");
        assert_eq!(refusal.code, Code::Held, "{answer:?}");
        assert_eq!(
            refusal.evidence.expect("it says why").0,
            verdict,
            "{answer:?}"
        );
        scene.check("adopt api force=sure => api@2 former@1");
    }
    // From another machine neither a living nor a dead number there says anything.
    let scene = Scene::new();
    scene.play("register api pid=500");
    let there = scene.elsewhere(2);
    scene.check_on(
        &there,
        "adopt api             => held: api@1 is held, and its holder may be alive; that will not expire by itself
         adopt api force=moved => api@2 former@1",
    );
    scene.check("note late as=api@1 => stale-generation: ..");
}

/// LIV-17: a parent that was recorded by default is never found dead; a session without a process neither.
#[test]
fn a_default_parent_is_never_found_dead() {
    for pid in ["default", "none"] {
        let scene = Scene::new();
        scene.play(&format!("register api pid={pid}"));
        scene.stage.sees(76, Answer::NoSuchProcess);
        let refusal = scene.refusal("adopt api");
        let (verdict, proofs) = refusal.evidence.expect("it says why");
        assert_eq!(verdict, Verdict::Unknowable, "{pid}");
        let proof = if pid == "none" {
            Proof::NoProcess
        } else {
            Proof::ByDefault
        };
        assert!(proofs.contains(&proof), "{proofs:?}");
    }
}

/// ADO-7, C20, LIV-14: of many who saw the same dead holder, one adopts; a verdict is about one grant.
#[test]
fn of_many_who_saw_the_same_dead_holder_one_adopts() {
    for _ in 0..20 {
        let scene = Scene::new();
        scene.play("register api pid=500");
        scene.stage.sees(500, Answer::NoSuchProcess);
        let barrier = Barrier::new(8);
        let answers: Vec<String> = std::thread::scope(|threads| {
            let racer = |n| {
                let (scene, barrier) = (&scene, &barrier);
                threads.spawn(move || {
                    let store = scene.another();
                    barrier.wait();
                    scene.run_on(&store, &format!("adopt api pid={}", 600 + n))
                })
            };
            let racers: Vec<_> = (0..8).map(racer).collect();
            racers
                .into_iter()
                .map(|r| r.join().expect("it ran"))
                .collect()
        });
        assert_eq!(
            answers.iter().filter(|a| *a == "api@2").count(),
            1,
            "{answers:?}"
        );
        let others = answers.iter().filter(|a| a.starts_with("held: api@2"));
        assert_eq!(others.count(), 7, "{answers:?}");
    }
}

/// ADO-7: the same with the second one paused between its look and the lock.
#[test]
fn a_verdict_about_an_older_grant_counts_for_nothing() {
    let scene = Arc::new(Scene::new());
    scene.play("register api pid=500");
    scene.stage.sees(500, Answer::NoSuchProcess);
    let balky = Arc::new(Balky::new(&scene.log));
    let paused = scene.upon(balky.clone());
    let there = Arc::clone(&scene);
    balky.pauses_for(move || there.check("adopt api pid=501 => api@2"));
    scene.check_on(&paused, "adopt api pid=502 => held: ..");
    let refused = scene.entries().pop().expect("it is recorded");
    assert_eq!(refused.events[0].word(), "refused");
    let call = crate::scene::line::call(&crate::scene::line::Words::parse("adopt api pid=502"));
    let Err(tenure_projection::error::Failure::Refused(refusal)) = paused.execute(call) else {
        panic!("it is held");
    };
    assert_eq!(
        refusal.evidence,
        Some((Verdict::Alive, vec![Proof::SameStart]))
    );
    assert_eq!(scene.session("api").generation.number, 2);
}

/// ADO-11: whoever presents the current token adopts without force, and nobody is left behind; whoever merely
/// runs in the same process does not.
#[test]
fn a_hand_over_needs_the_token_and_nothing_else() {
    let scene = Scene::new();
    scene.check(
        "register api               => api@1
         register web               => web@1
         adopt api                  => held: ..
         adopt api as=web@1         => held: ..
         adopt api as=web@2         => never-issued: ..
         adopt api as=api@1 pid=501 => api@2
         adopt api as=api@1         => stale-generation: ..
         adopt nobody               => unknown-session: ..
         adopt nobody force=x       => unknown-session: ..
         retire api@2               => done
         adopt api                  => retired: api was retired at generation 2; it is registered, not adopted
         adopt api force=x          => retired: ..
         adopt api as=api@2         => retired: ..
         session api                => retired@2 open=0 inbox=0",
    );
    assert_eq!(scene.session("api").formers, []);
}

/// A holder that lost its session by force stays listed in every grant until it is provably dead.
#[test]
fn a_former_holder_is_listed_until_it_is_dead() {
    let scene = Scene::new();
    scene.check(
        "register api pid=500            => api@1
         adopt api force=stuck pid=501   => api@2 former@1
         adopt api as=api@2 pid=502      => api@3 former@1
         adopt api force=stuck pid=503   => api@4 former@1 former@3
         retire api@4                    => done
         register api pid=504            => api@5 former@1 former@3",
    );
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check("adopt api as=api@5 => api@6 former@3");
    scene.stage.sees(502, Answer::NoSuchProcess);
    scene.check("adopt api as=api@6 => api@7");
}

/// C16, LIV-11: clocks change no verdict and no order.
#[test]
fn clocks_make_nobody_dead() {
    let scene = Scene::new();
    scene.play("register api pid=500");
    for seconds in [86_400 * 400, -86_400 * 800, -86_400 * 30_000] {
        scene.stage.passes(seconds);
        scene.check("adopt api => held: .. \n note tick as=api@1 => done");
    }
    scene
        .check("adopt api force=x => api@2 former@1 \n note late as=api@1 => stale-generation: ..");
    let times: Vec<_> = scene.entries().iter().map(|e| e.at.time).collect();
    assert!(!times.is_sorted(), "the clock went back");
}

/// Labels add up over adoptions; a new start begins without.
#[test]
fn labels_are_kept_by_an_adopt_and_dropped_by_a_register() {
    let scene = Scene::new();
    let labels = |scene: &Scene| {
        let state = scene.state();
        let session = scene.session("api");
        let text = |s| state.pool.string(s);
        let pairs = session
            .labels
            .iter()
            .map(|(k, v)| format!("{}:{}", text(*k), text(*v)));
        pairs.collect::<Vec<_>>().join(" ")
    };
    scene.play("register api label=b:1 \n adopt api as=api@1 label=a:2");
    assert_eq!(labels(&scene), "a:2 b:1");
    scene.play("adopt api as=api@2 label=b:3");
    assert_eq!(labels(&scene), "a:2 b:3");
    scene.play("retire api@3 \n register api label=c:4");
    assert_eq!(labels(&scene), "c:4");
}

/// A10: that a session is free is no authority: who comes late with the token of before gets nothing by it, whatever was
/// released meanwhile, and there is one successor.
#[test]
fn a_late_successor_gets_nothing_by_a_free_lock() {
    let scene = Scene::new();
    scene.check(
        "register api pid=500          => api@1
         record turn as=api@1          => record 1
         adopt api as=api@1 pid=600    => api@2
         adopt api as=api@1 pid=601    => stale-generation: api@1 was superseded; api@2 is current
         record late as=api@1 expect=2 => stale-generation: ..
         release api as=api@2          => done
         adopt api as=api@1 pid=601    => stale-generation: ..
         release api as=api@1          => stale-generation: ..
         branch api next               => next@1 from api at 2
         branch api next               => name-taken: ..
         register next                 => already-active: ..
         adopt api pid=602             => api@3
         retire api@3                  => done
         adopt api as=api@2 pid=601    => retired: ..
         adopt api as=api@3 pid=601    => retired: ..",
    );
    let entries = scene.entries();
    let events = entries.iter().flat_map(|e| &e.events);
    let of = |what: fn(&Event) -> bool| events.clone().filter(|e| what(e)).count();
    assert_eq!(of(|e| matches!(e, Event::Branched(_))), 1);
    assert_eq!(of(|e| matches!(e, Event::Adopted(_))), 2);
}
