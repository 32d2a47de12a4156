//! `verify` over small stores: which row of the table decides, and what the report says.

use tenure_log::error::Next;
use tenure_log::fault::Fault;
use tenure_log::format::{SEGMENT_HEADER_BYTES, SegmentName};
use tenure_log::frame::{Draft, Parts};
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::look::Look;
use tenure_log::position::{Epoch, Position, Positions, Receipt, TimeMicros};
use tenure_log::recovery::{Row, Writer};
use tenure_log::scan::{Checks, ReadAt, Step};
use tenure_log::verify::{Kind, Options, Outcome, ReceiptState, Report, verify};

use crate::store::{Builder, Files, STORE};

fn report(files: &Files) -> Report {
    verify(files, &Options::default())
}

fn whole(builder: &Builder) -> Report {
    let report = report(&builder.files);
    assert_eq!(
        report.findings,
        [],
        "the store is good before it is damaged"
    );
    report
}

#[test]
fn a_good_store_is_clean_and_all_of_it_was_looked_at() {
    let builder = Builder::small();
    let report = whole(&builder);
    assert_eq!((report.outcome, report.row), (Outcome::Clean, Row::Clean));
    assert_eq!(report.end.expect("judged").head, builder.head);
    assert_eq!(report.coverage.horizon, Position(9));
    assert_eq!((report.coverage.segments, report.coverage.frames), (3, 9));
    let skipped: Vec<_> = report
        .coverage
        .skipped
        .iter()
        .map(|skipped| &*skipped.what)
        .collect();
    assert_eq!(skipped, ["control"], "there is no control page");
    assert_eq!(
        report.identity.map(|header| header.name()),
        Some(builder.header.name())
    );
}

#[test]
fn an_empty_directory_and_an_empty_segment_are_clean() {
    assert_eq!(report(&Files::default()).row, Row::Clean);
    let report = report(&Builder::born().files);
    assert_eq!((report.row, report.coverage.frames), (Row::Clean, 0));
    assert_eq!(
        report.end.expect("born").offset,
        SEGMENT_HEADER_BYTES as u64
    );
}

/// Row 3: without one segment the durable slot still says that something was there.
#[test]
fn a_store_whose_segments_are_all_lost_is_damaged_when_a_slot_knows_better() {
    let report = verify(
        &Files::default(),
        &Options {
            slot: Position(7),
            ..Options::default()
        },
    );
    assert_eq!(
        (report.outcome, report.row),
        (Outcome::Damaged, Row::DurableBad)
    );
    assert_eq!(
        report.findings[0].positions,
        Some(Positions::to(Position(1), Position(7)))
    );
}

/// Row 7: pages of unsynced frames arrived out of order.
#[test]
fn a_hole_of_zeros_with_good_frames_behind_is_a_torn_tail_above_what_was_durable() {
    let mut builder = Builder::born();
    builder.durable_behind = 9;
    builder.append_many(6).zeros(128);
    let (name, offset, len) = builder.frames[3];
    builder.file(name)[offset..offset + len].fill(0);
    let judged = report(&builder.files);
    assert_eq!(
        (judged.outcome, judged.row),
        (Outcome::TornTail, Row::TornTailGoodBehind)
    );
    let finding = &judged.findings[0];
    assert_eq!(finding.offset, offset as u64);
    assert_eq!(
        finding.positions,
        Some(Positions::to(Position(4), Position(6)))
    );
    assert!(
        finding
            .meaning
            .contains("acknowledged events may be among them"),
        "{}",
        finding.meaning
    );
    assert_eq!(judged.end.expect("judged").head.position, Position(3));

    // The same hole below what the durable slot states is damage, even with a writer at work.
    for writer in [Writer::Gone, Writer::Live] {
        let options = Options {
            slot: Position(4),
            writer,
            ..Options::default()
        };
        assert_eq!(verify(&builder.files, &options).row, Row::DurableBad);
    }
    let live = verify(
        &builder.files,
        &Options {
            writer: Writer::Live,
            ..Options::default()
        },
    );
    assert_eq!((live.outcome, live.row), (Outcome::Clean, Row::InFlight));
    assert_eq!(live.findings[0].next, Next::LookAgain);
}

