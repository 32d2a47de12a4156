//! What embedders are promised: the examples run, and the types are what Rust programs expect of them.

use std::error::Error as StdError;
use std::process::Command;

use tenure_core::id::Position;
use tenure_projection::error::{Error, Failure};
use tenure_projection::reader::{Entries, Reader};
use tenure_projection::session::Session;
use tenure_projection::store::{Store, Ticket};
use tenure_projection::tree::Tree;

use crate::scene::Scene;

#[allow(dead_code)]
#[path = "../../examples/own_projection.rs"]
mod own_projection;

/// A projection of one's own, several in one pass, to a position, from a snapshot, along a growing log, read-only.
#[test]
fn the_example_of_an_own_projection_runs() {
    own_projection::main().expect("it runs");
}

/// The example that starts a second process runs. Cargo builds it beside the tests when it builds all of them; else it is
/// built here.
#[test]
fn the_example_of_a_host_program_runs() {
    let this = std::env::current_exe().expect("it is known");
    let target = this.parent().and_then(|deps| deps.parent()).expect("deps");
    let example = target.join("examples/host_program");
    if !example.exists() {
        let profile = match target.file_name().expect("a name").to_str() {
            Some("debug") => "dev",
            Some(profile) => profile,
            None => unreachable!("cargo names profiles in letters"),
        };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--offline", "--quiet", "--example", "host_program"])
            .args(["--package", "tenure-projection", "--profile", profile])
            .arg("--target-dir")
            .arg(target.parent().expect("a target directory"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo runs").success());
    }
    let output = Command::new(example).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("stale-generation"), "{said}");
}

/// Errors travel between threads and through `?`; handles are shared.
#[test]
fn errors_and_handles_travel_between_threads() {
    fn error<E: StdError + Send + Sync + Clone + 'static>() {}
    fn shared<T: Send + Sync + std::fmt::Debug + 'static>() {}
    error::<Error>();
    error::<Failure>();
    shared::<Store>();
    shared::<Reader>();
    shared::<Session>();
    shared::<Tree>();
    fn awaited<T: Future + Send + std::fmt::Debug>() {}
    awaited::<Ticket>();
    fn iterated<'r, I: Iterator<Item = Result<tenure_core::event::Entry, Error>> + 'r>() {}
    iterated::<Entries<'_>>();
}

/// Entries come as an iterator, from any position to the newest of when it was made.
#[test]
fn entries_are_an_iterator() {
    let scene = Scene::new();
    scene.play("register api \n note one as=api@1 \n note two as=api@1");
    let entries = scene.store.entries(Position(2)).expect("the log reads");
    scene.play("note tre as=api@1");
    let positions: Result<Vec<u64>, _> =
        entries.map(|e| Ok::<_, Error>(e?.at.position.0)).collect();
    assert_eq!(positions.expect("the log reads"), [2, 3]);
    let mut beyond = scene.store.entries(Position(9)).expect("the log reads");
    assert!(beyond.next().is_none() && beyond.next().is_none());
}
