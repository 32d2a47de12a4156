//! The tools of the Model Context Protocol, as a client meets them: a process that is asked, line by line, over its
//! standard input and output.

mod data;
mod hostile;
mod life;

use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::agents::checkout;
use crate::lines::Lines;
use crate::terminal::Terminal;

/// A client with its server.
struct Client {
    lines: Lines,
    asked: u64,
}

impl Client {
    /// Starts the server with the token in a file, or with none, and shakes hands.
    fn start(user: &Terminal, token: Option<&str>) -> Self {
        let mut client = Self::bare(user, token, &[]);
        let client_info = json!({"name": "test", "version": "1"});
        let begun = client.asks(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}),
        );
        assert_eq!(begun["result"]["serverInfo"]["name"], "tenure", "{begun}");
        client
            .lines
            .says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn bare(user: &Terminal, token: Option<&str>, args: &[&str]) -> Self {
        let mut command = user.command(&[&["mcp"], args].concat());
        if let Some(token) = token {
            command.env("TENURE_TOKEN_FILE", user.file(token));
        }
        let lines = Lines::start(command.stderr(Stdio::piped()));
        Self { lines, asked: 0 }
    }

    fn asks(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.lines.says(&line.to_string());
        let heard = self.lines.hears();
        assert_eq!(heard["id"], id, "{heard}");
        heard
    }

    /// Calls a tool that does what it is asked; its structured result.
    #[track_caller]
    fn calls(&mut self, tool: &str, arguments: Value) -> Value {
        let mut heard = self.asks("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(heard["result"]["isError"], false, "{tool}: {heard}");
        heard["result"]["structuredContent"].take()
    }

    /// Calls a tool that does not; what it says is wrong.
    #[track_caller]
    fn fails(&mut self, tool: &str, arguments: Value) -> Value {
        let mut heard = self.asks("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(heard["result"]["isError"], true, "{tool}: {heard}");
        heard["result"]["structuredContent"].take()
    }

    /// The text of a result.
    fn reads(&mut self, tool: &str, arguments: Value) -> String {
        let heard = self.asks("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = &heard["result"]["content"][0]["text"];
        text.as_str().expect("it has a text").to_owned()
    }

    /// Closes its end; how the server ended, and what it left to say on either stream.
    fn ends(mut self) -> (Option<i32>, String) {
        let status = self.lines.ends();
        let mut left = String::new();
        self.lines.from.read_to_string(&mut left).expect("it reads");
        let err = self.lines.child.stderr.as_mut().expect("a pipe");
        err.read_to_string(&mut left).expect("it reads");
        (status.code(), left)
    }
}

/// A sealed store: `api` has `d1` at `src`, `web` works at `src/a`; their tokens stand in files of their names.
fn sealed() -> Terminal {
    let (user, _) = checkout();
    user.play(
        "init --sealed\nregister api --pid none --token-file api\nregister web --pid none --token-file web
         dispatch login --to api --write repo/src --body text\ndispatch style --to web --write repo/src/a
         accept d2 --as @web\nsend hello --to api --as @web",
    );
    user
}

/// What the command prints, as a tool answers it.
fn printed(user: &Terminal, line: &str, token: &str) -> Vec<Value> {
    let mut command = user.command(&["--json"]);
    command.args(line.split(' '));
    Terminal::finish(command.env("TENURE_TOKEN_FILE", user.file(token))).objects()
}

/// At most twelve tools, named for what they do, with schemas and hints; none takes a token, a process, a store or a file
/// to read, and none that only reads appends.
#[test]
fn the_tools_are_those_of_one_session() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    let listed = client.asks("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    assert!((8..=12).contains(&tools.len()), "{}", tools.len());
    let mut reading = Vec::new();
    for tool in tools {
        let name = tool["name"].as_str().expect("a name");
        let words: Vec<&str> = name.split('_').collect();
        let lower = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
        assert!(words.len() == 2 && words.iter().all(lower), "{name}");
        assert!(!name.contains("tenure"), "{name}");
        for text in [&tool["description"], &tool["title"]] {
            assert!(text.as_str().is_some_and(|text| text.len() > 5), "{tool}");
        }
        let hints = &tool["annotations"];
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            assert!(hints[hint].is_boolean(), "{name} has no {hint}");
        }
        if hints["readOnlyHint"] == true {
            reading.push(name.to_owned());
        }
        let input = &tool["inputSchema"];
        assert_eq!(
            (&input["type"], &input["additionalProperties"]),
            (&json!("object"), &json!(false))
        );
        for (argument, about) in input["properties"].as_object().expect("an object") {
            let never = ["token", "as", "pid", "store", "file", "token_file", "actor"];
            assert!(
                !never.contains(&argument.as_str()),
                "{name} takes {argument}"
            );
            assert!(about["description"].is_string(), "{name}: {argument}");
        }
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let keyed = input["properties"]["idempotency_key"].is_object();
        assert_eq!(keyed, hints["readOnlyHint"] == false, "{name}");
    }
    assert_eq!(
        reading,
        [
            "check_authority",
            "list_sessions",
            "show_session",
            "shared_checkout",
            "list_work",
            "read_inbox",
            "ask_who"
        ]
    );
    let before = user.list("log").len();
    for tool in &reading {
        let arguments = match tool.as_str() {
            "show_session" | "ask_who" => json!({"subject": "api"}),
            _ => json!({}),
        };
        client.calls(tool, arguments);
    }
    assert_eq!(user.list("log").len(), before);
}

/// The structured result is the object that `--json` prints, or all of them where it prints a list.
#[test]
fn a_tool_answers_what_its_command_prints() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    for (tool, arguments, line) in [
        ("check_authority", json!({}), "check"),
        ("show_session", json!({"subject": "web"}), "show web"),
        ("show_session", json!({"subject": "d1"}), "show d1"),
        ("show_session", json!({"subject": "e3"}), "show e3"),
    ] {
        let expected = printed(&user, line, "api");
        assert_eq!(vec![client.calls(tool, arguments)], expected, "{line}");
    }
    for (tool, arguments, line) in [
        ("list_sessions", json!({"all": true}), "sessions --all"),
        ("list_sessions", json!({"all": false}), "sessions"),
        ("shared_checkout", json!({}), "shared"),
        (
            "shared_checkout",
            json!({"path": "repo/src"}),
            "shared --path repo/src",
        ),
        ("list_work", json!({}), "work"),
        (
            "list_work",
            json!({"session": "web", "all": true}),
            "work web --all",
        ),
        ("list_work", json!({"item": "login"}), "work --item login"),
        ("read_inbox", json!({}), "inbox api"),
        (
            "read_inbox",
            json!({"pending": true}),
            "inbox api --pending",
        ),
        (
            "ask_who",
            json!({"subject": "item:style"}),
            "who item:style",
        ),
        (
            "ask_who",
            json!({"subject": "api", "at": "3"}),
            "who api --at 3",
        ),
        ("ask_who", json!({"subject": "item:none"}), "who item:none"),
    ] {
        let expected = json!({ "items": printed(&user, line, "api") });
        assert_eq!(client.calls(tool, arguments), expected, "{line}");
    }
}

