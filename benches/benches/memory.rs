//! What a session costs in memory: opened from a snapshot, once it was asked for, and replayed.
//!
//! `cargo bench -p tenure-benches --bench memory [-- SESSIONS]` prints bytes of private memory a session, as the kernel
//! counts them (Linux).

use std::fs;
use std::hint::black_box;
use std::path::Path;

use tempfile::TempDir;
use tenure_benches::ours::{host, open};
use tenure_core::id::{Name, Position};
use tenure_core::state::State;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::reader::Reader;

fn main() {
    let asked = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let sessions: usize = asked.unwrap_or(20_000);
    let dir = TempDir::new().expect("a directory");
    fill(dir.path(), sessions);
    let begin = private();
    let reader = Reader::open(&dir.path().join("store"), host(dir.path())).expect("it opens");
    let say = |what: &str| {
        let bytes = private().saturating_sub(begin);
        println!("{what}: {} bytes a session", bytes / sessions);
    };
    say("opened from its snapshot");
    let found = reader.view(|state| state.find(b"session/7").is_some());
    assert!(found.expect("it reads"), "it was registered");
    say("and one was asked for");
    let seen = reader.view(|state| state.sessions.iter().filter(|s| !s.retired).count());
    assert_eq!(seen.expect("it reads"), sessions);
    say("and every one was looked at");
    let begin = private();
    let head = Position(reader.head().expect("it reads").position.0);
    let state: State = reader.state_at(head).expect("it replays");
    let bytes = private().saturating_sub(begin);
    black_box(&state);
    println!(
        "replayed, with their names: {} bytes a session",
        bytes / sessions
    );
}

/// A store with so many sessions, and a snapshot of it.
fn fill(dir: &Path, sessions: usize) {
    let store = open(dir);
    let numbers: Vec<usize> = (0..sessions).collect();
    for together in numbers.chunks(250) {
        let register = |n: &usize| {
            let name = Name::parse(&format!("session/{n}")).expect("a name");
            let verb = Verb::Register {
                name,
                bearer: Bearer::itself(),
                labels: Vec::new(),
                checkout: None,
            };
            let call = Call::new(verb).by("bench");
            store.submit(call).expect("well-formed")
        };
        let tickets: Vec<_> = together.iter().map(register).collect();
        for ticket in tickets {
            ticket.wait().expect("it stands");
        }
    }
    store.snapshot().expect("it is kept");
}

/// Bytes of memory that are this process's own.
fn private() -> usize {
    let text = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux says");
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("Private_Dirty:"));
    let kib = lines.filter_map(|rest| rest.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.sum::<usize>() * 1024
}
