//! Seals: made later, held against the files by `verify`, never needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_log::format::RulesVersion;
use tenure_log::frame::{Draft, Parts};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal};
use tenure_log::look::PlainDirectory;
use tenure_log::position::TimeMicros;
use tenure_log::seal::Seal;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{self, Outcome, Report, verify};
use tenure_log::writer::site::Tuning;

/// A store of several small segments, all closed ones sealed.
fn sealed(room: &Path) -> PathBuf {
    let path = room.join("store");
    let tuning = Tuning {
        segment_bytes: vec![16 << 10],
        fill_bytes: 8 << 10,
        ..Tuning::default()
    };
    let options = Options {
        create: true,
        rules: RulesVersion(1),
        tuning,
        ..Options::default()
    };
    let log = SegmentLog::open(Arc::new(Disk), &path, options).expect("opened");
    for n in 0..60_u8 {
        let known = log.head().expect("a head");
        let parts = Parts {
            facts: vec![n; 600],
            ..Parts::default()
        };
        let draft = Draft {
            time: TimeMicros(i64::from(n)),
            parts,
        };
        let appended = log
            .transact(known, Deadline::NEVER, &mut |_| vec![draft.clone()])
            .expect("appended");
        log.wait_durable(appended.head.position, Deadline::NEVER)
            .expect("durable");
    }
    log.tend().expect("sealed");
    log.tend().expect("a second time there is nothing to do");
    path
}

fn seals(store: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(store.join("seals"))
        .expect("the folder is there")
        .map(|entry| entry.expect("it reads").path())
        .collect();
    paths.sort();
    paths
}

fn looked(store: &Path) -> Report {
    verify(&PlainDirectory::new(store), &verify::Options::default())
}

fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.kind.code()).collect()
}

#[test]
fn every_closed_segment_is_sealed_and_held_against_its_seal() {
    let room = tempfile::tempdir().expect("a directory");
    let store = sealed(room.path());
    let seals = seals(&store);
    let report = looked(&store);
    assert!(seals.len() > 1, "there are closed segments");
    assert_eq!(report.outcome, Outcome::Clean);
    assert_eq!(report.coverage.seals, seals.len() as u64);
    assert_eq!(report.coverage.segments, seals.len() as u64 + 1);
    let frames: u64 = seals
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a seal reads"))
        .map(|text| text.parse::<Seal>().expect("a seal").frames)
        .sum();
    let newest = report.coverage.frames - frames;
    assert!(
        newest > 0 && newest < 60,
        "{newest} frames are in the newest segment"
    );
}

/// F05: a segment without its seal is whole.
#[test]
fn a_missing_or_broken_seal_costs_nothing_but_its_witness() {
    let room = tempfile::tempdir().expect("a directory");
    let store = sealed(room.path());
    let seals = seals(&store);
    std::fs::remove_file(&seals[0]).expect("removed");
    std::fs::write(&seals[1], "tenure seal 2\n").expect("written");
    let report = looked(&store);
    assert_eq!(report.outcome, Outcome::Clean);
    assert_eq!(report.coverage.seals, seals.len() as u64 - 2);
    let name = seals[1]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        report
            .coverage
            .skipped
            .iter()
            .any(|s| s.what == name && s.why == "it is no seal")
    );
}

#[test]
fn a_segment_that_is_not_what_was_sealed_is_a_finding() {
    let room = tempfile::tempdir().expect("a directory");
    let store = sealed(room.path());
    let path = seals(&store).remove(0);
    let text = std::fs::read_to_string(&path).expect("a seal reads");
    let seal: Seal = text.parse().expect("a seal");
    let other = Seal {
        hash: [7; 32],
        ..seal
    };
    std::fs::write(&path, other.to_string()).expect("written");
    let report = looked(&store);
    assert_eq!(
        (report.outcome, codes(&report)),
        (Outcome::Damaged, vec!["seal"])
    );
    assert_eq!(report.findings[0].segment, Some(seal.segment));
}

#[test]
fn only_one_spelling_is_a_seal() {
    let room = tempfile::tempdir().expect("a directory");
    let store = sealed(room.path());
    let text = std::fs::read_to_string(seals(&store).remove(0)).expect("a seal reads");
    assert!(text.parse::<Seal>().is_ok());
    for at in 0..text.len() {
        assert!(text[..at].parse::<Seal>().is_err(), "cut at {at}");
    }
    for other in [
        text.to_uppercase(),
        text.clone() + "\n",
        text.replace("frames ", "frames 0"),
        text.replace("bytes ", "bytes +"),
    ] {
        assert!(other.parse::<Seal>().is_err(), "{other}");
    }
}
