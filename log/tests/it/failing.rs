//! A disk that answers one call with an error: what it says is told, and never taken for "there is none".

use std::sync::Arc;

use tenure_log::bundle::marker;
use tenure_log::conformance::{append, draft, read};
use tenure_log::error::Error;
use tenure_log::frame::{Depth, Draft, FrameRef};
use tenure_log::journal::segment::blobs::FolderBlobs;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Blobs, Deadline, Journal, TransactError};
use tenure_log::look::{Look, PlainDirectory};
use tenure_log::position::{Incarnation, Position};
use tenure_log::reader::open::SegmentReader;
use tenure_log::salvage::{Lost, Report, Scribe, salvage};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{Opening, Storage, failed};
use tenure_log::verify::{Outcome, verify};

use crate::segment_log::{Store, options};

mod machine;

use machine::{Failing, Plan};

/// Frames of several segments, the closed ones sealed, and a blob.
fn written() -> (Store, usize) {
    let store = Store::new();
    let log = store.open();
    let mut frames = 0;
    while store.segments().len() < 3 {
        append(
            &log,
            "a frame of some length, so that segments are filled soon",
        );
        frames += 1;
    }
    log.tend().expect("sealed");
    let blobs = log.snapshots();
    blobs
        .write_atomic("kept", b"bytes of a blob")
        .expect("written");
    (store, frames)
}

/// Runs `body` on a machine that fails its n-th call, for every n and in both ways, until it makes fewer calls. Each
/// run says what it saw, or the error that it met. Returns how many runs met one.
fn at_every_call(mut body: impl FnMut(&Failing, &str) -> Result<(), Error>) -> u32 {
    let mut told = 0;
    for lasting in [false, true] {
        for at in 0.. {
            let machine = Failing::new(Plan { at, lasting });
            let context = format!("call {at}, from then on: {lasting}");
            let outcome = body(&machine, &context);
            let Some(call) = machine.failed() else {
                outcome.unwrap_or_else(|error| panic!("{context}: nothing failed, and {error}"));
                break;
            };
            if let Err(error) = outcome {
                told += 1;
                assert!(is_told(&error), "{context}, {call}: {error:?}");
            }
        }
    }
    told
}

fn opening(error: std::io::Error) -> Error {
    failed("open", "the store", error)
}

/// An error of the disk, or what a store says after one; nothing about what is there.
fn is_told(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.raw_os_error() == Some(machine::EIO),
        Error::Poisoned { .. } | Error::Busy { .. } => true,
        _ => false,
    }
}

/// B03, F31: a writer on such a disk says what failed. It takes no file for one that is not there, it loses nothing
/// that it acknowledged, and a writer after it finds a whole store.
#[test]
fn a_writer_tells_what_the_disk_says_and_takes_nothing_for_absent() {
    let (whole, frames) = written();
    let told = at_every_call(|machine, context| {
        let store = whole.copied();
        let mut acknowledged = frames as u64;
        let outcome = (|| {
            let short = Options {
                create: false,
                ..options()
            };
            let log = SegmentLog::open(Arc::new(machine.clone()), &store.path, short)?;
            for text in ["one", "two"] {
                acknowledged = put(&log, text)?;
            }
            assert_eq!(log.durable()?.0, acknowledged, "{context}");
            log.prepare_next()?;
            log.rest()
        })();
        machine.heal();
        let log = store.open();
        let found = read(&log, Position::ZERO).len() as u64;
        assert!(
            (acknowledged..=frames as u64 + 2).contains(&found),
            "{context}: {found} frames of {acknowledged}"
        );
        append(&log, "afterwards");
        outcome
    });
    assert!(told > 40, "{told} errors");
}

fn put(log: &SegmentLog, text: &str) -> Result<u64, Error> {
    let known = log.head()?;
    let appended = log.transact(known, Deadline::NEVER, &mut |_| vec![draft(text)]);
    let appended = appended.map_err(|error| match error {
        TransactError::Failed(source) | TransactError::Unknown { source, .. } => source,
        other => panic!("{other}"),
    })?;
    log.wait_durable(appended.head.position, Deadline::NEVER)?;
    Ok(appended.head.position.0)
}

