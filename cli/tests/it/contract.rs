//! The JSON contract and the exit codes, as `docs/cli.md` states them, against what the program prints.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::terminal::Terminal;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// Rows of the table under a heading, each as its cells without backquotes.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = page();
    let behind = page.split_once(heading).expect("the heading is there").1;
    behind
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split(" | ")
                .map(|c| c.replace('`', "").trim().to_owned())
                .collect()
        })
        .collect()
}

fn kinds() -> BTreeMap<String, Vec<String>> {
    let rows = table("## JSON");
    let fields = |cell: &str| cell.split(' ').map(str::to_owned).collect();
    rows.into_iter()
        .map(|row| (row[0].clone(), fields(&row[1])))
        .collect()
}

/// Holds an object, and every object in it that names its kind, against the page.
fn hold(kinds: &BTreeMap<String, Vec<String>>, seen: &mut BTreeMap<String, usize>, value: &Value) {
    if let Some(schema) = value.get("schema").and_then(Value::as_str) {
        let kind = schema
            .strip_prefix("tenure.")
            .and_then(|s| s.strip_suffix(".v1"));
        let kind = kind.unwrap_or_else(|| panic!("{schema} is no schema"));
        let fields = kinds
            .get(kind)
            .unwrap_or_else(|| panic!("{kind} is not on the page"));
        for field in fields {
            let coded = format!("{field}_base64");
            assert!(
                value.get(field).or(value.get(&coded)).is_some(),
                "{kind} lacks {field}: {value}"
            );
        }
        *seen.entry(kind.to_owned()).or_default() += 1;
    }
    match value {
        Value::Object(map) => map.values().for_each(|v| hold(kinds, seen, v)),
        Value::Array(list) => list.iter().for_each(|v| hold(kinds, seen, v)),
        _ => {}
    }
}

/// Command lines that between them print every kind.
const LINES: &str = "
        register api --engine claude --label team=core
        register web
        dispatch login --to api --title Login --write src --body please
        dispatch style --to web --write src/css
        accept d1 --as api@1
        accept d2 --as web@1
        send hello --to web --as api@1 --re d2
        deliver e4 --as web@1
        ack e4 --as web@1
        note text --as api@1 --on d1
        observe busy --as api@1 --wrote src/a
        sessions --all
        work --all
        inbox api
        shared --path src
        shared --as api@1
        show api
        show d1
        show e1
        check api@1
        check api@9
        adopt api
        adopt api --force --reason why
        report d1 --as api@1 --outcome done --body green
        report d1 --as api@2 --outcome done --body green
        refusals
        show r1
        who api
        who item:style
        who item:nothing
        who ./src
        log
        role take command --scope src --as web@1
        role list
        policy set disclose --scope src
        policy list
        status
        outcome nothing
        verify
        inspect store
        transcript t.jsonl
        record one --as api@2 --opens run:1
        record two --as api@2 --closes run:1
        branch api new
        lineage new
        export new
        show run:1 --session api
        revert --as api@2 --to 0
        history api --all
        register sub --parent api@2
        tree sub
        release --as sub@1
        doctor
        guard install repo
        guard status repo
        guard test repo
        install claude --settings settings.json
        export --redact labels --output b.tnb
        retire web@1
        demo
        nonsense";

/// Every kind on the page is printed by some command, with every field it says.
#[test]
fn every_kind_has_the_fields_that_the_page_says() {
    let kinds = kinds();
    let mut seen = BTreeMap::new();
    let user = Terminal::new();
    let transcript = "{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":\"b\"}\n";
    std::fs::write(user.file("t.jsonl"), transcript).expect("it is written");
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "repo"])
        .current_dir(user.path())
        .status();
    assert!(made.expect("git runs").success());
    for line in LINES.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let ran = user.run(&format!("--json {line}"));
        assert_ne!(ran.code, 2, "{line}");
        assert_ne!(ran.code, 70, "{line}: {}", ran.out);
        let objects = ran.objects();
        assert!(!objects.is_empty(), "{line} printed nothing");
        objects.iter().for_each(|object| {
            assert!(object.get("schema").is_some(), "{line}: {object}");
            hold(&kinds, &mut seen, object);
        });
    }
    let swept = user.args(&["--json", "guard", "shell", "git -C repo add -A"]);
    swept
        .objects()
        .iter()
        .for_each(|object| hold(&kinds, &mut seen, object));
    let missing: Vec<&String> = kinds
        .keys()
        .filter(|kind| !seen.contains_key(*kind))
        .collect();
    assert!(missing.is_empty(), "no command here printed {missing:?}");
}

/// Every time in every answer is RFC 3339 in UTC with microseconds.
#[test]
fn times_are_utc_with_microseconds() {
    fn times(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let named = [
                        "time",
                        "registered_at",
                        "last_seen",
                        "recorded",
                        "first_at",
                        "last_at",
                    ];
                    match value.as_str() {
                        Some(text) if named.contains(&key.as_str()) => found.push(text.to_owned()),
                        _ => times(value, found),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|v| times(v, found)),
            _ => {}
        }
    }
    let user = Terminal::new();
    user.play("register api\nadopt api --force --reason why");
    user.run("note x --as api@1").ended(10);
    let mut found = Vec::new();
    for line in ["show api", "who api", "log", "refusals", "check api@2"] {
        user.list(line).iter().for_each(|o| times(o, &mut found));
    }
    assert!(found.len() > 10);
    for time in found {
        let shape: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000000Z", "{time}");
    }
}

