//! inspect: every byte of a file shown for what it is, whatever happened to it, for a person and for a program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tenure_projection::core::codec::v1;
use tenure_projection::core::command::{Command as Asked, Count, Origin, Request};
use tenure_projection::core::event::Fence;
use tenure_projection::core::holder::HostId;
use tenure_projection::core::id::{RefusalNo, Time};
use tenure_projection::core::text::Texts;
use tenure_projection::log::frame::{Draft, Parts};
use tenure_projection::log::journal::segment::{Options, SegmentLog};
use tenure_projection::log::journal::{Deadline, Journal};
use tenure_projection::log::position::TimeMicros;
use tenure_projection::log::storage::disk::Disk;

use crate::terminal::Terminal;

fn story() -> Terminal {
    let user = Terminal::new();
    user.play(
        "register api --label team=blue
         dispatch login --to api --write src
         accept d1 --as api@1
         note hello --as api@1
         report d1 --as api@1 --outcome done",
    );
    user
}

fn segment(user: &Terminal) -> PathBuf {
    let entries = fs::read_dir(user.store().join("segments")).expect("it lists");
    let mut paths = entries.map(|e| e.expect("it lists").path());
    paths
        .find(|p| p.extension().is_some_and(|e| e == "seg"))
        .expect("a segment")
}

fn spans(stretches: &[Value]) -> Vec<(u64, u64)> {
    let number = |v: &Value| v.as_u64().expect("a number");
    let spans = stretches.iter().filter(|s| s["what"] != "segment");
    spans
        .map(|s| (number(&s["offset"]), number(&s["bytes"])))
        .collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("two digits")
        })
        .collect()
}

/// With `--hex` the JSON lines hold every byte that is not zero; stretches follow each other to the end.
#[test]
fn the_hex_of_all_stretches_is_the_file() {
    let user = story();
    let file = fs::read(segment(&user)).expect("it reads");
    let stretches = user.list("inspect store --hex");
    let mut end = 4096;
    for stretch in stretches.iter().filter(|s| s["what"] != "segment") {
        let (offset, bytes) = (&stretch["offset"], &stretch["bytes"]);
        let (offset, bytes) = (offset.as_u64().unwrap_or(0), bytes.as_u64().unwrap_or(0));
        assert_eq!(offset, end, "{stretch}");
        end = offset + bytes;
        let range = offset as usize..end as usize;
        match stretch["hex"].as_str() {
            Some(hex) => {
                assert_eq!(unhex(hex), file[range]);
                assert_eq!(stretch["hex_omitted"], 0);
            }
            None => assert!(file[range].iter().all(|byte| *byte == 0), "{stretch}"),
        }
    }
    assert_eq!(end, file.len() as u64);
    assert!(
        user.list("inspect store")
            .iter()
            .all(|s| s["hex"].is_null())
    );
}

/// What a frame decided is spelled out, and bodies are left to `--hex`.
#[test]
fn frames_are_shown_with_their_facts() {
    let user = story();
    let stretches = user.list("inspect store");
    let frames: Vec<&Value> = stretches.iter().filter(|s| s["what"] == "frame").collect();
    let registered = &frames[0]["facts"][0];
    assert_eq!(registered["kind"], "registered");
    assert_eq!(
        (&registered["session"], &registered["labels"]["team"]),
        (&json!("api"), &json!("blue"))
    );
    assert_eq!(frames[1]["facts"][0]["item"], "login");
    assert!(frames[3]["facts"][0]["body"].is_null());
    let people = user.run("inspect store").ended(0).out;
    assert!(people.contains("labels: team=blue"), "{people}");
    assert!(!people.contains("hello"), "{people}");
}

/// F29: behind damage the frames are found again, from any offset, and nothing is shown twice or left out.
#[test]
fn frames_are_found_again_behind_damage() {
    let user = story();
    let whole = user.list("inspect store");
    let places = spans(&whole);
    let file = segment(&user);
    let good = fs::read(&file).expect("it reads");
    // The second frame loses its header, the third a byte of its facts.
    let mut bytes = good.clone();
    bytes[places[1].0 as usize..][..84].fill(0xa5);
    bytes[places[2].0 as usize + 90] ^= 1;
    fs::write(&file, bytes).expect("it writes");
    let stretches = user.list("inspect store");
    assert_eq!(spans(&stretches), places);
    let what: Vec<&Value> = stretches.iter().map(|s| &s["what"]).collect();
    assert_eq!(
        what,
        ["segment", "frame", "bad", "bad", "frame", "frame", "zeros"]
    );
    assert_eq!(
        (&stretches[2]["position"], &stretches[3]["position"]),
        (&Value::Null, &json!(3))
    );
    assert_eq!(
        (&stretches[4]["attached"], &stretches[5]["attached"]),
        (&json!(false), &json!(true))
    );
    let late = user.list(&format!("inspect store --from {}", places[3].0));
    assert_eq!(spans(&late), places[3..]);
    // Without any header of its own, the file is read by its name and those of its siblings; here there are none.
    let mut bytes = good;
    bytes[..4096].fill(0);
    fs::write(&file, bytes).expect("it writes");
    let stretches = user.list("inspect store");
    assert_eq!(stretches[0]["what"], "bad-segment");
    assert_eq!(stretches[1]["what"], "bad");
}

