//! Landmarks lead where a search leads, or nowhere.

use std::path::Path;
use std::sync::Arc;

use tenure_log::frame::{Depth, Draft, Parts};
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Frames, Journal, Landmark};
use tenure_log::position::{Chain, Head, Position};
use tenure_log::reader::open::SegmentReader;
use tenure_log::storage::disk::Disk;
use tenure_log::writer::site::Tuning;

/// A log of several small segments, and the landmark of every frame.
fn written(dir: &Path, frames: usize) -> (SegmentLog, Vec<Landmark>) {
    let options = Options {
        create: true,
        tuning: Tuning {
            segment_bytes: vec![16 << 10],
            fill_bytes: 4 << 10,
            ..Tuning::default()
        },
        ..Options::default()
    };
    let log = SegmentLog::open(Arc::new(Disk), dir, options).expect("it opens");
    let mut marks = Vec::new();
    for n in 0..frames {
        let parts = Parts {
            facts: vec![n as u8; 700],
            ..Parts::default()
        };
        let draft = Draft {
            parts,
            ..Draft::default()
        };
        let known = log.head().expect("a head");
        let appended = log
            .transact(known, Deadline::NEVER, &mut |_| vec![draft.clone()])
            .expect("appended");
        let mark = log.landmark(appended.head).expect("looked for");
        marks.push(mark.expect("it was just written"));
    }
    log.wait_durable(Position(frames as u64), Deadline::NEVER)
        .expect("durable");
    (log, marks)
}

fn positions(frames: &mut dyn Frames) -> Vec<u64> {
    std::iter::from_fn(|| Some(frames.next()?.expect("a good frame").header.position.0)).collect()
}

#[test]
fn reading_behind_a_landmark_finds_what_a_search_finds() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let (log, marks) = written(&dir, 60);
    assert!(
        marks[59].segment > marks[0].segment,
        "more than one segment"
    );
    for mark in &marks {
        let after = mark.head.position;
        let searched = positions(&mut *log.read_from(after, Depth::Whole).expect("readable"));
        let found = log
            .read_behind(mark, Depth::Whole)
            .expect("readable")
            .expect("it stands");
        assert_eq!(log.landmark(mark.head).expect("looked for"), Some(*mark));
        assert_eq!(Landmark::from_bytes(&mark.to_bytes()), *mark);
        let mut found = found;
        assert_eq!(positions(&mut *found), searched);
        assert_eq!(found.landmark().is_some(), after.0 < 60);
        // With the control page, and without: then the head is looked for from there.
        let reader = SegmentReader::open(Arc::new(Disk), &dir).expect("it opens");
        let behind = reader.read_behind(mark, Depth::Whole).expect("readable");
        assert_eq!(positions(&mut *behind.expect("it stands")), searched);
    }
    drop(log);
    std::fs::remove_file(dir.join("control")).expect("removed");
    for mark in &marks {
        let reader = SegmentReader::open(Arc::new(Disk), &dir).expect("it opens");
        let behind = reader.read_behind(mark, Depth::Whole).expect("readable");
        let after = mark.head.position.0;
        assert!(
            positions(&mut *behind.expect("it stands"))
                .into_iter()
                .eq(after + 1..=60)
        );
        assert_eq!(reader.head().expect("a head"), marks[59].head);
    }
}

/// Whoever appends is told where each frame stands, in a segment that was there and as the first of a new one: what a
/// search finds.
#[test]
fn where_every_frame_of_a_batch_stands_is_told() {
    let temp = tempfile::tempdir().expect("a directory");
    let (log, _) = written(&temp.path().join("store"), 3);
    let draft = |n: u8| Draft {
        parts: Parts {
            facts: vec![n; 40 + usize::from(n) * 90],
            ..Parts::default()
        },
        ..Draft::default()
    };
    let mut segments = std::collections::BTreeSet::new();
    for together in (0..24).cycle().take(96) {
        let known = log.head().expect("a head");
        let appended = log
            .transact(known, Deadline::NEVER, &mut |_| {
                (0..together).map(draft).collect()
            })
            .expect("appended");
        assert_eq!(appended.marks.len(), usize::from(together));
        for (head, mark) in appended.heads.iter().zip(&appended.marks) {
            assert_eq!(log.landmark(*head).expect("looked for"), Some(*mark));
            segments.insert(mark.segment);
        }
        if together > 0 {
            assert_eq!(appended.marks.last(), appended.mark.as_ref());
        }
    }
    assert!(segments.len() > 3, "{segments:?}");
}

#[test]
fn a_landmark_that_does_not_stand_leads_nowhere() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let (log, marks) = written(&dir, 30);
    let mark = marks[10];
    let elsewhere = [
        Landmark {
            offset: mark.offset + 8,
            ..mark
        },
        Landmark {
            end: mark.end + 8,
            ..mark
        },
        Landmark { end: 0, ..mark },
        Landmark {
            end: u64::MAX,
            ..mark
        },
        Landmark {
            segment: marks[29].segment,
            ..mark
        },
        Landmark {
            head: marks[11].head,
            ..mark
        },
        Landmark {
            head: Head {
                chain: Chain([7; 16]),
                ..mark.head
            },
            ..mark
        },
        Landmark {
            head: Head {
                position: Position(999),
                ..mark.head
            },
            ..mark
        },
        Landmark {
            head: Head {
                position: Position::ZERO,
                ..mark.head
            },
            ..mark
        },
    ];
    for mark in elsewhere {
        let found = log.read_behind(&mark, Depth::Whole).expect("readable");
        assert!(found.is_none(), "{mark:?}");
        let reader = SegmentReader::open(Arc::new(Disk), &dir).expect("it opens");
        let found = reader.read_behind(&mark, Depth::Whole).expect("readable");
        assert!(found.is_none(), "{mark:?}");
    }
    let lost = Head {
        chain: Chain([7; 16]),
        ..mark.head
    };
    assert_eq!(log.landmark(lost).expect("looked for"), None);
}
