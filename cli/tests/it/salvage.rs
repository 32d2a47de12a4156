//! `salvage` as a user meets it: what it keeps, what it says, and what it refuses.

use std::fs;
use std::io::Write;
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

/// Turns over a bit in each of the frames at these positions.
fn hurt(user: &Terminal, positions: &[u64]) {
    let stretches = user.list("inspect store");
    for position in positions {
        let is = |s: &&Value| s["what"] == "frame" && s["position"] == *position;
        let frame = stretches.iter().find(is).expect("a frame");
        let file = user.store().join("segments");
        let file = file.join(frame["segment"].as_str().expect("a name"));
        let offset = usize::try_from(frame["offset"].as_u64().expect("a number"));
        let mut bytes = fs::read(&file).expect("it reads");
        bytes[offset.expect("it fits") + 100] ^= 1;
        fs::write(&file, bytes).expect("it writes");
    }
}

/// A store of two sessions with work, in which the frame that registered the second is damaged.
fn damaged() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register api\nregister web\ndispatch login --to web\naccept d1 --as web@1\nnote hello --as web@1",
    );
    hurt(&user, &[2]);
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

/// F11: what later frames tell of roles, trees and idempotency keys is in the loss report: what certainly changed in a lost
/// frame, what may have, and not what later frames show to be as it was.
#[test]
fn the_loss_report_names_roles_trees_and_keys() {
    let user = Terminal::new();
    user.play(
        "register api --pid none
         register web --pid none
         register sub --parent api@1
         register lone --pid none
         register leaf --parent lone@1
         role take command --scope ws --as api@1
         role take review --scope ws --as web@1
         role take watch --scope ws --as web@1
         dispatch two --to web --idempotency-key k2",
    );
    // What is lost: positions 10 to 13.
    user.play(
        "role take deploy --scope ws --as web@1
         role clear command --scope ws --reason gone
         dispatch one --to web --idempotency-key k1
         adopt --tree api --force --reason taken --pid none",
    );
    user.play("role take command --scope ws --as web@1");
    user.run("dispatch other --to web --idempotency-key k1")
        .ended(11);
    user.play(
        "adopt sub --pid none --force --reason taken
         role release deploy --scope ws --as web@1
         role release review --scope ws --as web@1
         register bud --parent lone@1",
    );
    hurt(&user, &[10, 11, 12, 13]);
    let people = user.run("salvage store --in-place --dry-run").ended(0).out;
    let report = user
        .run("--json salvage store --in-place --dry-run")
        .ended(0)
        .objects();
    let told = |kind_of: &str, name: &str| -> Vec<(Value, bool)> {
        let objects = kind(&report, kind_of);
        let told = objects.iter();
        told.map(|o| (o[name].clone(), o["certain"] == true))
            .collect()
    };
    let expected = [
        (json!("command"), true),
        (json!("watch"), false),
        (Value::Null, true),
    ];
    assert_eq!(told("salvage-role", "role"), expected);
    // A grant in the tree of `lone` names the epoch that it had.
    assert_eq!(told("salvage-tree", "tree"), [(json!("api"), true)]);
    assert_eq!(told("salvage-key", "position"), [(json!(12), true)]);
    assert_eq!(kind(&report, "salvage")[0]["keys_kept"], 1);
    for line in [
        "command@ws: changed hands in a lost frame; held by web",
        "watch@ws: held by web, as far as is known",
        "whose name is not known: first taken in a lost frame",
        "api: known in epoch 1, then claimed or given back in a lost frame; epoch 3 is known",
        "was given at position 12, which is lost",
        "1 idempotency keys are kept; one that was given in a lost frame is free again",
    ] {
        assert!(people.contains(line), "{line}: {people}");
    }
}

/// What may be lost is asked about at the place of the loss: a whole store has a report without any of it.
#[test]
fn nothing_is_affected_where_nothing_is_lost() {
    let user = Terminal::new();
    user.play("register api --pid none\nrole take command --scope ws --as api@1");
    let report = user.list("salvage store --in-place --dry-run");
    assert_eq!(report.len(), 1, "{report:?}");
}

/// A salvage needs memory for a fraction of what it copies: half of a store's size would not do for one that reads it in
/// as a whole, and is more than enough for this one.
#[test]
fn a_store_is_salvaged_in_a_fraction_of_its_size() {
    const RECORDS: u64 = 32;
    const DATA_KIB_MAX: u64 = 14 << 10;
    let user = Terminal::new();
    user.play("register api --pid none");
    let record: Vec<u8> = (0..1_000_000_u32).map(|n| (n * 31 % 251) as u8).collect();
    fs::write(user.file("record"), record).expect("it writes");
    for _ in 0..RECORDS {
        user.play("-q record @record --as api@1");
    }
    hurt(&user, &[RECORDS / 2]);
    let salvage = |limit_kib: u64| {
        let script = format!(
            "ulimit -d {limit_kib} && exec {} salvage store new",
            env!("CARGO_BIN_EXE_tenure")
        );
        let output = Command::new("sh")
            .arg("-c")
            .arg(script)
            .current_dir(user.path())
            .env("HOME", user.path())
            .output();
        output.expect("a shell runs")
    };
    // The limit is one: a frame does not fit into this.
    assert!(!salvage(2 << 10).status.success());
    let done = salvage(DATA_KIB_MAX);
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{done:?}");
    assert!(said.contains("32 frames kept, 1 lost"), "{said}");
    user.run("verify new").ended(0);
}

/// What is looked at and salvaged may be on a file system mounted read-only, and nothing is tried there.
#[test]
fn a_source_mounted_read_only_is_read_and_salvaged() {
    let user = damaged();
    user.play("--store whole register api --pid none\n--store whole note hello --as api@1");
    let script = r#"
        set -e
        mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"
        mount --bind "$2" "$2" && mount -o remount,ro,bind "$2"
        shift 2
        ! touch store/written 2>/dev/null
        exec "$@"
    "#;
    let inside = |command: &str| {
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", script, "sh", "store", "whole"]);
        shell
            .arg(env!("CARGO_BIN_EXE_tenure"))
            .args(command.split(' '));
        shell.current_dir(user.path()).env("HOME", user.path());
        shell.env_remove("TENURE_STORE");
        Terminal::finish(&mut shell)
    };
    if inside("--version").code != 0 {
        let line = "SKIPPED salvage::a_source_mounted_read_only_is_read_and_salvaged: needs root and mount namespaces\n";
        // Not captured, so that it stands in every log.
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
        return;
    }
    let files = |store: &str| {
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let mut folders = vec![user.file(store)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it lists") {
                let path = entry.expect("it lists").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), fs::read(&path).expect("it reads"))),
                }
            }
        }
        files.sort();
        files
    };
    let before = (files("store"), files("whole"));
    for (command, code) in [
        ("verify whole", 0),
        ("inspect whole", 0),
        ("--store whole who api --at 1", 0),
        ("--store whole log", 0),
        ("--store whole audit", 0),
        ("--store whole export --redact bodies --output bundle", 0),
        ("--store whole note late --as api@1", 73),
        ("verify store", 1),
        ("inspect store", 0),
        ("--store store who web", 65),
        ("salvage store --in-place --dry-run", 0),
        ("salvage store new", 0),
    ] {
        let ran = inside(command);
        assert_eq!(ran.code, code, "{command}: {ran:?}");
    }
    assert_eq!((files("store"), files("whole")), before);
    user.run("verify new").ended(0);
    user.run("--store new adopt --all --reason x --pid none")
        .ended(0);
}
