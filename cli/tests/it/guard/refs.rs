//! Refs that another session claims by what it works on.

use super::Ground;
use crate::terminal::{Ran, Terminal};

/// `web` works on the item, as d2.
fn claimed(item: &str) -> Ground {
    let ground = Ground::new();
    ground
        .user
        .play(&format!("dispatch {item} --to web\naccept d2 --as web@1"));
    ground
}

/// The line is refused under `refuse`, and no ref has moved.
#[track_caller]
pub fn stays(ground: &Ground, line: &str, said: &str) {
    let refs = || ground.git("for-each-ref");
    let before = refs();
    let refused = ground.under("api@1", line);
    assert_ne!(refused.code, 0, "{line}: {}", refused.err);
    for part in [said, "refused: the policy here is refuse"] {
        assert!(refused.err.contains(part), "{line}: {}", refused.err);
    }
    assert_eq!(refs(), before, "{line}");
}

/// GIT-11: who works on the item `branch:NAME` claims that branch. While the claim is foreign and live, moving the branch is
/// said, and under `refuse` not done, however it is moved; its own session moves it, others move other branches, and
/// once the work has ended everybody does.
#[test]
fn a_claim_on_a_branch_gates_what_moves_it() {
    let ground = claimed("branch:main");
    ground.tenure("guard install").ended(0);
    ground.write("own/b", "2");
    let said = ground.under("api@1", "commit -qam told").ended(0).err;
    let who = "refs/heads/main is claimed by web, which works on branch:main (d2): codex, pid";
    assert!(said.contains(who) && said.contains("alive"), "{said}");
    ground.tenure("guard install --policy warn-once").ended(0);
    ground.write("own/b", "3");
    let said = ground.under("api@1", "commit -qam told").ended(0).err;
    assert!(said.contains(who), "{said}");

    ground.tenure("guard install --policy refuse").ended(0);
    ground.write("own/b", "4");
    ground.git("branch side HEAD~1");
    for line in [
        "commit -qam refused",
        "commit --no-verify -qam refused",
        "reset -q --soft HEAD~1",
        "update-ref refs/heads/main HEAD~1",
        "branch -m main trunk",
    ] {
        stays(&ground, line, who);
    }
    ground.git("reset -q");
    assert_eq!(ground.under("api@1", "branch other").ended(0).err, "");
    assert_eq!(ground.under("api@1", "tag main").ended(0).err, "");
    ground.under("api@1", "switch -q other").ended(0);
    stays(&ground, "branch -D main", who);
    ground.under("api@1", "switch -q main").ended(0);
    assert_eq!(ground.under("web@1", "commit -qam own").ended(0).err, "");
    ground.user.play("report d2 --as web@1 --outcome done");
    ground.write("own/b", "5");
    assert_eq!(ground.under("api@1", "commit -qam free").ended(0).err, "");
}

/// GIT-11: the kinds that move one ref imply each other, and no others do; a claim that is only dispatched gates nothing.
#[test]
fn related_kinds_claim_the_same_ref() {
    for (item, line, gated) in [
        ("commit:main", "commit -q --allow-empty -m x", true),
        ("pr:main", "commit -q --allow-empty -m x", true),
        ("publication:main", "commit -q --allow-empty -m x", true),
        ("publication:v1", "tag v1", true),
        ("tag:v1", "tag v1", true),
        ("tag:v1", "branch v1", false),
        ("branch:v1", "tag v1", false),
        ("branch:v1", "branch v1", true),
        ("branch:a/b", "branch a/b", true),
        ("branch:a", "branch a/b", false),
        ("issue:main", "commit -q --allow-empty -m x", false),
    ] {
        let ground = Ground::new();
        ground.tenure("guard install --policy refuse").ended(0);
        ground.user.play(&format!("dispatch {item} --to web"));
        if gated {
            let claim = format!("works on {item} (d2)");
            ground.user.play("accept d2 --as web@1");
            stays(&ground, line, &claim);
            ground.user.play("cancel d2 --reason enough");
        }
        assert_eq!(
            ground.under("api@1", line).ended(0).err,
            "",
            "{item} {line}"
        );
    }
}

/// GIT-11, GIT-2: a claim whose holder is provably dead stops nobody; a policy recorded for the checkout refuses like that
/// of the hook; without a token refs move freely.
#[test]
fn a_claim_counts_while_its_holder_may_live() {
    let ground = claimed("branch:main");
    ground.tenure("guard install").ended(0);
    ground
        .tenure("policy set refuse --scope . --as api@1")
        .ended(0);
    let line = "commit -q --allow-empty -m x";
    stays(&ground, line, "works on branch:main");
    assert_eq!(ground.try_git(line).ended(0).err, "");
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .expect("it runs");
    let adopt = format!("adopt web --force --reason test --pid {}", child.id());
    ground.user.play(&adopt);
    stays(&ground, line, "works on branch:main");
    child.kill().expect("it ends");
    child.wait().expect("it is gone");
    assert_eq!(ground.under("api@1", line).ended(0).err, "");
}

/// GIT-11, GIT-13: a claimed ref is moved on purpose with the variable, and that is recorded with what was said.
#[test]
fn a_claimed_ref_is_moved_on_purpose_and_recorded() {
    let ground = claimed("branch:main");
    ground.tenure("guard install --policy refuse").ended(0);
    let head = ground.head();
    let passed: Ran = Terminal::finish(
        ground
            .command("commit -q --allow-empty -m x")
            .env("TENURE_TOKEN", "api@1")
            .env("TENURE_GUARD_BYPASS", "agreed with web"),
    );
    let said = passed.ended(0).err;
    assert!(said.contains("passed by TENURE_GUARD_BYPASS"), "{said}");
    assert_ne!(ground.head(), head);
    let events = ground.user.list("log --kind guard-bypassed");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["hook"], "reference-transaction");
    assert_eq!(
        events[0]["said"],
        "refs/heads/main claimed by web (branch:main)"
    );
    assert_eq!(events[0]["reason"], "agreed with web");
    assert_eq!(events[0]["actor"], "tester");
}
