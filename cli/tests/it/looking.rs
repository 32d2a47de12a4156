//! status, sessions, show, work, shared: what is true now. Looking changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::terminal::Terminal;

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("it lists") {
        let path = entry.expect("it lists").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).expect("it reads"));
        }
    }
    found
}

fn busy() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register api --engine claude
         register web --engine codex
         register retired-one
         retire retired-one@1
         dispatch login --to api --write src
         accept d1 --as api@1
         dispatch style --to web
         send hello --to web",
    );
    user.run("adopt api").ended(12);
    user
}

/// LOG-8, Trap 11: a look leaves every byte of the store as it was.
#[test]
fn looking_changes_no_byte() {
    let user = busy();
    let before = files(&user.store());
    let lines = [
        "status",
        "status --here",
        "sessions --all",
        "show api",
        "show d1",
        "show e1",
        "show r1",
        "work --all",
        "shared --path .",
        "shared --as api@1",
        "inbox web",
        "check api@1",
        "who api",
        "who item:login",
        "who api --at 1",
        "log",
        "refusals",
        "outcome none",
        "verify",
        "inspect store",
    ];
    for line in lines {
        let ran = user.run(line);
        assert!(ran.code <= 1, "{line}: {}{}", ran.out, ran.err);
    }
    assert!(before == files(&user.store()), "something was written");
}

#[test]
fn tenure_alone_is_status() {
    let user = busy();
    let lines = |ran: crate::terminal::Ran| -> Vec<String> {
        ran.out
            .lines()
            .filter(|l| !l.contains("seen"))
            .map(str::to_owned)
            .collect()
    };
    let alone = Terminal::finish(&mut user.command(&[])).ended(0);
    assert_eq!(lines(alone), lines(user.run("status").ended(0)));
}

#[test]
fn status_has_sessions_by_checkout_and_what_needs_a_person() {
    let user = busy();
    let status = user.json("status");
    assert_eq!(
        (&status["health"], &status["incarnation"]),
        (&json!("ok"), &json!(1))
    );
    let names: Vec<_> = status["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| s["name"].clone())
        .collect();
    assert_eq!(names, ["api", "web"]);
    let here = user.json("status --here");
    assert_eq!(here["sessions"].as_array().expect("a list").len(), 1);
    assert_eq!(here["sessions"][0]["name"], "api");
    // A holder that has ended for certain, with work left.
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("it runs");
    user.play(&format!(
        "register job --pid {}\ndispatch a --to job",
        child.id()
    ));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let needs = user.json("status")["needs"].clone();
    assert_eq!(needs[0]["command"], "tenure adopt job");
    let people = user.run("status").ended(0).out;
    assert!(people.contains("the holder of job is dead"), "{people}");
    user.play("adopt job");
    assert_eq!(user.json("status")["needs"], json!([]));
}

#[test]
fn sessions_lists_active_ones_and_all() {
    let user = busy();
    assert_eq!(user.run("-q sessions").out, "api\nweb\n");
    assert_eq!(user.run("-q sessions --all").out, "api\nweb\nretired-one\n");
    let people = user.run("sessions").ended(0).out;
    assert!(
        people.contains("api@1") && people.contains("claude") && people.contains("1 open"),
        "{people}"
    );
    let web = &user.list("sessions")[1];
    assert_eq!((&web["pending"], &web["open"]), (&json!(2), &json!(["d2"])));
}

/// Only looking commands take the beginning of a name, of at least six characters, if it is the only one.
#[test]
fn a_name_may_be_cut_where_one_only_looks() {
    let user = busy();
    user.play("register retired-two");
    assert_eq!(user.json("show retired-t")["name"], "retired-two");
    let ran = user.run("--json show retired").ended(66).object();
    assert!(
        ran["message"]
            .as_str()
            .is_some_and(|m| m.contains("retired-one") && m.contains("retired-two"))
    );
    user.run("show retir").ended(66);
    user.run("inbox retired-t").ended(0);
    user.run("who retired-t").ended(0);
    for line in [
        "send x --to retired-t",
        "dispatch x --to retired-t",
        "note x --as retired-t@1",
    ] {
        user.run(line).ended(66);
    }
}

#[test]
fn work_can_be_asked_for_by_session_and_item() {
    let user = busy();
    let ids = |line: &str| -> Vec<String> {
        user.list(line)
            .iter()
            .map(|d| d["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(ids("work"), ["d1", "d2"]);
    assert_eq!(ids("work api"), ["d1"]);
    assert_eq!(ids("work --item style"), ["d2"]);
    user.play("report d1 --as api@1 --outcome done\ndispatch login --to web");
    assert_eq!(ids("work"), ["d2", "d3"]);
    assert_eq!(ids("work --all"), ["d1", "d2", "d3"]);
    assert_eq!(ids("work --all --item login"), ["d1", "d3"]);
    assert_eq!(user.run("-q work").out, "d2\nd3\n");
    user.run("work nobody").ended(66);
}

#[test]
fn a_session_with_the_name_of_a_number_can_be_shown() {
    let user = Terminal::new();
    user.play("register d1");
    user.run("show d1").ended(66);
    assert_eq!(user.json("show session:d1")["name"], "d1");
}

/// D15, D14: a session that was registered under a link is found by the link and by what it leads to. Once the link leads
/// elsewhere it shows who is there; whoever was registered before is found where he is.
#[test]
fn a_session_is_found_by_a_link_and_by_what_it_leads_to() {
    let user = Terminal::new();
    let at = |path: &str| user.path().join(path);
    for directory in ["one", "two"] {
        std::fs::create_dir(at(directory)).expect("made");
    }
    std::os::unix::fs::symlink(at("one"), at("link")).expect("linked");
    user.play("register api --checkout link\nregister web --checkout two");
    let there = |path: &str| {
        let list = user.list(&format!("shared --path {path}"));
        let names = list.iter().map(|s| s["session"].as_str().expect("a name"));
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        [there("link"), there("one"), there("two")],
        ["api", "api", "web"]
    );
    std::fs::remove_file(at("link")).expect("removed");
    std::os::unix::fs::symlink(at("two"), at("link")).expect("linked");
    assert_eq!(
        [there("link"), there("one"), there("two")],
        ["web", "api", "web"]
    );
}