/// LOG-2, row 3: a rotten last frame is not a torn tail when the slot says that it was durable.
#[test]
fn a_rotten_last_frame_that_was_durable_is_damage() {
    let mut builder = Builder::small();
    let (name, offset, _) = *builder.frames.last().expect("has frames");
    builder.file(name)[offset + 90] ^= 4;
    assert_eq!(report(&builder.files).row, Row::TornTail);
    let judged = verify(
        &builder.files,
        &Options {
            slot: Position(9),
            ..Options::default()
        },
    );
    assert_eq!(
        (judged.outcome, judged.row),
        (Outcome::Damaged, Row::DurableBad)
    );
    assert_eq!(
        judged.findings[0].positions,
        Some(Positions::to(Position(9), Position(9)))
    );
    assert_eq!(judged.findings[0].next, Next::Salvage);
}

/// B24: a gap is named, and nothing is joined over it.
#[test]
fn a_missing_segment_is_named() {
    let builder = Builder::small();
    for (name, named_by) in
        [(0, 3), (3, 5)].map(|(a, b)| (builder.frames[a].0, builder.frames[b].0))
    {
        let mut files = builder.files.clone();
        files.0.remove(&name.to_string());
        let judged = report(&files);
        assert_eq!(
            (judged.outcome, judged.row),
            (Outcome::Damaged, Row::Structure)
        );
        assert_eq!(
            judged.findings[0].kind,
            Kind::Damage(Fault::SegmentMissing { named_by })
        );
        assert_eq!(judged.findings[0].segment, Some(name));
        assert_eq!(judged.findings[0].next, Next::RestoreFile);
        assert!(
            !judged
                .findings
                .iter()
                .any(|finding| matches!(finding.kind, Kind::Late { .. }))
        );
    }
}

/// The newest segment lost: the one before looks whole, and only the durable slot knows.
#[test]
fn a_lost_newest_segment_is_found_by_the_durable_slot() {
    let builder = Builder::small();
    let mut files = builder.files.clone();
    files.0.remove(&builder.header.name().to_string());
    let judged = verify(
        &files,
        &Options {
            slot: Position(9),
            ..Options::default()
        },
    );
    assert_eq!(judged.row, Row::DurableBad);
    assert_eq!(
        judged.findings[0].positions,
        Some(Positions::to(Position(6), Position(9)))
    );
}

/// A writer that lost its epoch made a segment nobody names: late. In the newest epoch nobody can have.
#[test]
fn a_segment_that_no_header_names_is_late_or_damage_by_its_epoch() {
    let mut late = Builder::born();
    late.append_many(3);
    let mut woken = late.clone();
    late.take_over(Epoch(2)).append_many(2);
    woken.append().rotate().append();
    let name = woken.header.name();
    late.files
        .0
        .insert(name.to_string(), woken.newest().clone());
    let judged = report(&late.files);
    assert_eq!((judged.outcome, judged.row), (Outcome::Clean, Row::Late));
    assert_eq!(judged.findings[0].segment, Some(name));
    assert_eq!(judged.findings[0].kind, Kind::Late { frames: 1 });
    assert_eq!(judged.end.expect("judged").head, late.head);

    let mut doubled = Builder::small();
    let mut other = Builder::born();
    other.append_many(3).take_over(Epoch(2)).append();
    other.rotate();
    doubled
        .files
        .0
        .insert(other.header.name().to_string(), other.newest().clone());
    let judged = report(&doubled.files);
    assert_eq!(judged.row, Row::Structure);
    let newest = doubled.header.name();
    assert_eq!(
        judged.findings[0].kind,
        Kind::Damage(Fault::SegmentUnnamed { newest })
    );
}

/// Late frames behind a stated end are shown with their number, and never read.
#[test]
fn late_frames_behind_a_stated_end_are_counted() {
    let mut builder = Builder::born();
    builder.append_many(3);
    let mut woken = builder.clone();
    builder.take_over(Epoch(2)).append_many(2);
    woken.append_many(2);
    let name = woken.header.name();
    builder
        .files
        .0
        .insert(name.to_string(), woken.newest().clone());
    let judged = report(&builder.files);
    assert_eq!(judged.row, Row::Late);
    assert_eq!(judged.findings[0].kind, Kind::Late { frames: 2 });
    assert_eq!(judged.coverage.frames, 5);
}

