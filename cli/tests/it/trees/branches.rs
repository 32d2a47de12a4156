//! Branches that stay in a tree which nobody holds.

use std::io::Write;

use super::{family, tree};
use crate::histories::{rounds, waiting};
use crate::terminal::Terminal;

/// TRE-9: `branch --in-tree` of a delegated session claims a tree that nobody holds; the next one is held, naming the session
/// asked for and who holds the tree, and writes nothing.
#[test]
fn a_branch_within_a_free_tree_claims_it() {
    let user = Terminal::new();
    let holder = family(&user);
    let us = std::process::id();
    user.play("record t --as two@1\nrelease --as main@1");
    let grant = user.json(&format!(
        "branch two near --in-tree --pid {us} --token-file near.token"
    ));
    assert_eq!(
        (&grant["token"], &grant["source"], &grant["schema"]),
        (&"near@1".into(), &"two".into(), &"tenure.branch.v1".into())
    );
    assert_eq!(tree(&user, "main"), ("owned".into(), vec!["near@1".into()]));
    let shown = user.json("show near");
    assert_eq!(
        (&shown["tree"], &shown["parent"]),
        (&"main".into(), &"one".into())
    );
    let held = user
        .run("--json branch one late --in-tree")
        .ended(12)
        .object();
    assert_eq!(
        (&held["code"], &held["subject"]),
        (&"held".into(), &"one".into())
    );
    assert_eq!(held["holder"]["pid"], us);
    user.run("show late").ended(66);
    // A root is branched within its tree under a token only.
    user.play("release --as near@1");
    user.run("branch main late --in-tree").ended(64);
    user.play("adopt main\nbranch main late --in-tree --as main@2");
    drop(holder);
}

/// TRE-9, BRN-3: of 16 processes that branch within one free tree, each under its own name, exactly one wins, and nothing is
/// left of the others.
#[test]
fn of_sixteen_processes_that_branch_within_a_free_tree_one_wins() {
    let user = Terminal::new();
    let _holder = family(&user);
    user.play("release --as main@1");
    for round in 0..rounds() {
        let us = std::process::id();
        let racers: Vec<_> = (0..16)
            .map(|n| {
                let source = ["one", "two"][n % 2];
                let line = format!("--json branch {source} b{round}-{n} --in-tree --pid {us}");
                waiting(&user, &line)
            })
            .collect();
        let mut codes = Vec::new();
        let ready = racers.into_iter().map(|mut racer| {
            let mut gate = racer.stdin.take().expect("it is piped");
            gate.write_all(b"go\n").expect("it waits");
            drop(gate);
            racer
        });
        for racer in ready.collect::<Vec<_>>() {
            let output = racer.wait_with_output().expect("it ends");
            codes.push(output.status.code().unwrap_or(-1));
        }
        let winners: Vec<usize> = (0..16).filter(|n| codes[*n] == 0).collect();
        assert_eq!(winners.len(), 1, "round {round}: {codes:?}");
        assert!(codes.iter().all(|code| [0, 12].contains(code)), "{codes:?}");
        let token = format!("b{round}-{}@1", winners[0]);
        assert_eq!(tree(&user, "one"), ("owned".into(), vec![token.clone()]));
        assert_eq!(user.list("sessions --all").len(), 4 + round);
        user.play(&format!("release --as {token}"));
    }
}
