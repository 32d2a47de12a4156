//! The verdicts of `verify`, each made by what it is for, through the program: what happened, the exit code, and every
//! byte accounted for.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_projection::host::System;
use tenure_projection::store::{OpenOptions, Store};

use crate::terminal::Terminal;

/// A store of several segments: it was copied and began a new life.
fn two_lives() -> (Terminal, PathBuf) {
    let user = Terminal::new();
    user.play("register api\ndispatch login --to api\naccept d1 --as api@1\nnote hello --as api@1");
    let copy = user.file("copy");
    let status = std::process::Command::new("cp")
        .arg("-a")
        .args([&user.store(), &copy])
        .status();
    assert!(status.expect("cp runs").success());
    user.play("--store copy store accept copied --reason backup\n--store copy adopt --all --reason restored");
    (user, copy)
}

fn segments(store: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(store.join("segments")).expect("it lists");
    let mut names: Vec<PathBuf> = listed.map(|e| e.expect("it lists").path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "seg"));
    names.sort();
    names
}

fn newest(files: &[PathBuf]) -> &Path {
    files.last().expect("there are several")
}

fn edit(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).expect("it reads");
    change(&mut bytes);
    fs::write(file, bytes).expect("it writes");
}

/// The report, and that each byte of each segment stands in its accounts.
fn verified(user: &Terminal, code: i32) -> Value {
    let report = user.run("--json verify copy").ended(code).object();
    let accounted = report["coverage"]["accounted"]
        .as_object()
        .expect("it is there");
    let sum: u64 = accounted.values().filter_map(Value::as_u64).sum();
    let regular = |file: &PathBuf| fs::metadata(file).ok().filter(fs::Metadata::is_file);
    let files = segments(&user.file("copy"));
    let bytes: u64 = files.iter().filter_map(regular).map(|m| m.len()).sum();
    assert_eq!(sum, bytes, "{report}");
    report
}

fn causes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("a list");
    findings
        .iter()
        .filter_map(|f| f["cause"].as_str())
        .collect()
}

/// CRC-32 as in zlib, for a header that says something else and is right in itself.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// The offset of the first frame of the first segment.
const FIRST_FRAME: usize = 4096;

/// F31, LOG-6: a word for each thing that has another remedy, and the exit code of its verdict.
#[test]
fn each_verdict_has_its_cause_and_exit_code() {
    type Change = fn(&Terminal, &[PathBuf]);
    let cases: &[(&str, &str, i32, Change)] = &[
        ("bit-rot", "damaged", 1, |_, files| {
            edit(&files[0], |bytes| bytes[FIRST_FRAME + 90] ^= 1);
        }),
        ("bit-rot", "damaged", 1, |_, files| {
            edit(&files[1], |bytes| bytes[40] ^= 1)
        }),
        ("gap", "damaged", 1, |_, files| {
            fs::remove_file(&files[0]).expect("it is there");
        }),
        ("truncation", "damaged", 1, |_, files| {
            edit(&files[0], |bytes| bytes.truncate(FIRST_FRAME + 100));
        }),
        ("foreign", "incomplete", 3, |user, files| {
            user.play("--store other register api");
            let name = files[1].with_file_name("00000000000000000900-9.seg");
            fs::copy(&segments(&user.file("other"))[0], name).expect("it copies");
        }),
        ("newer-format", "incomplete", 3, |_, files| {
            edit(&files[1], |bytes| {
                bytes[8] = 2;
                let crc = crc32(&bytes[..4092]).to_le_bytes();
                bytes[4092..4096].copy_from_slice(&crc);
            });
        }),
        ("io-error", "incomplete", 3, |_, files| {
            fs::remove_file(&files[1]).expect("it is there");
            fs::create_dir(&files[1]).expect("it is made");
        }),
        ("impossible", "damaged", 1, |_, files| {
            let name = files[1].with_file_name("00000000000000000900-9.seg");
            fs::rename(&files[1], name).expect("it is there");
        }),
        ("late", "clean", 0, |_, files| {
            edit(&files[0], |bytes| bytes.extend([7; 64]))
        }),
        ("torn-tail", "torn-tail", 1, |user, files| {
            fs::remove_file(user.file("copy").join("control")).expect("it is there");
            edit(newest(files), |bytes| {
                let end = bytes.iter().rposition(|b| *b != 0).expect("a frame") + 1;
                bytes[end - 20..].fill(0);
            });
        }),
    ];
    for (cause, verdict, code, change) in cases {
        let (user, copy) = two_lives();
        let whole = verified(&user, 0);
        assert_eq!(
            (&whole["verdict"], causes(&whole).len()),
            (&json!("clean"), 0)
        );
        assert_eq!(whole["coverage"]["segments"], segments(&copy).len());
        change(&user, &segments(&copy));
        let report = verified(&user, *code);
        assert_eq!(report["verdict"], *verdict, "{cause}: {report}");
        assert!(causes(&report).contains(cause), "{cause}: {report}");
        let findings = report["findings"].as_array().expect("a list");
        assert!(
            findings
                .iter()
                .all(|f| f["next"].as_str().is_some_and(|n| !n.is_empty()))
        );
        user.run("verify copy").ended(*code);
    }
}