#[test]
fn a_renamed_segment_is_damage() {
    let mut builder = Builder::small();
    let name = builder.header.name();
    let bytes = builder.files.0.remove(&name.to_string()).expect("there");
    builder
        .files
        .0
        .insert("00000000000000000006-7.seg".to_owned(), bytes);
    let judged = report(&builder.files);
    assert_eq!(judged.row, Row::Structure);
    assert_eq!(
        judged.findings[0].kind,
        Kind::Damage(Fault::SegmentRenamed { stated: name })
    );
}

#[test]
fn other_files_are_skipped_by_name_and_said_so() {
    let mut builder = Builder::small();
    builder
        .files
        .0
        .insert("00000000000000000010-2.seg.tmp".to_owned(), vec![0; 10]);
    let judged = report(&builder.files);
    assert_eq!(judged.row, Row::Clean);
    assert_eq!(
        judged.coverage.skipped[1].what,
        "00000000000000000010-2.seg.tmp"
    );
}

/// Nothing is inferred from what cannot be read.
#[test]
fn an_unreadable_segment_makes_the_verdict_incomplete() {
    struct Failing(Files, String);
    impl Look for Failing {
        fn names(&self) -> std::io::Result<Vec<String>> {
            self.0.names()
        }
        fn open(&self, name: &str) -> std::io::Result<Box<dyn ReadAt>> {
            if name == self.1 {
                Err(std::io::ErrorKind::PermissionDenied.into())
            } else {
                self.0.open(name)
            }
        }
        fn control(&self) -> std::io::Result<Option<Vec<u8>>> {
            self.0.control()
        }
        fn seal(
            &self,
            segment: tenure_log::format::SegmentName,
        ) -> std::io::Result<Option<Vec<u8>>> {
            self.0.seal(segment)
        }
    }
    let builder = Builder::small();
    for name in builder.files.0.keys() {
        let judged = verify(
            &Failing(builder.files.clone(), name.clone()),
            &Options::default(),
        );
        assert_eq!(
            (judged.outcome, judged.row),
            (Outcome::Incomplete, Row::Obstacle)
        );
        assert!(
            judged
                .findings
                .iter()
                .any(|finding| finding.segment == name.parse().ok()),
            "{name}"
        );
        assert_eq!(judged.coverage.skipped[1].what, *name);
    }
}

/// B01: behind a first break, each further one is a finding of its own.
#[test]
fn every_break_is_a_finding() {
    let mut builder = Builder::small();
    for frame in [0, 2, 6] {
        let (name, offset, _) = builder.frames[frame];
        builder.file(name)[offset + 84] ^= 1;
    }
    let judged = report(&builder.files);
    assert_eq!(judged.outcome, Outcome::Damaged);
    let positions: Vec<_> = judged
        .findings
        .iter()
        .map(|finding| finding.positions.expect("known").first.0)
        .collect();
    assert_eq!(positions, [1, 3, 7]);
    assert_eq!(judged.coverage.frames, 6);
    assert_eq!(judged.coverage.horizon, Position::ZERO);
}

/// F01, F02: zeros are space that was prepared and not written, however many; in a closed segment they are missing frames.
#[test]
fn zeros_behind_the_last_frame_are_no_damage_and_zeros_over_frames_are() {
    for zeros in [1, 4096, 4 << 20] {
        let mut builder = Builder::small();
        builder.zeros(zeros);
        assert_eq!(report(&builder.files).row, Row::Clean, "{zeros}");
        let closed = builder.frames[0].0;
        let file = builder.file(closed);
        file.resize(file.len() + zeros, 0);
        assert_eq!(
            report(&builder.files).row,
            Row::Clean,
            "{zeros} behind a stated end"
        );
    }
    let mut builder = Builder::small();
    let (name, offset, _) = builder.frames[8];
    builder.file(name)[offset + 7..].fill(0);
    let judged = report(&builder.files);
    assert_eq!(
        (judged.row, judged.coverage.horizon),
        (Row::TornTail, Position(8))
    );
    let (name, offset, _) = builder.frames[4];
    builder.file(name)[offset + 7..].fill(0);
    let judged = report(&builder.files);
    assert_eq!(
        (judged.outcome, judged.row),
        (Outcome::Damaged, Row::DurableBad)
    );
    assert_eq!(
        (judged.findings[0].segment, judged.findings[0].offset),
        (Some(name), offset as u64)
    );
}