/// A write with a key, and the same again by the tool and by its command: the first answer, repeated.
#[test]
fn a_key_is_one_key_for_tool_and_command() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    for (tool, mut arguments, line) in [
        (
            "accept_dispatch",
            json!({"dispatch": "d1"}),
            Some("accept d1"),
        ),
        (
            "note_session",
            json!({"text": "hello", "on": "d1"}),
            Some("note hello --on d1"),
        ),
        ("ack_envelope", json!({"envelope": "e1"}), Some("ack e1")),
        (
            "report_dispatch",
            json!({"dispatch": "d1", "outcome": "done", "body": "it is"}),
            None,
        ),
    ] {
        arguments["idempotency_key"] = json!(tool);
        let mut done = client.calls(tool, arguments.clone());
        assert_ne!(done["repeated"], true, "{tool}: {done}");
        let mut again = client.calls(tool, arguments);
        // Of an accept only the position and the receipt tell that it is the first answer again.
        if tool != "accept_dispatch" {
            done["repeated"] = json!(true);
        }
        assert_eq!(again, done, "{tool}");
        if let Some(line) = line {
            let line = format!("{line} --idempotency-key {tool}");
            again = printed(&user, &line, "api").remove(0);
            assert_eq!(again, done, "{line}");
        }
    }
    let other = client.fails(
        "note_session",
        json!({"text": "other", "idempotency_key": "note_session"}),
    );
    assert_eq!(other["code"], "key-reused");
    user.play("dispatch more --to api");
    let declined = client.calls(
        "decline_dispatch",
        json!({"dispatch": "d3", "reason": "no time"}),
    );
    assert_eq!(declined["state"], "declined");
    assert_eq!(user.json("show d3")["reason"], "no time");
}