/// E19: to whoever holds a receipt, a log that is not there is a finding; and so is one that ends earlier, and one that
/// went another way.
#[test]
fn a_missing_log_is_a_finding_to_who_expects_a_head() {
    let (user, copy) = two_lives();
    let receipt = user.json("--store copy log -n 1")["receipt"].clone();
    let receipt = match receipt.as_str() {
        Some(receipt) => receipt.to_owned(),
        None => user.json("note late --as api@1")["receipt"]
            .as_str()
            .expect("a receipt")
            .to_owned(),
    };
    user.run("verify nowhere").ended(66);
    let missing = format!("--json verify nowhere --expected-head {receipt}");
    let report = user.run(&missing).ended(1).object();
    assert_eq!(
        (&report["verdict"], causes(&report)),
        (&json!("damaged"), vec!["no-log"])
    );
    let said = user.run(&missing.replace("--json ", "")).ended(1).out;
    assert!(said.contains("there is no log"), "{said}");
    // The original went on; the copy went another way from the same beginning.
    let split = format!("--json verify copy --expected-head {receipt}");
    let report = user.run(&split).ended(1).object();
    assert_eq!(
        (&report["verdict"], causes(&report)),
        (&json!("damaged"), vec!["split-view"])
    );
    let (parts, ahead) = (receipt.split(':').collect::<Vec<_>>(), "99");
    let ahead = format!(
        "--json verify copy --expected-head {}:{ahead}:{}",
        parts[0], parts[2]
    );
    let report = user.run(&ahead).ended(1).object();
    assert_eq!(causes(&report), ["rollback"]);
    assert!(copy.exists());
}

/// F07, F14, LOG-6: the exit code says so: a sample of flipped bits, cuts and swapped bytes over all of a store's
/// segments.
#[test]
fn what_was_changed_anywhere_ends_with_one() {
    let (user, copy) = two_lives();
    for file in segments(&copy) {
        let whole = fs::read(&file).expect("it reads");
        let end = whole.iter().rposition(|b| *b != 0).expect("frames") + 1;
        for at in (0..end).step_by(end / 12) {
            edit(&file, |bytes| bytes[at] ^= 0x10);
            verified(&user, 1);
            fs::write(&file, &whole[..at]).expect("it writes");
            verified(&user, 1);
            fs::write(&file, &whole).expect("it writes");
        }
        verified(&user, 0);
    }
}

fn copy(user: &Terminal, from: &str, to: &str) {
    let status = std::process::Command::new("cp")
        .arg("-a")
        .args([user.file(from), user.file(to)])
        .status();
    assert!(status.expect("cp runs").success());
}

