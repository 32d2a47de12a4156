//! export and import: histories that leave a store and come back.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::history;
use crate::terminal::Terminal;

/// DIS-12: an export comes back as it was, under the same name elsewhere or another one here: bodies byte for byte,
/// kinds and activities; what was open is interrupted, what it was branched from is named and not attached.
#[test]
fn an_export_comes_back_as_it_was() {
    let (user, other) = (Terminal::new(), Terminal::new());
    std::fs::write(user.file("bytes"), b"\xff\x00\r\n\x1b[2J").expect("it is written");
    user.play(
        "register old
         record first --as old@1 --kind turn --opens run:1
         branch old api --label team=core
         record ask --as api@1 --kind call --opens call:1
         record @bytes --as api@1 --kind result --closes call:1
         record gone --as api@1
         revert --as api@1 --to 5
         record a\u{2028}b\u{85}c --as api@1 --opens run:1",
    );
    let exported = user.run("export api").ended(0).out;
    assert_eq!(exported.lines().count(), 2 + 4);
    std::fs::write(other.file("api.jsonl"), &exported).expect("it is written");
    let done = other.json("import api.jsonl");
    assert_eq!(
        (&done["schema"], &done["session"], &done["records"]),
        (&json!("tenure.done.v1"), &json!("api"), &json!(4))
    );
    assert_eq!(done["interrupted"], json!(["run:1"]));
    let records = |user: &Terminal, name: &str| -> Vec<Value> {
        let keep = ["kind", "body", "body_base64", "opens", "closes", "index"];
        let keep = |o: &Value| keep.map(|key| o[key].clone());
        user.list(&format!("history {name}"))
            .iter()
            .map(|o| json!(keep(o)))
            .collect()
    };
    let (mut before, after) = (records(&user, "api"), records(&other, "api"));
    // It was opened a second time in the branch, where the first did not run any more.
    assert_eq!(before[3][3], "run:1");
    before[3][3] = Value::Null;
    assert_eq!(before, after);
    let shown = other.json("show api");
    assert_eq!(shown["imported"], json!({ "from": "api", "parent": "old" }));
    assert_eq!(
        (&shown["branch_of"], &shown["labels"]["team"]),
        (&Value::Null, &json!("core"))
    );
    assert_eq!(
        other.json("show run:1 --session api")["state"],
        "interrupted"
    );
    assert_eq!(other.json("who api")["holder"]["verdict"], "dead");
    other.play("adopt api\nrecord more --as api@2");
    other.run("import api.jsonl").ended(12);
    let again = other.run("export api").ended(0).out;
    std::fs::write(other.file("again.jsonl"), &again).expect("it is written");
    other.play("import again.jsonl --name copy");
    assert_eq!(records(&other, "copy"), records(&other, "api"));
    other.run("verify").ended(0);
}

/// B05, B08, B10, B15, B16, DIS-12: a line that is not what an export prints is named, nothing is imported, and the name is
/// free; a mark before the first line and line ends of another system are no fault.
#[test]
fn what_is_no_export_is_not_imported() {
    let user = Terminal::new();
    user.play("register api\nrecord one --as api@1\nrecord two --as api@1");
    let good = user.run("export api").ended(0).out;
    let lines: Vec<&str> = good.lines().collect();
    let whole = |lines: &[&str]| lines.join("\n") + "\n";
    let half = &lines[1][..lines[1].len() / 2];
    let cases: Vec<(String, &str)> = vec![
        (String::new(), "line 1"),
        ("\n".into(), "line 1"),
        ("{}\n".into(), "line 1"),
        (whole(&lines[..1]), "line 2"),
        (whole(&lines[..3]), "line 4"),
        (good.trim_end().into(), "line 4"),
        (whole(&[lines[0], half, lines[2], lines[3]]), "line 2"),
        (whole(&[lines[0], lines[2], lines[3]]), "line 3"),
        (
            whole(&[lines[0], lines[1], "", lines[2], lines[3]]),
            "line 3",
        ),
        (
            whole(&[lines[0], &format!("{half}{}", lines[1]), lines[2], lines[3]]),
            "line 2",
        ),
        (
            good.replace("\"body\":\"two\"", "\"body_base64\":\"=\""),
            "line 3",
        ),
        (good.replace("\"body\":\"two\"", "\"nothing\":0"), "line 3"),
    ];
    for (n, (text, line)) in cases.iter().enumerate() {
        std::fs::write(user.file("in"), text).expect("it is written");
        let failed = user.run(&format!("--json import in --name new{n}"));
        assert_eq!(failed.code, 65, "{n}: {}", failed.out);
        let message = failed.object()["message"].to_string();
        assert!(
            message.contains(&format!("{line} of in: ")),
            "{n}: {message}"
        );
        user.run("show api").ended(0);
        let listed = user.list("sessions");
        assert_eq!(listed.len(), 1, "{n}: nothing was imported");
    }
    std::fs::write(user.file("in"), [good.as_bytes(), b"\xff\n"].concat()).expect("it is written");
    user.play("import in --name behind");
    std::fs::write(user.file("in"), b"\xff\xfe\n").expect("it is written");
    user.run("import in --name new0").ended(65);
    let marked = format!("\u{feff}{}", good.replace('\n', "\r\n"));
    std::fs::write(user.file("in"), marked).expect("it is written");
    user.play("import in --name new0");
    assert_eq!(user.list("history new0").len(), 2);
    user.run("verify").ended(0);
}

/// DIS-12, BRN-9, TRE-8: an import that is killed leaves a name that nobody sees, and that the next import takes.
#[test]
fn an_import_that_is_killed_leaves_the_name_to_the_next() {
    let user = Terminal::new();
    user.play("register api\nrecord one --as api@1");
    let good = user.run("export api").ended(0).out;
    let head = good.lines().next().expect("a line");
    let mut command = user.command(&["import", "--name", "new"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut gate = child.stdin.take().expect("it is piped");
    writeln!(gate, "{head}").expect("it reads");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while user.list("log --kind reserved").is_empty() {
        assert!(
            std::time::Instant::now() < deadline,
            "it never reserved the name"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::fs::write(user.file("in"), &good).expect("it is written");
    user.run("import in --name new").ended(12);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    drop(gate);
    assert_eq!(
        user.list("sessions").len(),
        1,
        "half an import is not listed"
    );
    user.play("import in --name new");
    assert_eq!(history(&user, "new").split(' ').count(), 1);
}