/// F31: a store is made whole, or whoever makes it says what failed and the next one makes it.
#[test]
fn a_store_is_made_or_the_failure_is_told() {
    let told = at_every_call(|machine, context| {
        let store = Store::new();
        let outcome = SegmentLog::open(Arc::new(machine.clone()), &store.path, options())
            .and_then(|log| put(&log, "first"));
        machine.heal();
        let log = store.open();
        let found = read(&log, Position::ZERO).len() as u64;
        assert!(
            found >= *outcome.as_ref().unwrap_or(&0),
            "{context}: {found} frames"
        );
        append(&log, "next");
        outcome.map(drop)
    });
    assert!(told > 20, "{told} errors");
}

/// B03: a reader shows all frames or says what failed, with the control page and without it.
#[test]
fn a_reader_shows_everything_or_tells_what_failed() {
    let (whole, frames) = written();
    for has_page in [true, false] {
        let store = whole.copied();
        if !has_page {
            std::fs::remove_file(store.path.join("control")).expect("removed");
        }
        let told = at_every_call(|machine, context| {
            let reader = SegmentReader::open(Arc::new(machine.clone()), &store.path)?;
            assert_eq!(reader.bundle()?, None, "{context}");
            let mut seen = 0;
            let mut found = reader.read_from(Position::ZERO, Depth::Whole)?;
            while let Some(frame) = found.next() {
                frame?;
                seen += 1;
            }
            assert_eq!(seen, frames, "{context}");
            assert!(found.next().is_none(), "{context}: an end is the end");
            assert_eq!(reader.head()?.position.0, frames as u64, "{context}");
            Ok(())
        });
        assert!(told > 20, "{told} errors");
    }
}

/// B03: a derived file is read whole, or its reader is told; never "there is none".
#[test]
fn a_blob_is_read_or_the_failure_is_told() {
    let (store, _) = written();
    let told = at_every_call(|machine, context| {
        // What a run before could not remove.
        let _ = std::fs::remove_file(store.path.join("snapshots/other"));
        let dir = machine
            .directory(&store.path, Opening::Existing)
            .map_err(opening)?;
        let blobs = FolderBlobs::new(Arc::new(machine.clone()), dir);
        let blobs: &dyn Blobs = &blobs;
        let bytes: &[u8] = b"bytes of a blob";
        assert_eq!(blobs.read("kept")?.as_deref(), Some(bytes), "{context}");
        let mut part = [0; 5];
        assert_eq!(blobs.read_part("kept", 6, &mut part)?, Some(5), "{context}");
        assert_eq!(&part, b"of a ", "{context}");
        let mapped = blobs.map("kept")?.expect("it is there");
        assert_eq!(mapped.bytes(), bytes, "{context}");
        assert_eq!(blobs.list()?, ["kept"], "{context}");
        blobs.write_atomic("other", bytes)?;
        blobs.remove("other")?;
        assert_eq!(blobs.read("other")?, None, "{context}");
        blobs.remove("other")
    });
    assert!(told > 10, "{told} errors");
}

struct All;

impl Scribe for All {
    fn keeps(&mut self, _: &FrameRef<'_>) -> bool {
        true
    }

    fn lost(&mut self, _: Position, _: Incarnation, _: &Lost) -> Draft {
        draft("lost")
    }

    fn raised(&mut self, _: &Report) -> Draft {
        draft("raised")
    }

    fn passed(&mut self, _: u64) {}
}

/// B03: who verifies says that something could not be looked at; who salvages loses no frame in silence, and what
/// it breaks off is no store of a part.
#[test]
fn verify_and_salvage_call_nothing_whole_that_they_could_not_read() {
    let (store, frames) = written();
    at_every_call(|machine, context| {
        let dir = machine
            .directory(&store.path, Opening::Existing)
            .map_err(opening)?;
        let report = verify(&dir, &Default::default());
        let clean = report.outcome == Outcome::Clean;
        let seen = report.coverage.frames;
        assert!(
            !clean || seen == frames as u64,
            "{context}: clean with {seen} frames: {:?}",
            report.findings
        );
        Ok(())
    });
    let told = at_every_call(|machine, context| {
        let temp = tempfile::tempdir().expect("a directory");
        let dest = temp.path().join("new");
        let dir = Disk
            .directory(&store.path, Opening::Existing)
            .expect("opened");
        let storage: Arc<dyn Storage> = Arc::new(machine.clone());
        let done = salvage(&dir, &storage, Some(&dest), &mut All);
        machine.heal();
        match done {
            Ok(report) => assert_eq!(report.frames, frames as u64, "{context}"),
            Err(error) => {
                // Where only the last names could not be made durable, it is all there.
                if let Ok(log) = SegmentLog::open(Arc::new(Disk), &dest, Options::default()) {
                    let found = read(&log, Position::ZERO).len();
                    assert_eq!(found, frames + 1, "{context}: a part is a store");
                }
                return Err(error);
            }
        }
        Ok(())
    });
    assert!(told > 10, "{told} errors");
}

