//! Lines that are no messages, and messages that make no sense: each is told so, and the next is heard.

use std::io::Write;

use serde_json::{Value, json};

use super::{Client, sealed};

fn initialize() -> Value {
    let info = json!({"name": "test", "version": "1"});
    json!({"jsonrpc": "2.0", "id": "i", "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}})
}

/// Lines that are no messages, each with the code of its error and the id that is known of it.
fn lines() -> [(String, i64, Value); 12] {
    let deep = "[".repeat(100_000);
    let deep_arguments = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"note_session","arguments":{}1{}}}}}"#,
        r#"{"a":"#.repeat(5000),
        "}".repeat(5000)
    );
    [
        ("no json", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        (&deep, -32700),
        (&deep_arguments, -32700),
        ("[]", -32600),
        ("7", -32600),
        ("null", -32600),
        (r#"{"foo":1}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":"s","method":7}"#, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
    ]
    .map(|(line, code)| {
        let id = line.contains(r#""id":"s""#).then(|| json!("s"));
        (line.to_owned(), code, id.unwrap_or_default())
    })
}

/// Before the handshake and behind it: what is no message is answered with an error of JSON-RPC, and nothing ends.
#[test]
fn what_is_no_message_is_told_so() {
    let user = sealed();
    let mut client = Client::bare(&user, Some("api"), &[]);
    let lines = lines();
    for round in 0..2 {
        for (line, code, id) in &lines {
            client.lines.says(line);
            let heard = client.lines.hears();
            let line: String = line.chars().take(60).collect();
            assert_eq!(
                (&heard["error"]["code"], &heard["id"]),
                (&json!(code), id),
                "{line}: {heard}"
            );
            assert!(
                heard["error"]["message"]
                    .as_str()
                    .is_some_and(|m| m.len() > 10)
            );
        }
        // Nobody waits for an answer to these.
        client.lines.says("");
        client.lines.says(" \r");
        client
            .lines
            .says(r#"{"jsonrpc":"2.0","method":"notifications/unheard","params":{"a":[1]}}"#);
        client
            .lines
            .says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
            .lines
            .says(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
        let into = client.lines.into.as_mut().expect("it is open");
        into.write_all(b"\"\xff\xfe\"\n").expect("it listens");
        assert_eq!(client.lines.hears()["error"]["code"], -32700);
        if round == 0 {
            client.lines.says(&initialize().to_string());
            assert_eq!(client.lines.hears()["id"], "i");
        }
    }
    assert_eq!(client.asks("ping", json!({}))["result"], json!({}));
    client.calls("check_authority", json!({}));
    assert_eq!(client.ends(), (Some(0), String::new()));
}

/// Lines of ten and of forty megabytes are passed over and told so; one of the greatest length is heard.
#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    let call = |text: &str| {
        let params = json!({"name": "note_session", "arguments": {"text": text}});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    for length in [10 << 20, 40 << 20] {
        client.lines.says(&call(&"x".repeat(length)));
        let heard = client.lines.hears();
        assert_eq!(heard["error"]["code"], -32600, "{heard}");
        assert!(
            heard["error"]["message"].to_string().contains("8388608"),
            "{heard}"
        );
    }
    // It can be heard, and is more than a body may have.
    client.asked = 1;
    let long = client.fails("note_session", json!({"text": "x".repeat(7 << 20)}));
    assert_eq!(long["code"], "limit-exceeded", "{long}");
    client.calls("note_session", json!({"text": "y".repeat(1 << 20)}));
    assert_eq!(user.list("log --kind noted").len(), 1);
}

/// Parameters of a call that make no sense, with a part of what is said of each.
fn senseless() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({"name": "adopt_session", "arguments": {}}),
            "there are check_authority",
        ),
        (json!({"name": "", "arguments": {}}), "no tool is called"),
        (json!({"name": "note_session"}), "needs \"text\""),
        (
            json!({"name": "note_session", "arguments": {"text": 5}}),
            "\"text\" of note_session has to be a text",
        ),
        (
            json!({"name": "note_session", "arguments": {"text": null}}),
            "needs \"text\"",
        ),
        (
            json!({"name": "note_session", "arguments": {"text": "x", "token": "web@1"}}),
            "takes no \"token\"",
        ),
        (
            json!({"name": "check_authority", "arguments": {"pid": 1}}),
            "takes no \"pid\"",
        ),
        (
            json!({"name": "list_sessions", "arguments": {"store": "/"}}),
            "takes no \"store\"",
        ),
        (
            json!({"name": "list_sessions", "arguments": {"all": "yes"}}),
            "has to be true or false",
        ),
        (
            json!({"name": "report_dispatch", "arguments": {"dispatch": "d1", "outcome": "maybe"}}),
            "one of done, failed, blocked",
        ),
        (
            json!({"name": "note_session", "arguments": [1]}),
            "parameters of tools/call",
        ),
        (json!({"name": 7}), "parameters of tools/call"),
        (json!(null), "parameters of tools/call"),
    ]
}

/// Unknown tools and methods, and arguments that are not what they have to be, are errors that say which.
#[test]
fn a_call_that_makes_no_sense_is_told_which() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    let before = user.list("log").len();
    for (params, says) in senseless() {
        let heard = client.asks("tools/call", params);
        assert_eq!(heard["error"]["code"], -32602, "{heard}");
        assert!(
            heard["error"]["message"]
                .as_str()
                .is_some_and(|m| m.contains(says)),
            "{says}: {heard}"
        );
    }
    for method in [
        "tools/unknown",
        "prompts/list",
        "resources/list",
        "x\u{1b}[2J",
    ] {
        let heard = client.asks(method, json!({}));
        assert!(
            heard["result"].is_object() || heard["error"]["code"] == -32601,
            "{heard}"
        );
    }
    // What is well formed and wrong is the tool's own answer.
    for (tool, arguments, code) in [
        ("accept_dispatch", json!({"dispatch": "seven"}), "usage"),
        (
            "accept_dispatch",
            json!({"dispatch": "d77"}),
            "unknown-dispatch",
        ),
        (
            "show_session",
            json!({"subject": "nobody"}),
            "unknown-session",
        ),
        (
            "ask_who",
            json!({"subject": "api", "at": "never"}),
            "bad-position",
        ),
        (
            "ack_envelope",
            json!({"envelope": "e2"}),
            "not-your-envelope",
        ),
    ] {
        assert_eq!(client.fails(tool, arguments)["code"], code, "{tool}");
    }
    let events = user.list("log");
    assert!(
        events[before..]
            .iter()
            .all(|event| event["kind"] == "refused")
    );
}
