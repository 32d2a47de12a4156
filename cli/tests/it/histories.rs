//! record, history, branch, lineage, revert, rename: what a session recorded, and who goes on from it.

use serde_json::{Value, json};

use crate::terminal::Terminal;

mod races;
mod transfer;

pub use races::{rounds, waiting};

/// `BODY@POSITION` of each record, with who recorded it where that is another.
#[track_caller]
fn history(user: &Terminal, line: &str) -> String {
    let objects = user.list(&format!("history {line}"));
    let word = |o: &Value| {
        let (body, origin) = (o["body"].as_str(), o["origin"].as_str());
        let by = match origin == o["session"].as_str() {
            true => String::new(),
            false => format!("{}:", origin.expect("an origin")),
        };
        match o["schema"].as_str() {
            Some("tenure.record.v1") => format!("{by}{}@{}", body.expect("a text"), o["position"]),
            _ => format!("revert@{}:{}", o["position"], o["to"]),
        }
    };
    objects.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// REG-4, A11: the answer of a record is the record; a record that was computed against another one is refused.
#[test]
fn a_record_answers_with_its_place() {
    let user = Terminal::new();
    user.play("register api");
    let first = user.json("record hello --as api@1 --kind turn --opens run:7");
    assert_eq!(first["schema"], "tenure.record.v1");
    for (field, value) in [
        ("position", json!(2)),
        ("index", json!(1)),
        ("session", json!("api")),
        ("origin", json!("api")),
        ("kind", json!("turn")),
        ("body", json!("hello")),
        ("opens", json!("run:7")),
        ("closes", Value::Null),
        ("actor", json!("tester")),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    assert!(first["receipt"].as_str().is_some_and(|r| r.contains(":2:")));
    assert_eq!(
        user.run("-q record more --as api@1 --expect 2")
            .ended(0)
            .out,
        "3\n"
    );
    let moved = user
        .run("--json record late --as api@1 --expect 2")
        .ended(11)
        .object();
    assert_eq!(
        (&moved["code"], &moved["presented"], &moved["current"]),
        (&json!("position-moved"), &json!("2"), &json!("3"))
    );
    user.run("record late --as api@2").ended(10);
    user.run("record late --as api@1 --opens thing:7").ended(64);
    user.run("record late --as api@1 --expect soon").ended(64);
    assert_eq!(history(&user, "api"), "hello@2 more@3");
    let shown = user.json("show api");
    assert_eq!((&shown["records"], &shown["tip"]), (&json!(2), &json!(3)));
    assert_eq!(shown["activities"], json!(["run:7"]));
    let text = user.run("history api").ended(0).out;
    assert!(text.contains(" turn opens run:7\n  | hello\n"), "{text}");
}

/// B11, B10: a record of 16 MiB comes back byte for byte, one byte more is refused, and so do bytes that are no text.
#[test]
fn large_and_binary_records_come_back_as_they_were() {
    let user = Terminal::new();
    user.play("register api");
    let large: Vec<u8> = (0..16 << 20).map(|n: u32| (n % 251) as u8).collect();
    std::fs::write(user.file("large"), &large).expect("it is written");
    std::fs::write(user.file("larger"), [&large[..], b"x"].concat()).expect("it is written");
    user.run("-q record @large --as api@1").ended(0);
    let refused = user
        .run("--json record @larger --as api@1")
        .ended(64)
        .object();
    assert_eq!(refused["code"], "limit-exceeded");
    user.play("record small --as api@1");
    let objects = user.list("history api");
    let coded = objects[0]["body_base64"].as_str().expect("it is no text");
    assert_eq!(coded.len(), large.len().div_ceil(3) * 4);
    assert!(coded.starts_with("AAECAwQFBgcICQoL"), "{}", &coded[..32]);
    assert_eq!(objects[1]["body"], "small");
    user.run("verify").ended(0);
}

/// BRN-1, BRN-6, NOT-7, A16: the story of two live branches: each goes on from one source by itself, nothing of any of
/// the three reaches another, one is retired, and all three are opened again with exactly their histories.
#[test]
fn two_live_branches_are_isolated_both_ways_and_reopen_with_their_histories() {
    let user = Terminal::new();
    user.play(
        "register api --label team=core
         record plan --as api@1
         record first --as api@1
         record second --as api@1",
    );
    let left = user.json("branch api left --engine claude");
    let right = user.json("branch api right --at 3 --engine codex --label team=lab");
    assert_eq!(left["schema"], "tenure.branch.v1");
    for (answer, name, at) in [(&left, "left", 4), (&right, "right", 3)] {
        assert_eq!(answer["token"], json!(format!("{name}@1")));
        assert_eq!(
            (&answer["source"], &answer["at"]),
            (&json!("api"), &json!(at))
        );
        assert_eq!(answer["prefix_hash"].as_str().map(str::len), Some(32));
    }
    assert_ne!(left["prefix_hash"], right["prefix_hash"]);
    assert_eq!(
        (&left["labels"]["team"], &right["labels"]["team"]),
        (&json!("core"), &json!("lab"))
    );
    user.play(
        "record left-1 --as left@1
         record api-1 --as api@1
         record right-1 --as right@1
         record left-2 --as left@1
         retire left@1
         record right-2 --as right@1
         record api-2 --as api@1",
    );
    user.run("record stray --as left@1").ended(10);
    let read = |name: &str| history(&user, name);
    assert_eq!(read("api"), "plan@2 first@3 second@4 api-1@8 api-2@13");
    assert_eq!(
        read("left"),
        "api:plan@2 api:first@3 api:second@4 left-1@7 left-2@10"
    );
    assert_eq!(read("right"), "api:plan@2 api:first@3 right-1@9 right-2@12");
    user.play("register left\nadopt right --force --reason again\nrecord left-3 --as left@2\nrecord right-3 --as right@2");
    assert!(
        read("left").ends_with(" left-2@10 left-3@17"),
        "{}",
        read("left")
    );
    assert!(
        read("right").ends_with(" right-2@12 right-3@18"),
        "{}",
        read("right")
    );
    assert_eq!(read("api"), "plan@2 first@3 second@4 api-1@8 api-2@13");
    let notices = user.list("inbox api --pending");
    let said: Vec<_> = notices
        .iter()
        .map(|n| n["body"].as_str().expect("a text"))
        .collect();
    assert_eq!(said.len(), 2);
    assert!(said[0].starts_with("tester branched left from api, behind the record at position 4."));
    let kin: Vec<String> = user
        .list("lineage api")
        .iter()
        .map(|o| format!("{} {} {}", o["session"], o["kinship"], o["at"]))
        .collect();
    assert_eq!(
        kin,
        [
            r#""api" "itself" null"#,
            r#""left" "branch" 4"#,
            r#""right" "branch" 3"#
        ]
    );
    let text = user.run("lineage right").ended(0).out;
    assert!(
        text.contains("\n  right: 5 records, branched from api at position 3"),
        "{text}"
    );
    let sessions = user.run("sessions").ended(0).out;
    assert!(sessions.contains("from api at 4"), "{sessions}");
    user.run("verify").ended(0);
}

/// BRN-2, BRN-13, BRN-14: every branch that is not made says why with its own code.
#[test]
fn a_branch_that_is_not_made_says_why() {
    let user = Terminal::new();
    user.play(
        "register api\nrecord a --as api@1\nrecord ask --as api@1 --opens call:1\nregister web",
    );
    for (line, code, exit) in [
        ("branch api api", "same-name", 64),
        ("branch api web", "name-taken", 11),
        ("branch ops new", "unknown-session", 66),
        ("branch api a/../@", "invalid-name", 64),
        ("branch api new --at 0", "bad-position", 64),
        ("branch api new --at 3", "bad-position", 64),
        ("branch api new --at 1", "bad-position", 64),
        ("branch api new --at 9999", "bad-position", 64),
        ("branch api new --at never", "bad-position", 64),
        ("merge api web", "unsupported", 64),
        ("revert --as api@1 --to 2", "open-obligations", 11),
        ("rename api web --as api@1", "name-taken", 11),
        ("history ops", "unknown-session", 66),
        ("history api --at 9999", "bad-position", 64),
        ("show call:2 --session api", "unknown-activity", 66),
    ] {
        let ran = user.run(&format!("--json {line}"));
        assert_eq!(ran.code, exit, "{line}: {}", ran.out);
        assert_eq!(ran.object()["code"], code, "{line}");
    }
    user.run("show new").ended(66);
    let made = user.json("branch api new");
    assert_eq!(made["at"], 2, "the call is not taken apart");
}

/// DIS-13, DIS-12: an id that was ever recorded answers how it ended, in the session and in its branches.
#[test]
fn an_activity_that_was_ever_opened_is_never_unknown() {
    let user = Terminal::new();
    user.play(
        "register api
         record go --as api@1 --opens run:1
         record ask --as api@1 --opens call:1
         record end --as api@1 --closes call:1
         branch api new
         register web
         record go --as web@1 --opens run:1
         retire web@1",
    );
    let state = |what: &str, session: &str| {
        let answer = user.json(&format!("show {what} --session {session}"));
        assert_eq!(answer["schema"], "tenure.activity.v1");
        (
            answer["state"].clone(),
            answer["origin"].clone(),
            answer["ended"]["position"].clone(),
        )
    };
    assert_eq!(
        state("run:1", "api"),
        (json!("running"), json!("api"), Value::Null)
    );
    assert_eq!(
        state("call:1", "api"),
        (json!("finished"), json!("api"), json!(4))
    );
    assert_eq!(
        state("run:1", "new"),
        (json!("interrupted"), json!("api"), json!(5))
    );
    assert_eq!(
        state("call:1", "new"),
        (json!("finished"), json!("api"), json!(4))
    );
    assert_eq!(
        state("run:1", "web"),
        (json!("cancelled"), json!("web"), json!(8))
    );
    user.play("record end --as api@1 --closes run:1\nrecord go --as new@1 --opens run:1");
    assert_eq!(
        state("run:1", "api"),
        (json!("finished"), json!("api"), json!(9))
    );
    assert_eq!(
        state("run:1", "new"),
        (json!("running"), json!("new"), Value::Null)
    );
    let text = user.run("show run:1 --session web").ended(0).out;
    assert!(text.starts_with("run:1 of web: cancelled\n"), "{text}");
}

/// BRN-19, BRN-16: a revert hides and keeps.
#[test]
fn a_revert_hides_and_keeps() {
    let user = Terminal::new();
    user.play("register api\nrecord a --as api@1\nrecord b --as api@1\nrecord c --as api@1");
    let done = user.json("revert --as api@1 --to 2");
    assert_eq!(
        (&done["schema"], &done["position"]),
        (&json!("tenure.done.v1"), &json!(5))
    );
    user.play("record d --as api@1");
    assert_eq!(history(&user, "api"), "a@2 d@6");
    assert_eq!(history(&user, "api --all"), "a@2 b@3 c@4 revert@5:2 d@6");
    assert_eq!(history(&user, "api --at 4"), "a@2 b@3 c@4");
    let text = user.run("history api --all").ended(0).out;
    assert!(
        text.contains("(hidden)") && text.contains("reverted to 2 by api"),
        "{text}"
    );
    user.play("revert --as api@1 --to 0");
    assert_eq!(user.run("history api").ended(0).out, "no records\n");
}

/// BRN-22: the old name, the old token and the links of branches lead to the renamed session.
#[test]
fn a_renamed_session_is_found_by_every_name_it_had() {
    let user = Terminal::new();
    user.play("register api\nrecord a --as api@1\nbranch api new");
    let done = user.json("rename api core --as api@1");
    assert_eq!(
        (&done["token"], &done["alias"]),
        (&json!("core@1"), &json!("api"))
    );
    user.play("record b --as api@1\nrecord c --as core@1\ncheck api@1\ncheck core@1");
    for name in ["api", "core"] {
        let shown = user.json(&format!("show {name}"));
        assert_eq!(
            (&shown["name"], &shown["aliases"]),
            (&json!("core"), &json!(["api"]))
        );
        assert_eq!(user.json(&format!("who {name}"))["session"], "core");
        assert_eq!(user.list(&format!("log --session {name}")).len(), 5);
    }
    assert_eq!(user.json("show new")["branch_of"], "core");
    assert_eq!(history(&user, "new"), "core:a@2");
    user.run("register api").ended(12);
    user.run("branch new api").ended(11);
}

/// BRN-21, A01, LIV-17: what is held is not run as well, and the refusal offers the branch, which `exec` runs at once.
#[test]
fn exec_runs_a_branch_of_a_session_that_is_held() {
    let user = Terminal::new();
    user.play("register api\nrecord a --as api@1");
    let refused = user
        .run("--json exec --session api -- true")
        .ended(12)
        .object();
    let next = refused["next"].to_string();
    assert!(next.contains("tenure branch api NEW-NAME"), "{next}");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let script = format!("{tenure} record mine; {tenure} --json history \"$TENURE_SESSION\"");
    let args = [
        "exec",
        "--session",
        "new",
        "--branch",
        "api",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let ran = user.args(&args).ended(0);
    assert!(
        ran.out.contains(r#""body":"a""#) && ran.out.contains(r#""body":"mine""#),
        "{}",
        ran.out
    );
    assert_eq!(user.json("show new")["branch_of"], "api");
    assert_eq!(user.json("who new")["holder"]["verdict"], "dead");
    user.args(&args).ended(11);
    assert_eq!(history(&user, "api"), "a@2");
}

/// A grant of a branch goes to a file like every grant.
#[test]
fn the_token_of_a_branch_goes_to_its_file() {
    let user = Terminal::new();
    user.play("register api\nbranch api new --token-file t --pid none\nrecord x --as @t");
    assert_eq!(
        std::fs::read_to_string(user.file("t")).expect("it is there"),
        "new@1\n"
    );
    user.run("branch api new --token-file t").ended(11);
    assert_eq!(
        std::fs::read_to_string(user.file("t")).expect("it is there"),
        "new@1\n"
    );
}

/// BRN-17, BRN-20: `--in-tree` keeps a branch in the tree of its source, and needs that tree's token.
#[test]
fn a_branch_in_its_tree_needs_a_token_of_it() {
    let user = Terminal::new();
    user.play("register api\nrecord a --as api@1");
    user.run("branch api new --in-tree").ended(64);
    user.run("branch api new --in-tree --as api@2").ended(10);
    user.play("branch api kid --in-tree --as api@1\nbranch api free");
    let tree = |name: &str| {
        let shown = user.json(&format!("show {name}"));
        (
            shown["tree"].clone(),
            shown["parent"].clone(),
            shown["branch_of"].clone(),
        )
    };
    assert_eq!(tree("kid"), (json!("api"), json!("api"), json!("api")));
    assert_eq!(tree("free"), (json!("free"), Value::Null, json!("api")));
}
