//! Two sessions of two hosts in one checkout: told, warned, refused; and what follows when nothing can be asked.

use serde_json::{Value, json};

use super::host::Played;
use super::{both_ways, checkout};

fn start(top: &str, id: &str) -> Value {
    json!({"hook_event_name": "SessionStart", "session_id": id, "cwd": top, "source": "startup"})
}

fn tool(event: &str, top: &str, id: &str, name: &str, input: &Value) -> Value {
    json!({"hook_event_name": event, "session_id": id, "cwd": top, "tool_name": name, "tool_input": input})
}

fn write(event: &str, top: &str, id: &str, file: &str) -> Value {
    tool(
        event,
        top,
        id,
        "Write",
        &json!({"file_path": format!("{top}/{file}")}),
    )
}

fn bash(top: &str, id: &str, line: &str) -> Value {
    tool("PreToolUse", top, id, "Bash", &json!({"command": line}))
}

/// GIT-1, GIT-2, DSC-11, A23: whoever writes where another live engine works is told once (disclose), stopped once
/// (warn-once), or stopped (refuse); a session whose holder is dead is in nobody's way, and named.
#[test]
fn another_live_engine_is_told_warned_about_or_refused() {
    both_ways(|user, top| {
        let mut first = Played::start(user, "claude", &[]);
        let mut second = Played::start(user, "codex", &[]);
        first.context(&start(top, "one"));
        first.allows(&write("PreToolUse", top, "one", "src/a"));
        first.allows(&write("PostToolUse", top, "one", "src/a"));
        let greeting = second.context(&start(top, "two"));
        assert!(
            greeting.contains("one (claude, pid ")
                && greeting.contains("Leave their changes alone"),
            "{greeting}"
        );
        // A greeting is no record: the first write is still told, and that is recorded before it runs.
        let told = second.context(&write("PreToolUse", top, "two", "src/a"));
        assert!(told.contains("one (claude, pid "), "{told}");
        let shown = user.list("log --kind shown");
        assert_eq!(shown.len(), 1, "{shown:?}");
        second.allows(&write("PreToolUse", top, "two", "src/a"));
        // Nobody works there.
        second.allows(&write("PreToolUse", top, "two", "/elsewhere/b"));
        // The one who was there is told at its next prompt that somebody came.
        let news = first.context(
            &json!({"hook_event_name": "UserPromptSubmit", "session_id": "one", "cwd": top}),
        );
        assert!(news.contains("two"), "{news}");

        second.kill();
        let mut third = Played::start(user, "codex", &[]);
        third.context(&start(top, "three"));
        user.play("policy set warn-once --scope repo");
        let denied = third.denies(&bash(top, "three", "make"));
        assert!(
            denied.contains("warn-once") && denied.contains("one (claude"),
            "{denied}"
        );
        third.allows(&bash(top, "three", "make"));

        user.play("policy set refuse --scope repo");
        for line in [
            "make",
            "git add -A",
            "cd src && touch a",
            "cat x > src/a",
            "echo $(git commit -a)",
        ] {
            let denied = third.denies(&bash(top, "three", line));
            assert!(
                denied.contains("held") && denied.contains("one is at work"),
                "{line}: {denied}"
            );
        }
        for line in [
            "ls -la",
            "git status && git log",
            "cat a | grep b 2>/dev/null",
            "cd /tmp",
        ] {
            third.allows(&bash(top, "three", line));
        }
        // In another place, also by git's own option, and by a relative path.
        third.denies(&tool(
            "PreToolUse",
            "/",
            "three",
            "Bash",
            &json!({"command": format!("git -C {top} commit -a")}),
        ));
        third.denies(&tool(
            "PreToolUse",
            top,
            "three",
            "apply_patch",
            &json!({"command": "*** Update File: src/a"}),
        ));
        third.allows(&tool(
            "PreToolUse",
            top,
            "three",
            "apply_patch",
            &json!({"command": "*** Update File: other/b"}),
        ));
        let told = first.context(&bash(top, "one", "make"));
        assert!(
            told.contains("three (codex") && !told.contains("two"),
            "{told}"
        );
        first.allows(&bash(top, "one", "make"));
        first.kill();
        let told = third.context(&bash(top, "three", "make"));
        assert!(
            told.contains("one has a claim on") && told.contains("is gone"),
            "{told}"
        );
    });
}

/// GIT-3: what cannot be asked is answered by the policy: the tool runs and it is said, or it does not run.
#[test]
fn what_cannot_be_asked_is_answered_by_the_policy() {
    let (user, top) = checkout();
    std::fs::write(user.store(), "no directory").expect("it writes");
    let run = |policy: &str, text: &str| {
        let program = env!("CARGO_BIN_EXE_tenure");
        let hook = format!("'{program}' hook --host claude --on-error {policy}");
        Played::running(&user, "claude", &hook, &[]).sends_text(text)
    };
    let before = write("PreToolUse", &top, "s", "a").to_string();
    let said: Value = serde_json::from_str(&run("allow", &before)).expect("an object");
    let text = said["systemMessage"].as_str().expect("a text");
    assert!(text.starts_with("tenure: nothing was checked: "), "{text}");
    assert!(text.ends_with("; the tool runs (on-error allow)"), "{text}");
    let said: Value = serde_json::from_str(&run("deny", &before)).expect("an object");
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny");
    let text = said["hookSpecificOutput"]["permissionDecisionReason"]
        .as_str()
        .expect("a text");
    assert!(
        text.starts_with("tenure: nothing could be checked: "),
        "{text}"
    );
    assert!(
        text.ends_with("; the tool does not run (on-error deny)"),
        "{text}"
    );
    for broken in [
        "{",
        "[]",
        "7",
        "{\"session_id\":\"x\"}",
        "\u{feff}{}",
        "nothing",
    ] {
        let said = run("deny", broken);
        assert!(
            said.contains("\"permissionDecision\":\"deny\""),
            "{broken}: {said}"
        );
        let said = run("allow", broken);
        assert!(
            said.starts_with("{\"systemMessage\":\"tenure: nothing was checked"),
            "{broken}: {said}"
        );
    }
    // Elsewhere than before a tool there is nothing to stop.
    let said: Value =
        serde_json::from_str(&run("deny", &start(&top, "s").to_string())).expect("an object");
    assert!(said["systemMessage"].is_string(), "{said}");
    let end = json!({"hook_event_name": "SessionEnd", "session_id": "s", "cwd": top});
    assert_eq!(run("deny", &end.to_string()), "");
    // A name that is none is no reason to run.
    let named = write("PreToolUse", &top, "-x y", "a").to_string();
    assert!(run("deny", &named).contains("is no name"));
}
