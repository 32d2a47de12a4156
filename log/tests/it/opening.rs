//! What opening a store for writing judges, before it changes a byte.

use std::path::Path;
use std::sync::Arc;

use tenure_log::conformance::append;
use tenure_log::error::Error;
use tenure_log::format::SegmentHeader;
use tenure_log::journal::Journal;
use tenure_log::journal::segment::SegmentLog;
use tenure_log::position::Position;
use tenure_log::storage::disk::Disk;

use crate::segment_log::{Store, options};

/// A store of five segments.
fn filled() -> Store {
    let store = Store::new();
    let log = store.open();
    while store.segments().len() < 5 {
        append(
            &log,
            "a frame of some length, so that segments are filled soon",
        );
    }
    store
}

/// As a crash leaves it: the newest segment ends in bytes that are no frame.
fn tear(store: &Store) {
    change(&store.segments().pop().expect("five"), |bytes| {
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("a frame");
        let at = (end + 1).next_multiple_of(8);
        bytes[at..at + 4].copy_from_slice(b"TNF1");
    });
}

fn change(path: &Path, f: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("read");
    f(&mut bytes);
    std::fs::write(path, bytes).expect("written");
}

type Damaging = (&'static str, fn(&Path, u64));

const DAMAGES: [Damaging; 4] = [
    ("one bit of the header", |path, _| {
        change(path, |bytes| bytes[60] ^= 1)
    }),
    ("cut below its end", |path, end| {
        change(path, |bytes| bytes.truncate(end as usize - 1))
    }),
    ("gone", |path, _| {
        std::fs::remove_file(path).expect("removed")
    }),
    ("under another name", |path, _| {
        let other = path.with_file_name("00000000000000000777-1.seg");
        std::fs::rename(path, other).expect("renamed");
    }),
];

/// Recovery row 2: every header, every predecessor, and every size against the stated end is judged whenever a
/// store is opened for writing, whatever the control page and the snapshots say. Nothing is repaired before.
#[test]
fn a_closed_segment_that_does_not_fit_keeps_the_store_from_being_opened_for_writing() {
    let mut tried = 0;
    let whole = filled();
    for (index, (what, damage)) in (0..4).flat_map(|index| DAMAGES.map(|damage| (index, damage))) {
        for (torn, has_page) in [(false, true), (false, false), (true, false)] {
            let store = whole.copied();
            if torn {
                tear(&store);
            }
            let segments = store.segments();
            let next = std::fs::read(&segments[index + 1]).expect("read");
            let header = SegmentHeader::decode(&next).expect("a header");
            let stated = header.predecessor.expect("it has one");
            damage(&segments[index], stated.end_offset);
            if !has_page {
                std::fs::remove_file(store.path.join("control")).expect("removed");
            }
            let before = store.files();
            let opened = SegmentLog::open(Arc::new(Disk), &store.path, options());
            let context = format!("segment {index}, {what}, torn {torn}, page {has_page}");
            let Err(Error::Damaged(_)) = opened else {
                panic!("{context}: {opened:?}")
            };
            assert_eq!(store.files(), before, "{context}");
            tried += 1;
        }
    }
    assert_eq!(tried, 48);
}

/// What stands behind a stated end is prepared space or late: it may go, and the store is opened.
#[test]
fn a_closed_segment_cut_at_its_end_is_whole() {
    let store = filled();
    let segments = store.segments();
    for (index, segment) in segments[..4].iter().enumerate() {
        let next = std::fs::read(&segments[index + 1]).expect("read");
        let header = SegmentHeader::decode(&next).expect("a header");
        let end = header.predecessor.expect("it has one").end_offset;
        change(segment, |bytes| bytes.truncate(end as usize));
    }
    let log = store.open();
    let head = log.head().expect("a head");
    assert_eq!(append(&log, "more").first, head.position.next());
}

/// What a closed segment holds is judged by `verify` and by whoever reads it, not by opening: that costs
/// the tail.
#[test]
fn opening_does_not_read_what_a_closed_segment_holds() {
    let store = filled();
    tear(&store);
    change(&store.segments()[1], |bytes| bytes[4096 + 84] ^= 1);
    std::fs::remove_file(store.path.join("control")).expect("removed");
    let log = store.open();
    append(&log, "behind it");
    let mut frames = log
        .read_from(Position::ZERO, tenure_log::frame::Depth::Facts)
        .expect("the start is whole");
    let damaged =
        std::iter::from_fn(|| frames.next().map(|frame| frame.map(drop))).find_map(Result::err);
    assert!(matches!(damaged, Some(Error::Damaged(_))), "{damaged:?}");
}