/// F09: a segment's header is durable before it gets its name, so that a bad one is damage, with frames or without.
#[test]
fn a_bad_header_of_the_newest_segment_is_damage_and_its_frames_stay_readable() {
    let mut builder = Builder::small();
    builder.newest()[30] ^= 1;
    let judged = report(&builder.files);
    assert_eq!(
        (judged.outcome, judged.row),
        (Outcome::Damaged, Row::Structure)
    );
    assert_eq!(
        (judged.coverage.frames, judged.coverage.horizon),
        (5, Position(5))
    );
    let mut frames = 0;
    inspect_all(&builder.files, Checks::ALL, &mut |entry| {
        frames += usize::from(matches!(
            entry,
            Entry::Step {
                step: Step::Frame(..),
                ..
            }
        ));
    })
    .expect("listed");
    assert_eq!(frames, 9, "by the header of a sibling");
}

/// A store of seven segments, too large to be looked through by one thread alone, with something wrong in several.
fn large_and_damaged() -> Builder {
    let mut builder = Builder::born();
    let draft = Draft {
        time: TimeMicros(1),
        parts: Parts {
            facts: vec![7; 60],
            texts: vec![8; 40],
            bodies: vec![9; 200 << 10],
        },
    };
    for segment in 0..7 {
        if segment > 0 {
            builder.rotate();
        }
        for _ in 0..5 {
            builder.append_draft(&draft);
        }
    }
    for damaged in [3, 4, 11, 12, 20, 31] {
        let (segment, offset, len) = builder.frames[damaged];
        builder.file(segment)[offset + len - 100] ^= 1;
    }
    let (newest, offset, _) = builder.frames[0];
    builder.file(newest).extend_from_slice(&[0; 64]);
    builder.file(newest)[offset + 20] ^= 1;
    builder
}

/// The segments are looked through side by side, and the report is the same whichever of them is done first.
#[test]
fn a_report_does_not_depend_on_which_segment_is_read_first() {
    /// Opens one segment late.
    struct Late(Files, usize);
    impl Look for Late {
        fn names(&self) -> std::io::Result<Vec<String>> {
            self.0.names()
        }
        fn open(&self, name: &str) -> std::io::Result<Box<dyn ReadAt>> {
            if self.0.0.keys().nth(self.1).is_some_and(|late| late == name) {
                std::thread::sleep(std::time::Duration::from_millis(30));
            }
            self.0.open(name)
        }
        fn control(&self) -> std::io::Result<Option<Vec<u8>>> {
            self.0.control()
        }
        fn seal(&self, segment: SegmentName) -> std::io::Result<Option<Vec<u8>>> {
            self.0.seal(segment)
        }
    }
    let builder = large_and_damaged();
    let receipts = [14, builder.head.position.0].map(|position| Receipt {
        store: STORE,
        position: Position(position),
        chain: builder.head.chain,
    });
    let options = Options {
        receipts: receipts.to_vec(),
        ..Options::default()
    };
    let report = verify(&builder.files, &options);
    let segments: Vec<_> = report
        .findings
        .iter()
        .map(|f| (f.segment, f.offset))
        .collect();
    assert!(segments.is_sorted(), "{segments:?}");
    assert!(segments.len() >= 7, "{segments:?}");
    assert_eq!(report.coverage.segments, 7);
    assert!(matches!(
        report.receipts[..],
        [(_, ReceiptState::Differs { .. }), (_, ReceiptState::Kept)]
    ));
    for late in 0..7 {
        assert_eq!(verify(&Late(builder.files.clone(), late), &options), report);
    }
}
