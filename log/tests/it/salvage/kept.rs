//! Salvages of stores as they lie on a disk: with several lives, with files that are no segments, with frames that
//! nobody understands, with names and tags that are none.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_log::conformance::{append, draft, read};
use tenure_log::format::SegmentHeader;
use tenure_log::frame::{Draft, FrameRef, Parts};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{CounterTag, Deadline, Journal};
use tenure_log::position::{Incarnation, Position, Positions};
use tenure_log::salvage::{Aside, Lost, Report, Scribe, salvage};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{Opening, Storage};
use tenure_log::verify::{Outcome, verify};

use super::Notes;
use crate::segment_log::Store;

/// Understands every frame but one.
struct But(Position, Notes);

impl Scribe for But {
    fn keeps(&mut self, frame: &FrameRef<'_>) -> bool {
        frame.header.position != self.0 && self.1.keeps(frame)
    }

    fn lost(&mut self, position: Position, life: Incarnation, why: &Lost) -> Draft {
        self.1.lost(position, life, why)
    }

    fn raised(&mut self, report: &Report) -> Draft {
        self.1.raised(report)
    }

    fn passed(&mut self, bytes: u64) {
        self.1.passed(bytes);
    }
}

/// Six frames in two lives, and what writers and repairs leave behind.
fn written() -> Store {
    let store = Store::new();
    let log = store.open();
    for text in ["1", "2"] {
        append(&log, text);
    }
    let known = log.head().expect("a head");
    let raised = log.raise(known, Deadline::NEVER, &mut |_, _| draft("3"));
    let position = raised.expect("raised").head.position;
    log.wait_durable(position, Deadline::NEVER)
        .expect("durable");
    for text in ["4", "5", "6"] {
        append(&log, text);
    }
    log.prepare_next().expect("prepared");
    let segments = store.path.join("segments");
    assert!(segments.join("prepared").exists());
    std::fs::write(segments.join("left.tmp"), b"of a rename that never was").expect("written");
    store
}

fn salvaged(store: &Store, but: Position) -> (Report, Notes, Store) {
    let new = Store::new();
    let dir = Disk
        .directory(&store.path, Opening::Existing)
        .expect("opened");
    let storage: Arc<dyn Storage> = Arc::new(Disk);
    let mut scribe = But(but, Notes::default());
    let report = salvage(&dir, &storage, Some(&new.path), &mut scribe).expect("salvaged");
    (report, scribe.1, new)
}

fn texts(store: &Store) -> Vec<String> {
    let log = SegmentLog::open(Arc::new(Disk), &store.path, Options::default()).expect("opened");
    let frames = read(&log, Position::ZERO);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    frames
        .iter()
        .map(|frame| text(&frame.parts.texts))
        .collect()
}

/// C4: every life is kept as it was, each in segments of its own; what writers leave behind is not taken for segments.
#[test]
fn the_lives_of_a_store_are_kept_apart() {
    let store = written();
    let (report, notes, new) = salvaged(&store, Position::ZERO);
    assert_eq!((report.frames, notes.kept.len()), (6, 6));
    assert!(report.skipped.is_empty(), "{:?}", report.skipped);
    assert!(report.quarantine.is_empty(), "{:?}", report.quarantine);
    let lives: Vec<u64> = new
        .segments()
        .iter()
        .map(|path| {
            let bytes = std::fs::read(path).expect("read");
            let header = SegmentHeader::decode(&bytes).expect("a header");
            header.incarnation.0
        })
        .collect();
    let (before, now) = (report.before.0, report.incarnation.0);
    assert_eq!(lives, [1, before, now]);
    assert!(1 < before && before < now);
    let dir = Disk
        .directory(&new.path, Opening::Existing)
        .expect("opened");
    let verified = verify(&dir, &Default::default());
    assert_eq!(verified.outcome, Outcome::Clean, "{:?}", verified.findings);
    assert_eq!(texts(&new), ["1", "2", "3", "4", "5", "6", "raised"]);
}

