//! Branches that stay in a tree which nobody holds (TRE-9).

use tenure_core::event::{Branched, Event};
use tenure_core::holder::{Answer, Proof, Verdict};
use tenure_core::id::SessionNo;
use tenure_core::refusal::Code;

use super::super::forged::frames::{grant, registered};
use super::family;
use super::forged::{FRESH, MAIN, ONE, TWO, claimed, delegated, of, refuses, scene, stands};

/// TRE-9: the frame that makes the branch takes the tree over first: there is no position at which the branch is there
/// and the tree free, the brancher holds the tree, and every other session is adopted itself.
#[test]
fn a_branch_of_a_child_claims_a_tree_that_nobody_holds() {
    let scene = family();
    scene.play("record t as=two@1 \n release main as=main@1");
    let before = scene.frames();
    scene.check(
        "tree two                          => unowned e2 [main@1] [one@1] [two@1]
         branch two near in-tree pid=600   => near@1 from two at 4
         log 6                             => claimed registered delegated branched
         tree two                          => owned e3 [main@1] [one@1] [two@1] near@1
         note text as=near@1               => done
         note text as=two@1                => stale-generation: ..
         branch two late in-tree pid=601   => held: two@1 is in the tree of main, whose holder is alive; that will not expire by itself
         session late                      => absent
         history near                      => two:t@4
         adopt main as=near@1 pid=600      => main@2
         tree near                         => owned e3 main@2 [one@1] [two@1] near@1",
    );
    assert_eq!(
        scene.frames(),
        before + 5,
        "a branch, two notes of which one is a refusal, a refusal, an adopt"
    );
    // It stands where its source stands.
    let near = scene.session("near");
    assert_eq!((near.root, near.parent), (MAIN, Some(ONE)));
    let (holder, since) = scene.state().tree_holder(MAIN).expect("it is held");
    assert_eq!(holder.bearing.process.expect("a process").pid, 600);
    assert!(
        since.position.0 > 6,
        "the root's own grant says who holds it"
    );
}

/// TRE-9, BRN-3: of two who branch within a free tree one has it, and the other is told who.
#[test]
fn whoever_branches_second_within_a_tree_is_told_who_holds_it() {
    let scene = family();
    scene.play("release main as=main@1 \n branch one mine in-tree pid=600");
    let refusal = scene.refusal("branch two yours in-tree pid=601");
    assert_eq!(refusal.code, Code::Held);
    assert_eq!(refusal.subject, "two", "the session that was asked for");
    let holder = refusal.holder.expect("who").bearing;
    assert_eq!(holder.process.expect("a process").pid, 600);
    assert_eq!(refusal.since.expect("since when").position.0, 5);
    assert_eq!(
        refusal.evidence,
        Some((Verdict::Alive, vec![Proof::SameStart]))
    );
    let mut next = refusal.next.iter();
    assert!(next.any(|n| n.command == "tenure branch two NEW-NAME"));
}

/// TRE-9: a foreign tree is held, and not a byte of a branch is written; so it is while it is
/// claimed and nothing in it adopted, and while it is reserved. A holder that is provably dead holds nothing.
#[test]
fn a_branch_within_a_foreign_tree_writes_nothing() {
    for before in ["", "retire two@1", "claim one force=mine pid=500"] {
        let scene = family();
        scene.play(before);
        let names = scene.state().sessions.len();
        scene.check(
            "branch two new in-tree pid=600 => held: ..
             session new                    => absent",
        );
        assert_eq!(scene.state().sessions.len(), names);
        let of_branches = |e: &Event| matches!(e, Event::Branched(_) | Event::Registered(_));
        let entries = scene.entries();
        let events = entries.iter().skip(3).flat_map(|e| &e.events);
        assert_eq!(events.filter(|e| of_branches(e)).count(), 0);
        scene.stage.sees(500, Answer::NoSuchProcess);
        scene.check("branch two new in-tree pid=600 => new@1 from two at 0");
        let (holder, _) = scene.state().tree_holder(MAIN).expect("it is held");
        assert_eq!(holder.bearing.process.expect("a process").pid, 600);
    }
    let scene = crate::scene::Scene::new();
    scene.check(
        "reserve main pid=500                => main@1
         register sub parent=main@1          => sub@1
         branch sub new in-tree pid=600      => held: ..
         branch sub new in-tree as=main@1    => new@1 from sub at 0",
    );
}

/// TRE-9: a root is branched as a root; within its own tree only under a token of it.
#[test]
fn a_root_is_branched_within_its_tree_under_a_token_only() {
    let scene = family();
    scene.check(
        "release main as=main@1          => done
         branch main new in-tree         => missing-token: ..
         branch gone new in-tree         => unknown-session: ..
         branch one main in-tree         => name-taken: ..
         branch one one in-tree          => same-name: ..
         branch one new in-tree at=9     => bad-position: ..
         branch one new in-tree as=one@1 => stale-generation: ..
         tree main                       => unowned e2 [main@1] [one@1] [two@1]
         branch main free                => free@1 from main at 0",
    );
}

/// TRE-12: a release that is repeated under the token that released changes nothing; another token of the tree is told
/// that it lapsed, and the same token does not release what somebody else holds by now.
#[test]
fn a_release_repeated_changes_nothing() {
    let scene = family();
    scene.check(
        "release main as=main@1   => done
         release main as=main@1   => done again
         tree main                => unowned e2 [main@1] [one@1] [two@1]
         claim main               => epoch 3
         release main as=main@1   => stale-generation: ..",
    );
}

fn branched(source: SessionNo, scene: &crate::scene::Scene) -> Event {
    Branched {
        session: FRESH,
        source,
        at: None,
        first_envelope: scene.state().next_envelope(),
    }
    .into()
}

/// F2, TRE-9: a claim with a branch is honoured as a whole, with the parent of its source, or not at all.
#[test]
fn a_claim_for_a_branch_is_honoured_as_a_whole() {
    const FREE: &str = "release main as=main@1";
    let known = scene(FREE);
    let frame = |root, epoch, parent, source| {
        vec![
            claimed(root, epoch),
            registered(FRESH, 0, 1),
            delegated(FRESH, MAIN, parent),
            branched(source, &known),
        ]
    };
    let fence = || of(grant(FRESH, None, 1), MAIN, 3);
    stands(FREE, &fence(), &frame(MAIN, 3, ONE, TWO));
    refuses(FREE, &fence(), &frame(MAIN, 3, MAIN, TWO));
    refuses(FREE, &fence(), &frame(MAIN, 3, ONE, SessionNo(3)));
    refuses(FREE, &fence(), &frame(MAIN, 4, ONE, TWO));
    refuses(FREE, &fence(), &frame(MAIN, 3, ONE, TWO)[1..]);
    refuses(FREE, &fence(), &frame(MAIN, 3, ONE, TWO)[..3]);
    for other in [
        grant(FRESH, None, 1),
        of(grant(FRESH, None, 1), MAIN, 2),
        of(grant(FRESH, None, 1), SessionNo(3), 2),
    ] {
        refuses(FREE, &other, &frame(MAIN, 3, ONE, TWO));
    }
}
