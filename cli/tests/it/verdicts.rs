//! The verdicts of `verify`, each made by what it is for, through the program: what happened, the exit code, and every
//! byte accounted for.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

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
