//! A server that lives long: what others do is seen at once, whatever happens to the store, and it ends when it should.

use std::fs;
use std::io::BufRead;
use std::process::Command;

use serde_json::{Value, json};

use super::{Client, sealed};

/// What others append is seen at the next call, and nobody waits for a server that is idle: it holds nothing between calls.
#[test]
fn what_others_do_is_seen_at_each_call() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    for n in 0..3 {
        client.calls("note_session", json!({"text": "mine"}));
        user.play("--timeout 5s note theirs --as @web");
        user.play("--timeout 5s dispatch next --to api");
        let id = format!("d{}", 3 + n);
        let pending = client.calls("list_work", json!({"session": "api"}));
        let ids = pending["items"].as_array().expect("a list");
        assert!(ids.iter().any(|work| work["id"] == json!(id)), "{pending}");
        client.calls("decline_dispatch", json!({"dispatch": id, "reason": "no"}));
    }
    assert_eq!(user.list("log --kind noted").len(), 6);
    user.run("verify").ended(0);
    user.run("audit").ended(0);
}

/// A store that is moved aside, exchanged for another, or damaged: each call says what is wrong with what is there, and
/// goes on once it is right again. Nothing is written to what was moved.
#[test]
fn it_outlives_what_happens_to_the_store() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    client.calls("note_session", json!({"text": "one"}));
    let (store, aside) = (user.store(), user.file("aside"));
    fs::rename(&store, &aside).expect("it moves");
    for tool in ["note_session", "list_sessions"] {
        let arguments = match tool {
            "note_session" => json!({"text": "lost"}),
            _ => json!({}),
        };
        let failed = client.fails(tool, arguments);
        assert_eq!(
            (&failed["schema"], &failed["code"]),
            (&json!("tenure.error.v1"), &json!("unknown-store"))
        );
    }
    assert!(!store.exists(), "none is made");
    // Another one stands there: the token is not one of its.
    let dir = store.to_str().expect("UTF-8");
    user.args(&["init", dir, "--sealed"]).ended(0);
    user.play("register other --pid none --token-file other");
    assert_eq!(
        client.fails("note_session", json!({"text": "x"}))["code"],
        "unknown-session"
    );
    fs::remove_dir_all(&store).expect("it goes");
    user.args(&["init", dir]).ended(0);
    user.play("register api --pid none");
    assert_eq!(
        client.fails("note_session", json!({"text": "x"}))["code"],
        "unsupported"
    );
    fs::remove_dir_all(&store).expect("it goes");
    fs::rename(&aside, &store).expect("it moves back");
    client.calls("note_session", json!({"text": "two"}));
    // Damage in what is acknowledged: whoever opens it says so, and goes on when it is whole again.
    let mut other = Client::start(&user, Some("web"));
    let mut segments = fs::read_dir(store.join("segments")).expect("it lists");
    let segment = segments.next().expect("there is one").expect("it lists");
    let good = fs::read(segment.path()).expect("it reads");
    let mut bad = good.clone();
    bad[4096 + 600..4096 + 664].fill(0xa5);
    fs::write(segment.path(), &bad).expect("it writes");
    assert_eq!(client.fails("list_sessions", json!({}))["code"], "damaged");
    let failed = other.fails("note_session", json!({"text": "x"}));
    assert_eq!(failed["code"], "damaged");
    assert!(failed["next"][0]["command"].is_string(), "{failed}");
    assert_eq!(user.run("mcp --as @api").code, 65);
    fs::write(segment.path(), &good).expect("it writes");
    client.calls("list_sessions", json!({}));
    other.calls("note_session", json!({"text": "three"}));
    client.calls("note_session", json!({"text": "four"}));
    assert_eq!(user.list("log --kind noted").len(), 4);
    user.run("verify").ended(0);
    assert_eq!(client.ends(), (Some(0), String::new()));
}

/// With `tenure serve` beside it the answers are the same, and both write.
#[test]
fn beside_a_served_store_the_answers_are_the_same() {
    let user = sealed();
    let before = {
        let mut client = Client::start(&user, Some("api"));
        client.calls("list_sessions", json!({}))
    };
    let mut server = user
        .command(&["serve"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let out = server.stdout.take().expect("a pipe");
    std::io::BufReader::new(out)
        .read_line(&mut line)
        .expect("it reads");
    let mut client = Client::start(&user, Some("api"));
    assert_eq!(client.calls("list_sessions", json!({})), before);
    let arguments = json!({"text": "hello", "idempotency_key": "k"});
    let mut done = client.calls("note_session", arguments);
    let mut said = user.json("note hello --idempotency-key k --as @api");
    assert_eq!(
        (done["repeated"].take(), said["repeated"].take()),
        (json!(false), json!(true))
    );
    assert_eq!(done, said);
    server.kill().expect("it is killed");
    server.wait().expect("it ends");
    client.calls("note_session", json!({"text": "again"}));
    assert_eq!(user.list("log --kind noted").len(), 2);
}

/// At the end of its input it answers what was asked and ends with 0, and so it does at a signal; standard error stays
/// empty.
#[test]
fn it_ends_with_its_input_and_at_a_signal() {
    let user = sealed();
    let mut client = Client::start(&user, Some("api"));
    for n in 0..50 {
        let params = json!({"name": "note_session", "arguments": {"text": n.to_string()}});
        client.lines.says(
            &json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params})
                .to_string(),
        );
    }
    let (code, left) = client.ends();
    assert_eq!(code, Some(0));
    let answers: Vec<Value> = left
        .lines()
        .map(|line| serde_json::from_str(line).expect("only answers"))
        .collect();
    assert_eq!(answers.len(), 50);
    let notes = user.list("log --kind noted");
    let bodies: Vec<String> = notes
        .iter()
        .map(|n| n["body"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        bodies,
        (0..50).map(|n| n.to_string()).collect::<Vec<_>>(),
        "in their order"
    );
    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut client = Client::start(&user, Some("api"));
        client.calls("check_authority", json!({}));
        let sent = Command::new("kill")
            .args([signal, &client.lines.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let status = client.lines.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{signal}");
    }
    // Before anything was said, too.
    let client = Client::bare(&user, None, &[]);
    assert_eq!(client.ends(), (Some(0), String::new()));
}

/// A client that takes no answers, or closes the end that it takes them at, does not keep the server.
#[test]
fn a_client_that_takes_no_answers_does_not_keep_it() {
    let user = sealed();
    for closes in [false, true] {
        let mut client = Client::start(&user, Some("api"));
        for n in 0..100 {
            client
                .lines
                .says(&json!({"jsonrpc": "2.0", "id": n, "method": "tools/list"}).to_string());
        }
        if closes {
            let (nobody, _) = std::io::pipe().expect("a pipe");
            client.lines.from = Box::new(std::io::BufReader::new(nobody));
        } else {
            client.lines.into.take();
        }
        let status = client.lines.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "closes: {closes}");
    }
}
