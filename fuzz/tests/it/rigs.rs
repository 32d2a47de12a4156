//! The runner's rigs, a sample of each.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use tenure_fuzz::rig::page::with_figures;
use tenure_fuzz::rig::zoo::BUGS;

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

/// C1, C2, C4: no changed byte is taken for what was written.
#[test]
fn a_changed_byte_is_found() {
    holds("corruption");
}

/// R1, R3, R4: a crash at any step of anything, and in its recovery, loses nothing acknowledged.
#[test]
fn a_crash_at_any_step_loses_nothing_acknowledged() {
    holds("crashes");
}

/// F3, F4, F6: the product and a small model of it answer alike.
#[test]
fn the_product_agrees_with_a_model_of_it() {
    holds("model");
}

/// L1, F4: what several processes were told is an order of what they asked.
#[test]
fn histories_of_killed_and_stopped_processes_are_linearizable() {
    holds("histories");
}

/// R7: what was acknowledged outlives a cut of the power, also when the answer raced it.
#[test]
fn a_power_cut_takes_back_nothing_acknowledged() {
    holds("power");
}

/// L4: clocks decide nothing.
#[test]
fn a_clock_that_jumps_changes_no_answer() {
    holds("clock");
}

/// L4: a number is no identity.
#[test]
fn a_process_number_given_out_again_is_nobodys_holder() {
    holds("pids");
}

/// L1, R1, F1: several simulated processes, killed, stopped, starved of syncs and with clocks that leap.
#[test]
fn simulated_processes_lose_nothing_acknowledged_and_keep_their_order() {
    holds("simulation");
}

/// C6, F2: what decodes arbitrary bytes holds what it asserts.
#[test]
fn changed_files_of_the_corpus_are_read_or_refused() {
    holds("fuzz");
}

/// S3, S4: whatever is asked from outside has a documented end, and nothing is printed that a terminal obeys.
#[test]
fn hostile_arguments_payloads_and_requests_end_as_documented() {
    holds("outside");
}

/// R1, C6: memory that runs out is a crash like another, and no length of the input becomes a request.
#[test]
fn memory_that_runs_out_takes_back_nothing_acknowledged() {
    holds("oom");
}

/// Each bug of the zoo is planted at one place or more, and none is planted that the zoo does not have.
#[test]
fn the_bugs_of_the_zoo_are_those_that_are_planted() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut places = ["core", "log", "projection", "cli"]
        .map(|room| house.join(room).join("src"))
        .to_vec();
    let mut planted = BTreeSet::new();
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).expect("listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                places.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("it reads");
            let names = text.split("planted(\"").skip(1);
            planted.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    let named: BTreeSet<String> = BUGS.iter().map(|bug| bug.name.to_owned()).collect();
    assert_eq!(planted, named);
    assert_eq!(BUGS.len(), 41);
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

/// The page shows the figures that were kept, and the bugs there are; `UPDATE_EXPECT=1` writes it anew.
#[test]
fn the_page_shows_the_figures_that_were_kept() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let place = house.join("docs/reliability.md");
    let page = std::fs::read_to_string(&place).expect("the page is there");
    let made = with_figures(&page, &house.join("fuzz/figures")).expect("the figures can be read");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(place, made).expect("written");
        return;
    }
    assert!(
        made == page,
        "run the runner with --keep, or this test with UPDATE_EXPECT=1"
    );
}
