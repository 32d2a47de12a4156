//! `salvage` as a user meets it: what it keeps, what it says, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::terminal::Terminal;

fn segment(store: &Path) -> PathBuf {
    let names = fs::read_dir(store.join("segments")).expect("it lists");
    let mut names: Vec<PathBuf> = names.map(|e| e.expect("it lists").path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "seg"));
    names.sort();
    names.swap_remove(0)
}

/// A store of two sessions with work, in which the frame that registered the second is damaged.
fn damaged() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register api\nregister web\ndispatch login --to web\naccept d1 --as web@1\nnote hello --as web@1",
    );
    let frames = user.list("inspect store");
    let second = frames.iter().find(|s| s["position"] == 2).expect("a frame");
    let offset = usize::try_from(second["offset"].as_u64().expect("a number")).expect("it fits");
    let file = segment(&user.store());
    let mut bytes = fs::read(&file).expect("it reads");
    bytes[offset + 100] ^= 1;
    fs::write(&file, bytes).expect("it writes");
    user
}

fn kind<'o>(objects: &'o [Value], kind: &str) -> Vec<&'o Value> {
    let schema = format!("tenure.{kind}.v1");
    objects
        .iter()
        .filter(|o| o["schema"] == schema.as_str())
        .collect()
}

/// F11: a dry run changes nothing and says what would be lost; the salvage keeps the rest, and names the session by the
/// name in its later tokens. Every token from before is stale, in the place of the old store too.
#[test]
fn a_damaged_store_is_salvaged_in_place() {
    let user = damaged();
    let before = fs::read(segment(&user.store())).expect("it reads");
    let dry = user
        .run("--json salvage store --in-place --dry-run")
        .ended(0)
        .objects();
    let summary = kind(&dry, "salvage")[0];
    assert_eq!(
        (&summary["store"], &summary["frames_kept"]),
        (&Value::Null, &json!(4))
    );
    assert!(!user.file("store.damaged-1").exists());
    let done = user
        .run("--json salvage store --in-place --reason disk")
        .ended(0)
        .objects();
    let summary = kind(&done, "salvage")[0];
    assert_eq!(summary["positions_lost"], 1);
    let lost = kind(&done, "salvage-lost")[0];
    assert_eq!(
        (&lost["from"], &lost["to"], &lost["kind"]),
        (&json!(2), &json!(2), &json!("bad"))
    );
    let sessions = kind(&done, "salvage-session");
    let web = sessions
        .iter()
        .find(|s| s["session"] == "web")
        .expect("it is named");
    assert_eq!(
        (&web["before"], &web["certain"]),
        (&Value::Null, &json!(true))
    );
    assert_eq!(kind(&done, "salvage-quarantine")[0]["position"], 2);
    let kept = fs::read(segment(&user.file("store.damaged-1"))).expect("it reads");
    assert_eq!(kept, before);
    let manifest = fs::read_to_string(user.file("store/quarantine/salvage.manifest"));
    assert_eq!(manifest.expect("it reads").lines().count(), 2);
    for token in ["api@1", "web@1", "web@2"] {
        user.run(&format!("note late --as {token}")).ended(10);
    }
    let verify = user.json("verify");
    assert_eq!(verify["verdict"], "clean");
    assert_eq!(verify["coverage"]["unproven"][0]["from"], 2);
    let audit = user.json("audit");
    assert_eq!(
        (&audit["verdict"], &audit["unproven"]),
        (&json!("clean"), &json!(3))
    );
    let then = user.run("--json who web --at 4");
    assert_eq!(then.object()["unproven"], true);
    let work = user.list("work --item login");
    assert_eq!(
        (&work[0]["state"], &work[0]["session"]),
        (&json!("accepted"), &json!("web"))
    );
    let granted = user.json("adopt web --pid none");
    let token = granted["token"].as_str().expect("a token");
    user.run(&format!("report d1 --as {token} --outcome done"))
        .ended(0);
}

/// What is there is not written onto, what is no store is not read, and one of DEST and --in-place is needed.
#[test]
fn a_target_that_is_taken_is_refused() {
    let user = damaged();
    fs::create_dir(user.file("full")).expect("made");
    fs::write(user.file("full/x"), b"x").expect("written");
    let refused = user.run("--json salvage store full").ended(73).object();
    assert_eq!(refused["code"], "cannot-create");
    user.run("salvage nowhere new").ended(66);
    user.run("salvage full new").ended(66);
    user.run("salvage store").ended(64);
    user.run("salvage store new --in-place").ended(64);
    user.run("store accept salvaged --reason x").ended(64);
    let people = user.run("salvage store new").ended(0).out;
    assert!(people.contains("4 frames kept, 1 lost"), "{people}");
    assert!(
        people.contains("web: registered in a lost frame"),
        "{people}"
    );
    user.run("--store new audit").ended(0);
}

/// A process that has the store open is named, and nothing is exchanged.
#[test]
fn in_place_waits_for_nobody_and_goes_past_nobody() {
    let user = damaged();
    let mut other = Command::new("sleep")
        .arg("60")
        .stdin(fs::File::open(user.store()).expect("it opens"))
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let refused = user
        .run("--json salvage store --in-place")
        .ended(75)
        .object();
    let message = refused["message"].as_str().expect("a text");
    assert!(
        message.contains(&format!("process {}", other.id())),
        "{message}"
    );
    other.kill().expect("it ends");
    other.wait().expect("it ended");
    user.run("salvage store --in-place").ended(0);
}

/// F31: whoever is told that a store is damaged is told the command that goes on, and it does.
#[test]
fn damage_names_the_command_that_goes_on() {
    let user = damaged();
    let refused = user.run("--json register ops").ended(65).object();
    let next = refused["next"].as_array().expect("a list");
    let commands: Vec<&str> = next.iter().filter_map(|n| n["command"].as_str()).collect();
    let salvage = commands.last().expect("a command");
    let words = salvage.strip_prefix("tenure ").expect("one of ours");
    user.run(words).ended(0);
    user.run("register ops").ended(0);
}
