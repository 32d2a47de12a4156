//! Whoever loses is told: at the next contact, and while waiting for it (NOT-7, E08, item by item).

use std::process::Stdio;

use serde_json::{Value, json};

use crate::terminal::Terminal;

/// A session `api` of this process.
fn held() -> Terminal {
    let user = Terminal::new();
    user.play(&format!("register api --pid {}", std::process::id()));
    user
}

/// Waits for a loss while `line` is done, and gives what the waiting one was told.
fn told_while_waiting(user: &Terminal, line: &str) -> Value {
    let waiting = user
        .command(&["--json", "wait", "--lost", "api@1", "--for", "5m"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    user.play(line);
    let output = waiting.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{line}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The next contact of the old holder: a write is refused, and a check says since when, by whom and why.
fn next_contact(user: &Terminal, code: &str) -> Value {
    let refused = user.run("--json note late --as api@1").ended(10).object();
    assert_eq!(refused["code"], code);
    let check = user.run("--json check api@1").ended(10).object();
    assert_eq!(check["lost"], refused["lost"], "both say the same");
    check["lost"].clone()
}

/// NOT-7, D4: superseded: by whom, why, and that it was by force.
#[test]
fn supersession_is_told() {
    let user = held();
    let seen = told_while_waiting(
        &user,
        "--actor boss adopt api --force --reason hangs --pid none",
    );
    let lost = next_contact(&user, "stale-generation");
    assert_eq!(seen["lost"], lost);
    assert_eq!(
        (&lost[0]["event"], &lost[0]["actor"], &lost[0]["reason"]),
        (&json!("adopted"), &json!("boss"), &json!("hangs"))
    );
}

/// NOT-7: retired by an operator, and then fenced by a new registration: both are told, in order.
#[test]
fn retirement_and_fencing_are_told() {
    let user = held();
    let seen = told_while_waiting(&user, "--actor boss retire api --force --reason over");
    assert_eq!(seen["lost"][0]["event"], "retired");
    let lost = next_contact(&user, "retired");
    assert_eq!(
        (&lost[0]["event"], &lost[0]["reason"]),
        (&json!("retired"), &json!("over"))
    );
    user.play("--actor next register api --pid none");
    let lost = next_contact(&user, "stale-generation");
    let events: Vec<&Value> = lost
        .as_array()
        .expect("a list")
        .iter()
        .map(|l| &l["event"])
        .collect();
    assert_eq!(events, [&json!("retired"), &json!("registered")]);
    assert_eq!(lost[1]["actor"], "next");
}

/// NOT-7, LIV-15: given up by proof: the tree was released, and whoever lives after all learns it.
#[test]
fn a_release_of_the_tree_is_told() {
    let user = held();
    let seen = told_while_waiting(&user, "--actor boss release --as api@1");
    assert_eq!(seen["current"], false);
    let lost = next_contact(&user, "stale-generation");
    assert_eq!(lost[0]["event"], "released", "{lost}");
}

/// What a session that is still current is told: once, until it is delivered.
fn noticed(user: &Terminal, kind: &str) -> Value {
    let check = user.json("check api@1");
    let notices = check["notices"].as_array().expect("a list").clone();
    let of_kind: Vec<&Value> = notices.iter().filter(|n| n["notice"] == kind).collect();
    assert_eq!(of_kind.len(), 1, "{kind}: {notices:?}");
    let id = of_kind[0]["id"].as_str().expect("an id").to_owned();
    assert!(
        user.run("check api@1")
            .out
            .contains(&format!("notice {id}:"))
    );
    user.play(&format!("deliver {id} --as api@1"));
    let again = user.json("check api@1");
    assert!(
        again["notices"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|n| n["notice"] != kind)
    );
    of_kind[0].clone()
}

/// NOT-7, ROL-4: a role that an operator took away.
#[test]
fn a_forced_clear_is_told_once() {
    let user = held();
    user.play("role take lead --scope here --as api@1");
    user.play("--actor boss role clear lead --scope here --reason rotating");
    let notice = noticed(&user, "role-cleared");
    let body = notice["body"].as_str().expect("it says something");
    assert!(
        body.contains("lead") && body.contains("boss") && body.contains("rotating"),
        "{body}"
    );
    user.run("role check lead --scope here --as api@1")
        .ended(10);
}

/// NOT-7: a branch of the session.
#[test]
fn a_branch_of_the_session_is_told_once() {
    let user = held();
    user.play("record one --as api@1\n--actor boss branch api copy --pid none");
    let notice = noticed(&user, "branched");
    let body = notice["body"].as_str().expect("it says something");
    assert!(body.contains("copy"), "{body}");
}

/// NOT-6, NOT-7: a newcomer where the session works.
#[test]
fn a_newcomer_is_told_once() {
    let user = held();
    user.play(
        "dispatch one --to api --write shared
         accept d1 --as api@1
         register web --pid none
         dispatch two --to web --write shared
         accept d2 --as web@1",
    );
    let notice = noticed(&user, "newcomer");
    assert_eq!(notice["from"], "web");
}