/// C4: a frame whose bytes are good and whose content nobody understands is lost like one with bad bytes: its bytes are
/// put aside, and a frame that says so stands in its place.
#[test]
fn a_frame_that_nobody_understands_is_put_aside() {
    let store = written();
    for position in [1, 2, 4, 5] {
        let but = Position(position);
        let (report, notes, new) = salvaged(&store, but);
        assert_eq!(report.frames, 5, "{position}");
        assert_eq!(notes.lost, [but]);
        let [lost] = &report.lost[..] else {
            panic!("{position}: {:?}", report.lost);
        };
        assert_eq!(lost.positions, Positions::to(but, but));
        assert_eq!(lost.found, Aside::Undecoded);
        let [kept] = &report.quarantine[..] else {
            panic!("{position}: {:?}", report.quarantine);
        };
        assert_eq!(kept.kind, Aside::Undecoded);
        assert_eq!(kept.header.map(|header| header.position), Some(but));
        let aside = std::fs::read(new.path.join("quarantine").join(&kept.file)).expect("read");
        assert_eq!(aside.len() as u64, kept.bytes);
        let mut expected = ["1", "2", "3", "4", "5", "6", "raised"].map(str::to_owned);
        expected[position as usize - 1] = "lost".to_owned();
        assert_eq!(texts(&new), expected);
    }
    // Behind the last one that is understood nothing is missing: the log ends there.
    let (report, _, new) = salvaged(&store, Position(6));
    assert_eq!((report.frames, report.end), (5, Position(6)));
    assert_eq!(texts(&new).len(), 7);
}

/// F31: names and tags that cannot be are refused and counted nowhere; the longest name is taken.
#[test]
fn names_and_tags_that_cannot_be_are_refused() {
    let store = Store::new();
    let log = store.open();
    let blobs = log.snapshots();
    let longest = "n".repeat(100);
    blobs.write_atomic(&longest, b"bytes").expect("written");
    assert_eq!(
        blobs.list().expect("listed"),
        std::slice::from_ref(&longest)
    );
    for bad in ["", ".hidden", "a/b", "..", &(longest + "n")] {
        assert!(blobs.write_atomic(bad, b"bytes").is_err(), "{bad:?}");
        assert!(blobs.read(bad).is_err(), "{bad:?}");
    }
    let counters = log.counters();
    assert_eq!(counters.add(CounterTag(0), 1), None);
    assert_eq!(counters.get(CounterTag(0)), 0);
    assert_eq!(counters.add(CounterTag(7), 2), Some(2));
    assert_eq!(counters.take(CounterTag(7)), 2);
    let mut seen = Vec::new();
    counters.for_each(&mut |tag, count| seen.push((tag, count)));
    assert_eq!(seen, []);
}

/// C1: a control page of another size than a page has is none, for who looks and for who writes.
#[test]
fn a_control_page_of_another_size_is_none() {
    let store = written();
    for bytes in [0, 7, 4095] {
        let page = store.path.join("control");
        let whole = std::fs::read(&page).expect("read");
        std::fs::write(&page, &whole[..bytes]).expect("cut");
        let dir = Disk
            .directory(&store.path, Opening::Existing)
            .expect("opened");
        let report = verify(&dir, &Default::default());
        assert_eq!(report.coverage.frames, 6, "{bytes}");
        assert_eq!(read(&store.open(), Position::ZERO).len(), 6, "{bytes}");
        std::fs::write(&page, &whole).expect("put back");
    }
}

/// C1, C4: what stands behind a long stretch of rubble, longer than is read at once, is found again; and every byte of every
/// segment is counted as something.
#[test]
fn what_stands_behind_a_long_stretch_of_rubble_is_found() {
    let store = Store::new();
    let log = store.open();
    append(&log, "1");
    let long = Draft {
        parts: Parts {
            bodies: vec![0xa5; 700_000],
            ..draft("2").parts
        },
        ..draft("2")
    };
    let known = log.head().expect("a head");
    let appended = log.transact(known, Deadline::NEVER, &mut |_| vec![long.clone()]);
    let position = appended.expect("appended").head.position;
    log.wait_durable(position, Deadline::NEVER)
        .expect("durable");
    for text in ["3", "4"] {
        append(&log, text);
    }
    drop(log);
    let holds_it = |path: &PathBuf| std::fs::metadata(path).expect("there").len() > 700_000;
    let path = store.segments().into_iter().find(holds_it).expect("one");
    let mut bytes = std::fs::read(&path).expect("read");
    // Headers are random: one byte of the body may stand in them too.
    let body = bytes.windows(64).position(|some| some == [0xa5; 64]);
    let body = body.expect("a body");
    let frame = bytes[..body].windows(4).rposition(|four| four == b"TNF1");
    bytes[frame.expect("its frame")] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let dir = Disk
        .directory(&store.path, Opening::Existing)
        .expect("opened");
    let report = verify(&dir, &Default::default());
    assert_eq!(report.coverage.frames, 3);
    let accounts = &report.coverage.accounts;
    let sizes = store.segments().into_iter();
    let sizes = sizes.map(|path| std::fs::metadata(path).expect("there").len());
    assert_eq!(accounts.sum(), sizes.sum::<u64>());
    assert!(accounts.bad > 700_000, "{}", accounts.bad);
    let (report, notes, _) = salvaged(&store, Position::ZERO);
    assert_eq!((report.frames, notes.lost), (3, vec![Position(2)]));
}
