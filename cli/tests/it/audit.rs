//! who, log, refusals: what was, and who was allowed.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::terminal::Terminal;

fn story() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register api --engine claude
         dispatch login --to api --write src
         accept d1 --as api@1
         adopt api --force --reason hangs --engine codex
         report d1 --as api@2 --outcome done
         retire api@2",
    );
    user
}

fn told(who: &Value) -> (Value, Value, Value, Value) {
    (
        who["generation"].clone(),
        who["holder"]["engine"].clone(),
        who["since"]["event"].clone(),
        who["until"]["event"].clone(),
    )
}

/// AUD-1, BND-5: who held a session and an item at every position.
#[test]
fn who_answers_at_every_position() {
    let user = story();
    let at = |subject: &str, position: u64| {
        let ran = user.run(&format!("--json who {subject} --at {position}"));
        assert_eq!(
            ran.code,
            i32::from(ran.object()["holder"].is_null()),
            "{}",
            ran.out
        );
        told(&ran.object())
    };
    let first = (
        json!(1),
        json!("claude"),
        json!("registered"),
        json!("adopted"),
    );
    let second = (json!(2), json!("codex"), json!("adopted"), json!("retired"));
    let nobody = (Value::Null, Value::Null, Value::Null, Value::Null);
    assert_eq!(
        (0..=6).map(|p| at("api", p)).collect::<Vec<_>>(),
        [
            nobody.clone(),
            first.clone(),
            first.clone(),
            first,
            second.clone(),
            second,
            nobody.clone()
        ]
    );
    let bound = (
        json!(1),
        json!("claude"),
        json!("accepted"),
        json!("carried"),
    );
    let carried = (
        json!(2),
        json!("codex"),
        json!("carried"),
        json!("reported"),
    );
    assert_eq!(
        (0..=6).map(|p| at("item:login", p)).collect::<Vec<_>>(),
        [
            nobody.clone(),
            nobody.clone(),
            nobody.clone(),
            bound,
            carried,
            nobody.clone(),
            nobody
        ]
    );
    assert_eq!(
        user.run("who api --at #4").ended(0).out,
        user.run("who api --at 4").ended(0).out
    );
    user.run("who api --at 7").ended(64);
}

#[test]
fn who_now_is_who_at_the_head() {
    let user = Terminal::new();
    user.play("register api\ndispatch login --to api\naccept d1 --as api@1\nadopt api --force --reason why");
    for subject in ["api", "session:api", "item:login"] {
        let now = user.json(&format!("who {subject}"));
        let head = user.json(&format!("who {subject} --at 4"));
        assert_eq!(
            (&now["since"], &now["generation"]),
            (&head["since"], &head["generation"]),
            "{subject}"
        );
        assert_eq!(now["until"], Value::Null);
    }
    assert_eq!(user.run("-q who item:login").ended(0).out, "api\n");
    let people = user.run("who api").ended(0).out;
    assert!(
        people.starts_with("api: api@2, ") && people.contains("(adopted at 4)"),
        "{people}"
    );
    assert!(user.run("who item:none").ended(1).out.contains("nobody"));
    user.run("who nobody").ended(66);
    user.run("who role:r@s").ended(1);
    user.run("who tree:nobody").ended(66);
}

/// A time is answered by what the log had then.
#[test]
fn who_answers_at_a_time() {
    let user = story();
    let times: Vec<String> = user
        .list("log")
        .iter()
        .map(|e| e["time"].as_str().expect("a time").to_owned())
        .collect();
    assert_eq!(told(&user.json(&format!("who api --at {}", times[0]))).0, 1);
    assert_eq!(told(&user.json(&format!("who api --at {}", times[3]))).0, 2);
    user.run("who api --at 1h").ended(1);
    user.run("who api --at 2001-01-01T00:00:00Z").ended(1);
}

/// By the path that is written, wherever the sessions said they work.
#[test]
fn who_answers_for_a_path() {
    let user = Terminal::new();
    user.play(
        "register api
         register web
         dispatch a --to api --write src
         dispatch b --to web --write src/css
         accept d1 --as api@1
         accept d2 --as web@1",
    );
    let names = |subject: &str| -> Vec<Value> {
        let ran = user.run(&format!("--json who {subject}"));
        ran.objects().iter().map(|w| w["session"].clone()).collect()
    };
    assert_eq!(names("./src"), ["api", "web"]);
    assert_eq!(names("path:src/js"), ["api"]);
    assert_eq!(names("./src --at 5"), ["api"]);
    assert_eq!(names("./lib"), [Value::Null]);
    user.run("who ./lib").ended(1);
}

