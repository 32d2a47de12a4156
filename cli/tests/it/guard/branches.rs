//! Commits and branches that others lose by what git is told: amended commits, switched branches.

use super::Ground;
use super::refs::stays;

const LOST: &str = "commits that no branch would have any more change";

/// `api` commits its own, then `web` commits its own on top.
fn two_commits() -> Ground {
    let ground = Ground::new();
    ground.tenure("guard install").ended(0);
    ground.write("own/b", "2");
    ground.under("api@1", "commit -qam one").ended(0);
    ground.write("shared/a", "2");
    ground.under("web@1", "commit -qam two").ended(0);
    ground
}

/// D02: an amend that rewrites the commit of a session that is at work is said, with whose and which paths; under `refuse`
/// the branch stays where it is, and whose commit it is amends it.
#[test]
fn a_rewritten_commit_of_another_session_is_said_or_refused() {
    let ground = two_commits();
    let said = ground
        .under("api@1", "commit -q --amend -m mine")
        .ended(0)
        .err;
    for part in [
        LOST,
        "foreign 1 path of web",
        "declared by d1",
        "  shared/a",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    ground.tenure("guard install --policy refuse").ended(0);
    for line in [
        "commit -q --amend -m other",
        "reset -q --soft HEAD~1",
        "update-ref refs/heads/main HEAD~1",
        "branch -f main HEAD~1",
    ] {
        if line.starts_with("branch") {
            ground.git("checkout -q --detach");
        }
        stays(&ground, line, "foreign 1 path of web");
    }
    ground.git("checkout -q main");
    let own = ground.under("web@1", "commit -q --amend -m again");
    assert_eq!(own.ended(0).err, "");
    // What another branch has is not lost, nor is what nobody at work has anything to do with.
    ground.git("branch kept");
    assert_eq!(
        ground.under("api@1", "reset -q --hard HEAD~1").ended(0).err,
        ""
    );
    ground.write("own/b", "3");
    ground.under("api@1", "commit -qam own").ended(0);
    assert_eq!(
        ground
            .under("api@1", "commit -q --amend -m own")
            .ended(0)
            .err,
        ""
    );
    stays(&ground, "branch -D kept", LOST);
    ground.user.play("report d1 --as web@1 --outcome done");
    assert_eq!(ground.under("api@1", "branch -q -D kept").ended(0).err, "");
}

/// D04: a switch under which others work is said to whoever makes it, and sent to those who work there: each finds it at its
/// next look at its mail. It is not refused, since git has changed the files by then.
#[test]
fn a_branch_that_changes_under_others_is_told_to_both_sides() {
    let ground = Ground::new();
    ground.tenure("guard install --policy refuse").ended(0);
    ground.git("branch side");
    let mail = || ground.user.list("inbox web");
    let before = mail().len();
    let said = ground.under("api@1", "switch -q side").ended(0).err;
    let told = "web works in this checkout, which goes from main to side: codex, pid";
    assert!(said.contains(told), "{said}");
    let found = mail();
    assert_eq!(found.len(), before + 1);
    let newest = found.last().expect("the newest");
    assert_eq!(
        (&newest["from"], &newest["state"]),
        (&"api".into(), &"pending".into())
    );
    let top = ground.at("r").display().to_string();
    assert_eq!(
        newest["body"],
        format!("api@1 switches the checkout {top}, in which you work, from main to side").as_str()
    );
    assert_eq!(ground.git("symbolic-ref --short HEAD").trim(), "side");
    // Neither a commit nor a worktree of its own changes the branch here; nobody works in the other one.
    ground.write("own/b", "2");
    assert_eq!(ground.under("api@1", "commit -qam own").ended(0).err, "");
    assert_eq!(
        ground
            .under("api@1", "worktree add -q ../w -b w")
            .ended(0)
            .err,
        ""
    );
    assert_eq!(ground.under("api@1", "switch -q side").ended(0).err, "");
    assert_eq!(ground.under("web@1", "switch -q main").ended(0).err, "");
    assert_eq!(mail().len(), before + 1);
    let detached = ground
        .under("api@1", "switch -q --detach side")
        .ended(0)
        .err;
    assert!(detached.contains("which goes from main to "), "{detached}");
    assert_eq!(mail().len(), before + 2);
}
