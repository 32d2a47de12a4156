//! Whether a directory may be removed.

use std::fs;
use std::process::Command;

use super::Ground;

/// The rows of the reasons why `w` may not be removed.
fn rows(ground: &Ground) -> Vec<String> {
    let ran = ground.tenure("--json guard may-remove ../w");
    let (code, answer) = (ran.code, ran.object());
    let reasons = answer["reasons"].as_array().expect("a list");
    assert_eq!(answer["removable"], reasons.is_empty());
    assert_eq!(code, i32::from(!reasons.is_empty()));
    let row = |reason: &serde_json::Value| reason["row"].as_str().expect("a row").to_owned();
    reasons.iter().map(row).collect()
}

/// D19: a worktree may be removed when nobody is at work there and nothing in it would be lost, and not while any of that
/// cannot be told.
#[test]
fn a_worktree_of_a_live_session_is_not_removable() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    assert_eq!(rows(&ground), [""; 0]);
    ground.user.play(
        "dispatch two --to api --write w/own
         accept d2 --as api@1",
    );
    assert_eq!(rows(&ground), ["session"]);
    let people = ground.tenure("guard may-remove ../w").ended(1).out;
    assert!(
        people.contains("session: api works there (declared)"),
        "{people}"
    );
    fs::write(ground.at("w/own/b"), "dirty").expect("written");
    fs::write(ground.at("w/new"), "new").expect("written");
    fs::write(ground.at("r/.git/worktrees/w/index.lock"), "").expect("written");
    assert_eq!(rows(&ground), ["session", "changes", "lock"]);
    let people = ground.tenure("guard may-remove ../w").ended(1).out;
    assert!(
        people.contains("changes: 2 files are not committed"),
        "{people}"
    );
    fs::remove_file(ground.at("r/.git/worktrees/w/index.lock")).expect("removed");
    // Its session has ended, and what it left is there still.
    ground.user.play("retire api@1");
    assert_eq!(rows(&ground), ["changes"]);
    let at = ground.at("w");
    let git = |line: &str| {
        crate::terminal::Terminal::finish(&mut ground.command_in(&at, line)).ended(0);
    };
    git("checkout -q --detach");
    git("add -A");
    git("commit -qm left");
    assert_eq!(rows(&ground), ["commits"]);
    git("branch kept");
    assert_eq!(rows(&ground), [""; 0]);
}

/// D19: whoever was fenced may still be writing there; whoever is provably dead is not; and what cannot be told is no yes.
#[test]
fn what_cannot_be_told_is_not_removable() {
    let ground = Ground::new();
    ground.git("worktree add -q ../w");
    let mut child = Command::new("sleep").arg("600").spawn().expect("it runs");
    ground.user.play(&format!(
        "adopt api --force --reason test --pid {}
         dispatch two --to api --write w
         accept d2 --as api@2
         adopt api --force --reason test --pid {}
         report d2 --as api@3 --outcome done",
        child.id(),
        std::process::id()
    ));
    assert_eq!(rows(&ground), ["former"]);
    child.kill().expect("it ends");
    child.wait().expect("it is gone");
    assert_eq!(rows(&ground), [""; 0]);
    fs::create_dir(ground.at("plain")).expect("made");
    let plain = ground.tenure("guard may-remove ../plain").ended(1).out;
    assert!(plain.contains("unknown: it cannot be told"), "{plain}");
    fs::rename(ground.user.store(), ground.at("gone")).expect("moved");
    assert_eq!(rows(&ground), ["unknown"]);
}
