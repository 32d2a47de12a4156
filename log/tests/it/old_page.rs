//! A control page that is older than the log or ahead of it, within one boot: what a file system leaves that was shut down and mounted
//! again, or somebody who puts an old copy of the file back.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tenure_log::conformance::{append, draft, follow_each_other, read};
use tenure_log::error::Error;
use tenure_log::format::SegmentHeader;
use tenure_log::frame::Depth;
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::position::Position;

use crate::segment_log::Store;

/// Frames in the store: three segments or more.
const FRAMES: u64 = 40;

fn put_back(store: &Path, page: &[u8]) {
    let (new, control) = (store.join("control.new"), store.join("control"));
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&new).expect("made");
    std::io::Write::write_all(&mut file, page).expect("written");
    fs::rename(new, control).expect("named");
}

/// R1, R7: of every moment. A reader shows everything that is durable, and whoever writes goes on behind it.
#[test]
fn a_page_that_is_older_than_the_log_hides_nothing_and_is_not_written_by() {
    let store = Store::new();
    let log = store.open();
    let mut pages = vec![fs::read(store.path.join("control")).expect("read")];
    for index in 0..FRAMES {
        append(&log, &format!("{index} {}", "x".repeat(200)));
        pages.push(fs::read(store.path.join("control")).expect("read"));
    }
    drop(log);
    let segments = fs::read_dir(store.path.join("segments")).expect("listed");
    assert!(
        segments.count() >= 3,
        "some pages are those of closed segments"
    );
    let mut frames = FRAMES;
    for (index, page) in pages.iter().enumerate() {
        put_back(&store.path, page);
        let head = store.reader().head().expect("read");
        assert_eq!(head.position, Position(frames), "with page {index}");
        put_back(&store.path, page);
        let log = store.open();
        append(&log, &format!("behind page {index}"));
        frames += 1;
        let all = read(&log, Position::ZERO);
        assert_eq!(all.len() as u64, frames, "with page {index}");
        let first = fs::read(store.path.join("segments/00000000000000000001-1.seg"));
        let header = SegmentHeader::decode(&first.expect("read")).expect("a header");
        follow_each_other(header.start(), &all);
    }
}

/// The newest segment's file, and its bytes.
fn newest(store: &Store) -> (PathBuf, Vec<u8>) {
    let path = store.segments().pop().expect("there is a segment");
    let bytes = fs::read(&path).expect("read");
    (path, bytes)
}

/// R1, R4, R7: a page that is ahead of the log: frames that were published and not durable are gone, whole, in part, or
/// with what was written of them. A reader shows what is durable, and whoever writes goes on behind it; what was
/// acknowledged before is there.
#[test]
fn a_page_that_is_ahead_of_the_log_takes_nothing_from_it() {
    // How many bytes of what was published are left: none, a header, some, all but the last.
    for (left, count) in [(0, 1), (84, 1), (100, 2), (1, 3), (usize::MAX, 2)] {
        let store = Store::new();
        let log = store.open();
        for index in 0..3 {
            append(&log, &format!("{index}"));
        }
        let (path, before) = newest(&store);
        let head = log.head().expect("a head");
        let drafts: Vec<_> = (0..count)
            .map(|index| draft(&format!("lost {index}")))
            .collect();
        let published = log.transact(head, Deadline::NEVER, &mut |_| drafts.clone());
        assert_eq!(published.expect("published").heads.len(), count);
        let (page, after) = (fs::read(store.path.join("control")), newest(&store).1);
        drop(log);
        let changed: Vec<usize> = (0..after.len())
            .filter(|at| before.get(*at) != after.get(*at))
            .collect();
        let (first, last) = (changed[0], changed[changed.len() - 1]);
        let mut bytes = before;
        let end = first.saturating_add(left).min(last);
        bytes[first..end].copy_from_slice(&after[first..end]);
        fs::write(&path, &bytes).expect("written");
        let page = page.expect("read");
        put_back(&store.path, &page);
        let context = format!("{left} bytes of {count} frames left");
        let shown = store.reader().head().expect("read").position;
        let known = Position(3)..Position(3 + count as u64);
        assert!(known.contains(&shown), "{context}: {shown}");
        let log = store.open();
        append(&log, "behind");
        let all = read(&log, Position::ZERO);
        assert!(
            all.len() >= 4 && all.len() <= 3 + count,
            "{context}: {}",
            all.len()
        );
        assert_eq!(all[all.len() - 1].parts.texts, b"behind", "{context}");
        let first = fs::read(store.path.join("segments/00000000000000000001-1.seg"));
        let header = SegmentHeader::decode(&first.expect("read")).expect("a header");
        follow_each_other(header.start(), &all);
        drop(log);
        assert_eq!(
            read(&store.open(), Position::ZERO).len(),
            all.len(),
            "{context}"
        );
    }
}

/// C2, C3: a page that says that a frame was durable is believed: without the frame, the log is damaged, for who reads
/// and who writes.
#[test]
fn a_page_that_is_ahead_does_not_hide_the_loss_of_what_was_durable() {
    let store = Store::new();
    let log = store.open();
    append(&log, "0");
    let (path, before) = newest(&store);
    append(&log, "1");
    let page = fs::read(store.path.join("control")).expect("read");
    drop(log);
    fs::write(path, before).expect("written");
    put_back(&store.path, &page);
    let walked = store
        .reader()
        .read_from(Position::ZERO, Depth::Whole)
        .and_then(|mut frames| {
            while let Some(frame) = frames.next() {
                frame?;
            }
            Ok(())
        });
    assert!(matches!(walked, Err(Error::Damaged(_))), "{walked:?}");
    let log = store.open();
    let head = log.head().expect("a head");
    let written = log.transact(head, Deadline::NEVER, &mut |_| vec![draft("2")]);
    assert!(
        matches!(written, Err(TransactError::Failed(Error::Damaged(_)))),
        "{written:?}"
    );
}
