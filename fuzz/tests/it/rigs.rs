//! The runner's rigs, a sample of each.

use std::path::Path;
use std::process::{Command, Output};

use tenure_fuzz::rig::page::with_figures;

fn runner(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure-fuzz"));
    command.args(words).output().expect("the runner runs")
}

fn holds(rig: &str) {
    let ran = runner(&["--tier", "0", "--seed", "3", "--rig", rig]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    if said.contains("SKIPPED") {
        println!("{said}");
        return;
    }
    let figures: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("it prints JSON");
    assert_eq!(figures["violations"].as_array().map(Vec::len), Some(0));
    let counts = figures["tried"].as_object().expect("it counts");
    let tried: u64 = counts.values().filter_map(serde_json::Value::as_u64).sum();
    assert!(tried > 0, "{figures}");
}

/// R1, R2, R3, R7, R8: whatever a system call answers, an answer of ours is true.
#[test]
fn a_system_call_that_fails_makes_no_answer_false() {
    holds("syscalls");
}

/// F1, F2, LIV-20: a writer that was stopped anywhere is passed, and fenced when it goes on.
#[test]
fn a_writer_stopped_at_a_system_call_is_passed_and_fenced() {
    holds("stops");
}

/// A rig that nobody wrote is named with those there are.
#[test]
fn an_unknown_rig_is_an_error() {
    let ran = runner(&["--rig", "nonesuch"]);
    assert!(!ran.status.success());
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        said.contains("no rig is named nonesuch") && said.contains("stops"),
        "{said}"
    );
}

/// The page shows the figures that were kept.
#[test]
fn the_page_shows_the_figures_that_were_kept() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page =
        std::fs::read_to_string(house.join("docs/reliability.md")).expect("the page is there");
    let made = with_figures(&page, &house.join("fuzz/figures")).expect("the figures can be read");
    assert!(made == page, "run the runner with --keep");
}
