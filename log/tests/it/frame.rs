//! Frames and segment headers: what is encoded comes back, and is good at its own place only.

use proptest::prelude::*;
use tenure_log::fault::{Fault, Part};
use tenure_log::format::{
    FORMAT_VERSION, Predecessor, RulesVersion, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName,
    WriterVersion,
};
use tenure_log::frame::{
    Depth, Draft, FRAME_HEADER_BYTES, Parts, Place, carry_into, decode, decode_header, encode_into,
};
use tenure_log::options::{BODIES_BYTES_MAX, FACTS_BYTES_MAX, TEXTS_BYTES_MAX};
use tenure_log::position::{Chain, Epoch, Head, Incarnation, Position, Salt, StoreId, TimeMicros};
use tenure_log::scan::{Checks, Cursor};

fn place() -> Place {
    Place::in_segment(Salt([7; 16]), Position(1), Epoch(3)).at(4096)
}

fn draft(facts: &[u8], texts: &[u8], bodies: &[u8]) -> Draft {
    let parts = Parts {
        facts: facts.to_vec(),
        texts: texts.to_vec(),
        bodies: bodies.to_vec(),
    };
    Draft {
        time: TimeMicros(-5),
        parts,
    }
}

fn head() -> Head {
    Head {
        position: Position(9),
        chain: Chain([1; 16]),
    }
}

fn encoded(draft: &Draft) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(
        &mut bytes,
        &place(),
        head(),
        Position(8),
        Incarnation(2),
        draft,
    )
    .expect("fits");
    bytes
}

proptest! {
    #[test]
    fn a_frame_comes_back_as_it_was_written(
        facts in prop::collection::vec(any::<u8>(), 0..300),
        texts in prop::collection::vec(any::<u8>(), 0..60),
        bodies in prop::collection::vec(any::<u8>(), 0..60),
        time in any::<i64>(),
        position in 0..1u64 << 47,
        behind in 0..50u64,
        incarnation in 1..u64::MAX,
        offset in (0..u64::MAX / 8).prop_map(|eighths| eighths * 8),
        before in any::<[u8; 16]>(),
    ) {
        let draft = Draft { time: TimeMicros(time), parts: Parts { facts, texts, bodies } };
        let before = Head { position: Position(position), chain: Chain(before) };
        let durable = Position(position.saturating_sub(behind));
        let place = place().at(offset);
        let mut bytes = vec![0xff];
        let after = encode_into(&mut bytes, &place, before, durable, Incarnation(incarnation), &draft)?;
        prop_assert_eq!(bytes.len() - 1, draft.frame_bytes());
        prop_assert_eq!(draft.frame_bytes() % 8, 0);
        bytes.extend_from_slice(b"whatever stands behind");
        let (frame, len) = decode(&place, &bytes[1..], Depth::Whole)?;
        prop_assert_eq!(len, draft.frame_bytes());
        prop_assert_eq!(frame.header.head(), after);
        prop_assert_eq!(after.position, before.position.next());
        prop_assert_eq!(frame.header.chain, frame.header.chain_after(before.chain, frame.facts));
        prop_assert_eq!(frame.header.time, draft.time);
        prop_assert_eq!(frame.header.durable, durable);
        prop_assert_eq!(frame.header.incarnation, Incarnation(incarnation));
        let owned = frame.to_owned();
        prop_assert_eq!(owned.by_ref(), frame);
        prop_assert_eq!(owned.parts, draft.parts);
    }

    #[test]
    fn a_segment_header_comes_back_as_it_was_written(
        writer in any::<u32>(), rules in any::<u32>(),
        store in any::<[u8; 16]>(), salt in any::<[u8; 16]>(), chain in any::<[u8; 16]>(),
        incarnation in 1..u64::MAX, epoch in 2..1u64 << 32, first in 2..1u64 << 48,
        frames in 0..9u64,
    ) {
        let end = Head { position: Position(first - 1), chain: Chain(chain) };
        let frames = frames.min(first - 1);
        let header = SegmentHeader {
            format: 1, writer: WriterVersion(writer), rules: RulesVersion(rules),
            store: StoreId(store), salt: Salt(salt), incarnation: Incarnation(incarnation),
            epoch: Epoch(epoch), first: Position(first), chain: end.chain,
            predecessor: Some(Predecessor {
                name: SegmentName { first: Position(first - frames), epoch: Epoch(epoch - 1) },
                end_offset: SEGMENT_HEADER_BYTES as u64 + 88 * frames,
                end,
            }),
        };
        prop_assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
        prop_assert_eq!(header.name().to_string().parse(), Ok(header.name()));
        prop_assert_eq!(header.start(), end);
    }

    #[test]
    fn arbitrary_bytes_are_a_fault_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(decode(&place(), &bytes, Depth::Whole).is_err());
        prop_assert!(SegmentHeader::decode(&bytes).is_err());
    }
}

