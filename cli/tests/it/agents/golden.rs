//! The documented payloads of each host and event, with fields that nobody knows, and the exact answers.

use serde_json::{Value, json};

use super::host::Played;
use super::{both_ways, checkout};

/// A payload with everything that its host sends with it, and more.
fn payload(host: &str, top: &str, event: &str, more: &Value) -> Value {
    let mut all = json!({
        "session_id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "transcript_path": "/srv/u/.host/t.jsonl",
        "cwd": top,
        "hook_event_name": event,
        "a_field_of_tomorrow": {"deep": [1, null, "\u{2028}"]},
    });
    let own = match host {
        "claude" => {
            json!({"permission_mode": "default", "prompt_id": "p1", "effort": {"level": "high"}})
        }
        "codex" => {
            json!({"turn_id": "t1", "model": "gpt", "permission_mode": "bypassPermissions", "transcript_path": null})
        }
        _ => json!({"timestamp": "2026-11-30T00:00:00.000Z"}),
    };
    for part in [&own, more] {
        for (key, value) in part.as_object().expect("an object") {
            all[key] = value.clone();
        }
    }
    all
}

const SESSION: &str = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

/// Every event of every host with an answer that is empty or a greeting: allow is no output at all.
#[test]
fn every_documented_payload_is_answered_in_the_hosts_own_form() {
    let claude: &[(&str, Value)] = &[
        (
            "SessionStart",
            json!({"source": "startup", "model": "m", "session_title": "t"}),
        ),
        (
            "UserPromptSubmit",
            json!({"prompt": "do it", "source": "user"}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "make", "description": "d"}, "tool_use_id": "u1"}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "Edit", "tool_input": {"file_path": "TOP/a", "old_string": "a", "new_string": "b"}, "tool_use_id": "u1"}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "NotebookEdit", "tool_input": {"notebook_path": "TOP/n.ipynb", "new_source": ""}, "tool_use_id": "u1"}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "mcp__x__y", "tool_input": {}, "mcp_server": "x"}),
        ),
        (
            "PostToolUse",
            json!({"tool_name": "Write", "tool_input": {"file_path": "TOP/a"}, "tool_response": {"ok": true}, "duration_ms": 3}),
        ),
        (
            "PostToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {}}),
        ),
        (
            "Stop",
            json!({"stop_hook_active": false, "last_assistant_message": "done", "background_tasks": []}),
        ),
        (
            "SubagentStart",
            json!({"agent_id": "a1", "agent_type": "Explore"}),
        ),
        (
            "SubagentStop",
            json!({"agent_id": "a1", "agent_type": "Explore", "agent_transcript_path": "/x"}),
        ),
        ("SessionEnd", json!({"reason": "other"})),
    ];
    let codex: &[(&str, Value)] = &[
        ("SessionStart", json!({"source": "startup"})),
        ("UserPromptSubmit", json!({"prompt": "do it"})),
        (
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "u1"}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "shell", "tool_input": {"command": ["bash", "-lc", "make"], "workdir": "TOP"}}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n*** Update File: TOP/a\n@@\n*** End Patch"}}),
        ),
        (
            "PostToolUse",
            json!({"tool_name": "apply_patch", "tool_input": {"command": "*** Add File: b\n*** Move to: c\n"}, "tool_response": "ok"}),
        ),
        (
            "Stop",
            json!({"stop_hook_active": false, "last_assistant_message": null}),
        ),
    ];
    let gemini: &[(&str, Value)] = &[
        ("SessionStart", json!({"source": "startup"})),
        ("BeforeAgent", json!({"prompt": "do it"})),
        (
            "BeforeTool",
            json!({"tool_name": "run_shell_command", "tool_input": {"command": "make", "dir_path": "."}, "mcp_context": {}}),
        ),
        (
            "BeforeTool",
            json!({"tool_name": "replace", "tool_input": {"file_path": "TOP/a"}}),
        ),
        (
            "AfterTool",
            json!({"tool_name": "write_file", "tool_input": {"file_path": "TOP/a"}, "tool_response": {}}),
        ),
        (
            "AfterAgent",
            json!({"prompt": "do it", "prompt_response": "done", "stop_hook_active": false}),
        ),
        ("SessionEnd", json!({"reason": "exit"})),
    ];
    for (host, events) in [("claude", claude), ("codex", codex), ("gemini", gemini)] {
        both_ways(|user, top| {
            let mut played = Played::start(user, host, &[]);
            for (event, more) in events {
                let more =
                    serde_json::from_str(&more.to_string().replace("TOP", top)).expect("JSON");
                let said = played.sends(&payload(host, top, event, &more));
                let store = user.store();
                let expected = (*event == "SessionStart").then(|| {
                let text = format!(
                    "tenure: this session is {SESSION}@1 in the ledger {}",
                    store.display()
                );
                json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
            });
                assert_eq!(said, expected, "{host} {event} {more}");
            }
            let session = user.json(&format!("show {SESSION}"));
            assert_eq!(session["labels"], json!({"host": host}));
            let observed = user.list("log --kind observed");
            assert_eq!(observed.len(), 1, "{observed:?}");
            assert!(
                user.list("log")
                    .iter()
                    .all(|event| !event.to_string().contains("do it"))
            );
        });
    }
}

