//! verify, inspect, store: damaged directories, which nobody changes, and the ways out.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::terminal::Terminal;

fn story() -> Terminal {
    let user = Terminal::new();
    user.play("register api\ndispatch login --to api\naccept d1 --as api@1\nnote hello --as api@1");
    user
}

fn segment(store: &Path) -> PathBuf {
    let mut names: Vec<PathBuf> = fs::read_dir(store.join("segments"))
        .expect("it lists")
        .map(|e| e.expect("it lists").path())
        .collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "seg"));
    names.sort();
    names.pop().expect("there is a segment")
}

/// Where the frames stand, as inspect says.
fn frames(user: &Terminal) -> Vec<(u64, u64)> {
    let stretches = user.list("inspect store");
    stretches
        .iter()
        .filter(|s| s["what"] == "frame")
        .map(|s| {
            (
                s["offset"].as_u64().expect("a number"),
                s["bytes"].as_u64().expect("a number"),
            )
        })
        .collect()
}

fn flip(file: &Path, offset: u64) {
    let mut bytes = fs::read(file).expect("it reads");
    bytes[usize::try_from(offset).expect("it fits")] ^= 0x40;
    fs::write(file, bytes).expect("it writes");
}

#[test]
fn a_whole_store_is_clean_and_says_what_was_checked() {
    let user = story();
    let report = user.json("verify");
    assert_eq!(
        (&report["verdict"], &report["findings"]),
        (&json!("clean"), &json!([]))
    );
    let coverage = &report["coverage"];
    assert_eq!(
        (&coverage["frames"], &coverage["horizon"]),
        (&json!(4), &json!(4))
    );
    let checks = coverage["checks"].as_array().expect("a list");
    for check in ["facts-crc", "rest-crc", "chain", "fence"] {
        assert!(checks.contains(&json!(check)), "{check}");
    }
    assert!(
        user.run("verify store")
            .ended(0)
            .out
            .contains("store: clean")
    );
    user.run("verify nowhere").ended(66);
    fs::create_dir(user.file("empty")).expect("it can be made");
    user.run("verify empty").ended(66);
}

/// F29, trap 22: damage in the middle is named at its place, with exit 1, and nothing is changed; other commands
/// say 65 and the next command.
#[test]
fn damage_is_named_at_its_place() {
    let user = story();
    let places = frames(&user);
    assert_eq!(places.len(), 4);
    let file = segment(&user.store());
    flip(&file, places[1].0 + 90);
    let before = fs::read(&file).expect("it reads");
    let report = user.run("--json verify").ended(1).object();
    assert_eq!(report["verdict"], "damaged");
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["offset"], &finding["position"]),
        (&json!(places[1].0), &json!(2))
    );
    assert!(finding["next"].as_str().is_some_and(|n| !n.is_empty()));
    let people = user.run("verify").ended(1).out;
    assert!(
        people.contains("damaged") && people.contains("position"),
        "{people}"
    );
    for line in ["note x --as api@1", "register web"] {
        let ran = user.run(&format!("--json {line}")).ended(65);
        let error = ran.object();
        assert_eq!(error["code"], "damaged", "{line}");
        assert!(
            error["next"][0]["command"]
                .as_str()
                .is_some_and(|c| c.starts_with("tenure verify ")),
            "{line}"
        );
    }
    let stretches = user.list("inspect store");
    assert!(
        stretches
            .iter()
            .any(|s| s["what"] == "bad" && s["position"] == 2)
    );
    assert_eq!(stretches.iter().filter(|s| s["what"] == "frame").count(), 3);
    assert_eq!(
        fs::read(&file).expect("it reads"),
        before,
        "nothing is changed"
    );
}

/// F01, trap 20: a torn tail is no damage: verify says so, and the next append goes on.
#[test]
fn a_torn_tail_is_told_and_repaired_by_the_next_append() {
    let user = story();
    let (offset, bytes) = *frames(&user).last().expect("a frame");
    let file = segment(&user.store());
    let mut content = fs::read(&file).expect("it reads");
    let from = usize::try_from(offset + bytes / 2).expect("it fits");
    content[from..].fill(0);
    fs::write(&file, content).expect("it writes");
    // What was durable is gone from the file; as a copy without its control page it reads as torn.
    fs::remove_file(user.store().join("control")).expect("it is there");
    let report = user.run("--json verify").ended(1).object();
    assert_eq!(
        (&report["verdict"], &report["coverage"]["horizon"]),
        (&json!("torn-tail"), &json!(3))
    );
    user.play("note again --as api@1");
    assert_eq!(user.json("verify")["verdict"], "clean");
    let notes: Vec<Value> = user
        .list("log --kind noted")
        .iter()
        .map(|e| e["body"].clone())
        .collect();
    assert_eq!(notes, ["again"]);
}