/// A closed segment that is whole, in a line that is whole, and not the one that was sealed: the segments of another copy of
/// the store were put in the place of its own.
#[test]
fn exchanged_segments_are_told_by_their_seals() {
    let user = Terminal::new();
    user.play("register api --pid none");
    copy(&user, "store", "twin");
    user.play("--store twin store accept moved --reason x");
    for (store, byte) in [("store", b'a'), ("twin", b'b')] {
        fs::write(user.file("record"), vec![byte; 700_000]).expect("it writes");
        for _ in 0..2 {
            user.play(&format!("-q --store {store} record @record --as api@1"));
        }
    }
    let host = std::sync::Arc::new(System::new(&user.file("host")));
    Store::open(&OpenOptions::new(user.store()), host)
        .and_then(|store| store.snapshot())
        .expect("it opens, and what is closed is sealed");
    let report = user.json("verify");
    assert_eq!(
        (&report["verdict"], &report["coverage"]["sealed"]),
        (&json!("clean"), &json!(1)),
        "{report}"
    );
    fs::remove_dir_all(user.file("store/segments")).expect("it is there");
    copy(&user, "twin/segments", "store/segments");
    for derived in ["control", "snapshots"] {
        let path = user.store().join(derived);
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        };
        removed.expect("it is there");
    }
    let report = user.run("--json verify").ended(1).object();
    assert_eq!(report["verdict"], "damaged");
    assert_eq!(causes(&report), ["exchanged"], "{report}");
    let said = user.run("verify").ended(1).out;
    assert!(said.contains("is not what was sealed"), "{said}");
    // The seals of the twin's own are as good as none.
    assert_eq!(user.json("--store twin verify twin")["verdict"], "clean");
}

/// A frame that is being written is no damage and no torn tail: `verify` says that it is in flight, as long as the writer
/// goes on. Here one writes the frames of another store half by half.
#[test]
fn a_frame_in_flight_is_told_and_no_finding_against_the_store() {
    let user = Terminal::new();
    user.play("register api --pid none");
    for n in 0..40 {
        user.play(&format!("-q note number{n} --as api@1"));
    }
    let stretches = user.list("inspect store");
    let frames = stretches.iter().filter(|s| s["what"] == "frame");
    let ends: Vec<usize> = frames
        .map(|s| (s["offset"].as_u64().expect("a number") + 200) as usize)
        .collect();
    let whole = fs::read(&segments(&user.store())[0]).expect("it reads");
    copy(&user, "store", "copy");
    // What the page knows to be durable is more than the copy has.
    fs::remove_file(user.file("copy/control")).expect("it is there");
    let file = segments(&user.file("copy")).remove(0);
    let half = |n: usize| {
        let mut bytes = whole.clone();
        bytes[ends[n]..].fill(0);
        fs::write(&file, bytes).expect("it writes");
    };
    half(1);
    user.run("verify copy").ended(1);
    let mut seen = false;
    for _ in 0..20 {
        half(1);
        let going_on = std::sync::atomic::AtomicBool::new(true);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut open = fs::OpenOptions::new();
                let file = open.write(true).open(&file).expect("it opens");
                for pair in ends[1..].windows(2) {
                    if !going_on.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(30));
                    // One write from the middle of a frame to the middle of the next.
                    file.write_all_at(&whole[pair[0]..pair[1]], pair[0] as u64)
                        .expect("it writes");
                }
            });
            let report = user.run("--json verify copy");
            going_on.store(false, std::sync::atomic::Ordering::Relaxed);
            report
        });
        let object = report.object();
        if causes(&object) == ["in-flight"] {
            assert_eq!((&object["verdict"], report.code), (&json!("clean"), 0));
            seen = true;
            break;
        }
    }
    assert!(seen, "a frame was half written whenever it was looked");
}

