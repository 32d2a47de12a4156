//! Getting in and out of a repository.

use std::fs;

use serde_json::{Value, json};

use super::Ground;

fn standings(ground: &Ground) -> Vec<String> {
    let status = ground.tenure("--json guard status").object();
    let hooks = status["hooks"].as_array().expect("a list").clone();
    let word = |hook: &Value| hook["standing"].as_str().expect("a word").to_owned();
    hooks.iter().map(word).collect()
}

/// A second run writes the same bytes, and what is taken out leaves what was there.
#[test]
fn installing_is_idempotent_and_uninstalling_leaves_nothing() {
    let ground = Ground::new();
    let before = ground.tree("r");
    assert_eq!(standings(&ground), ["absent", "absent"]);
    ground.tenure("guard status").ended(1);
    let installed = ground.tenure("--json guard install").ended(0).object();
    assert_eq!(installed["files"].as_array().map(Vec::len), Some(2));
    let first = ground.tree("r");
    ground.tenure("guard install").ended(0);
    assert_eq!(ground.tree("r"), first);
    assert_eq!(standings(&ground), ["enforced", "enforced"]);
    let people = ground.tenure("guard status").ended(0).out;
    assert!(
        people.contains("--no-verify") && people.contains("git's own locks"),
        "{people}"
    );
    ground
        .tenure("guard install --policy refuse --deletions-max 3")
        .ended(0);
    let status = ground.tenure("--json guard status").ended(0).object();
    assert_eq!(
        (
            &status["hooks"][0]["policy"],
            &status["hooks"][0]["deletions_max"]
        ),
        (&json!("refuse"), &json!(3))
    );
    ground.tenure("guard uninstall").ended(0);
    assert_eq!(ground.tree("r"), before);
    ground.tenure("guard uninstall").ended(0);
    ground.tenure("guard install /").ended(64);
}

/// Hooks that were there run as before: shell scripts with the same name, arguments and input, other programs, links;
/// and they still stop git.
#[test]
fn hooks_that_were_there_keep_working() {
    let ground = Ground::new();
    let log = ground.at("log");
    let log = log.display();
    let ran = |ground: &Ground| fs::read_to_string(ground.at("log")).unwrap_or_default();
    // The input of a reference transaction is read by both.
    let refs = format!("#!/bin/sh -e\nset -u\necho \"$0 $1 $#\" >> {log}\ncat >> {log}\n");
    ground.script(".git/hooks/reference-transaction", &refs);
    ground.script(
        "tools/check",
        &format!("#!/bin/sh\necho \"checked $0\" >> {log}\n[ ! -e stop ]\n"),
    );
    std::os::unix::fs::symlink("../../tools/check", ground.at("r/.git/hooks/pre-commit"))
        .expect("linked");
    let before = ground.tree("r/.git/hooks");
    ground.tenure("guard install").ended(0);
    ground.tenure("guard install").ended(0);
    assert_eq!(standings(&ground), ["enforced", "enforced"]);
    assert!(
        ground
            .tree("r/tools")
            .iter()
            .all(|(_, text, _)| !text.windows(6).any(|w| w == b"tenure"))
    );
    ground.write("own/b", "2");
    ground.under("api@1", "commit -qam second").ended(0);
    let said = ran(&ground);
    assert!(said.contains("checked .git/hooks/pre-commit"), "{said}");
    let head = ground.head();
    let line = format!("{} refs/heads/main", head.trim());
    for state in ["prepared", "committed"] {
        assert!(
            said.contains(&format!(".git/hooks/reference-transaction {state} 1\n")),
            "{said}"
        );
    }
    assert_eq!(
        said.matches(&line).count(),
        2,
        "prepared and committed: {said}"
    );
    // It still stops git, and so does ours before it.
    ground.write("stop", "");
    ground.write("own/b", "3");
    ground.under("api@1", "commit -qam third").ended(1);
    fs::remove_file(ground.at("r/stop")).expect("removed");
    fs::remove_file(ground.at("log")).expect("removed");
    ground.under("api@9", "commit -qam third").ended(1);
    assert_eq!(ran(&ground), "", "ours came first");
    ground.tenure("guard uninstall").ended(0);
    assert_eq!(ground.tree("r/.git/hooks"), before);
}