/// E19: a receipt kept outside the store shows that it was rolled back, or rewritten.
#[test]
fn a_receipt_shows_a_rollback() {
    let user = story();
    let receipt = user.json("note last --as api@1")["receipt"]
        .as_str()
        .expect("a receipt")
        .to_owned();
    user.run(&format!("verify --expected-head {receipt}"))
        .ended(0);
    let other = receipt.rsplit_once(':').expect("three parts").0.to_owned() + ":" + &"0".repeat(32);
    let report = user
        .run(&format!("--json verify --expected-head {other}"))
        .ended(1)
        .object();
    assert_eq!(
        (&report["verdict"], &report["receipts"][0]["kept"]),
        (&json!("damaged"), &json!(false))
    );
    let ahead = receipt.replace(":5:", ":9:");
    user.run(&format!("verify --expected-head {ahead}"))
        .ended(1);
    user.run("verify --expected-head nonsense").ended(64);
}

#[test]
fn inspect_shows_every_frame_of_a_store_and_of_a_file() {
    let user = story();
    let whole = user.list("inspect store");
    assert_eq!(whole[0]["what"], "segment");
    let words: Vec<&Value> = whole
        .iter()
        .filter(|s| s["what"] == "frame")
        .map(|s| &s["events"][0])
        .collect();
    assert_eq!(words, ["registered", "dispatched", "accepted", "noted"]);
    let file = segment(&user.store());
    let alone = user.list(&format!("inspect {}", file.display()));
    assert_eq!(alone.len(), whole.len());
    let second = frames(&user)[1].0;
    assert_eq!(
        user.list(&format!("inspect store --from {second}")).len(),
        whole.len() - 1
    );
    let hex = user.run("inspect store --hex").ended(0).out;
    assert!(
        hex.contains("54 4e 46 31") && hex.contains("frame 1"),
        "{hex}"
    );
    user.run("inspect nowhere").ended(74);
}

/// A store that was copied begins a new life, in which no older token is current.
#[test]
fn a_copied_store_is_accepted_by_name_and_begins_a_new_life() {
    let user = story();
    let copy = |from: &Path, to: &Path| {
        let status = std::process::Command::new("cp")
            .arg("-a")
            .args([from, to])
            .status();
        assert!(status.expect("cp runs").success());
    };
    copy(&user.store(), &user.file("copy"));
    let error = user
        .run("--json --store copy note x --as api@1")
        .ended(65)
        .object();
    assert_eq!(error["code"], "home-changed");
    let commands: Vec<&str> = error["next"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|n| n["command"].as_str())
        .collect();
    assert!(
        commands
            .iter()
            .any(|c| c.contains("store accept copied --reason")),
        "{commands:?}"
    );
    user.run("--store copy store accept sideways --reason x")
        .ended(64);
    user.play("--store copy store accept copied --reason backup");
    let check = user
        .run("--json --store copy check api@1")
        .ended(10)
        .object();
    assert_eq!(check["current"], false);
    assert!(check["incarnation"].as_u64().is_some_and(|i| i > 1));
    user.run("--store copy note x --as api@1").ended(10);
    user.run("--store copy adopt --all").ended(64);
    user.play("--store copy adopt --all --reason restored");
    let session = user.json("--store copy show api");
    assert_eq!(session["generation"], 2);
    let token = session["token"].as_str().expect("a token").to_owned();
    user.play(&format!(
        "--store copy report d1 --as {token} --outcome done"
    ));
    user.run("check api@1").ended(0);
    copy(&user.store(), &user.file("moved"));
    user.play("--store moved store accept moved --reason tidying\n--store moved note x --as api@1");
}

#[test]
fn a_finding_that_is_not_there_cannot_be_accepted() {
    let user = story();
    user.run("store accept finding:2 --reason x").ended(64);
    user.run("store accept finding:x --reason x").ended(64);
    user.run("store accept moved").ended(64);
}
