//! send, inbox, deliver, ack, wait: envelopes, and learning that one has lost.

use std::time::Duration;

use serde_json::json;

use crate::terminal::Terminal;

fn pair() -> Terminal {
    let user = Terminal::new();
    user.play("register api\nregister web");
    user
}

/// E24: who reads a message sees when it was issued.
#[test]
fn a_message_goes_through_its_states() {
    let user = pair();
    let sent = user.json("send hello --to web --as api@1");
    assert_eq!(
        (&sent["id"], &sent["state"], &sent["from"]),
        (&json!("e1"), &json!("pending"), &json!("api"))
    );
    assert_eq!(user.list("inbox web --pending").len(), 1);
    user.run("deliver e1 --as api@1").ended(11);
    user.play("deliver e1 --as web@1\ndeliver e1 --as web@1");
    assert!(user.list("inbox web --pending").is_empty());
    assert_eq!(user.list("outbox web")[0]["state"], "delivered");
    user.play("ack e1 --as web@1");
    let shown = user.json("show e1");
    assert_eq!(shown["state"], "acknowledged");
    let sent = user.list("log --kind sent");
    assert_eq!(shown["issued_at"], sent[0]["time"]);
    let people = user.run("inbox web").ended(0).out;
    assert!(
        people.contains("e1  message  acknowledged")
            && people.contains(" ago\n")
            && people.contains("  | hello"),
        "{people}"
    );
    assert!(user.run("inbox api").out.contains("no envelopes"));
}

/// OUT-7, OUT-8: a register fences old mail, reviews unread replies, and a receipt for what is over is refused.
#[test]
fn re_registration_cancels_and_reviews() {
    let user = pair();
    user.play(
        "dispatch login --to api
         send answer --to api --as web@1 --re d1
         send plain --to api --as web@1
         retire api@1
         register api",
    );
    let inbox = user.list("inbox api");
    let told: Vec<_> = inbox
        .iter()
        .map(|e| {
            (
                e["kind"].as_str(),
                e["state"].as_str(),
                e["reason"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some("work"), Some("cancelled"), Some("session-retired")),
            (
                Some("message"),
                Some("cancelled"),
                Some("fenced-generation")
            ),
            (
                Some("message"),
                Some("cancelled"),
                Some("fenced-generation")
            ),
            (Some("review"), Some("pending"), None),
        ]
    );
    assert!(
        inbox[3]["body"]
            .as_str()
            .is_some_and(|b| b.contains("answer") && b.contains("e2"))
    );
    let refusal = user.run("--json deliver e2 --as api@2").ended(11).object();
    assert!(
        refusal["message"]
            .as_str()
            .is_some_and(|m| m.contains("fenced-generation"))
    );
}

/// E08: the loser is told by a command that waits for it.
#[test]
fn wait_lost_ends_when_the_session_is_taken() {
    let user = pair();
    let mut waiting = user
        .command(&["--json", "wait", "--lost", "api@1", "--for", "1m"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    std::thread::sleep(Duration::from_millis(100));
    assert!(
        waiting.try_wait().expect("it can be asked").is_none(),
        "it waits"
    );
    user.play("adopt api --force --reason hangs");
    let output = waiting.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&told["current"], &told["generation"]),
        (&json!(false), &json!(2))
    );
    assert_eq!(told["lost"][0]["reason"], "hangs");
    // At once when it is lost already, and never when nobody takes it.
    user.run("wait --lost api@1").ended(0);
    user.run("wait --lost api@2 --for 0s").ended(1);
    user.run("wait --lost nobody@1").ended(66);
    user.run("wait api@1").ended(64);
}