#[test]
fn a_frame_is_good_at_its_own_place_only() {
    let bytes = encoded(&draft(b"facts", b"", b""));
    let elsewhere = [
        Place::in_segment(Salt([8; 16]), Position(1), Epoch(3)).at(4096),
        Place::in_segment(Salt([7; 16]), Position(2), Epoch(3)).at(4096),
        Place::in_segment(Salt([7; 16]), Position(1), Epoch(4)).at(4096),
        place().at(4104),
    ];
    for (number, place) in elsewhere.iter().enumerate() {
        let refused = decode(place, &bytes, Depth::Facts).expect_err("another place");
        assert!(
            matches!(refused, Fault::HeaderCrc { .. }),
            "place {number}: {refused}"
        );
    }
    assert!(decode(&place(), &bytes, Depth::Facts).is_ok());
}

#[test]
fn a_carried_frame_keeps_all_but_its_header_crc() {
    let bytes = encoded(&draft(b"facts", b"text", b"body"));
    let (frame, _) = decode(&place(), &bytes, Depth::Whole).expect("good");
    let next = Place::in_segment(Salt([7; 16]), Position(10), Epoch(4)).at(4096);
    let mut carried = Vec::new();
    assert_eq!(
        carry_into(&mut carried, &next, &frame),
        Ok(frame.header.head())
    );
    assert_eq!(
        decode(&next, &carried, Depth::Whole).map(|(frame, _)| frame),
        Ok(frame)
    );
    let changed: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at] != carried[*at])
        .collect();
    assert!(
        changed.iter().all(|at| (80..84).contains(at)),
        "{changed:?}"
    );
    let older = Place::in_segment(Salt([7; 16]), Position(10), Epoch(2)).at(4096);
    let refused = carry_into(&mut carried, &older, &frame);
    assert_eq!(
        refused,
        Err(Fault::Epoch {
            segment: Epoch(2),
            found: Epoch(3)
        })
    );
}

#[test]
fn zeros_of_every_length_are_zeros_and_never_a_frame() {
    for len in 0..200 {
        assert_eq!(
            decode(&place(), &vec![0; len], Depth::Whole),
            Err(Fault::Zeros),
            "{len}"
        );
    }
    let mut torn = vec![0; 200];
    torn[83] = 1;
    assert_eq!(
        decode_header(&place(), &torn),
        Err(Fault::Magic { found: 0 })
    );
}

#[test]
fn texts_and_bodies_are_held_against_their_crc_at_whole_depth_only() {
    let bytes = encoded(&draft(b"facts", b"text", b"body"));
    for at in [FRAME_HEADER_BYTES + 5, FRAME_HEADER_BYTES + 9] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(decode(&place(), &changed, Depth::Facts).is_ok());
        let refused = decode(&place(), &changed, Depth::Whole).expect_err("changed");
        assert!(matches!(refused, Fault::RestCrc { .. }), "{refused}");
    }
}

#[test]
fn each_part_fits_up_to_its_limit_and_not_one_byte_beyond() {
    let limits = [
        (Part::Facts, FACTS_BYTES_MAX),
        (Part::Texts, TEXTS_BYTES_MAX),
        (Part::Bodies, BODIES_BYTES_MAX),
    ];
    for (part, max) in limits {
        let bytes = vec![5; max as usize + 1];
        let with = |len: usize| match part {
            Part::Facts => draft(&bytes[..len], b"", b""),
            Part::Texts => draft(b"", &bytes[..len], b""),
            Part::Bodies => draft(b"", b"", &bytes[..len]),
        };
        assert!(decode(&place(), &encoded(&with(max as usize)), Depth::Whole).is_ok());
        let mut buf = vec![1];
        let refused = encode_into(
            &mut buf,
            &place(),
            head(),
            Position(8),
            Incarnation(2),
            &with(max as usize + 1),
        );
        assert_eq!(
            refused,
            Err(Fault::TooLong {
                part,
                len: u64::from(max) + 1,
                max
            })
        );
        assert_eq!(buf, [1], "nothing is left behind");
    }
}

