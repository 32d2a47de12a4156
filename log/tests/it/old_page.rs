//! A control page that is older than the log, within one boot: what a file system leaves that was shut down and mounted
//! again, or somebody who puts an old copy of the file back.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tenure_log::conformance::{append, follow_each_other, read};
use tenure_log::format::SegmentHeader;
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
