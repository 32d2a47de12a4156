//! `verify` over small stores: every prefix, every changed byte, and what a writer never does.

use tenure_log::error::Next;
use tenure_log::fault::Fault;
use tenure_log::format::SEGMENT_HEADER_BYTES;
use tenure_log::frame::{Draft, Parts, Place, encode_into};
use tenure_log::look::Look;
use tenure_log::position::{Chain, Epoch, Head, Position, Positions, Salt, StoreId, TimeMicros};
use tenure_log::recovery::{Row, Writer};
use tenure_log::scan::{Checks, ReadAt};
use tenure_log::verify::{Kind, Options, Outcome, Report, verify};

use crate::store::{Builder, Files};

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
    assert_eq!(report.coverage.skipped, []);
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

/// Every prefix of the newest segment is either clean at a frame's end or a torn tail inside a frame, down to what
/// its own frames say is durable; below that it is damage.
#[test]
fn every_prefix_of_the_newest_segment_is_judged_by_what_was_durable() {
    let builder = Builder::small();
    let name = builder.header.name();
    let own: Vec<_> = builder
        .frames
        .iter()
        .filter(|(segment, ..)| *segment == name)
        .collect();
    let full = builder.files.0[&name.to_string()].clone();
    for cut in 0..full.len() {
        let mut files = builder.files.clone();
        files.0.insert(name.to_string(), full[..cut].to_vec());
        let report = report(&files);
        if cut < SEGMENT_HEADER_BYTES {
            assert_eq!(report.row, Row::Structure, "{cut}");
            continue;
        }
        let kept = own
            .iter()
            .filter(|(_, offset, len)| offset + len <= cut)
            .count();
        let end = own[..kept]
            .last()
            .map_or(SEGMENT_HEADER_BYTES, |(_, offset, len)| offset + len);
        let rest_is_zero = full[end..cut].iter().all(|byte| *byte == 0);
        let expected = if rest_is_zero {
            Outcome::Clean
        } else {
            Outcome::TornTail
        };
        assert_eq!(report.outcome, expected, "{cut}: {:?}", report.findings);
        assert_eq!(
            report.end.expect("judged").head.position,
            Position(5 + kept as u64),
            "{cut}"
        );

        // The same with the durable slot read first: what is missing below it is damage.
        for slot in 6..=9 {
            let options = Options {
                slot: Position(slot),
                ..Options::default()
            };
            let lost = slot > 5 + kept as u64;
            let judged = verify(&files, &options);
            assert_eq!(
                judged.row == Row::DurableBad,
                lost,
                "cut {cut}, slot {slot}"
            );
            if lost {
                assert_eq!(judged.findings[0].offset, end as u64);
            }
        }
    }
}

/// Rows 2 and 4: a closed segment never gets shorter than its stated end; prepared space behind it may go.
#[test]
fn every_prefix_of_a_closed_segment_is_damage_up_to_its_stated_end() {
    let builder = Builder::small();
    let closed = builder.frames[0].0;
    let full = builder.files.0[&closed.to_string()].clone();
    let (_, offset, len) = builder.frames[2];
    for cut in 0..full.len() {
        let mut files = builder.files.clone();
        files.0.insert(closed.to_string(), full[..cut].to_vec());
        let report = report(&files);
        if cut >= offset + len {
            assert_eq!(report.row, Row::Clean, "{cut}");
        } else {
            assert_eq!(
                (report.outcome, report.row),
                (Outcome::Damaged, Row::Structure),
                "{cut}"
            );
            assert!(
                report
                    .findings
                    .iter()
                    .all(|finding| finding.segment == Some(closed))
            );
            assert!(
                report
                    .findings
                    .iter()
                    .any(|finding| finding.next == Next::RestoreFile)
            );
        }
    }
}