/// A01, A04, E08: of two agents one is superseded while it lives. Its next write is an error result with the refusal: who,
/// when, and what to do; nothing of it is in the log, what it carried is kept, and it can still read. The new token stands
/// in the very file that the first was started with: what was lost is not had back by looking.
#[test]
fn whoever_is_superseded_writes_no_more_and_is_told() {
    let user = sealed();
    let mut first = Client::start(&user, Some("api"));
    first.calls("accept_dispatch", json!({"dispatch": "d1"}));
    user.args(&[
        "adopt",
        "api",
        "--force",
        "--reason",
        "mine now",
        "--pid",
        "none",
        "--token-file",
        "api",
    ])
    .ended(0);
    let before = user.list("log").len();
    let report = json!({"dispatch": "d1", "outcome": "done", "body": "all green"});
    let refused = first.fails("report_dispatch", report.clone());
    assert_eq!(refused["schema"], "tenure.refusal.v1");
    assert_eq!(
        (&refused["code"], &refused["presented"], &refused["current"]),
        (&json!("stale-generation"), &json!("api@1"), &json!("api@2"))
    );
    assert_eq!(refused["relation"], "superseded");
    assert!(
        refused["lost"].to_string().contains("mine now"),
        "{refused}"
    );
    assert!(refused["since"]["time"].is_string() && refused["holder"]["actor"] == "tester");
    assert!(refused["next"][0]["command"].is_string(), "{refused}");
    let kept = user.json(&format!("show {}", refused["id"].as_str().expect("an id")));
    assert_eq!(kept["body"], "all green");
    let events = user.list("log");
    let after: Vec<&Value> = events[before..]
        .iter()
        .map(|event| &event["kind"])
        .collect();
    assert!(after.iter().all(|kind| **kind == "refused"), "{after:?}");
    // It lives, and sees what became of it.
    let checked = first.calls("check_authority", json!({}));
    assert_eq!(
        (&checked["current"], &checked["relation"]),
        (&json!(false), &json!("superseded"))
    );
    assert!(
        first
            .reads("check_authority", json!({}))
            .starts_with("This session is held by somebody else now")
    );
    let mut second = Client::start(&user, Some("api"));
    second.calls("report_dispatch", report);
    assert_eq!(first.ends(), (Some(0), String::new()));
}