/// LOG-7: an event of a kind that this program does not know is named by its number, whether it may decide or
/// not.
#[test]
fn unknown_kinds_are_opaque() {
    let user = Terminal::new();
    let options = Options {
        create: true,
        ..Options::default()
    };
    let log = SegmentLog::open(Arc::new(Disk), &user.store(), options).expect("it opens");
    for kind in [999_u16, 40_000] {
        let mut texts = Texts::default();
        let origin = Origin {
            actor: texts.add(b"newer"),
            uid: 0,
            pid: 1,
            host: HostId([1; 16]),
        };
        let command = Asked::from(Count {
            refusal: RefusalNo(0),
            count: 0,
        });
        let request = Request::of_the_store(command, origin, texts, Time(0));
        let parts = v1::encode(&Fence::NONE, &request, &[], || [7; 16]).expect("it fits");
        let (mut facts, texts, bodies) = (parts.facts, parts.texts, parts.bodies);
        // One event where there was none: its kind in bincode's form, version 1, and three bytes.
        assert_eq!(facts.pop(), Some(0));
        facts.extend_from_slice(&[1, 251]);
        facts.extend_from_slice(&kind.to_le_bytes());
        facts.extend_from_slice(&[1, 3, 7, 7, 7]);
        let parts = Parts {
            facts,
            texts,
            bodies,
        };
        let draft = Draft {
            time: TimeMicros(0),
            parts,
        };
        let head = log.head().expect("it reads");
        log.transact(head, Deadline::NEVER, &mut |_| vec![draft.clone()])
            .expect("it is appended");
    }
    drop(log);
    let stretches = user.list("inspect store");
    let words: Vec<&Value> = stretches
        .iter()
        .filter(|s| s["what"] == "frame")
        .map(|s| &s["events"])
        .collect();
    assert_eq!(words, [&json!(["unknown-999"]), &json!(["unknown-40000"])]);
    let people = user.run("inspect store").ended(0).out;
    assert!(people.contains("unknown-40000"), "{people}");
}

/// What the program prints at a terminal, with this shell line.
fn at_a_terminal(user: &Terminal, line: &str, no_color: bool) -> String {
    let mut command = Command::new("script");
    let program = env!("CARGO_BIN_EXE_tenure");
    command
        .args(["-qec", &format!("'{program}' {line}"), "/dev/null"])
        .current_dir(user.path())
        .env("TENURE_STORE", user.store())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    if no_color {
        command.env("NO_COLOR", "1");
    }
    let output = command.output().expect("script runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A terminal gets colour and a bar, a pipe neither; `NO_COLOR` and `--color` are heeded, and the bar leaves
/// nothing behind.
#[test]
fn a_terminal_gets_colour_and_a_bar() {
    if Command::new("script").arg("--version").output().is_err() {
        // Without a program that makes a terminal there is none to look at.
        return;
    }
    let user = story();
    let shown = at_a_terminal(&user, "inspect store", false);
    assert!(shown.contains('\x1b') && shown.contains(" %"), "{shown:?}");
    // Whatever was drawn is wiped before the next line begins.
    for behind in shown.split(" %").skip(1) {
        assert!(behind.starts_with("\r  "), "{behind:?}");
    }
    let plain = at_a_terminal(&user, "inspect store", true);
    assert!(!plain.contains('\x1b') && plain.contains(" %"), "{plain:?}");
    let never = at_a_terminal(&user, "--color never inspect store", false);
    assert!(!never.contains('\x1b'), "{never:?}");
    let quiet = at_a_terminal(&user, "-q inspect store", false);
    assert!(!quiet.contains(" %"), "{quiet:?}");
    let piped = user.run("inspect store").ended(0);
    assert!(!piped.out.contains('\x1b') && piped.err.is_empty());
    assert!(
        user.run("--color always inspect store")
            .ended(0)
            .out
            .contains('\x1b')
    );
}