/// A command line, the code it is answered with, and what the process ends with. `check` answers by itself.
const CASES: &[(&str, &str, i32)] = &[
    ("check web@1", "check", 10),
    ("note x --as web@1", "stale-generation", 10),
    ("note x --as web@7", "never-issued", 10),
    ("note x --as old@1", "retired", 10),
    ("dispatch login --to web", "duplicate-item", 11),
    (
        "accept d2 --as web@2 --idempotency-key k1",
        "key-reused",
        11,
    ),
    ("decline d1 --as web@2 --reason no", "not-your-envelope", 11),
    ("report d3 --as web@2 --outcome done", "no-binding", 11),
    ("branch api web", "name-taken", 11),
    ("branch api api", "same-name", 64),
    ("branch api new --at 1", "bad-position", 64),
    ("merge api web", "unsupported", 64),
    ("record x --as web@2 --expect 1", "position-moved", 11),
    ("show run:1 --session api", "unknown-activity", 66),
    ("fail d1 --reason no", "not-pending", 11),
    ("retire web@2 --if-idle", "open-obligations", 11),
    ("register api", "already-active", 12),
    ("adopt api", "held", 12),
    ("role take lead --scope w --as web@2", "role-held", 12),
    ("note x --as web@2 --require lead@v", "role-stale", 10),
    ("note x --as nobody@1", "unknown-session", 66),
    ("accept d99 --as api@1", "unknown-dispatch", 66),
    ("ack e99 --as api@1", "unknown-envelope", 66),
    ("note x", "missing-token", 64),
    ("register -- a/../@", "invalid-name", 64),
    ("who api --at 99999", "bad-position", 64),
    ("who api --at never", "bad-position", 64),
    ("frobnicate", "usage", 64),
    ("note x --as api@0", "usage", 64),
    ("show r99", "unknown-refusal", 66),
    ("--store etcd:x status", "engine-unavailable", 69),
    ("--store nothing status", "unknown-store", 66),
];

/// The exit codes of the page are those the program ends with.
#[test]
fn exit_codes_are_those_of_the_page() {
    let rows = table("## Exit codes");
    let exit_of = |code: &str| {
        let row = rows.iter().find(|row| row[1].split(' ').any(|c| c == code));
        row.unwrap_or_else(|| panic!("{code} is not on the page"))[0]
            .parse::<i32>()
            .expect("a number")
    };
    assert!(rows.iter().all(|row| row[0] != "2"));
    let user = Terminal::new();
    user.play(
        "register api
         register web
         register old
         retire old@1
         dispatch login --to api
         dispatch style --to web --as api@1
         accept d1 --as api@1 --idempotency-key k1
         dispatch idle --to web
         role take lead --scope w --as api@1",
    );
    user.play("adopt web --force --reason why");
    for &(line, code, exit) in CASES {
        let ran = user.run(&format!("--json {line}"));
        assert_eq!(ran.code, exit, "{line}: {}", ran.out);
        let object = ran.object();
        if code == "check" {
            assert_eq!(object["current"], false);
            continue;
        }
        assert_eq!(object["code"], code, "{line}");
        assert_eq!(exit_of(code), exit, "{line}");
        assert!(
            object["message"].as_str().is_some_and(|m| !m.is_empty()),
            "{line}"
        );
    }
    user.play("report d1 --as api@1 --outcome done");
    let ran = user.run("--json report d1 --as api@1 --outcome done");
    assert_eq!(
        (ran.code, &ran.object()["code"]),
        (11, &Value::from("already-terminal"))
    );
}

/// A change always says where it stands, and its receipt can be asked for.
#[test]
fn every_change_has_a_position_and_a_receipt() {
    let user = Terminal::new();
    let lines = [
        "init",
        "register api",
        "dispatch login --to api",
        "accept d1 --as api@1",
        "note x --as api@1",
        "observe busy --as api@1",
        "send x --to api",
        "deliver e2 --as api@1",
        "ack e2 --as api@1",
        "report d1 --as api@1 --outcome done",
        "dispatch style --to api",
        "decline d2 --as api@1 --reason no",
        "dispatch style --to api",
        "cancel d3 --reason no",
        "dispatch style --to api",
        "fail d4 --reason no",
        "adopt api --force --reason why",
        "retire api@2",
    ];
    for (position, line) in lines.iter().enumerate() {
        let answer = user.json(line);
        assert_eq!(answer["position"], position, "{line}");
        let receipt = answer["receipt"].as_str().expect("a receipt");
        assert_eq!(
            receipt.split(':').nth(1),
            Some(position.to_string().as_str()),
            "{line}"
        );
        if position > 0 {
            let outcome = user.json(&format!("outcome {receipt}"));
            assert_eq!(
                (&outcome["outcome"], &outcome["receipt"]),
                (&"done".into(), &receipt.into())
            );
        }
    }
}
