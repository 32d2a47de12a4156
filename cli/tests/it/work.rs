//! dispatch, accept, decline, report, cancel, fail, note, observe: work and what is said about it.

use serde_json::json;

use crate::terminal::Terminal;

fn two_agents() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register api --engine claude
         register web --engine codex
         dispatch login --to api --title Login --write src --body please
         dispatch style --to web --title Colours --write src/css
         accept d1 --as api@1",
    );
    user
}

/// DIS-1, DSC-1: accepting shows who else is there, with all that the page promises.
#[test]
fn accept_says_who_else_works_there() {
    let user = two_agents();
    let answer = user.json("accept d2 --as web@1");
    assert_eq!(answer["dispatch"], "d2");
    let binding = &answer["binding"];
    assert_eq!(
        (&binding["session"], &binding["generation"]),
        (&json!("web"), &json!(1))
    );
    let other = &answer["shared_checkout"][0];
    let shown = [
        &other["session"],
        &other["engine"],
        &other["actor"],
        &other["level"],
        &other["source"],
    ];
    assert_eq!(
        shown,
        [
            &json!("api"),
            &json!("claude"),
            &json!("tester"),
            &json!("tree"),
            &json!("declared")
        ]
    );
    assert_eq!(
        (&other["items"], &other["titles"]),
        (&json!(["login"]), &json!(["Login"]))
    );
    assert!(
        other["writes"][0]
            .as_str()
            .is_some_and(|p| p.ends_with("/src"))
    );
    assert!(
        answer["instruction"]
            .as_str()
            .is_some_and(|i| i.contains("explicit path"))
    );
    let people = user.run("accept d2 --as web@1").ended(0);
    assert!(
        people.out.contains("api (claude") && people.out.contains("on login: Login"),
        "{}",
        people.out
    );
}

/// DSC-5: alone is alone.
#[test]
fn accept_alone_says_nothing_of_others() {
    let user = Terminal::new();
    user.play("register api\ndispatch login --to api --write src");
    let answer = user.json("accept d1 --as api@1");
    assert_eq!(
        (&answer["shared_checkout"], &answer["instruction"]),
        (&json!([]), &json!(null))
    );
}

/// The first word is the id, for scripts.
#[test]
fn dispatch_prints_the_id_first() {
    let user = two_agents();
    let ran = user.run("dispatch docs --to api").ended(0);
    assert_eq!(ran.out.lines().next(), Some("d3"));
    assert_eq!(user.run("-q dispatch more --to api").ended(0).out, "d4\n");
    user.run("dispatch late --to api@2").ended(10);
    user.run("dispatch ok --to api@1").ended(0);
}

/// DIS-7: a late report is refused, its text is kept, and the new holder's stands.
#[test]
fn a_late_report_is_refused_and_kept() {
    let user = two_agents();
    user.play("adopt api --force --reason hangs");
    let args = [
        "report",
        "d1",
        "--as",
        "api@1",
        "--outcome",
        "done",
        "--body",
        "all green",
    ];
    let ran = user.args(&args).ended(10);
    assert!(ran.err.contains("what it carried is kept"), "{}", ran.err);
    assert!(
        ran.err.contains("stale-generation") && ran.err.contains("api@2"),
        "{}",
        ran.err
    );
    let kept = user.list("refusals api").pop().expect("it is kept");
    assert_eq!(
        (&kept["body"], &kept["body_kept"]),
        (&json!("all green"), &json!(true))
    );
    assert_eq!(
        (&kept["command"], &kept["presented"]),
        (&json!("report"), &json!("api@1"))
    );
    user.play("report d1 --as api@2 --outcome failed --body red");
    let dispatch = user.json("show d1");
    assert_eq!(
        (&dispatch["state"], &dispatch["report"]),
        (&json!("failed"), &json!("red"))
    );
    let shown = user.run("show d1").ended(0);
    assert!(shown.out.contains("  | red"), "{}", shown.out);
}

