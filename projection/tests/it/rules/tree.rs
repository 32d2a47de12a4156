//! Trees: sessions held together (TRE, ADO, DIS-10, DIS-11, REG-11, LIV-13 to LIV-15).

use std::sync::{Arc, Barrier};

use tenure_core::event::Event;
use tenure_core::holder::{Answer, Proof, Verdict};
use tenure_core::refusal::{Code, Relation};
use tenure_core::state::TreeStanding;

use crate::balky::Balky;
use crate::scene::Scene;

mod branches;
mod forged;
mod handles;
mod recovery;
mod table;

/// Root `main`, child `one`, grandchild `two`, held by process 500.
pub fn family() -> Scene {
    let scene = Scene::new();
    scene.play(
        "register main pid=500
         register one parent=main@1 pid=501
         register two parent=one@1 pid=502",
    );
    scene
}

/// TRE-1: children have no holder of their own: whether they may be taken over is asked of the tree's holder alone,
/// whatever became of the processes that act for them.
#[test]
fn a_tree_has_one_holder_and_its_children_none() {
    let scene = family();
    scene.stage.sees(501, Answer::NoSuchProcess);
    scene.stage.sees(502, Answer::NoSuchProcess);
    let refusal = scene.refusal("adopt two");
    assert_eq!(refusal.code, Code::Held);
    let process = refusal.holder.expect("who").bearing.process;
    assert_eq!(process.expect("a process").pid, 500);
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check(
        "adopt two pid=600 => two@2
         log 5             => claimed adopted carried
         tree main         => owned e2 [main@1] [one@1] two@2",
    );
    // One fence took every other token away, and no other frame was written for it.
    scene.check(
        "note late as=main@1 => stale-generation: main@1 lapsed: the tree of main changed hands since
         note late as=one@1  => stale-generation: ..
         note fine as=two@2  => done",
    );
}

/// TRE-2, TRE-21, TRE-13, A01: in a foreign tree every session is held under its own name, with holder, since when
/// and the ways on; looking stays legal; and it is asked again at every attempt.
#[test]
fn a_foreign_tree_refuses_each_session_in_it() {
    let scene = family();
    for name in ["main", "one", "two"] {
        let refusal = scene.refusal(&format!("adopt {name} pid=600"));
        assert_eq!(refusal.code, Code::Held, "{name}");
        assert_eq!(refusal.subject, name);
        assert_eq!(refusal.relation, Some(Relation::Foreign));
        assert_eq!(
            refusal.evidence,
            Some((Verdict::Alive, vec![Proof::SameStart]))
        );
        assert_eq!(refusal.since.expect("since when").position.0, 1);
        let holder = refusal.holder.expect("who").bearing;
        assert_eq!(holder.process.expect("a process").pid, 500);
        assert!(
            refusal
                .next
                .iter()
                .any(|n| n.command.contains("--force --reason"))
        );
        scene.check(&format!("session {name} => active@1 open=0 inbox=0"));
    }
    let held = "adopt one pid=600 => held: one@1 is in the tree of main, whose holder is alive; that will not expire by itself";
    scene.check(held);
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check("adopt one pid=600 => one@2");
    scene.stage.sees(600, Answer::Denied);
    scene.check("adopt one pid=601 => held: ..");
}

/// TRE-5, TRE-6: a claim through a child makes that child writable and nothing else; the root follows under its
/// token without another claim.
#[test]
fn a_claim_through_a_child_leaves_the_root_to_be_adopted() {
    let scene = family();
    scene.check(
        "adopt one force=moved pid=600     => one@2 former@1
         note text as=main@1               => stale-generation: ..
         register three parent=main@1      => stale-generation: ..
         adopt main as=one@2 pid=600       => main@2
         log 7                             => adopted carried
         note text as=main@2               => done
         note text as=one@2                => done
         adopt one as=main@2 pid=600       => one@3 former@1
         note text as=one@2                => stale-generation: one@2 was superseded; one@3 is current
         tree two                          => owned e2 main@2 one@3 [two@1]
         register three parent=one@3       => three@1
         adopt two tree as=main@2 pid=600  => two@2
         tree main                         => owned e3 [main@2] [one@3] two@2 [three@1]",
    );
}