#[test]
fn log_has_every_event_and_can_be_narrowed() {
    let user = story();
    let kinds = |line: &str| -> Vec<String> {
        user.list(line)
            .iter()
            .map(|e| e["kind"].as_str().expect("a kind").to_owned())
            .collect()
    };
    let all = [
        "registered",
        "dispatched",
        "accepted",
        "adopted",
        "carried",
        "reported",
        "retired",
    ];
    assert_eq!(kinds("log"), all);
    assert_eq!(kinds("log -n 3"), all[4..]);
    assert_eq!(kinds("log -n 0"), [""; 0]);
    assert_eq!(kinds("log --since 4"), all[3..]);
    assert_eq!(kinds("log --until 2"), all[..2]);
    assert_eq!(kinds("log --since 2 --until 3"), all[1..3]);
    assert_eq!(
        kinds("log --kind adopted --kind retired"),
        ["adopted", "retired"]
    );
    assert_eq!(kinds("log --generation 2 -n 2"), all[5..]);
    assert_eq!(kinds("log --since 1h"), all);
    assert_eq!(kinds("log --until 1h"), [""; 0]);
    user.run("log --session nobody-here").ended(66);
    let last = user.list("log").pop().expect("an event");
    assert_eq!(
        (&last["session"], &last["actor"]),
        (&json!("api"), &json!("tester"))
    );
    let people = user.run("log").ended(0).out;
    assert_eq!(people.lines().count(), 7);
}

/// AUD-1: by holder's host and boot, by position and time, and everything at once: each narrows.
#[test]
fn log_is_narrowed_by_host_boot_place_and_time() {
    let user = story();
    let kinds = |line: &str| -> Vec<Value> {
        let events = user.list(line);
        events.iter().map(|e| e["kind"].clone()).collect()
    };
    let grants = ["registered", "adopted"];
    let holder = user.list("log --kind registered").remove(0);
    let boot = holder["boot"].as_str().expect("a boot").to_owned();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("it reads");
    assert_eq!(boot, kernel.trim().replace('-', ""));
    let host = holder["host"].as_str().expect("a host");
    assert_eq!(kinds(&format!("log --host {host}")), grants);
    assert_eq!(kinds("log --host elsewhere"), [""; 0]);
    for text in [kernel.trim(), &boot, &boot[..6]] {
        assert_eq!(kinds(&format!("log --boot {text}")), grants, "{text}");
    }
    assert_eq!(kinds("log --boot 000000"), [""; 0]);
    let times: Vec<String> = user
        .list("log")
        .iter()
        .map(|e| e["time"].as_str().expect("a time").to_owned())
        .collect();
    let span = format!("log --since {} --until {}", times[2], times[3]);
    assert_eq!(kinds(&span), ["accepted", "adopted", "carried"]);
    let line = format!(
        "log --session api --kind adopted --generation 2 --host {host} --boot {boot} --since {} --until {} --after-cursor 3 -n 1",
        times[2], times[3]
    );
    assert_eq!(kinds(&line), ["adopted"]);
    let usage = ["log --boot abc", "log --boot nonsense", "log --kind adoptd"];
    for line in usage {
        user.run(line).ended(64);
    }
    assert_eq!(kinds("log --kind unknown-99"), [""; 0]);
}

/// E21, F19, trap 19: a cursor neither drops nor repeats, is left when nothing matched, and one of another past is
/// an error.
#[test]
fn a_cursor_neither_drops_nor_repeats() {
    let user = story();
    let count = |line: &str| user.list(line).len();
    assert_eq!(count("log --cursor-file c --kind noted"), 0);
    assert_eq!(count("log --cursor-file c"), 0);
    user.play("register api\nnote x --as api@3");
    assert_eq!(count("log --cursor-file c"), 3);
    assert_eq!(count("log --cursor-file c"), 0);
    let cursor = std::fs::read_to_string(user.file("c")).expect("it is left");
    assert_eq!(count(&format!("log --after-cursor {}", cursor.trim())), 0);
    assert_eq!(count("log --after-cursor 6"), 3);
    let forged = cursor
        .trim()
        .rsplit_once(':')
        .expect("a receipt")
        .0
        .to_owned()
        + ":"
        + &"0".repeat(32);
    user.run(&format!("log --after-cursor {forged}")).ended(64);
    user.run("log --after-cursor 99").ended(64);
    user.run("log --after-cursor nonsense").ended(64);
}

/// B28: following prints whole events as they come.
#[test]
fn log_follows() {
    let user = story();
    let mut child = user
        .command(&["--json", "log", "-f", "-n", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line comes").expect("it reads");
        serde_json::from_str(&line).expect("JSON")
    };
    assert_eq!(next()["kind"], "retired");
    user.play("register api");
    assert_eq!(next()["kind"], "registered");
    assert_eq!(next()["kind"], "fenced");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

/// AUD-2, trap 18: refusals are counted and shown, and the log does not grow with them.
#[test]
fn refusals_are_kept_once_and_counted() {
    let user = story();
    for _ in 0..12 {
        user.run("note late --as api@1").ended(10);
    }
    let kept = user.list("refusals api");
    assert_eq!(kept.len(), 1);
    assert_eq!(
        (&kept[0]["code"], &kept[0]["count"]),
        (&json!("stale-generation"), &json!(12))
    );
    assert!(user.json("status")["position"].as_u64().expect("a number") <= 8);
    let people = user.run("refusals").ended(0).out;
    assert!(
        people.contains("12 times") && people.contains("  | late"),
        "{people}"
    );
    assert!(user.run("show r1").ended(0).out.contains("12 times"));
    user.run("refusals nobody").ended(66);
}