/// Denied in the host's own words, and in no word more: an answer with a key that it does not know lets the tool run.
#[test]
fn a_denial_is_the_hosts_minimal_object() {
    for host in ["claude", "codex", "gemini"] {
        let (user, top) = checkout();
        let mut played = Played::start(&user, host, &[]);
        played.sends(&payload(
            host,
            &top,
            "SessionStart",
            &json!({"source": "startup"}),
        ));
        user.play(&format!("adopt {SESSION} --force --reason mine --pid none"));
        let (event, tool) = match host {
            "gemini" => ("BeforeTool", "write_file"),
            "codex" => ("PreToolUse", "apply_patch"),
            _ => ("PreToolUse", "Write"),
        };
        let more = json!({"tool_name": tool, "tool_input": {"file_path": format!("{top}/a"), "command": "*** Add File: a"}});
        let mut said = played
            .sends(&payload(host, &top, event, &more))
            .expect("it is denied");
        let reason = match host {
            "gemini" => &mut said["reason"],
            _ => &mut said["hookSpecificOutput"]["permissionDecisionReason"],
        };
        let text = reason.take();
        assert!(
            text.as_str().is_some_and(|t| t.contains("was superseded")),
            "{text}"
        );
        let minimal = match host {
            "gemini" => json!({"decision": "deny", "reason": null}),
            _ => {
                json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": null}})
            }
        };
        assert_eq!(said, minimal, "{host}");
    }
}

/// Without `--host` the payload tells which host it is.
#[test]
fn the_host_is_found_out() {
    for host in ["claude", "codex", "gemini"] {
        let (user, top) = checkout();
        let mut played = Played::start(&user, "runner", &[]);
        played.sends(&payload(
            host,
            &top,
            "SessionStart",
            &json!({"source": "startup"}),
        ));
        assert_eq!(
            user.json(&format!("show {SESSION}"))["holder"]["engine"],
            host
        );
    }
}

/// What means nothing here is harmless: no output, no store.
#[test]
fn unknown_events_and_tools_that_only_read_open_nothing() {
    let (user, top) = checkout();
    let mut played = Played::start(&user, "claude", &[]);
    for (event, more) in [
        ("PreCompact", json!({"trigger": "auto"})),
        ("EventOfTomorrow", json!({"tool_name": 7})),
        (
            "PreToolUse",
            json!({"tool_name": "Read", "tool_input": {"file_path": "/etc/passwd"}}),
        ),
        ("PreToolUse", json!({"tool_name": 7})),
        ("SubagentStart", json!({})),
    ] {
        played.allows(&payload("claude", &top, event, &more));
    }
    assert!(!user.store().exists());
}
