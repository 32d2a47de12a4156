//! transcript, import --transcript, export --transcript: what agent hosts left behind, read, taken apart, written back.

use std::fs::{self, File, FileTimes, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::terminal::Terminal;

/// A record of Claude's.
fn claude(id: &str, parent: Option<&str>, kind: &str, text: &str) -> String {
    json!({
        "parentUuid": parent, "isSidechain": false, "type": kind, "uuid": id, "sessionId": "conversation",
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w", "version": "2.1.0", "unheard-of": { "x": [1, null] },
        "message": { "role": kind, "content": text },
    })
    .to_string()
}

/// Two resumes of one conversation that wrote over each other, a torn record with another glued to it, and zeros.
fn overwritten() -> Vec<u8> {
    let lines = [
        claude("q1", None, "user", "plan"),
        claude("a1", Some("q1"), "assistant", "planned\u{2028}"),
        claude("q2", Some("a1"), "user", "left"),
        claude("q3", Some("a1"), "user", "right"),
        r#"{"type":"mode","mode":"plan","sessionId":"conversation"}"#.to_owned(),
        claude("a2", Some("q2"), "assistant", "left answer"),
        claude("a3", Some("q3"), "assistant", "right answer"),
        r#"{"type":"summary","summary":"left","leafUuid":"a2"}"#.to_owned(),
        format!(
            "{{\"type\":\"user\",\"uuid\":\"torn\",\"te{}",
            claude("q4", Some("a3"), "user", "more")
        ),
    ];
    let mut bytes = lines.map(|l| l + "\n").concat().into_bytes();
    bytes.extend_from_slice(&[0; 64]);
    bytes.push(b'\n');
    bytes
}

/// Lets a file be old, so that any write would show, and gives what is known of it.
fn aged(path: &Path, bytes: &[u8]) -> Metadata {
    fs::write(path, bytes).expect("it is written");
    let old = SystemTime::now() - Duration::from_secs(86_400);
    let file = File::options().write(true).open(path).expect("it opens");
    file.set_times(FileTimes::new().set_modified(old))
        .expect("its time is set");
    path.metadata().expect("it is there")
}

#[track_caller]
fn untouched(path: &Path, bytes: &[u8], before: &Metadata) {
    let after = path.metadata().expect("it is there");
    assert_eq!(fs::read(path).expect("it reads"), bytes);
    assert_eq!(
        (after.ino(), after.mtime(), after.mtime_nsec(), after.len()),
        (
            before.ino(),
            before.mtime(),
            before.mtime_nsec(),
            before.len()
        )
    );
}

fn ids(transcript: &str) -> Vec<String> {
    let parse = |line| serde_json::from_str::<Value>(line).expect("it is JSON");
    let id = |v: Value| v["uuid"].as_str().or(v["type"].as_str()).map(str::to_owned);
    transcript.lines().map(parse).filter_map(id).collect()
}

/// A healthy file in another form is named as that, with the command that makes lines of it; what it makes is read.
#[test]
fn other_forms_are_named_and_not_called_damaged() {
    let user = Terminal::new();
    let message = |id: &str, who: &str| json!({"id": id, "timestamp": "2025-09-01T10:00:01Z", "type": who, "content": "x"});
    let head = json!({"sessionId": "s", "projectHash": "h", "startTime": "2025-09-01T10:00:00Z"});
    let (one, two) = (message("1", "user"), message("2", "gemini"));
    let mut whole = head.clone();
    whole["messages"] = json!([one, two]);
    let lines = format!("{head}\n{one}\n{two}\n");
    for (name, bytes, part) in [
        (
            "old.json",
            format!("{whole:#}\n").into_bytes(),
            "jq -c 'del(.messages), .messages[]' old.json",
        ),
        ("flat.json", whole.to_string().into_bytes(), "jq -c"),
        (
            "a.jsonl.zst",
            b"\x28\xb5\x2f\xfd\x04".to_vec(),
            "zstd -dc a.jsonl.zst",
        ),
        (
            "a.jsonl.gz",
            b"\x1f\x8b\x08".to_vec(),
            "gzip -dc a.jsonl.gz",
        ),
    ] {
        std::fs::write(user.file(name), bytes).expect("it writes");
        for line in [
            format!("transcript {name}"),
            format!("import --transcript {name} --as s"),
        ] {
            let ran = user.run(&line).ended(64);
            assert!(
                ran.err.contains("unsupported") && ran.err.contains(part),
                "{}",
                ran.err
            );
        }
        assert!(!user.store().join("segments").exists());
    }
    std::fs::write(user.file("new.jsonl"), lines).expect("it writes");
    let read = &user.list("transcript new.jsonl")[0];
    assert_eq!(
        (&read["host"], &read["records"]),
        (&json!("gemini"), &json!(3))
    );
    // A single line that is a record is no other form.
    std::fs::write(user.file("single.jsonl"), format!("{head}\n")).expect("it writes");
    assert_eq!(user.list("transcript single.jsonl")[0]["records"], 1);
}

/// A02, B01, B05, B10: what is wrong with a transcript is said with its place and by the exit code; nothing is written, and
/// no store is made.
#[test]
fn a_transcript_is_explained_and_left_alone() {
    let user = Terminal::new();
    let (path, bytes) = (user.file("t.jsonl"), overwritten());
    let before = aged(&path, &bytes);
    let objects = user.run("--json transcript t.jsonl").ended(1).objects();
    let whole = &objects[0];
    assert_eq!(whole["schema"], "tenure.transcript.v1");
    for (field, value) in [
        ("host", json!("claude")),
        ("session", json!("conversation")),
        ("bytes", json!(bytes.len())),
        ("records", json!(9)),
        ("branches", json!(3)),
        ("unreachable", json!(4)),
        ("damaged_bytes", json!(64 + 32)),
        (
            "kinds",
            json!({ "user": 4, "assistant": 3, "mode": 1, "summary": 1 }),
        ),
        ("oddities", json!({ "odd-separator": 1 })),
        (
            "faults",
            json!({ "torn-line": 1, "glued-line": 1, "nul-block": 1, "two-writers": 1, "unplaced": 1 }),
        ),
    ] {
        assert_eq!(whole[field], value, "{field}");
    }
    let sum = ["record_bytes", "separator_bytes", "damaged_bytes"]
        .map(|f| whole[f].as_u64().expect("a number"));
    assert_eq!(sum.iter().sum::<u64>(), bytes.len() as u64);
    let of = |kind: &str| {
        objects
            .iter()
            .filter(|o| o["schema"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    let branches = of("tenure.transcript-branch.v1");
    let shown = |b: &Value| {
        (
            b["origin"].clone(),
            b["of"].clone(),
            b["at_id"].clone(),
            b["records"].clone(),
        )
    };
    assert_eq!(
        branches.iter().map(shown).collect::<Vec<_>>(),
        [
            (json!("start"), Value::Null, Value::Null, json!(5)),
            (json!("fork"), json!(1), json!("a1"), json!(3)),
            (json!("unplaced"), Value::Null, Value::Null, json!(1)),
        ]
    );
    let findings = of("tenure.transcript-finding.v1");
    assert_eq!(findings.len(), 6);
    let nul = findings
        .iter()
        .find(|f| f["kind"] == "nul-block")
        .expect("it is found");
    assert_eq!(
        (&nul["offset"], &nul["bytes"], &nul["line"]),
        (&json!(bytes.len() - 65), &json!(64), &json!(10))
    );
    untouched(&path, &bytes, &before);
    assert!(!user.store().exists(), "no store is made");
}

/// B01, B10, B22: the same for people, and what is healthy is no fault.
#[test]
fn people_are_told_where_and_what() {
    let user = Terminal::new();
    fs::write(user.file("t.jsonl"), overwritten()).expect("it is written");
    let text = user.run("transcript t.jsonl").ended(1).out;
    for part in [
        "branch 2: 3 records, from branch 1 behind the record on line 2, a1",
        "line 10, offset",
        "5 faults",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let healthy = user.file("healthy.jsonl");
    fs::write(&healthy, claude("q", None, "user", "\u{2028}") + "\r\n").expect("it is written");
    let text = user.run("transcript healthy.jsonl").ended(0).out;
    assert!(text.ends_with("no faults\n"), "{text}");
    user.run("transcript nothing.jsonl").ended(74);
    user.run("transcript t.jsonl --host other").ended(64);
}

/// Every record of the file is there as it stands in the file.
#[track_caller]
fn every_record_once(bytes: &[u8], transcripts: &[String]) {
    let text = String::from_utf8(bytes.to_vec()).expect("it is text");
    let mut own: Vec<String> = transcripts
        .iter()
        .flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    own.sort();
    own.dedup();
    assert_eq!(own.len(), 9);
    assert!(
        own.iter()
            .all(|line| text.matches(line.as_str()).count() == 1),
        "as they stand in the file"
    );
}

/// A01, A02, B05, B22: two resumes that overwrote each other come apart: each branch is a session that shares what they share,
/// its records are the bytes of the file with their kinds, what cannot be placed is listed, and the original stays as it is.
#[test]
fn two_resumes_that_overwrote_each_other_come_apart() {
    let user = Terminal::new();
    let (path, bytes) = (user.file("t.jsonl"), overwritten());
    let before = aged(&path, &bytes);
    let done = user.json("import --transcript t.jsonl --as api");
    assert_eq!(
        (&done["schema"], &done["token"]),
        (&json!("tenure.done.v1"), &json!("api@1"))
    );
    assert_eq!(
        (&done["records"], &done["damaged_bytes"]),
        (&json!(9), &json!(96))
    );
    assert_eq!(done["unplaced"].as_array().map(Vec::len), Some(1));
    assert_eq!(done["unplaced"][0]["line"], 5);
    let sessions = done["sessions"].as_array().expect("a list");
    let names: Vec<&Value> = sessions.iter().map(|s| &s["session"]).collect();
    assert_eq!(names, [&json!("api"), &json!("api/2"), &json!("api/3")]);
    assert_eq!(
        (&sessions[1]["source"], &sessions[2]["origin"]),
        (&json!("api"), &json!("unplaced"))
    );
    let exported = |name: &str| {
        user.run(&format!("export {name} --transcript"))
            .ended(0)
            .out
    };
    assert_eq!(ids(&exported("api")), ["q1", "a1", "q3", "a3", "q4"]);
    assert_eq!(ids(&exported("api/2")), ["q1", "a1", "q2", "a2", "summary"]);
    assert_eq!(ids(&exported("api/3")), ["mode"]);
    let kinds = |name: &str| -> Vec<String> {
        let records = user.list(&format!("history {name}"));
        records
            .iter()
            .map(|r| r["kind"].as_str().expect("a kind").to_owned())
            .collect()
    };
    assert_eq!(
        kinds("api/2")[2..],
        ["claude/user", "claude/assistant", "claude/summary"]
    );
    let all = ["api", "api/2", "api/3"].map(exported);
    every_record_once(&bytes, &all);
    for name in ["api", "api/2", "api/3"] {
        fs::write(user.file("back.jsonl"), exported(name)).expect("it is written");
        user.run("transcript back.jsonl").ended(0);
    }
    let shown = user.json("show api/2");
    assert_eq!(
        (&shown["labels"]["host"], &shown["branch_of"]),
        (&json!("claude"), &json!("api"))
    );
    assert_eq!(shown["imported"]["from"], "conversation");
    user.run("import --transcript t.jsonl --as api").ended(12);
    user.play("adopt api\nrecord by-hand --as api@2\nverify\naudit");
    let again = user.run("export api --transcript").ended(0);
    assert_eq!(ids(&again.out), ["q1", "a1", "q3", "a3", "q4"]);
    assert!(
        again
            .err
            .contains("1 records of api came from no transcript"),
        "{}",
        again.err
    );
    untouched(&path, &bytes, &before);
}

/// A transcript that never forked comes back byte for byte, for each host; one without a record is an empty session (A12).
#[test]
fn a_clean_transcript_comes_back_as_it_was() {
    let user = Terminal::new();
    let codex = |n: u64, kind: &str| {
        json!({ "timestamp": "2026-01-01T00:00:00.000Z", "ordinal": n, "type": kind,
                "payload": { "id": "thread", "history_mode": "paginated", "type": "message" } })
        .to_string()
    };
    let gemini = [
        r#"{"sessionId":"chat","projectHash":"h","startTime":"t","kind":"main"}"#,
        r#"{"id":"m1","timestamp":"t","type":"user","content":[{"text":"x"}]}"#,
        r#"{"$set":{"lastUpdated":"t"}}"#,
        r#"{"$rewindTo":"m1"}"#,
    ];
    let join = |lines: &[String]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    let cases = [
        (
            "claude",
            "conversation",
            join(&[
                claude("q", None, "user", "x"),
                claude("a", Some("q"), "assistant", "y"),
            ]),
        ),
        (
            "codex",
            "thread",
            join(&[codex(0, "session_meta"), codex(1, "response_item")]),
        ),
        ("gemini", "chat", join(&gemini.map(str::to_owned))),
    ];
    for (host, session, text) in cases {
        fs::write(user.file("t.jsonl"), &text).expect("it is written");
        user.run("transcript t.jsonl").ended(0);
        let done = user.json(&format!("import --transcript t.jsonl --as {host}"));
        assert_eq!(
            (&done["host"], &done["from"]),
            (&json!(host), &json!(session))
        );
        assert_eq!(
            user.run(&format!("export {host} --transcript"))
                .ended(0)
                .out,
            text
        );
    }
    fs::write(user.file("empty.jsonl"), "").expect("it is written");
    user.play("import --transcript empty.jsonl --as empty --host claude");
    assert!(user.list("history empty").is_empty());
    user.run("export empty --transcript").ended(64);
    user.run("verify").ended(0);
}

/// What cannot be imported is said before anything is reserved, or leaves nothing: the name is free.
#[test]
fn what_cannot_be_imported_leaves_the_name_free() {
    let user = Terminal::new();
    fs::write(user.file("none.jsonl"), "{\"n\":1}\n").expect("it is written");
    user.run("import --transcript none.jsonl --as api")
        .ended(65);
    let large = claude("q", None, "user", &"x".repeat(16 << 20));
    fs::write(user.file("large.jsonl"), large + "\n").expect("it is written");
    user.run("transcript large.jsonl").ended(0);
    let refused = user
        .run("--json import --transcript large.jsonl --as api")
        .ended(64)
        .object();
    assert_eq!(refused["code"], "limit-exceeded");
    assert!(!user.store().exists(), "nothing was begun");
    // A pipe can be indexed and not be read again: what was reserved is given back.
    let made = Command::new("mkfifo")
        .arg(user.file("pipe"))
        .status()
        .expect("it runs");
    assert!(made.success());
    let mut import = user.command(&["import", "--transcript", "pipe", "--as", "api"]);
    let import = import
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    fs::write(user.file("pipe"), claude("q", None, "user", "x") + "\n").expect("it is read");
    let ended = import.wait_with_output().expect("it ends");
    assert_eq!(
        ended.status.code(),
        Some(74),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert!(user.list("sessions").is_empty());
    for line in [
        "import --transcript none.jsonl",
        "import --as api",
        "import --host claude",
        "import none.jsonl --transcript none.jsonl --as api",
        "import --transcript none.jsonl --as api --name x",
    ] {
        user.run(line).ended(64);
    }
    fs::write(user.file("good.jsonl"), overwritten()).expect("it is written");
    user.play("import --transcript good.jsonl --as api");
    user.play("register plain\nrecord x --as plain@1");
    user.run("export plain --transcript").ended(64);
}

/// BRN-9, TRE-8: an import that is killed anywhere leaves all of its sessions or none that anybody sees, and the next import of
/// the name succeeds.
#[test]
fn an_import_of_a_transcript_that_is_killed_leaves_all_or_nothing() {
    let mut text = String::new();
    let mut parents = [None, None];
    for n in 0..1500 {
        let (side, id) = (n % 2, format!("r{n}"));
        let kind = if n % 4 < 2 { "user" } else { "assistant" };
        text.push_str(&(claude(&id, parents[side].as_deref(), kind, "x") + "\n"));
        if n == 0 {
            parents = [Some(id.clone()), Some(id)];
        } else {
            parents[side] = Some(id);
        }
    }
    let user = Terminal::new();
    fs::write(user.file("t.jsonl"), &text).expect("it is written");
    user.play("init");
    // Killed as soon as the log has come so far: in the first branch, in the second, at the end.
    for (round, frames) in [1, 200, 900, 1400].into_iter().enumerate() {
        let name = format!("api{round}");
        let count = || user.list("log").len();
        let before = count();
        let mut command = user.command(&["import", "--transcript", "t.jsonl", "--as", &name]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        while count() < before + frames && child.try_wait().expect("it is ours").is_none() {}
        // It may have ended by itself: then all of it is there.
        let _ = child.kill();
        child.wait().expect("it ends");
        let seen = user.list("sessions");
        let of_it: Vec<&Value> = seen
            .iter()
            .filter(|s| s["name"].as_str().is_some_and(|n| n.starts_with(&name)))
            .collect();
        match of_it.len() {
            0 => {
                let done = user.json(&format!("import --transcript t.jsonl --as {name}"));
                assert_eq!(done["records"], 1500);
            }
            2 => {
                let records: u64 = of_it
                    .iter()
                    .map(|s| s["records"].as_u64().expect("a number"))
                    .sum();
                assert_eq!(records, 1501, "both, with the one that they share");
            }
            other => panic!("{other} sessions of {name} are seen"),
        }
    }
    user.run("verify").ended(0);
}