/// No byte of a store is a don't-care: every change of one is found, named and placed, and frames before it stay good.
#[test]
fn every_changed_byte_is_found_at_its_own_frame() {
    let builder = Builder::small();
    for (name, bytes) in &builder.files.0 {
        let name = name.parse().expect("a segment");
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut files = builder.files.clone();
                files.0.get_mut(&format!("{name}")).expect("there")[at] ^= mask;
                let report = report(&files);
                let frame = builder.frames.iter().position(|(segment, offset, len)| {
                    *segment == name && (*offset..offset + len).contains(&at)
                });
                let last_of_own = builder
                    .frames
                    .iter()
                    .rposition(|(segment, ..)| *segment == name)
                    .expect("has frames");
                let is_newest = name == builder.header.name();
                match frame {
                    _ if at < SEGMENT_HEADER_BYTES => {
                        assert_eq!(report.row, Row::Structure, "{name} {at}");
                        assert_eq!(report.findings[0].segment, Some(name));
                    }
                    Some(frame) => {
                        // The last frame states that all up to the third last are durable.
                        let expected = match builder.frames.len() - frame {
                            1 => Row::TornTail,
                            2 => Row::TornTailGoodBehind,
                            _ => Row::DurableBad,
                        };
                        assert_eq!(
                            report.row, expected,
                            "{name} {at} {mask:#x}: {:?}",
                            report.findings
                        );
                        let finding = &report.findings[0];
                        assert_eq!(finding.segment, Some(name));
                        assert_eq!(finding.offset, builder.frames[frame].1 as u64, "{at}");
                        assert_eq!(
                            finding.positions.expect("known").first,
                            Position(frame as u64 + 1),
                            "{at}"
                        );
                        assert_eq!(report.coverage.horizon, Position(frame as u64));
                        assert_eq!(report.coverage.frames, builder.frames.len() as u64 - 1);
                    }
                    None if is_newest => assert_eq!(report.row, Row::TornTail, "{name} {at}"),
                    None => {
                        // Prepared space behind a stated end.
                        assert_eq!(report.row, Row::Late, "{name} {at}: {:?}", report.findings);
                        let (_, offset, len) = builder.frames[last_of_own];
                        assert_eq!(report.findings[0].offset, (offset + len) as u64);
                    }
                }
            }
        }
    }
}

/// Row 4: what its successor's header counts in was part of the log, durable by a frame's word or not.
#[test]
fn bad_before_the_stated_end_of_a_closed_segment_is_damage() {
    let mut builder = Builder::born();
    builder.durable_behind = 99;
    builder.append_many(3).zeros(64).rotate().append_many(2);
    for frame in 0..3 {
        for zeros in [false, true] {
            let mut damaged = builder.clone();
            let (name, offset, len) = builder.frames[frame];
            if zeros {
                damaged.file(name)[offset..offset + len].fill(0);
            } else {
                damaged.file(name)[offset + 50] ^= 1;
            }
            let judged = report(&damaged.files);
            assert_eq!(
                (judged.outcome, judged.row),
                (Outcome::Damaged, Row::ClosedBad)
            );
            let position = Position(frame as u64 + 1);
            assert_eq!(
                judged.findings[0].positions,
                Some(Positions::to(position, position))
            );
            assert_eq!((judged.findings.len(), judged.coverage.frames), (1, 4));
        }
    }
}

/// Texts and bodies are looked at only where that is asked for.
#[test]
fn a_changed_body_is_found_only_when_all_of_a_frame_is_checked() {
    let mut builder = Builder::small();
    let (name, offset, len) = builder.frames[0];
    builder.file(name)[offset + len - 8] ^= 1;
    assert_eq!(report(&builder.files).row, Row::DurableBad);
    let options = Options {
        checks: Checks {
            whole: false,
            ..Checks::ALL
        },
        ..Options::default()
    };
    assert_eq!(verify(&builder.files, &options).row, Row::Clean);
}

/// An edit that recomputes every CRC is still found by the chain, and without the chain it is not.
#[test]
fn an_edit_with_right_crcs_breaks_the_chain() {
    let mut builder = Builder::small();
    let (name, offset, len) = builder.frames[1];
    let header = builder.header;
    let place = Place::in_segment(header.salt, name.first, name.epoch).at(offset as u64);
    let file = builder.file(name);
    // The same frame at another time: its chain field is kept, its CRC is right.
    file[offset + 40] ^= 1;
    let crc = seeded_crc(
        header.salt,
        name.first,
        name.epoch,
        offset as u64,
        &file[offset..offset + 80],
    );
    file[offset + 80..offset + 84].copy_from_slice(&crc.to_le_bytes());
    assert!(
        tenure_log::frame::decode(
            &place,
            &file[offset..offset + len],
            tenure_log::frame::Depth::Whole
        )
        .is_ok()
    );
    let judged = report(&builder.files);
    assert_eq!(
        (judged.outcome, judged.row),
        (Outcome::Damaged, Row::Structure)
    );
    assert!(matches!(
        judged.findings[0].kind,
        Kind::Damage(Fault::Chain { .. })
    ));
    assert_eq!(
        judged.findings[0].positions,
        Some(Positions::to(Position(2), Position(2)))
    );
    let blind = Options {
        checks: Checks {
            chain: false,
            whole: true,
        },
        ..Options::default()
    };
    assert_eq!(verify(&builder.files, &blind).row, Row::Clean);
}

/// Written out from `docs/format.md`, not from the code.
fn seeded_crc(salt: Salt, first: Position, epoch: Epoch, offset: u64, header: &[u8]) -> u32 {
    let mut bytes = salt.0.to_vec();
    for number in [first.0, epoch.0, offset] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(header);
    crc32fast::hash(&bytes)
}