/// F31: a file of another store is named as that by every command, wherever its name puts it; what is printed takes it out.
#[test]
fn a_file_of_another_store_is_taken_out_as_it_is_said() {
    for name in [None, Some("00000000000000000900-9.seg")] {
        let (user, own) = two_lives();
        // Two lives on, so that its newest segment comes behind every one of ours.
        user.play("--store other register api --pid none");
        for (from, to) in [("other", "other2"), ("other2", "other3")] {
            copy(&user, from, to);
            user.play(&format!("--store {to} store accept copied --reason x"));
        }
        let theirs = segments(&user.file("other3"));
        let theirs = newest(&theirs);
        let file = theirs.file_name().expect("a name").to_string_lossy();
        let file = name.map_or_else(|| file.into_owned(), str::to_owned);
        let place = own.join("segments").join(&file);
        assert!(!place.exists(), "it takes nobody's place");
        fs::copy(theirs, &place).expect("it copies");
        for command in ["who api", "register ops"] {
            let line = format!("--json --store copy {command}");
            let refused = user.run(&line).ended(65).object();
            assert_eq!(refused["code"], "foreign-store", "{refused}");
            let message = refused["message"].as_str().expect("a text");
            assert!(
                message.contains(&format!("segment {file} belongs to")),
                "{message}"
            );
        }
        let refused = user
            .run("--json --store copy register ops")
            .ended(65)
            .object();
        let next = refused["next"].as_array().expect("a list");
        let command = next[0]["command"].as_str().expect("a command");
        assert!(
            command.starts_with("mv ") && command.contains(&file),
            "{command}"
        );
        let mut shell = std::process::Command::new("sh");
        let moved = shell
            .args(["-c", command])
            .current_dir(user.path())
            .status();
        assert!(moved.expect("a shell runs").success());
        let verify = next[1]["command"].as_str().expect("a command");
        user.run(verify.strip_prefix("tenure ").expect("one of ours"))
            .ended(0);
        user.run("--store copy register ops").ended(0);
    }
}

/// F31: whoever meets a newer format is told that another program is needed, and which this one is.
#[test]
fn a_newer_format_says_that_another_program_is_needed() {
    let (user, _) = two_lives();
    edit(newest(&segments(&user.file("copy"))), |bytes| {
        bytes[8] = 2;
        let crc = crc32(&bytes[..4092]).to_le_bytes();
        bytes[4092..4096].copy_from_slice(&crc);
    });
    let refused = user
        .run("--json --store copy register ops")
        .ended(65)
        .object();
    assert_eq!(refused["code"], "newer-format");
    let next = refused["next"].as_array().expect("a list");
    let commands: Vec<&str> = next.iter().filter_map(|n| n["command"].as_str()).collect();
    assert_eq!(commands[0], "tenure --version");
    user.run("--version").ended(0);
    let verify = commands[1].strip_prefix("tenure ").expect("one of ours");
    user.run(verify).ended(3);
}

/// LOG-6: a frame that did not stand is named until somebody has looked at it; from then on it is shown, and the store
/// is whole and can be written to.
#[test]
fn an_acknowledged_frame_is_shown_and_is_no_verdict() {
    const FORGED: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../projection/tests/golden/forged/guard.generation-stale.seg"
    );
    let user = Terminal::new();
    let private = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    for folder in ["copy", "copy/segments"] {
        fs::create_dir(user.file(folder)).expect("it is made");
        private(&user.file(folder), 0o700);
    }
    let segment = user.file("copy/segments/00000000000000000001-1.seg");
    fs::copy(FORGED, &segment).expect("it copies");
    private(&segment, 0o600);
    let finding = |report: &Value| {
        let found = report["findings"].as_array().expect("a list");
        let found = found.iter().find(|f| f["kind"] == "does-not-stand");
        let found = found.expect("it is shown");
        assert_eq!(found["position"], 3);
        found["next"].as_str().expect("a text").to_owned()
    };
    let before = user.run("--json verify copy").ended(1).object();
    assert_eq!(before["verdict"], "damaged");
    let next = finding(&before);
    let accept = next
        .strip_prefix("tenure ")
        .expect("one of ours")
        .replace("TEXT", "seen");
    user.run("--store copy register more").ended(65);
    user.run(&format!("--store copy {accept}")).ended(0);
    let after = user.run("--json verify copy").ended(0).object();
    assert_eq!(after["verdict"], "clean");
    assert_eq!(finding(&after), "nothing has to be done");
    user.run("--store copy register more").ended(0);
    user.run("--store copy audit").ended(1);
}