/// `core.hooksPath`, as husky sets it: nothing in the working tree is touched, its hooks run as before, and those that
/// come later run too; taken out, the setting is as it was.
#[test]
fn a_hooks_path_of_somebody_elses_is_handed_on_to() {
    let ground = Ground::new();
    let log = ground.at("log");
    let log = log.display();
    ground.script(
        ".husky/_/pre-commit",
        &format!("#!/bin/sh\necho \"husky $0\" >> {log}\n"),
    );
    ground.git("config core.hooksPath .husky/_");
    let config = fs::read(ground.at("r/.git/config")).expect("read");
    let (working, hooks) = (ground.tree("r/.husky"), ground.tree("r/.git/hooks"));
    ground.tenure("guard install --policy refuse").ended(0);
    let first = ground.tree("r/.git");
    ground.tenure("guard install --policy refuse").ended(0);
    assert_eq!(ground.tree("r/.git"), first, "idempotent");
    assert_eq!(standings(&ground), ["enforced", "enforced"]);
    assert_eq!(
        (ground.tree("r/.husky"), ground.tree("r/.git/hooks")),
        (working, hooks)
    );
    // A hook that came later.
    ground.script(
        ".husky/_/commit-msg",
        &format!("#!/bin/sh\necho \"message $1\" >> {log}\n"),
    );
    ground.write("own/b", "2");
    ground.under("api@1", "commit -qam second").ended(0);
    let said = fs::read_to_string(ground.at("log")).expect("they ran");
    assert_eq!(
        said,
        "husky .husky/_/pre-commit\nmessage .git/COMMIT_EDITMSG\n"
    );
    ground.write("shared/a", "2");
    let refused = ground.under("api@1", "commit -qam third").ended(1);
    assert!(refused.err.contains("shared/a"), "{}", refused.err);
    let proof = ground.tenure("guard test").ended(0).out;
    assert!(proof.contains("6 of 6 hold"), "{proof}");
    // Husky installs itself again: that is seen, and mended.
    ground.git("config core.hooksPath .husky/_");
    assert_eq!(standings(&ground), ["overwritten", "absent"]);
    ground.tenure("guard install --policy refuse").ended(0);
    assert_eq!(standings(&ground), ["enforced", "enforced"]);
    ground.tenure("guard uninstall").ended(0);
    assert_eq!(fs::read(ground.at("r/.git/config")).expect("read"), config);
    assert!(!ground.at("r/.git/tenure-hooks").exists());
}

/// Linked worktrees share the hooks of their repository; one with a path of its own is named, and guarded by a run in it.
#[test]
fn linked_worktrees_are_guarded_too() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    ground.tenure("guard install").ended(0);
    assert_eq!(standings(&ground), ["enforced"; 4]);
    let us = std::process::id();
    ground
        .user
        .play(&format!("adopt api --force --reason test --pid {us}"));
    let mut commit = ground.command_in(&ground.at("w"), "commit -q --allow-empty -m late");
    let late = crate::terminal::Terminal::finish(commit.env("TENURE_TOKEN", "api@1"));
    assert!(late.ended(1).err.contains("api@1 is not current"));
    // One with a path of its own.
    ground.git("config extensions.worktreeConfig true");
    let own = ground
        .command_in(&ground.at("w"), "config --worktree core.hooksPath mine")
        .status();
    assert!(own.expect("git runs").success());
    assert_eq!(
        standings(&ground),
        ["enforced", "enforced", "absent", "absent"]
    );
    ground.user.run("guard install w").ended(0);
    assert_eq!(standings(&ground), ["enforced"; 4]);
    ground.user.run("guard uninstall w").ended(0);
    assert_eq!(
        standings(&ground),
        ["enforced", "enforced", "absent", "absent"]
    );
    let value = ground
        .command_in(&ground.at("w"), "config core.hooksPath")
        .output();
    assert_eq!(value.expect("git runs").stdout, b"mine\n");
}

/// What is not enforced is said, whatever the reason; and a test that is not held says so too.
#[test]
fn status_says_what_is_really_enforced() {
    use std::os::unix::fs::PermissionsExt;
    let ground = Ground::new();
    let hook = ground.at("r/.git/hooks/pre-commit");
    let first = |ground: &Ground| standings(ground)[0].clone();
    let mode = |mode| fs::set_permissions(&hook, fs::Permissions::from_mode(mode)).expect("set");
    ground.tenure("guard test").ended(1);
    ground.tenure("guard install").ended(0);
    let good = fs::read_to_string(&hook).expect("read");
    mode(0o644);
    assert_eq!(first(&ground), "not-executable");
    mode(0o755);
    let told = |text: &str| {
        fs::write(&hook, text).expect("written");
        let status = ground.tenure("--json guard status").ended(1).object();
        assert_eq!(status["enforced"], false);
        status["hooks"][0]["standing"]
            .as_str()
            .expect("a word")
            .to_owned()
    };
    assert_eq!(told("#!/bin/sh\nexit 0\n"), "overwritten");
    assert_eq!(told(&good.replace("exit 1", "exit 0")), "other-version");
    assert_eq!(
        told(&good.replacen("#!/bin/sh\n", "#!/bin/sh\nexit 0\n", 1)),
        "other-version"
    );
    let program = env!("CARGO_BIN_EXE_tenure");
    assert_eq!(
        told(&good.replace(program, "/nowhere/tenure")),
        "program-missing"
    );
    let store = ground.user.store();
    let store = store.to_string_lossy();
    assert_eq!(
        told(&good.replace(&*store, "/nowhere/store")),
        "store-unreadable"
    );
    ground.tenure("guard test").ended(0);
    fs::write(&hook, "#!/bin/sh\nexit 0\n").expect("written");
    let tried = ground.tenure("--json guard test").ended(1).objects();
    let broken: Vec<&Value> = tried.iter().filter(|t| t["holds"] == false).collect();
    assert_eq!(
        broken.len(),
        2,
        "the foreign path and the mass deletion: {tried:?}"
    );
}
