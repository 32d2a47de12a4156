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

/// Bytes of the header that stand before the state, and where in it its check and its length stand: see
/// `projection/src/store/snapshot.rs`.
fn forge(snapshot: &Path) {
    let mut bytes = std::fs::read(snapshot).expect("readable");
    let length = u64::from_le_bytes(bytes[64..72].try_into().expect("eight bytes"));
    let body = bytes.len() - usize::try_from(length).expect("it fits");
    let state = &mut bytes[body..];
    let at = state
        .windows(7)
        .position(|w| w == b"forging")
        .expect("the status");
    state[at..at + 7].copy_from_slice(b"resting");
    let check = crc32fast::hash(state);
    bytes[12..16].copy_from_slice(&check.to_le_bytes());
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