/// TRE-4: a child needs a current token of the tree; names that were children come back as roots or elsewhere, and
/// one from which others were delegated does not move.
#[test]
fn children_join_under_a_current_token_only() {
    let scene = family();
    scene.check(
        "register three parent=main@2   => never-issued: ..
         register three parent=none@1   => unknown-session: ..
         register one parent=main@1     => already-active: ..
         register main parent=one@1     => already-active: ..
         retire two@1                   => done
         register two                   => two@2
         tree two                       => owned e2 two@2
         tree main                      => owned e1 main@1 one@1
         retire two@2                   => done
         register two parent=one@1      => two@3
         tree main                      => owned e1 main@1 one@1 two@3
         register web                   => web@1
         register sub parent=web@1      => sub@1
         retire web@1                   => done
         register web parent=main@1     => open-obligations: ..
         retire sub@1                   => stale-generation: ..
         adopt sub                      => sub@2
         retire sub@2                   => done
         register sub parent=main@1     => sub@3
         register web parent=main@1     => web@2
         tree main                      => owned e1 main@1 one@1 two@3 sub@3 web@2",
    );
}

/// TRE-8, TRE-16, BRN-9: a reserved root is missing for everybody else, then held, never visible and free; what was
/// there under its name is untouched; who reserved it and died leaves a free name at the next generation.
#[test]
fn a_reservation_is_missing_then_held_then_there() {
    let scene = Scene::new();
    scene.check(
        "reserve main pid=500              => main@1
         register sub parent=main@1        => sub@1
         send main hello                   => unknown-session: ..
         send sub hello as=main@1          => e1
         dispatch item main                => unknown-session: ..
         register main                     => held: main is reserved and not published, and who reserved it is alive
         register sub                      => held: ..
         reserve main                      => held: ..
         adopt main force=mine             => held: ..
         note text as=main@1               => done
         publish main as=sub@1             => done
         send main hello                   => e2
         register main                     => already-active: ..
         publish main as=main@1            => not-pending: main is not waiting to be published",
    );
    let scene = Scene::new();
    scene.check(
        "register main                     => main@1
         retire main@1                     => done
         reserve main pid=500              => main@2
         register sub parent=main@2        => sub@1",
    );
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check(
        "register sub        => held: ..
         register main       => main@3
         session sub         => retired@1 open=0 inbox=0
         register sub        => sub@2
         note text as=main@2 => stale-generation: ..",
    );
    assert_eq!(scene.session("main").tree.standing, TreeStanding::Owned);
}

/// TRE-12, TRE-26, A10: a release drops the whole tree, and again changes nothing; its sessions stay, without a
/// holder, and whoever lost by it is told.
#[test]
fn a_release_drops_the_tree_and_repeats_to_nothing() {
    let scene = family();
    scene.check(
        "release main as=two@1    => done
         release main as=two@1    => done again
         release main as=main@1   => done again
         note text as=one@1       => stale-generation: ..
         session one              => active@1 open=0 inbox=0
         tree one                 => unowned e2 [main@1] [one@1] [two@1]
         adopt two pid=600        => two@2
         release main as=main@1   => stale-generation: ..
         tree one                 => owned e3 [main@1] [one@1] two@2",
    );
    let state = scene.state();
    let lens = tenure_projection::views::Lens {
        state: &state,
        host: &*scene.stage,
        shelf: &*scene.store,
    };
    let lost = lens.losses(scene.number("one"), scene.session("one").generation);
    let told: Vec<_> = lost.iter().map(|l| (l.event(), l.at.position.0)).collect();
    assert_eq!(
        told,
        [("released", 4), ("claimed", 6)],
        "the one who lost is told"
    );
}

/// A retired root drops its tree; while others hold its tree it is held, and comes back under a token of them.
#[test]
fn a_retired_root_drops_its_tree_and_comes_back() {
    let scene = family();
    scene.check(
        "retire main@1                     => done
         log 4                             => retired released
         tree one                          => unowned e2 -main@1 [one@1] [two@1]
         adopt one pid=600                 => one@2
         register main pid=601             => held: ..
         adopt main as=one@2               => retired: ..
         reserve main                      => held: ..
         register main parent=one@2        => main@2
         tree one                          => owned e3 main@2 one@2 [two@1]
         retire main force=over            => done
         tree one                          => unowned e4 -main@2 [one@2] [two@1]
         register main pid=601             => main@3
         tree one                          => owned e5 main@3 [one@2] [two@1]",
    );
}

/// REG-18, A10: whoever goes on in another process either becomes the holder by a new generation or is refused.
#[test]
fn a_successor_is_granted_or_refused() {
    let scene = family();
    scene.check(
        "adopt main pid=510           => held: ..
         adopt main as=main@1 pid=510 => main@2
         note text as=main@1          => stale-generation: main@1 was superseded; main@2 is current
         note text as=one@1           => done",
    );
    // The tree went over with its root: the process that holds it is the successor.
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check("adopt two pid=600 => held: ..");
    scene.stage.sees(510, Answer::NoSuchProcess);
    scene.check("adopt two pid=600 => two@2");
}

