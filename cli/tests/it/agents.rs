//! Agent hosts, played by processes of their own: what they send, what they are answered, and who is fenced.

mod golden;
mod host;
mod install;
mod policy;
mod story;

use std::process::Command;

use serde_json::json;

use crate::served::Server;
use crate::terminal::Terminal;
pub use host::Played;

/// A user with a checkout.
pub fn checkout() -> (Terminal, String) {
    let user = Terminal::new();
    let made = Command::new("git")
        .args(["init", "--quiet", "repo"])
        .current_dir(user.path())
        .status();
    assert!(made.expect("git runs").success());
    let top = user.file("repo").canonicalize().expect("it is there");
    (user, top.to_str().expect("UTF-8").to_owned())
}

/// A story on the files, and with a server that answers the hooks.
pub fn both_ways(story: impl Fn(&Terminal, &str)) {
    let (user, top) = checkout();
    story(&user, &top);
    let (user, top) = checkout();
    let _server = Server::start(&user);
    story(&user, &top);
}

/// A01, A04, E08, D1, D2: two hosts resume one session. The second is told who holds it and is stopped at its next tool
/// call; once a person hands it over, the first is stopped at its next one: by whom, when, why, and the way back.
#[test]
fn of_two_hosts_on_one_session_one_is_fenced() {
    both_ways(|user, top| {
        let mut first = Played::start(user, "claude", &[]);
        let mut second = Played::start(user, "claude", &[]);
        let start = |source| json!({"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": top, "source": source});
        let write = json!({"hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": top,
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/a.rs"), "content": "x"}});
        assert!(
            first
                .context(&start("startup"))
                .contains("this session is s-1@1")
        );
        first.allows(&write);
        let told = second.context(&start("resume"));
        assert!(
            told.contains("held") && told.contains(&format!("pid {}", first.pid())),
            "{told}"
        );
        let denied = second.denies(&write);
        assert!(
            denied.contains(&format!("claude, pid {}", first.pid())),
            "{denied}"
        );
        let way = format!("adopt s-1 --force --reason TEXT --pid {}", second.pid());
        assert!(denied.contains(&way), "{denied}");
        first.allows(&write);

        let adopt = |pid: u32, why: &str| {
            let pid = pid.to_string();
            let args = ["adopt", "s-1", "--force", "--reason", why, "--pid", &pid];
            user.args(&args).ended(0);
        };
        adopt(second.pid(), "the first one\nhangs");
        // The one it took over from may still be writing, and it is told so.
        assert!(second.context(&write).contains("formerly at generation 1"));
        let denied = first.denies(&write);
        for part in [
            "stale-generation: s-1@1 was superseded; s-1@2 is current".to_owned(),
            format!("pid {}", second.pid()),
            "adopted by force at ".to_owned(),
            "by tester: \"the first one\\nhangs\"".to_owned(),
            format!("adopt s-1 --force --reason TEXT --pid {}", first.pid()),
        ] {
            assert!(denied.contains(&part), "{part}: {denied}");
        }
        // Looking takes nothing back, at no event but a start, and not there while the other lives.
        let same = |event: &str| json!({"hook_event_name": event, "session_id": "s-1", "cwd": top, "prompt": "go on"});
        assert!(
            first
                .context(&same("UserPromptSubmit"))
                .contains("s-1@2 is")
        );
        assert!(first.says(&same("Stop")).contains("superseded"));
        assert!(first.context(&start("compact")).contains("superseded"));
        assert!(first.context(&start("resume")).contains("held"));
        first.denies(&write);
        second.allows(&write);
        adopt(first.pid(), "it is back");
        first.runs(&write);
        second.denies(&write);
    });
}

/// A resumed session whose host was killed is taken over at once; nobody has to force anything.
#[test]
fn a_dead_host_is_followed_at_once() {
    both_ways(|user, top| {
        let start = json!({"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": top, "source": "resume"});
        let look = json!({"hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": top,
        "tool_name": "Bash", "tool_input": {"command": "ls"}});
        let mut first = Played::start(user, "claude", &[]);
        first.context(&start);
        first.kill();
        let mut second = Played::start(user, "claude", &[]);
        assert!(second.context(&start).contains("s-1@2"));
        second.allows(&look);
        let session = user.json("show s-1");
        assert_eq!(session["holder"]["pid"], second.pid());
        assert_eq!(session["holder"]["chosen"], "declared");
        assert_eq!(session["labels"], json!({"host": "claude"}));
    });
}

/// Also a process that has no name of a host is one: the one that runs the hooks, not the shell in between.
#[test]
fn a_host_without_a_name_is_the_process_that_stays() {
    both_ways(|user, top| {
        let mut host = Played::start(user, "runner", &[]);
        host.context(&json!({"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": top, "source": "startup"}));
        assert_eq!(user.json("show s-1")["holder"]["pid"], host.pid());
    });
}

/// REG-15: the adapter is told its new number, in its file, as a whole; whoever keeps the old one is refused.
#[test]
fn the_token_file_follows_the_grant() {
    both_ways(|user, top| {
        let file = user.file("token");
        let path = file.to_str().expect("UTF-8");
        user.play(&format!("register api --pid none --token-file {path}"));
        let mut host = Played::start(
            user,
            "claude",
            &[("TENURE_SESSION", "api"), ("TENURE_TOKEN_FILE", path)],
        );
        let write = json!({"hook_event_name": "PreToolUse", "session_id": "s-9", "cwd": top,
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/a")}});
        host.allows(&write);
        user.play("adopt api --force --reason other --pid none");
        host.denies(&write);
        let pid = host.pid().to_string();
        user.args(&["adopt", "api", "--force", "--reason", "back", "--pid", &pid])
            .ended(0);
        host.allows(&write);
        assert_eq!(
            std::fs::read_to_string(&file).expect("it is there"),
            "api@3\n"
        );
        user.run(&format!("note x --as @{path}")).ended(0);
        user.run("note x --as api@1").ended(10);
    });
}

/// REG-19: a session that did nothing is retired with its host; another one is given back, with all that waits for it, and
/// followed without force while its host lives on.
#[test]
fn an_ended_session_is_given_back_and_a_blank_one_is_gone() {
    both_ways(|user, top| {
        let mut host = Played::start(user, "claude", &[]);
        let event = |name: &str, id: &str| json!({"hook_event_name": name, "session_id": id, "cwd": top, "source": "startup", "reason": "clear"});
        host.context(&event("SessionStart", "blank"));
        host.allows(&event("SessionEnd", "blank"));
        assert_eq!(user.json("show blank")["state"], "retired");
        assert!(user.list("sessions").is_empty());

        host.context(&event("SessionStart", "work"));
        user.play("send please --to work");
        host.allows(&event("SessionEnd", "work"));
        let session = user.json("show work");
        assert_eq!(
            (&session["state"], &session["holder"]),
            (&json!("active"), &json!(null))
        );
        let mut next = Played::start(user, "claude", &[]);
        let greeting = next.context(&event("SessionStart", "work"));
        assert!(
            greeting.contains("work@2") && greeting.contains("\"please\""),
            "{greeting}"
        );
        // What was told is delivered, and told once.
        next.allows(&event("UserPromptSubmit", "work"));
        // A tool that still runs in the session that its own host ended takes it up again, if nobody else did.
        host.context(&event("SessionStart", "again"));
        user.play("send please --to again");
        host.allows(&event("SessionEnd", "again"));
        host.runs(
            &json!({"hook_event_name": "PreToolUse", "session_id": "again", "cwd": top,
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/a")}}),
        );
        assert_eq!(user.json("show again")["generation"], 2);
        // What an operator ended is ended.
        user.play("retire again --force --reason stop");
        host.denies(
            &json!({"hook_event_name": "PreToolUse", "session_id": "again", "cwd": top,
        "tool_name": "Bash", "tool_input": {"command": "ls"}}),
        );
    });
}

/// Agents below are children of the tree, under its holder, and in nobody's way.
#[test]
fn agents_below_are_children_of_the_tree() {
    both_ways(|user, top| {
        let mut host = Played::start(user, "claude", &[]);
        let event = |name: &str| {
            json!({"hook_event_name": name, "session_id": "s-1", "cwd": top,
        "source": "startup", "agent_id": "a1b2", "agent_type": "Explore", "agent_transcript_path": "/x"})
        };
        host.context(&event("SessionStart"));
        host.allows(&event("SubagentStart"));
        let child = user.json("show s-1/a1b2");
        assert_eq!(
            (&child["parent"], &child["tree"]),
            (&json!("s-1"), &json!("s-1"))
        );
        assert_eq!(
            child["labels"],
            json!({"agent": "Explore", "host": "claude"})
        );
        host.allows(&json!({"hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": top, "agent_id": "a1b2",
        "tool_name": "Edit", "tool_input": {"file_path": format!("{top}/a")}}));
        host.allows(&event("SubagentStop"));
        assert_eq!(user.json("show s-1/a1b2")["state"], "retired");
        // Both name sessions that are not there any more: nothing happens.
        host.allows(&event("SubagentStop"));
    });
}