/// C1: a closed segment that is damaged is not said to hold what was sealed, also where it was not read through at once.
#[test]
fn a_damaged_segment_is_not_sealed_on_a_failing_disk_either() {
    let (store, frames) = written();
    let path = &store.segments()[0];
    let mut bytes = std::fs::read(path).expect("read");
    bytes[4096 + 90] ^= 1;
    std::fs::write(path, bytes).expect("written");
    let mut least = u64::MAX;
    at_every_call(|machine, context| {
        let dir = machine
            .directory(&store.path, Opening::Existing)
            .map_err(opening)?;
        let report = verify(&dir, &Default::default());
        assert_ne!(report.outcome, Outcome::Clean, "{context}");
        assert!(report.coverage.seals <= 1, "{context}");
        least = least.min(report.coverage.frames);
        Ok(())
    });
    assert!(least < frames as u64);
}

/// F31: a segment that is not there is damage, and no error of the disk.
#[test]
fn a_segment_that_is_gone_is_said_to_be_missing() {
    let (store, _) = written();
    let reader = SegmentReader::open(Arc::new(Disk), &store.path).expect("opened");
    std::fs::remove_file(&store.segments()[0]).expect("removed");
    let walk = reader.read_from(Position::ZERO, Depth::Whole);
    let told = match walk {
        Err(error) => Some(error),
        Ok(mut walk) => walk.next().and_then(Result::err),
    };
    assert!(matches!(told, Some(Error::Damaged { .. })), "{told:?}");
}

/// B03: who salvages from such a disk keeps every frame, says which it lost, or ends.
#[test]
fn a_salvage_counts_what_it_could_not_read() {
    let (store, frames) = written();
    at_every_call(|machine, context| {
        let dir = machine
            .directory(&store.path, Opening::Existing)
            .map_err(opening)?;
        let storage: Arc<dyn Storage> = Arc::new(Disk);
        if let Ok(report) = salvage(&dir, &storage, None, &mut All) {
            assert!(
                report.frames == frames as u64
                    || !report.lost.is_empty()
                    || !report.skipped.is_empty(),
                "{context}: {} frames, and none lost",
                report.frames
            );
        }
        Ok(())
    });
}

/// B03: what only looks at a directory tells "it is not there" from "it cannot be read": a file is where a folder or
/// another file should be.
#[test]
fn a_folder_that_cannot_be_read_is_not_an_empty_one() {
    let temp = tempfile::tempdir().expect("a directory");
    let look = PlainDirectory::new;
    let none = look(&temp.path().join("none"));
    assert!(none.names().expect("none").is_empty());
    assert!(none.control().expect("none").is_none());
    let file = temp.path().join("file");
    std::fs::write(&file, b"no folder").expect("written");
    let (store, _) = written();
    let blocked = look(&file);
    assert!(blocked.names().is_err());
    assert!(blocked.control().is_err());
    let segment = store.segments()[0].file_name().expect("a name").to_owned();
    let segment = segment
        .to_str()
        .and_then(|name| name.parse().ok())
        .expect("a segment's name");
    assert!(blocked.seal(segment).is_err());
    assert!(
        look(&store.path)
            .seal(segment)
            .expect("looked for")
            .is_some()
    );
    // A folder in the place of the control page is no page, and no reason to do without one.
    std::fs::create_dir(temp.path().join("control")).expect("made");
    assert!(look(temp.path()).control().is_err());
    let dir = Disk
        .directory(&store.path, Opening::Existing)
        .expect("opened");
    assert_eq!(marker(&*dir).expect("looked for"), None);
}