/// LIV-14: a verdict about an earlier holding counts for nothing, by whichever way the tree changed hands.
#[test]
fn a_verdict_about_an_earlier_holding_of_a_tree_counts_for_nothing() {
    for between in [
        "adopt main as=main@1 pid=510",
        "claim one as=main@1 pid=510",
        "adopt one tree as=main@1 pid=510",
        "adopt two pid=510",
    ] {
        for late in ["adopt one pid=600", "claim two pid=600", "release-dead one"] {
            let fresh = family();
            fresh.stage.sees(500, Answer::NoSuchProcess);
            let balky = Arc::new(Balky::new(&fresh.log));
            let paused = fresh.upon(balky.clone());
            let fresh = Arc::new(fresh);
            let there = Arc::clone(&fresh);
            let between = between.to_owned();
            balky.pauses_for(move || drop(there.run(&between)));
            fresh.check_on(&paused, &format!("{late} => held: .."));
        }
    }
}

/// ADO-7, C20, A18: of many who claim a tree whose holder is dead, one wins; the others are held, each under the name
/// it asked for.
#[test]
fn of_many_who_claim_a_dead_tree_one_wins() {
    const NAMES: [&str; 3] = ["main", "one", "two"];
    for _ in 0..20 {
        let scene = family();
        scene.stage.sees(500, Answer::NoSuchProcess);
        let barrier = Barrier::new(9);
        let answers: Vec<(usize, String)> = std::thread::scope(|threads| {
            let racer = |n: usize| {
                let (scene, barrier) = (&scene, &barrier);
                threads.spawn(move || {
                    let store = scene.another();
                    let line = format!("adopt {} pid={}", NAMES[n % 3], 600 + n);
                    barrier.wait();
                    (n, scene.run_on(&store, &line))
                })
            };
            let racers: Vec<_> = (0..9).map(racer).collect();
            racers
                .into_iter()
                .map(|r| r.join().expect("it ran"))
                .collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, a)| !a.contains(": "));
        assert_eq!(won.len(), 1, "{answers:?}");
        for (n, answer) in lost {
            let begins = format!("held: {}@", NAMES[n % 3]);
            assert!(answer.starts_with(&begins), "{answer}");
        }
        let claims = scene
            .entries()
            .iter()
            .flat_map(|e| &e.events)
            .filter(|e| matches!(e, Event::Claimed(_)))
            .count();
        assert_eq!(claims, 1);
    }
}

/// LIV-13, LIV-15, LIV-5 to LIV-7: release by proof ends exactly the provable holdings, and fences who held them.
#[test]
fn release_by_proof_ends_the_provable_holdings_only() {
    let scene = Scene::new();
    let reused = Answer::Exists {
        start: Some(1),
        pidfs: None,
    };
    let alive = Answer::Exists {
        start: Some(1000),
        pidfs: None,
    };
    let seen = [
        ("gone", 500, Answer::NoSuchProcess, true),
        ("recycled", 501, reused, true),
        ("live", 502, alive, false),
        ("denied", 503, Answer::Denied, false),
        ("failed", 504, Answer::Failed, false),
    ];
    for (name, pid, answer, _) in seen {
        scene.play(&format!(
            "register {name} pid={pid} \n register {name}-sub parent={name}@1"
        ));
        scene.stage.sees(pid, answer);
    }
    scene.play("register nobody pid=none");
    for (name, _, _, dead) in seen {
        let answer = scene.run(&format!("release-dead {name}-sub"));
        let token = format!("note late as={name}-sub@1");
        if dead {
            assert_eq!(answer, "done", "{name}");
            scene.check(&format!(
                "{token} => stale-generation: .. \n release-dead {name} => done again"
            ));
        } else {
            assert!(answer.starts_with("held: "), "{name}: {answer}");
            scene.check(&format!("{token} => done"));
        }
    }
    let elsewhere = scene.elsewhere(2);
    scene.check_on(
        &elsewhere,
        "release-dead live => held: .. \n release-dead nobody => held: ..",
    );
    let evidence = scene.entries().into_iter().zip(scene.all());
    for (entry, frame) in evidence {
        if matches!(entry.events.first(), Some(Event::Released(_))) {
            let request =
                tenure_projection::entry::decode_request(&frame.by_ref()).expect("it decodes");
            assert_eq!(
                request.input.evidence.expect("it is kept").verdict,
                Verdict::Dead
            );
        }
    }
}
