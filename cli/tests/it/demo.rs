//! The demo holds, and it fails on a build without the generation check.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn demo(binary: &Path, args: &[&str]) -> Output {
    let state = tempfile::tempdir().expect("a directory");
    Command::new(binary)
        .arg("demo")
        .args(args)
        .env("XDG_STATE_HOME", state.path())
        .output()
        .expect("the binary runs")
}

/// REG-9, ADO-1, ADO-2, OUT-5, OUT-7, BND-3, BND-5, DSC-1, NOT-6, A04, C18, E01
#[test]
fn the_demo_plays_the_story_and_every_step_holds() {
    let played = demo(Path::new(env!("CARGO_BIN_EXE_tenure")), &[]);
    let story = String::from_utf8_lossy(&played.stdout).into_owned();
    let said = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "{story}\n{said}");
    assert!(
        story.contains("stale-generation: api@1 was superseded; api@2 is current"),
        "{story}"
    );
    assert!(story.contains("Every step held"), "{story}");
}

/// The demo can fail: without the comparison the project exists for, it does.
#[test]
fn the_demo_fails_without_the_generation_check() {
    let planted = planted_binary("no_generation_check");
    let played = demo(&planted, &["--json"]);
    let said = String::from_utf8_lossy(&played.stdout);
    assert_eq!(played.status.code(), Some(1), "{said}");
    assert!(said.contains("the stale report is refused"), "{said}");
}

/// A build of this binary with a bug planted, without what the demo does not need. It has a build directory of its own,
/// because the flag that plants it changes every package.
fn planted_binary(bug: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--locked",
            "--package",
            "tenure",
            "--bin",
            "tenure",
            "--no-default-features",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", format!("--cfg tenure_plant=\"{bug}\""))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the planted build fails: {said}");
    target.join("debug").join("tenure")
}
