//! The golden files of format version 1, and the second decoder over them and over a corpus of damaged files.
//!
//! An old golden file is never edited. `WRITE_GOLDEN=1 cargo test -p tenure-log golden` writes those that are not there yet.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tenure_log::format::RulesVersion;
use tenure_log::frame::{Depth, Draft, Parts, Place, carry_into, decode};
use tenure_log::journal::segment::{self as log, SegmentLog};
use tenure_log::journal::{Deadline, Journal};
use tenure_log::look::PlainDirectory;
use tenure_log::position::{Epoch, Head, Incarnation, Position, Receipt, Salt, TimeMicros};
use tenure_log::recovery::Row;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, Outcome, verify};
use tenure_log::writer::site::Tuning;

use crate::listing::listing;
use crate::store::{Builder, Files, reseal};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

/// Every store whose bytes are kept, by name.
fn stores() -> BTreeMap<&'static str, Files> {
    let mut stores = BTreeMap::new();
    let changed = |frame: usize, at: usize| {
        let mut builder = Builder::small();
        let (name, offset, _) = builder.frames[frame];
        builder.file(name)[offset + at] ^= 0x10;
        builder.files
    };
    stores.insert("born", Builder::born().zeros(512).files.clone());
    stores.insert("three-segments", Builder::small().files);
    stores.insert("large-parts", large_parts());
    stores.insert("raised", raised());
    stores.insert("carried", carried());
    stores.insert("late", late());
    stores.insert("torn-tail", changed(8, 10));
    stores.insert("torn-tail-good-behind", changed(7, 90));
    stores.insert("damaged-header", changed(4, 20));
    stores.insert("damaged-body", changed(0, 100));
    stores.insert("damaged-segment-header", {
        let mut builder = Builder::small();
        builder.newest()[60] ^= 1;
        builder.files
    });
    stores
}

/// Parts of more than one BLAKE3 chunk, of none, and every padding.
fn large_parts() -> Files {
    let mut builder = Builder::born();
    for facts in [0, 1, 951, 952, 953, 1024, 3000, 5000, 7] {
        let parts = Parts {
            facts: (0..facts).map(|n| (n % 251) as u8).collect(),
            texts: vec![b't'; facts % 5],
            bodies: vec![b'b'; facts % 3],
        };
        builder.append_draft(&Draft {
            time: TimeMicros(-(facts as i64)),
            parts,
        });
    }
    builder.zeros(64).files.clone()
}

/// A raised incarnation has a new salt and goes on with the chain.
fn raised() -> Files {
    let mut builder = Builder::born();
    builder.append_many(2);
    builder.header.incarnation = Incarnation(1_234_567);
    builder.header.salt = Salt([0x5a; 16]);
    builder.take_over(Epoch(2)).append_many(2).files.clone()
}

/// The frames that a failed sync left unproven, carried over into the next epoch's segment.
fn carried() -> Files {
    let mut builder = Builder::born();
    builder.append_many(2);
    let mut old = builder.clone();
    old.append_many(2);
    builder
        .files
        .0
        .insert(old.header.name().to_string(), old.newest().clone());
    let bytes = old.newest().clone();
    builder.take_over(Epoch(2));
    let from = Place::in_segment(old.header.salt, old.header.first, old.header.epoch);
    let to = Place::in_segment(
        builder.header.salt,
        builder.header.first,
        builder.header.epoch,
    );
    for (_, offset, len) in &old.frames[2..] {
        let place = from.at(*offset as u64);
        let (frame, _) = decode(&place, &bytes[*offset..offset + len], Depth::Whole).expect("good");
        let at = builder.newest().len() as u64;
        builder.head = carry_into(builder.newest(), &to.at(at), &frame).expect("fits");
    }
    assert_eq!(builder.head, old.head, "receipts stay good");
    builder.append().files.clone()
}

fn late() -> Files {
    let mut builder = Builder::born();
    builder.append_many(3);
    let mut woken = builder.clone();
    builder.take_over(Epoch(2)).append_many(2);
    woken.append();
    builder
        .files
        .0
        .insert(woken.header.name().to_string(), woken.newest().clone());
    let name = woken.rotate().append().header.name();
    builder
        .files
        .0
        .insert(name.to_string(), woken.newest().clone());
    builder.files
}

