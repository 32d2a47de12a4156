//! Every prefix and every changed byte of a small store, and bytes made by somebody who is no writer.

use proptest::prelude::*;
use tenure_log::error::Next;
use tenure_log::fault::Fault;
use tenure_log::format::SEGMENT_HEADER_BYTES;
use tenure_log::frame::{Draft, Parts, Place, encode_into};
use tenure_log::position::{Chain, Epoch, Head, Position, Positions, Salt, StoreId, TimeMicros};
use tenure_log::recovery::Row;
use tenure_log::scan::Checks;
use tenure_log::verify::{Kind, Options, Outcome, Report, verify};

use crate::store::{Builder, Files, seeded_crc};

fn report(files: &Files) -> Report {
    verify(files, &Options::default())
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

/// F07, F14, F15: no byte of a store is a don't-care. Every flip of a bit is found, named and placed, and frames before it stay good.
#[test]
fn every_changed_byte_is_found_at_its_own_frame() {
    let builder = Builder::small();
    for (name, bytes) in &builder.files.0 {
        let name = name.parse().expect("a segment");
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mask = 1 << bit;
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
    assert_eq!(
        report(&builder.files).findings,
        [],
        "good before it is damaged"
    );
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

proptest! {
    /// However many bytes are changed, in however many files: what is not as it was written is said, and nothing before
    /// the first change is doubted.
    #[test]
    fn any_damage_is_said_and_what_stands_before_it_is_kept(
        damages in prop::collection::vec((0..3usize, any::<u16>(), any::<u8>(), 1..200usize), 1..5),
    ) {
        let builder = Builder::small();
        let mut files = builder.files.clone();
        let names: Vec<String> = files.0.keys().cloned().collect();
        for (file, at, byte, len) in damages {
            let bytes = files.0.get_mut(&names[file]).expect("listed");
            let from = at as usize % bytes.len();
            let to = (from + len).min(bytes.len());
            bytes[from..to].fill(byte);
        }
        let changed = |name: &str, from: usize, to: usize| {
            files.0[name][from..to] != builder.files.0[name][from..to]
        };
        let header_changed = names.iter().any(|name| changed(name, 0, SEGMENT_HEADER_BYTES));
        let bad: Vec<bool> = builder
            .frames
            .iter()
            .map(|(name, offset, len)| changed(&name.to_string(), *offset, offset + len))
            .collect();
        let judged = report(&files);
        if header_changed {
            prop_assert_eq!(judged.row, Row::Structure);
        } else if let Some(first) = bad.iter().position(|bad| *bad) {
            prop_assert!(matches!(judged.outcome, Outcome::Damaged | Outcome::TornTail));
            prop_assert_eq!(judged.coverage.horizon, Position(first as u64));
            let good = bad.iter().filter(|bad| !**bad).count() as u64;
            prop_assert_eq!(judged.coverage.frames, good, "no good frame is lost to its neighbours' damage");
        } else {
            prop_assert_eq!(judged.coverage.horizon, Position(9));
        }
    }
}
