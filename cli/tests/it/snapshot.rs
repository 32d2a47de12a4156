//! A snapshot that says otherwise than the log: found by `verify`, and nowhere else to be feared once removed.

use std::path::Path;
use std::sync::Arc;

use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::core::id::{Name, Token};
use tenure_projection::host::System;
use tenure_projection::store::{OpenOptions, Store};

use crate::terminal::Terminal;

/// Enough frames that the store writes a snapshot by itself.
fn filled(place: &Path, host: &Path) {
    let options = OpenOptions::new(place).create(true);
    let store = Store::open(&options, Arc::new(System::new(host))).expect("it opens");
    let register = Verb::Register {
        name: Name::parse("api").expect("a name"),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    store
        .execute(Call::new(register).by("test"))
        .expect("registered");
    let token: Token = "api@1".parse().expect("a token");
    let observe = |n: usize| Verb::Observe {
        status: format!("forging step {n}"),
        wrote: Vec::new(),
    };
    for together in (0..3000).collect::<Vec<_>>().chunks(250) {
        let submit = |n: &usize| {
            let call = Call::new(observe(*n)).by("test").under(&token);
            store.submit(call).expect("well-formed")
        };
        let tickets: Vec<_> = together.iter().map(submit).collect();
        for ticket in tickets {
            ticket.wait().expect("it stands");
        }
    }
}

/// What the directory says of a page of so many bytes with that check: see `core/src/state/paged.rs`.
fn entries(bytes: usize, check: u32) -> [Vec<u8>; 2] {
    [0, 1].map(|quiet| {
        let word = u16::try_from(bytes << 1 | quiet).expect("a small page");
        let mut entry = match u8::try_from(word) {
            Ok(word @ 0..=250) => vec![word],
            _ => [&[251][..], &word.to_le_bytes()].concat(),
        };
        entry.extend(check.to_le_bytes());
        entry
    })
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|w| w == wanted)
}

/// Where the page that holds the byte at `at` is, and where in the directory its check stands.
fn page(directory: &[u8], pages: &[u8], at: usize) -> (std::ops::Range<usize>, usize) {
    for begin in (0..=at).rev() {
        let mut check = crc32fast::Hasher::new();
        check.update(&pages[begin..at]);
        for end in at + 1..=pages.len() {
            check.update(&pages[end - 1..end]);
            for entry in entries(end - begin, check.clone().finalize()) {
                if let Some(found) = find(directory, &entry) {
                    return (begin..end, found + entry.len() - 4);
                }
            }
        }
    }
    panic!("every page stands in the directory");
}

/// Has a session say something else, under checksums that fit: see `projection/src/store/snapshot.rs`.
fn forge(snapshot: &Path) {
    let mut bytes = std::fs::read(snapshot).expect("readable");
    let word = |at: usize| {
        let word = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        usize::try_from(word).expect("it fits")
    };
    let eager = bytes.len() - word(64);
    let pages = eager + 8 + word(eager);
    let (head, state) = bytes.split_at_mut(pages);
    let at = find(state, b"forging").expect("the status");
    let (range, stands) = page(&head[eager + 8..], state, at);
    state[at..at + 7].copy_from_slice(b"resting");
    let check = crc32fast::hash(&state[range]);
    head[eager + 8 + stands..][..4].copy_from_slice(&check.to_le_bytes());
    let check = crc32fast::hash(&head[eager..]);
    head[12..16].copy_from_slice(&check.to_le_bytes());
    std::fs::write(snapshot, bytes).expect("written");
}

#[test]
fn verify_compares_the_snapshot_with_a_replay() {
    let user = Terminal::new();
    filled(&user.store(), &user.file("host"));
    let snapshot = user.store().join("snapshots/state");
    let report = user.json("verify");
    let checks = report["coverage"]["checks"]
        .as_array()
        .expect("a list")
        .clone();
    assert!(checks.iter().any(|check| check == "snapshot"), "{report}");
    forge(&snapshot);
    let ran = user.run("--json verify").ended(1);
    let report = ran.object();
    assert_eq!(report["verdict"], "damaged");
    assert_eq!(report["findings"][0]["kind"], "snapshot-differs");
    assert!(
        user.run("verify")
            .out
            .contains("remove the directory `snapshots`")
    );
    std::fs::remove_dir_all(user.store().join("snapshots")).expect("removed");
    assert_eq!(user.json("verify")["verdict"], "clean");
    let status = user.json("show api")["status"].clone();
    assert_eq!(status, "forging step 2999");
}
