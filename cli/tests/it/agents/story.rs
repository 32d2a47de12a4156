//! The whole story, from the installation to the questions afterwards.

use std::process::Command;

use serde_json::{Value, json};

use crate::terminal::Terminal;

use super::both_ways;
use super::host::Played;

fn git(top: &str, args: &[&str]) -> (i32, String) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-C", top])
        .args(args)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ])
        .output()
        .expect("git runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

/// The command that the settings name for an event, as the host would run it.
fn installed(user: &Terminal, event: &str) -> String {
    let text = std::fs::read_to_string(user.file("settings.json")).expect("it is there");
    let settings: Value = serde_json::from_str(&text).expect("JSON");
    let command = &settings["hooks"][event][0]["hooks"][0]["command"];
    command.as_str().expect("a command").to_owned()
}

/// A commit in the environment of a session.
fn commit(user: &Terminal, top: &str, token: &str) -> (i32, String) {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-C",
            top,
            "commit",
            "-q",
            "-m",
            "x",
        ])
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ]);
    for (key, value) in user.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let output = command
        .env("TENURE_TOKEN", token)
        .output()
        .expect("git runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

/// Two sessions in one real checkout: the second is told of the first; a sweeping commit is named; after the adoption the
/// first is denied its next write; and `who`, `why` and `timeline` answer for all of it (D1, D4, D7, D8, D13).
#[test]
fn two_sessions_in_one_checkout_from_install_to_audit() {
    both_ways(|user, top| {
        user.play("install claude --settings settings.json\nguard install repo");
        let hook = installed(user, "PreToolUse");
        assert_eq!(hook, installed(user, "SessionStart"));
        let mut first = Played::running(user, "claude", &hook, &[]);
        let mut second = Played::running(user, "claude", &hook, &[]);
        let event = |name: &str, id: &str| json!({"hook_event_name": name, "session_id": id, "cwd": top, "source": "startup", "prompt": "x"});
        let write = |name: &str, id: &str, file: &str| {
            json!({"hook_event_name": name, "session_id": id, "cwd": top,
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/{file}")}})
        };
        first.context(&event("SessionStart", "first"));
        first.allows(&write("PreToolUse", "first", "a.rs"));
        std::fs::write(user.file("repo/a.rs"), "a").expect("it writes");
        first.allows(&write("PostToolUse", "first", "a.rs"));
        let told = second.context(&event("SessionStart", "second"));
        assert!(
            told.contains(&format!("first (claude, pid {} on", first.pid())),
            "{told}"
        );
        second.runs(&write("PreToolUse", "second", "b.rs"));
        std::fs::write(user.file("repo/b.rs"), "b").expect("it writes");
        second.allows(&write("PostToolUse", "second", "b.rs"));

        assert_eq!(git(top, &["add", "-A"]).0, 0);
        let (code, said) = commit(user, top, "second@1");
        assert!(
            said.contains("of first: claude") && said.contains("a.rs"),
            "{code} {said}"
        );

        let pid = second.pid().to_string();
        user.args(&[
            "adopt",
            "first",
            "--force",
            "--reason",
            "takes over",
            "--pid",
            &pid,
        ])
        .ended(0);
        let denied = first.denies(&write("PreToolUse", "first", "a.rs"));
        assert!(
            denied.contains("first@2 is current") && denied.contains("\"takes over\""),
            "{denied}"
        );

        let who = user.json("who first");
        assert_eq!(
            (&who["generation"], &who["holder"]["pid"]),
            (&json!(2), &json!(second.pid()))
        );
        let before = user.json("who first --at 1");
        assert_eq!(before["holder"]["pid"], first.pid());
        let adopted = user.list("log --kind adopted").pop().expect("it is there");
        let why = user.run(&format!("why {}", adopted["position"])).ended(0);
        assert!(why.out.contains("takes over"), "{}", why.out);
        let stretches = user.run("timeline first").ended(0);
        assert!(
            stretches.out.contains("first@1") && stretches.out.contains("first@2"),
            "{}",
            stretches.out
        );
        user.run("audit").ended(0);
    });
}

/// D13: what is really enforced is said for each session, and so is what was changed without anybody being seen to.
#[test]
fn doctor_says_what_is_enforced_and_what_nobody_was_seen_to_write() {
    both_ways(|user, top| {
        let mut host = Played::start(user, "claude", &[]);
        let write = |name: &str, file: &str| {
            json!({"hook_event_name": name, "session_id": "s-1", "cwd": top,
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/{file}")}})
        };
        std::fs::write(user.file("repo/old"), "x").expect("it writes");
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        let old = std::fs::File::options()
            .write(true)
            .open(user.file("repo/old"))
            .expect("it opens");
        old.set_modified(past).expect("it is older");
        host.context(&json!({"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": top, "source": "startup"}));
        for file in ["seen", "skipped"] {
            std::fs::write(user.file(&format!("repo/{file}")), "x").expect("it writes");
        }
        host.allows(&write("PostToolUse", "seen"));
        let ran = user.run("--json doctor").ended(1);
        let found = ran.object();
        let hooks = found["hooks"].as_array().expect("a list");
        assert_eq!(hooks.len(), 1, "{found}");
        assert_eq!(hooks[0]["hook"], Value::Null, "nothing is installed");
        assert_eq!(hooks[0]["guard"], false);
        assert_eq!(hooks[0]["unaccounted"], json!([format!("{top}/skipped")]));
        let said = user.run("doctor").ended(1);
        assert!(
            said.out.contains("no-hook  s-1: claude asks nobody"),
            "{}",
            said.out
        );

        user.play("install claude --on-error deny\nguard install repo");
        let found = user.run("--json doctor").ended(0).object();
        let hook = &found["hooks"][0];
        assert_eq!(
            (&hook["hook"]["on_error"], &hook["guard"]),
            (&json!("deny"), &json!(true))
        );
        assert_eq!(
            hook["hook"]["file"],
            json!(user.file(".claude/settings.json"))
        );
        let said = user.run("doctor").ended(0);
        assert!(
            said.out
                .contains("1 changed in its checkout since it began"),
            "{}",
            said.out
        );
    });
}