/// Calls of every tool that writes.
fn writes() -> [(&'static str, Value); 5] {
    [
        ("accept_dispatch", json!({"dispatch": "d1"})),
        ("decline_dispatch", json!({"dispatch": "d1", "reason": "x"})),
        (
            "report_dispatch",
            json!({"dispatch": "d1", "outcome": "done"}),
        ),
        ("ack_envelope", json!({"envelope": "e1"})),
        ("note_session", json!({"text": "late"})),
    ]
}

/// Every tool that writes is fenced, whatever ended the session: a takeover, or a retirement.
#[test]
fn every_tool_that_writes_is_fenced() {
    for (line, code) in [
        (
            "adopt api --force --reason x --pid none --token-file api",
            "stale-generation",
        ),
        ("retire api --force --reason x", "retired"),
    ] {
        let user = sealed();
        let mut client = Client::start(&user, Some("api"));
        client.calls("note_session", json!({"text": "in time"}));
        user.play(line);
        for (tool, arguments) in writes() {
            assert_eq!(client.fails(tool, arguments)["code"], code, "{tool}");
        }
        assert_eq!(user.list("log --kind noted").len(), 1);
    }
}

/// Without a token it reads; what is about its session or writes says what to do.
#[test]
fn without_a_token_it_only_reads() {
    let user = sealed();
    let mut client = Client::start(&user, None);
    client.calls("list_sessions", json!({}));
    client.calls("list_work", json!({"session": "api"}));
    client.calls("shared_checkout", json!({"path": "repo"}));
    client.calls("ask_who", json!({"subject": "api"}));
    let before = user.list("log").len();
    let about_it = ["check_authority", "shared_checkout", "read_inbox"];
    let about_it = about_it.map(|tool| (tool, json!({})));
    for (tool, arguments) in about_it.into_iter().chain(writes()) {
        let refused = client.fails(tool, arguments);
        assert_eq!(refused["code"], "missing-token", "{tool}");
        let command = refused["next"][0]["command"].as_str().expect("a command");
        assert!(command.contains("TENURE_TOKEN_FILE"), "{command}");
    }
    assert_eq!(user.list("log").len(), before);
}

/// Only a sealed store is served, and only with a token that is one; why not is said on standard error.
#[test]
fn what_it_cannot_be_started_with_is_said() {
    let user = Terminal::new();
    assert_eq!(user.run("mcp").code, 66, "there is no store");
    assert!(!user.store().exists());
    user.play("register api --pid none");
    let ran = user.run("mcp").ended(64);
    assert!(ran.err.contains("sealed") && ran.out.is_empty(), "{ran:?}");
    let user = sealed();
    let secret = std::fs::read_to_string(user.file("api")).expect("it is there");
    for args in [
        &["mcp", "--as", secret.trim()][..],
        &["mcp", "--as", "api"],
        &["mcp", "--as", "@missing"],
    ] {
        let ran = user.args(args);
        assert!(ran.code >= 64 && ran.out.is_empty(), "{ran:?}");
        assert!(!ran.err.contains(secret.trim()), "{ran:?}");
    }
}

/// The protocol's own kit, with its newest version of the protocol and the one before: tools, equal answers, and a
/// takeover.
#[test]
fn the_official_kit_speaks_with_it() {
    let Some(python) = crate::sdk::python() else {
        return;
    };
    let user = sealed();
    let script = user.file("client.py");
    std::fs::write(&script, include_str!("mcp/sdk_client.py")).expect("it writes");
    let mut command = Command::new(python);
    for (key, value) in user.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command.arg(script).arg(env!("CARGO_BIN_EXE_tenure"));
    let ran = Terminal::finish(command.arg(user.path())).ended(0);
    let expected = "auto tenure 2026-07-28 12\nlegacy tenure 2025-11-25 12\n\
                    reading check_authority list_sessions show_session shared_checkout list_work read_inbox ask_who\n\
                    ending decline_dispatch report_dispatch\nequal 9 of 9\naccepted d1 web\nnoted False\nnoted True\n\
                    wrong -32602\nwrong -32602\nstale True stale-generation api@1 api@2 superseded\n\
                    current False\nreported done\nnotes 1\n";
    assert_eq!(ran.out, expected, "{}", ran.err);
}

/// Without the feature, none of the crates that only it needs is in the tree.
#[test]
fn without_the_feature_its_crates_are_left_out() {
    let tree = |more: &[&str]| {
        let ran = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--package",
                "tenure",
                "--edges",
                "normal",
            ])
            .args(["--prefix", "none"])
            .args(more)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).expect("UTF-8")
    };
    let has = |tree: &str, name: &str| tree.lines().any(|line| line.starts_with(name));
    let (with, without) = (tree(&[]), tree(&["--no-default-features"]));
    for name in ["rmcp ", "schemars ", "chrono ", "tokio-util ", "tracing "] {
        assert!(has(&with, name) && !has(&without, name), "{name}");
    }
    assert!(has(&without, "tokio "));
}