#[test]
fn a_frame_never_claims_to_be_durable_itself() {
    let mut buf = Vec::new();
    let refused = encode_into(
        &mut buf,
        &place(),
        head(),
        Position(10),
        Incarnation(2),
        &draft(b"", b"", b""),
    );
    let expected = Fault::Durable {
        position: Position(10),
        durable: Position(10),
    };
    assert_eq!(refused, Err(expected));
}

#[test]
fn file_names_of_segments_have_one_spelling() {
    let name = SegmentName {
        first: Position(12),
        epoch: Epoch(3),
    };
    assert_eq!(name.to_string(), "00000000000000000012-3.seg");
    for bad in [
        "",
        ".seg",
        "12-3.seg",
        "00000000000000000012-03.seg",
        "00000000000000000012-+3.seg",
        "00000000000000000012-3.seg.tmp",
        "00000000000000000000-3.seg",
        "00000000000000000012-0.seg",
        "+0000000000000000012-3.seg",
        "99999999999999999999-3.seg",
        "00000000000000000012-3",
    ] {
        assert!(bad.parse::<SegmentName>().is_err(), "{bad}");
    }
}

#[test]
fn a_segment_header_that_contradicts_itself_is_refused_by_field() {
    let good = SegmentHeader {
        format: 1,
        writer: WriterVersion(1),
        rules: RulesVersion(1),
        store: StoreId([1; 16]),
        salt: Salt([2; 16]),
        incarnation: Incarnation(1),
        epoch: Epoch(1),
        first: Position(1),
        chain: Chain([3; 16]),
        predecessor: None,
    };
    let block = good.encode();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = block;
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        let crc = crc32fast::hash(&changed[..4092]);
        changed[4092..].copy_from_slice(&crc.to_le_bytes());
        SegmentHeader::decode(&changed).expect_err("contradicts itself")
    };
    let field = |field| Fault::SegmentField { field };
    assert_eq!(
        with(8, &2u32.to_le_bytes()),
        Fault::NewerFormat { found: 2, known: 1 }
    );
    assert_eq!(with(8, &0u32.to_le_bytes()), field("format version"));
    assert_eq!(with(20, &2u32.to_le_bytes()), field("flags"));
    assert_eq!(with(56, &0u64.to_le_bytes()), field("incarnation"));
    assert_eq!(with(64, &0u64.to_le_bytes()), field("epoch"));
    assert_eq!(with(72, &0u64.to_le_bytes()), field("first position"));
    assert_eq!(with(72, &2u64.to_le_bytes()), field("predecessor"));
    assert_eq!(with(96, &[1]), field("unused space"));
    assert_eq!(with(4091, &[1]), field("unused space"));
    assert_eq!(with(20, &1u32.to_le_bytes()), field("predecessor name"));
}

/// C3: positions have no gap, whether or not the chain is looked at: whoever leaves one out can mend the chain.
#[test]
fn a_frame_that_leaves_a_gap_is_refused_by_its_position() {
    let header = SegmentHeader {
        format: FORMAT_VERSION,
        writer: WriterVersion(1),
        rules: RulesVersion(1),
        store: StoreId([5; 16]),
        salt: Salt([7; 16]),
        incarnation: Incarnation(1),
        epoch: Epoch(1),
        first: Position(1),
        chain: Chain::born(StoreId([5; 16]), Salt([7; 16])),
        predecessor: None,
    };
    let place = Place::in_segment(header.salt, header.first, header.epoch);
    let place = place.at(SEGMENT_HEADER_BYTES as u64);
    let skipped = Head {
        position: header.start().position.next(),
        ..header.start()
    };
    let mut bytes = Vec::new();
    let (durable, draft) = (Position::ZERO, draft(b"facts", b"texts", b"bodies"));
    encode_into(&mut bytes, &place, skipped, durable, Incarnation(1), &draft).expect("it fits");
    for checks in [Checks::REPLAY, Checks::ALL] {
        let refused = Cursor::new(&header, checks).step(&bytes).map(drop);
        let gap = Fault::Position {
            expected: Position(1),
            found: Position(2),
        };
        assert_eq!(refused, Err(gap));
    }
}