/// What is expected of a store: its listing, and what `verify` says.
fn expected(home: &Path, files: &Files) -> String {
    let mut text: String = files
        .0
        .iter()
        .map(|(name, bytes)| listing(name, bytes))
        .collect();
    let report = verify(&PlainDirectory::new(home), &Options::default());
    writeln!(
        text,
        "\nverdict {} row {} {}",
        report.outcome,
        report.row.number(),
        report.row.name()
    )
    .expect("memory");
    writeln!(
        text,
        "frames {} horizon {}",
        report.coverage.frames, report.coverage.horizon
    )
    .expect("memory");
    for finding in &report.findings {
        writeln!(text, "{finding}").expect("memory");
    }
    text
}

#[test]
fn golden_files_are_read_as_on_the_day_they_were_written() {
    let written: Vec<_> = std::fs::read_dir(golden())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(
        written.len() >= stores().len(),
        "some golden files are missing, write them with WRITE_GOLDEN=1"
    );
    for home in written {
        let segments = std::fs::read_dir(home.join("segments"))
            .expect("segments")
            .map(|entry| entry.expect("listed"));
        let files = Files(
            segments
                .map(|entry| {
                    let bytes = std::fs::read(entry.path()).expect("readable");
                    (
                        entry.file_name().into_string().expect("a plain name"),
                        bytes,
                    )
                })
                .collect(),
            None,
        );
        let text = std::fs::read_to_string(home.join("expected.txt")).expect("readable");
        assert_eq!(expected(&home, &files), text, "{}", home.display());
    }
}

/// The same content gives the same bytes as on the day the format was fixed.
#[test]
fn golden_files_are_written_again_byte_for_byte() {
    for (case, files) in stores() {
        let home = golden().join(case);
        if !home.exists() && std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::create_dir_all(home.join("segments")).expect("writable");
            for (name, bytes) in &files.0 {
                std::fs::write(home.join("segments").join(name), bytes).expect("writable");
            }
            std::fs::write(home.join("expected.txt"), expected(&home, &files)).expect("writable");
        }
        for (name, bytes) in &files.0 {
            let kept = std::fs::read(home.join("segments").join(name)).expect("written once");
            assert!(kept == *bytes, "{case}/{name} is not what is written today");
        }
    }
}

/// The files of the corpora of what decodes segments (`fuzz/corpus`), each a segment; a store's follow their lengths.
fn fuzzed() -> Vec<(String, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut files = Vec::new();
    for target in ["segment", "projector", "store"] {
        let listed = std::fs::read_dir(corpus.join(target)).expect("there is a corpus");
        for path in listed.map(|entry| entry.expect("listed").path()) {
            let name = path.file_name().expect("a name").to_string_lossy();
            let bytes = std::fs::read(&path).expect("readable");
            if target != "store" {
                files.push((format!("{target}-{name}"), bytes));
                continue;
            }
            let mut rest = &bytes[..];
            while let Some((length, behind)) = rest.split_first_chunk::<4>() {
                let (segment, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
                let number = behind.len();
                files.push((format!("{target}-{name}-{number}"), segment.to_vec()));
                rest = behind;
            }
        }
    }
    files
}

/// The files the second decoder is shown: every golden file, and changed, cut and rewritten ones made from them.
fn corpus(into: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut put = |dir: String, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(into.join(&dir)).expect("writable");
        let path = into.join(dir).join(name);
        std::fs::write(&path, bytes).expect("writable");
        paths.push(path);
    };
    for (case, files) in stores() {
        for (name, bytes) in &files.0 {
            put(format!("whole-{case}"), name, bytes);
        }
    }
    for (case, bytes) in fuzzed() {
        put(
            format!("fuzzed-{case}"),
            "00000000000000000001-1.seg",
            &bytes,
        );
    }
    let builder = Builder::small();
    for (name, bytes) in &builder.files.0 {
        let header = (0..150).step_by(3).chain((4085..4096).step_by(5));
        for at in header.chain((4096..bytes.len()).step_by(5)) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            put(format!("changed-{at}"), name, &changed);
        }
        for (segment, offset, _) in builder
            .frames
            .iter()
            .filter(|(segment, ..)| segment.to_string() == *name)
        {
            // A little more, and far too much, in every field of a frame's header that the CRC covers.
            for at in [4, 8, 12, 16, 24, 32, 40, 48, 55, 56, 72, 76] {
                for by in [1, 0x80] {
                    let mut forged = bytes.clone();
                    forged[offset + at] = forged[offset + at].wrapping_add(by);
                    reseal(&mut forged, *segment, *offset);
                    put(format!("forged-{offset}-{at}-{by}"), name, &forged);
                }
            }
        }
        for cut in (4090..bytes.len()).step_by(11) {
            put(format!("cut-{cut}"), name, &bytes[..cut]);
        }
        for hole in (4096..bytes.len() - 100).step_by(13) {
            let mut torn = bytes.clone();
            torn[hole..hole + 100].fill(0);
            put(format!("hole-{hole}"), name, &torn);
            torn.copy_within(4096..4196, hole);
            put(format!("misdirected-{hole}"), name, &torn);
        }
    }
    paths
}