/// What ends a dispatch frees its item, and keeps the reason (DIS-2, DIS-4).
#[test]
fn ended_work_keeps_its_reason() {
    let user = two_agents();
    user.play(
        "decline d2 --as web@1 --reason busy
         dispatch style --to web
         cancel d3 --reason changed
         dispatch style --to web --as api@1",
    );
    assert_eq!(user.json("show d2")["reason"], "busy");
    assert_eq!(user.json("show d3")["reason"], "changed");
    // What was given under a token is withdrawn under it, or by force.
    user.run("cancel d4 --reason no").ended(11);
    user.run("cancel d4 --as web@1 --reason no").ended(11);
    user.play("cancel d4 --as api@1 --reason no\ndispatch style --to web --as api@1\ncancel d5 --force --reason no");
    user.run("cancel d5 --force --reason no").ended(11);
    let states: Vec<_> = user
        .list("work web --all")
        .iter()
        .map(|d| d["state"].clone())
        .collect();
    assert_eq!(states, ["declined", "cancelled", "cancelled", "cancelled"]);
}

/// DIS-8, NOT-1: a failed assignment is in the inbox and under "needs a person" until it is acknowledged.
#[test]
fn a_failed_assignment_is_told_to_both_sides() {
    let user = two_agents();
    user.play("fail d2 --reason crashed");
    let notice = user.list("inbox web --pending").pop().expect("a notice");
    assert_eq!(
        (&notice["kind"], &notice["notice"]),
        (&json!("notice"), &json!("assignment-failed"))
    );
    let text = notice["body"].as_str().expect("a text");
    assert!(
        text.contains("style") && text.contains("crashed") && text.contains("Nothing was claimed")
    );
    let needs = || {
        user.json("status")["needs"]
            .as_array()
            .expect("a list")
            .len()
    };
    assert_eq!(needs(), 1);
    assert!(user.run("status").out.contains("needs a person"));
    user.play(&format!(
        "ack {} --as web@1",
        notice["id"].as_str().expect("an id")
    ));
    assert_eq!(needs(), 0);
}

/// Texts come from the argument, a file or standard input.
#[test]
fn texts_come_from_arguments_files_and_standard_input() {
    use std::io::Write;
    let user = two_agents();
    std::fs::write(user.file("note.txt"), "from a file\n").expect("it writes");
    user.play("note @note.txt --as api@1\nnote @@home --as api@1");
    let mut command = user.command(&["note", "-", "--as", "api@1"]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"typed")
        .expect("it takes it");
    assert!(child.wait().expect("it ends").success());
    let noted: Vec<_> = user
        .list("log --kind noted")
        .iter()
        .map(|e| e["body"].clone())
        .collect();
    assert_eq!(noted, ["from a file\n", "@home", "typed"]);
    user.run("note @missing --as api@1").ended(74);
    user.args(&[
        "dispatch", "x", "--to", "api", "--title", "-", "--body", "-",
    ])
    .ended(64);
}

/// Bodies are bytes; one that is no text comes back as base64.
#[test]
fn a_body_may_be_any_bytes() {
    let user = two_agents();
    std::fs::write(user.file("raw"), b"\xff\x00\xfe").expect("it writes");
    user.play("note @raw --as api@1");
    let noted = user.list("log --kind noted").pop().expect("it is there");
    assert_eq!(noted["body_base64"], "/wD+");
    assert!(user.run("log --kind noted").ended(0).out.contains("  | "));
}

/// A body one byte too long is refused by its length, and nothing is written.
#[test]
fn a_body_past_the_limit_is_refused() {
    let user = two_agents();
    std::fs::write(user.file("big"), vec![b'x'; (1 << 20) + 1]).expect("it writes");
    let before = user.json("status")["position"].clone();
    let error = user.run("--json note @big --as api@1").ended(64).object();
    assert_eq!(error["code"], "limit-exceeded");
    assert_eq!(user.json("status")["position"], before);
    std::fs::write(user.file("big"), vec![b'x'; 1 << 20]).expect("it writes");
    user.play("note @big --as api@1");
}

/// DSC-10: what a session says it wrote is where it is.
#[test]
fn observed_paths_are_shared() {
    let user = two_agents();
    user.play("observe typing --as web@1 --wrote lib/x.rs");
    let there = user.list("shared --path lib");
    assert_eq!(
        (&there[0]["session"], &there[0]["source"]),
        (&json!("web"), &json!("observed"))
    );
    assert_eq!(there[0]["status"], "typing");
    assert!(user.list("shared --path elsewhere").is_empty());
    assert!(
        user.run("shared --path elsewhere")
            .out
            .contains("nobody else")
    );
    assert_eq!(user.json("show web")["status"], "typing");
    user.play("accept d2 --as web@1");
    assert_eq!(user.list("shared --as api@1")[0]["session"], "web");
}
