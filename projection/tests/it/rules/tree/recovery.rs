//! What a claim leaves of a former holder's work, and how a claim ends when it goes wrong.

use std::sync::Arc;

use tenure_core::event::{Event, Reconciliation};
use tenure_core::holder::Answer;
use tenure_core::id::Name;
use tenure_projection::error::Failure;
use tenure_projection::session::Session;
use tenure_projection::tree::Tree;

use super::family;
use crate::balky::{Balky, Trouble};
use crate::scene::Scene;

fn reconciled(scene: &Scene) -> Vec<(u64, Reconciliation)> {
    let entries = scene.entries();
    let events = entries.iter().flat_map(|e| &e.events);
    events
        .filter_map(|event| match event {
            Event::Reconciled(e) => Some((e.session.0, e.how)),
            _ => None,
        })
        .collect()
}

fn running(scene: &Scene, name: &str) -> usize {
    scene.session(name).history.open.len()
}

/// DIS-10, ADO-4: what was running when its holder died ends once, when the session is adopted, and each session at its
/// own adoption; a hand-over ends nothing.
#[test]
fn what_was_running_ends_once_when_its_session_is_adopted() {
    let scene = family();
    scene.play(
        "record a as=one@1 opens=run:1
         record b as=one@1 opens=call:2
         record c as=two@1 opens=approval:3
         adopt one as=one@1 pid=501",
    );
    assert_eq!((reconciled(&scene), running(&scene, "one")), (vec![], 2));
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check(
        "adopt one pid=600            => one@3
         log 8                        => claimed adopted carried reconciled",
    );
    assert_eq!((running(&scene, "one"), running(&scene, "two")), (0, 1));
    scene.check(
        "adopt two as=one@3 pid=600   => two@2
         log 9                        => adopted carried reconciled
         adopt two as=two@2 pid=600   => two@3
         adopt one force=again        => one@4 former@3
         log 11                       => claimed adopted carried
         record d as=one@4 opens=run:1 => record 3",
    );
    let interrupted = Reconciliation::Interrupted;
    assert_eq!(reconciled(&scene), [(1, interrupted), (2, interrupted)]);
    // A lone root has the same rule, without a claim.
    let scene = Scene::new();
    scene.check(
        "register api pid=500            => api@1
         record a as=api@1 opens=run:1   => record 1
         adopt api as=api@1 pid=501      => api@2
         adopt api force=stuck           => api@3 former@2
         log 4                           => adopted carried reconciled",
    );
}

/// DIS-11: with its parent retired, a session that is adopted has nothing left to do; with its parent active, its work is
/// carried.
#[test]
fn a_retired_parent_cancels_what_its_children_were_to_do() {
    for (parent, expected) in [(true, "cancelled"), (false, "queued")] {
        let scene = family();
        scene.play("dispatch item two as=one@1 \n record a as=two@1 opens=run:1");
        if parent {
            scene.play("retire one@1");
        }
        scene.stage.sees(500, Answer::NoSuchProcess);
        scene.play("adopt two pid=600");
        scene.check(
            &format!("work => d1 {expected} two@{}", if parent { 1 } else { 2 })
                .replace("two@1", "two@2"),
        );
        let how = match parent {
            true => Reconciliation::ParentCancelled,
            false => Reconciliation::Interrupted,
        };
        assert_eq!(reconciled(&scene), [(2, how)]);
        assert_eq!(running(&scene, "two"), 0);
        if parent {
            scene.check(
                "inbox two             => e1 work cancelled@2 parent-retired
                 dispatch item main    => d2 e2",
            );
        }
    }
}

/// DIS-16: a clean end cancels what is running, in the same frame; nothing of it is left to be interrupted.
#[test]
fn a_release_cancels_what_is_running() {
    let scene = family();
    scene.play("record a as=one@1 opens=run:1 \n record b as=main@1 opens=call:2");
    scene.play("release main as=main@1");
    assert_eq!((running(&scene, "one"), running(&scene, "main")), (0, 0));
    scene.play("adopt one pid=600");
    assert_eq!(
        reconciled(&scene),
        [],
        "only a crash leaves something interrupted"
    );
    scene.play("release one as=one@2");
    // Release by proof is the end of a crash: nobody said what became of it, and nothing is running any more.
    let scene = family();
    scene.play("record a as=one@1 opens=run:1");
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.play("release-dead main");
    assert_eq!(running(&scene, "one"), 0);
}

/// ADO-3, ADO-13: while a tree is being adopted nobody writes, recoveries are written, and whoever looks is answered at
/// once and sees that a recovery is going on.
#[test]
fn a_tree_being_adopted_takes_recoveries_and_answers_at_once() {
    let scene = family();
    scene.stage.sees(500, Answer::NoSuchProcess);
    scene.check(
        "claim one pid=600                => epoch 2
         tree main                        => adopting e2 [main@1] [one@1] [two@1]
         note text as=one@1               => stale-generation: ..
         recover one found epoch=2        => done
         recover one found epoch=1        => stale-generation: epoch 1 of the tree of main has passed; 2 is current
         recover one found epoch=3        => never-issued: epoch 3 of the tree of main was never given to anybody
         adopt one pid=601                => held: ..
         adopt one epoch=2 pid=600        => one@2
         recover one late epoch=2         => not-pending: ..
         recover two found epoch=2        => done
         rollback main epoch=2            => not-pending: ..
         tree main                        => owned e2 [main@1] one@2 [two@1]",
    );
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// ADO-5, ADO-8, E11: a claim that cannot be used is rolled back by the handle that is dropped, and leaves nothing behind
/// but a spent epoch; while the log takes nothing, everybody stays out.
#[test]
fn a_claim_that_goes_wrong_is_rolled_back() {
    let scene = family();
    scene.stage.sees(500, Answer::NoSuchProcess);
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    let tree = Tree::claim(&store, &name("one"), None).expect("its holder is dead");
    balky.meets(Trouble::NoSpace, 1);
    let failed = tree.adopt(&name("one"));
    assert!(matches!(failed, Err(Failure::Failed(_))), "{failed:?}");
    scene.check("note text as=one@1 => stale-generation: .. \n adopt one pid=601 => held: ..");
    drop(tree);
    scene.check(
        "tree main         => unowned e3 [main@1] [one@1] [two@1]
         adopt two pid=601 => two@2
         tree main         => owned e4 [main@1] [one@1] two@2",
    );
    // A handle that was settled gives nothing back by being dropped (TRE-11).
    let tree = Tree::claim(&store, &name("one"), Some("moved")).expect("by force");
    let session = tree.adopt(&name("one")).expect("it is ours");
    drop(tree);
    let token = session.token().clone();
    drop(session);
    let again = Session::of(&store, token);
    assert!(
        again.is_current().expect("it reads"),
        "whoever kept the token goes on"
    );
}