/// What the page says is enough to read the files, and both decoders agree on every damaged one.
#[test]
fn the_second_decoder_agrees_on_every_file() {
    let scratch = tempfile::tempdir().expect("a directory");
    let paths = corpus(scratch.path());
    assert!(paths.len() > 400, "{} files are no corpus", paths.len());
    let Some(theirs) = second_decoder(&paths) else {
        return;
    };
    for code in [
        "chain",
        "position",
        "durable",
        "epoch",
        "incarnation",
        "short",
        "magic",
        "facts-crc",
        "rest-crc",
        "padding",
    ] {
        let bad = |line: &str| line.starts_with("bad") && line.split(' ').any(|word| word == code);
        assert!(
            theirs.iter().any(|listed| listed.lines().any(bad)),
            "no {code} in the corpus"
        );
    }
    assert_agree(&paths, &theirs);
}

/// Twenty-five frames by the writer, through rotations and a raise; the receipts that it gave.
fn write(home: &Path) -> Vec<Receipt> {
    let tuning = Tuning {
        segment_bytes: vec![4096 + 600],
        fill_bytes: 300,
        ..Tuning::default()
    };
    let options = log::Options {
        create: true,
        rules: RulesVersion(1),
        tuning,
        ..log::Options::default()
    };
    let log = SegmentLog::open(Arc::new(Disk), home, options).expect("opened");
    let draft = |n: u64| Draft {
        time: TimeMicros(n as i64),
        parts: Parts {
            facts: vec![n as u8; 30],
            texts: format!("text {n}").into_bytes(),
            bodies: vec![b'b'; n as usize],
        },
    };
    let mut receipts = Vec::new();
    let store = log.identity().store;
    for n in 1..=25 {
        let known = log.head().expect("a head");
        let appended = if n == 12 {
            log.raise(known, Deadline::NEVER, &mut |_, _| draft(n))
        } else {
            log.transact(known, Deadline::NEVER, &mut |_| vec![draft(n)])
        };
        let Head { position, chain } = appended.expect("appended").head;
        log.wait_durable(position, Deadline::NEVER)
            .expect("durable");
        receipts.push(Receipt {
            store,
            position,
            chain,
        });
    }
    receipts
}

/// What the writer writes, through rotation and a raise, is clean to `verify` and the same to the second decoder.
#[test]
fn what_the_writer_writes_is_clean_and_read_by_both_decoders() {
    let scratch = tempfile::tempdir().expect("a directory");
    let home = scratch.path().join("store");
    let receipts = write(&home);
    let report = verify(
        &PlainDirectory::new(&home),
        &Options {
            receipts,
            ..Options::default()
        },
    );
    assert_eq!(
        (report.outcome, report.row),
        (Outcome::Clean, Row::Clean),
        "{:?}",
        report.findings
    );
    assert_eq!(
        (report.coverage.frames, report.coverage.horizon),
        (25, Position(25))
    );
    assert!(
        report.coverage.segments > 3,
        "it rotated: {}",
        report.coverage.segments
    );
    let mut paths: Vec<_> = std::fs::read_dir(home.join("segments"))
        .expect("listed")
        .map(|entry| entry.expect("listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "seg"))
        .collect();
    paths.sort();
    let Some(theirs) = second_decoder(&paths) else {
        return;
    };
    assert_agree(&paths, &theirs);
}

/// The listing of each file by `decoder.py`; none when there is no python3 to run it.
fn second_decoder(paths: &[PathBuf]) -> Option<Vec<String>> {
    let decoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decoder.py");
    let output = match Command::new("python3").arg(decoder).args(paths).output() {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED: the second decoder needs python3 ({error})");
            return None;
        }
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("text");
    let mut listings: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        match listings.last_mut() {
            Some(listing) if !line.starts_with("segment ") => listing.push_str(line),
            _ => listings.push(line.to_owned()),
        }
    }
    Some(listings)
}

fn assert_agree(paths: &[PathBuf], theirs: &[String]) {
    assert_eq!(paths.len(), theirs.len(), "each file is listed");
    for (path, their) in paths.iter().zip(theirs) {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a plain name");
        let ours = listing(name, &std::fs::read(path).expect("readable"));
        assert_eq!(ours, *their, "{}", path.display());
    }
}
