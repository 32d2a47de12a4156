//! A client and an agent of the Agent Client Protocol, with the program in between: processes of their own.

use std::io::BufRead;
use std::process::Command;

use serde_json::{Value, json};

use crate::agents::checkout;
use crate::lines::Lines;
use crate::terminal::Terminal;

const AGENT: &str = include_str!("acp/agent.py");
const REFUSED: i64 = -32050;

/// A client with its agent.
struct Client {
    lines: Lines,
    asked: u64,
}

impl Client {
    fn start(user: &Terminal, before: &[&str], env: &[(&str, &str)]) -> Self {
        let script = user.file("agent.py");
        std::fs::write(&script, AGENT).expect("it writes");
        let script = script.to_str().expect("UTF-8");
        let args = [&["acp"], before, &["--", "python3", script]].concat();
        let lines = Lines::start(user.command(&args).envs(env.iter().copied()));
        Self { lines, asked: 0 }
    }

    /// Asks, answers what the agent asks meanwhile, and gives the answer.
    fn asks(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.lines.says(&line.to_string());
        loop {
            let heard = self.lines.hears();
            if heard["id"] == id && heard.get("method").is_none() {
                return heard;
            }
            let answer =
                json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"seen": heard["params"]}});
            self.lines.says(&answer.to_string());
        }
    }

    #[track_caller]
    fn gets(&mut self, method: &str, params: Value) -> Value {
        let mut heard = self.asks(method, params);
        assert!(heard["result"].is_object(), "{heard}");
        heard["result"].take()
    }

    #[track_caller]
    fn is_refused(&mut self, method: &str, params: Value) -> Value {
        let mut heard = self.asks(method, params);
        assert_eq!(heard["error"]["code"], REFUSED, "{heard}");
        assert!(text(&heard["error"]["message"]).starts_with("tenure: "));
        heard["error"].take()
    }

    fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.asks(
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}),
        )
    }

    fn ends(mut self) -> i32 {
        self.lines.ends().code().unwrap_or(-1)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn holder(user: &Terminal, session: &str) -> u64 {
    let shown = user.json(&format!("show {session}"));
    shown["holder"]["pid"].as_u64().expect("somebody holds it")
}

/// A01, D1: each session of the protocol is one of the ledger, held by the agent's own process, and what goes on says
/// under which generation. A second client cannot load it while the first lives.
#[test]
fn a_session_of_the_protocol_is_one_of_the_ledger() {
    let (user, top) = checkout();
    let mut first = Client::start(
        &user,
        &["--engine", "claude"],
        &[("TENURE_SESSION", "outer")],
    );
    let answer = first.gets("initialize", json!({"protocolVersion": 1}));
    assert_eq!(answer["protocolVersion"], 1);
    let begun = first.gets("session/new", json!({"cwd": top, "mcpServers": []}));
    let meta = &begun["_meta"]["tenure"];
    assert_eq!(
        (&meta["session"], &meta["generation"], &meta["token"]),
        (&json!("sess-1"), &json!(1), &json!("sess-1@1"))
    );
    let shown = user.json("show sess-1");
    assert_eq!(shown["labels"], json!({"host": "acp"}));
    assert_eq!(shown["holder"]["engine"], "claude");
    assert_eq!(shown["checkout"], json!(top), "{shown}");
    assert_ne!(holder(&user, "sess-1"), u64::from(first.lines.child.id()));

    let told = first.prompt("sess-1", "env");
    assert_eq!(
        told["result"]["told"],
        json!(["TENURE_ACP", "TENURE_ACTOR", "TENURE_STORE"])
    );
    assert_eq!(told["result"]["sent"]["_meta"]["tenure"]["generation"], 1);

    let mut second = Client::start(&user, &[], &[]);
    let held = second.is_refused("session/load", json!({"sessionId": "sess-1", "cwd": top}));
    assert_eq!(held["data"]["tenure"]["schema"], "tenure.refusal.v1");
    assert_eq!(held["data"]["tenure"]["code"], "held");
    assert!(text(&held["message"]).contains(&format!("pid {}", holder(&user, "sess-1"))));
    // It goes on for the first, and ends with it. What an agent says that is no message goes on too.
    let noise = json!({"id": 99, "method": "session/prompt",
        "params": {"sessionId": "sess-1", "prompt": [{"text": "noise"}]}});
    first.lines.says(&noise.to_string());
    let mut line = String::new();
    first.lines.from.read_line(&mut line).expect("it reads");
    assert_eq!(line, "this is no JSON\n");
    assert_eq!(first.lines.hears()["result"]["stopReason"], "end_turn");
    assert_eq!(first.ends(), 0);
    let answer = second.gets("session/load", json!({"sessionId": "sess-1", "cwd": top}));
    assert_eq!(answer["_meta"]["tenure"]["generation"], 2);
}

/// A04, E08: who was superseded is stopped at its next prompt and its next write, is told by whom, and goes on once it is
/// given back.
#[test]
fn whoever_was_superseded_goes_no_further() {
    let (user, top) = checkout();
    let mut agent = Client::start(&user, &[], &[]);
    agent.gets("session/new", json!({"cwd": top}));
    let pid = holder(&user, "sess-1").to_string();
    let file = format!("{top}/a.rs");
    let told = agent.prompt("sess-1", &format!("write {file}"));
    assert_eq!(
        told["result"]["told"]["result"]["seen"]["_meta"]["tenure"]["generation"],
        1
    );
    let other = user.args(&[
        "adopt",
        "sess-1",
        "--force",
        "--reason",
        "mine\nnow",
        "--pid",
        "none",
    ]);
    other.ended(0);
    let refused = agent.is_refused(
        "session/prompt",
        json!({"sessionId": "sess-1", "prompt": [{"text": "env"}]}),
    );
    let message = text(&refused["message"]);
    for part in [
        "stale-generation: sess-1@1 was superseded; sess-1@2 is current",
        "by tester: \"mine\\nnow\"",
        &format!("adopt sess-1 --force --reason TEXT --pid {pid}"),
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // Methods that nobody knows yet are fenced too; to stop is always allowed.
    agent.is_refused(
        "session/set_mode",
        json!({"sessionId": "sess-1", "modeId": "x"}),
    );
    agent.is_refused("session/later", json!({"sessionId": "sess-1"}));
    agent.gets("session/cancel", json!({"sessionId": "sess-1"}));
    agent.gets("session/list", json!({}));
    let back = user.args(&[
        "adopt", "sess-1", "--force", "--reason", "back", "--pid", &pid,
    ]);
    back.ended(0);
    let told = agent.prompt("sess-1", "env");
    assert_eq!(told["result"]["sent"]["_meta"]["tenure"]["generation"], 3);
}

/// What the agent asks of the client while it is superseded never reaches the client.
#[test]
fn what_a_superseded_agent_asks_is_answered_for_the_client() {
    let (user, top) = checkout();
    let mut agent = Client::start(&user, &[], &[]);
    let file = format!("{top}/a.rs");
    // In the middle of a turn: the prompt itself was asked while it was current.
    for (session, asking) in [("sess-1", "write"), ("sess-2", "run")] {
        agent.gets("session/new", json!({"cwd": top}));
        let adopt = format!("adopt {session} --force --reason x --pid none");
        let lost = agent.prompt(
            session,
            &format!("lose {asking} '{}' {adopt}", env!("CARGO_BIN_EXE_tenure")),
        );
        let told = &lost["result"]["told"];
        assert_eq!(told["error"]["code"], REFUSED, "{lost}");
        assert!(text(&told["error"]["message"]).contains(&format!("{session}@2 is current")));
    }
    // A turn of another session of the same agent goes on.
    agent.gets("session/new", json!({"cwd": top}));
    let told = agent.prompt("sess-3", &format!("write {file}"));
    assert!(told["result"]["told"]["result"].is_object(), "{told}");
    let observed = user.list("log --kind observed");
    assert_eq!(observed.len(), 1, "only what was written: {observed:?}");
    assert!(observed[0].to_string().contains("a.rs"), "{observed:?}");
}

/// DSC-11: what applies at a path is heard before a file is written there, and the same again is done.
#[test]
fn who_works_at_a_path_is_told_before_it_is_written() {
    let (user, top) = checkout();
    user.args(&["policy", "set", "--scope", &top, "warn-once"])
        .ended(0);
    let mut one = Client::start(&user, &[], &[]);
    one.gets("session/new", json!({"cwd": top}));
    let mut two = Client::start(&user, &[], &[("PREFIX", "other")]);
    two.gets("session/new", json!({"cwd": top}));
    let write = format!("write {top}/a.rs");
    let first = two.prompt("other-1", &write);
    let second = two.prompt("other-1", &write);
    let told = |answer: &Value| answer["result"]["told"].clone();
    let warned = told(&first);
    assert_eq!(warned["error"]["code"], REFUSED, "{warned}");
    assert!(
        text(&warned["error"]["message"]).contains("sess-1"),
        "{warned}"
    );
    assert!(told(&second)["result"].is_object(), "{second}");
}

/// BRN-21: a fork is a branch of its source, and its source is fenced first.
#[test]
fn a_fork_is_a_branch() {
    let (user, top) = checkout();
    let mut agent = Client::start(&user, &[], &[]);
    agent.gets("session/new", json!({"cwd": top}));
    let forked = agent.gets("session/fork", json!({"sessionId": "sess-1", "cwd": top}));
    assert_eq!(forked["_meta"]["tenure"]["session"], "sess-2");
    assert_eq!(user.json("show sess-2")["branch_of"], "sess-1");
}

/// REG-19: what is closed is given back, and retired when nothing was done in it; what the agent did not load is not
/// kept.
#[test]
fn what_ends_is_given_back() {
    let (user, top) = checkout();
    let mut agent = Client::start(&user, &[], &[]);
    agent.gets("session/new", json!({"cwd": top}));
    agent.gets("session/close", json!({"sessionId": "sess-1"}));
    assert_eq!(user.json("show sess-1")["state"], "retired");
    let absent = agent.asks("session/load", json!({"sessionId": "absent-1", "cwd": top}));
    assert_eq!(
        absent["error"]["code"], -32002,
        "the agent's own error: {absent}"
    );
    assert_eq!(user.json("show absent-1")["state"], "retired");
    agent.gets("session/new", json!({"cwd": top}));
    let file = format!("{top}/b.rs");
    agent.prompt("sess-2", &format!("write {file}"));
    agent
        .lines
        .says(&json!({"jsonrpc": "2.0", "method": "exit", "params": {"code": 7}}).to_string());
    assert_eq!(agent.ends(), 7, "the agent's own code");
    let left = user.json("show sess-2");
    assert_eq!(
        (&left["state"], &left["holder"]),
        (&json!("active"), &Value::Null),
        "{left}"
    );
}

/// LIV-17: a hook below the agent acts for the process that the proxy holds sessions for.
#[test]
fn a_hook_below_acts_for_the_agent() {
    let (user, top) = checkout();
    let mut agent = Client::start(&user, &[], &[]);
    agent.gets("session/new", json!({"cwd": top}));
    let payload = json!({"hook_event_name": "PreToolUse", "session_id": "sess-1", "cwd": top,
        "tool_name": "Write", "tool_input": {"file_path": format!("{top}/a.rs")}});
    let file = user.file("payload.json");
    std::fs::write(&file, payload.to_string()).expect("it writes");
    let hook = format!(
        "hook '{}' hook --host claude < {}",
        env!("CARGO_BIN_EXE_tenure"),
        file.display()
    );
    let told = agent.prompt("sess-1", &hook);
    assert_eq!(told["result"]["told"], "", "it is allowed: {told}");
    assert_eq!(user.json("show sess-1")["generation"], 1);
}

/// What cannot be read does not go on, and says why with JSON-RPC's own codes; the next message is heard.
#[test]
fn what_cannot_be_judged_does_not_go_on() {
    let (user, top) = checkout();
    let mut agent = Client::start(&user, &[], &[]);
    agent.gets("session/new", json!({"cwd": top}));
    let prompt = r#"{"id":9,"method":"session/prompt","params":{"sessionId":"sess-1","prompt":[{"text":"env"}]}}"#;
    for (line, code) in [
        ("{\"id\":9,", -32700),
        (&*format!("[{prompt}]"), -32600),
        (
            r#"{"id":9,"method":"session/prompt","params":{"sessionId":7}}"#,
            -32602,
        ),
        (r#"{"id":9,"method":7}"#, -32600),
    ] {
        agent.lines.says(line);
        let heard = agent.lines.hears();
        assert_eq!(heard["error"]["code"], code, "{line}: {heard}");
    }
    let long = format!("{}\n{prompt}", "x".repeat((64 << 20) + 1));
    agent.lines.says(&long);
    assert_eq!(agent.lines.hears()["error"]["code"], -32600);
    assert_eq!(agent.lines.hears()["result"]["stopReason"], "end_turn");
}

/// S5: in a sealed store the agent's process acts with the secret of its grant, and no message has it.
#[test]
fn in_a_sealed_store_no_message_has_the_secret() {
    let (user, top) = checkout();
    let store = user.store();
    user.args(&["init", "--sealed", store.to_str().expect("UTF-8")])
        .ended(0);
    let mut agent = Client::start(&user, &[], &[]);
    let begun = agent.gets("session/new", json!({"cwd": top}));
    let told = agent.prompt("sess-1", &format!("write {top}/a.rs"));
    assert!(told["result"]["told"]["result"].is_object(), "{told}");
    assert_eq!(user.list("log --kind observed").len(), 1, "with its secret");
    for heard in [&begun, &told] {
        assert!(!heard.to_string().contains("sess-1@1~"), "{heard}");
    }
    assert_eq!(begun["_meta"]["tenure"]["token"], "sess-1@1");
    agent.gets("session/close", json!({"sessionId": "sess-1"}));
    assert_eq!(
        user.json("show sess-1")["holder"],
        Value::Null,
        "given back with its secret"
    );
}

/// The protocol's own kit on both ends hears nothing but the protocol, and finds the generation where it belongs.
#[test]
fn the_official_kit_speaks_through_it() {
    let Some(python) = crate::sdk::python() else {
        return;
    };
    let (user, top) = checkout();
    let kept = |name: &str, text: &str| {
        let file = user.file(name);
        std::fs::write(&file, text).expect("it writes");
        file
    };
    let client = kept("client.py", include_str!("acp/sdk_client.py"));
    let agent = kept("agent.py", include_str!("acp/sdk_agent.py"));
    let mut command = Command::new(python);
    for (key, value) in user.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command.arg(client).arg(env!("CARGO_BIN_EXE_tenure"));
    let ran = Terminal::finish(command.arg(agent).arg(top)).ended(0);
    let expected = "loads True\nloads True\nbegun sdk-1 sdk-1@1\nupdate sdk-1 generation 1\n\
                    write a.txt written 1\nstopped end_turn\nload -32050 held\nloaded 2\n\
                    prompt -32050 stale-generation\nupdate sdk-1 generation 2\n\
                    write a.txt written 2\nstopped end_turn\n";
    assert_eq!(ran.out, expected, "{}", ran.err);
}

/// GIT-3: what follows when the ledger cannot be asked is said beforehand.
#[test]
fn a_ledger_that_cannot_be_asked_is_answered_by_the_policy() {
    for (policy, goes_on) in [("allow", true), ("deny", false)] {
        let (user, top) = checkout();
        let mut agent = Client::start(&user, &["--on-error", policy], &[]);
        agent.gets("session/new", json!({"cwd": top}));
        // An id that makes no name: nothing can be asked about it.
        let id = "x".repeat(300);
        let answer = agent.prompt(&id, "env");
        assert_eq!(answer["result"].is_object(), goes_on, "{answer}");
        if !goes_on {
            let message = text(&answer["error"]["message"]);
            assert!(message.contains("on-error deny"), "{message}");
        }
    }
    let user = Terminal::new();
    std::fs::create_dir(user.store()).expect("it can be made");
    std::fs::write(user.file("store/other"), "x").expect("it writes");
    let ran = user.args(&["acp", "--", "sh", "-c", "echo started"]);
    assert!(ran.code != 0 && ran.out.is_empty(), "{ran:?}");
}