/// A frame put elsewhere is good nowhere: at another offset, from another store, from an older life.
#[test]
fn frames_of_another_place_store_or_life_are_refused() {
    let builder = Builder::born().append_many(3).clone();
    let (name, offset, len) = builder.frames[2];
    let mut moved = builder.clone();
    let copy = moved.file(name)[offset..offset + len].to_vec();
    moved.newest().extend_from_slice(&copy);
    let judged = report(&moved.files);
    assert_eq!(judged.row, Row::TornTail);
    assert!(matches!(
        judged.findings[0].kind,
        Kind::TornTail(Fault::HeaderCrc { .. })
    ));

    let mut older = builder.clone();
    let place = Place::in_segment(Salt([9; 16]), Position(1), Epoch(1));
    let place = place.at(older.newest().len() as u64);
    let draft = Draft {
        time: TimeMicros(0),
        parts: Parts::default(),
    };
    let (head, incarnation) = (older.head, older.header.incarnation);
    encode_into(
        older.newest(),
        &place,
        head,
        Position(2),
        incarnation,
        &draft,
    )
    .expect("fits");
    let judged = report(&older.files);
    assert!(matches!(
        judged.findings[0].kind,
        Kind::TornTail(Fault::HeaderCrc { .. })
    ));

    let mut foreign = builder.clone();
    foreign.header.store = StoreId([0xcc; 16]);
    let foreign_name = foreign.rotate().header.name();
    let judged = report(&foreign.files);
    assert_eq!(
        (judged.outcome, judged.row),
        (Outcome::Incomplete, Row::Obstacle)
    );
    assert_eq!(judged.findings[0].segment, Some(foreign_name));
    assert_eq!(judged.findings[0].next, Next::TakeOut);
}

/// A body that holds a whole segment is a body: its frames are never taken for frames, not even behind damage.
#[test]
fn frames_inside_a_damaged_frames_body_are_not_found() {
    let mut builder = Builder::born();
    let place = Place::in_segment(builder.header.salt, Position(1), Epoch(1));
    // Planted for exactly the offset at which it will stand.
    let planted_at = SEGMENT_HEADER_BYTES + 84 + 4;
    let mut planted = Vec::new();
    let empty = Draft {
        time: TimeMicros(0),
        parts: Parts::default(),
    };
    let nowhere = Head {
        position: Position(6),
        chain: Chain([0; 16]),
    };
    let place = place.at(planted_at as u64);
    encode_into(
        &mut planted,
        &place,
        nowhere,
        Position(5),
        builder.header.incarnation,
        &empty,
    )
    .expect("fits");
    let parts = Parts {
        facts: vec![1; 4],
        texts: Vec::new(),
        bodies: planted,
    };
    builder
        .append_draft(&Draft {
            time: TimeMicros(0),
            parts,
        })
        .zeros(400);
    whole(&builder);
    builder.newest()[SEGMENT_HEADER_BYTES + 84] ^= 1;
    let judged = report(&builder.files);
    assert_eq!(
        judged.row,
        Row::TornTail,
        "nothing good behind: {:?}",
        judged.findings
    );
}

/// A length that pretends to be huge is refused before anything is allocated or believed.
#[test]
fn length_bombs_are_refused_by_the_header() {
    let mut builder = Builder::born();
    builder.append_many(2).zeros(64);
    let (name, offset, _) = builder.frames[1];
    let (salt, header) = (builder.header.salt, offset);
    for field in [4, 8, 12] {
        for repaired in [false, true] {
            let mut bomb = builder.clone();
            let file = bomb.file(name);
            file[header + field..header + field + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            if repaired {
                let crc = seeded_crc(
                    salt,
                    name.first,
                    name.epoch,
                    offset as u64,
                    &file[offset..offset + 80],
                );
                file[offset + 80..offset + 84].copy_from_slice(&crc.to_le_bytes());
            }
            let judged = report(&bomb.files);
            let fault = match judged.findings[0].kind {
                Kind::Damage(fault) | Kind::TornTail(fault) => fault,
                ref kind => panic!("{kind:?}"),
            };
            if repaired {
                assert!(
                    matches!(fault, Fault::TooLong { len, .. } if len == u64::from(u32::MAX)),
                    "{fault}"
                );
                assert_eq!(
                    judged.row,
                    Row::Structure,
                    "no torn write has a right crc over an impossible length"
                );
            } else {
                assert!(matches!(fault, Fault::HeaderCrc { .. }), "{fault}");
            }
        }
    }
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

/// Row 3: a rotten last frame is not a torn tail when the slot says that it was durable.
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
        judged.coverage.skipped[0].what,
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
        assert_eq!(judged.coverage.skipped[0].what, *name);
    }
}

/// Behind a first break, each further one is a finding of its own.
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
