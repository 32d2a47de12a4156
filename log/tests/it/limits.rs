//! What no writer writes is refused by the field that it is in.

use tenure_log::fault::Fault;
use tenure_log::format::{
    FORMAT_VERSION, Predecessor, RulesVersion, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentName,
    WriterVersion,
};
use tenure_log::frame::{Depth, Draft, FrameRef, Parts, Place, carry_into, decode, encode_into};
use tenure_log::options::{EPOCH_MAX, POSITION_MAX};
use tenure_log::position::{Chain, Epoch, Head, Incarnation, Position, Salt, StoreId, TimeMicros};
use tenure_log::scan::{Checks, Cursor};

const SALT: Salt = Salt([7; 16]);

/// The header of a segment behind nine frames of another, in its second life.
fn header() -> SegmentHeader {
    let end = Head {
        position: Position(9),
        chain: Chain([3; 16]),
    };
    SegmentHeader {
        format: FORMAT_VERSION,
        writer: WriterVersion(1),
        rules: RulesVersion(1),
        store: StoreId([5; 16]),
        salt: SALT,
        incarnation: Incarnation(2),
        epoch: Epoch(4),
        first: Position(10),
        chain: end.chain,
        predecessor: Some(Predecessor {
            name: SegmentName {
                first: Position(1),
                epoch: Epoch(3),
            },
            end_offset: SEGMENT_HEADER_BYTES as u64 + 88 * 9,
            end,
        }),
    }
}

/// C3: names of segments go as far as positions and epochs do.
#[test]
fn names_of_segments_end_where_positions_and_epochs_do() {
    let name = |first: u64, epoch: u64| format!("{first:020}-{epoch}.seg");
    for (first, epoch, good) in [
        (1, 1, true),
        (POSITION_MAX, EPOCH_MAX, true),
        (POSITION_MAX + 1, 1, false),
        (1, EPOCH_MAX + 1, false),
        (0, 1, false),
        (1, 0, false),
    ] {
        let name = name(first, epoch);
        assert_eq!(name.parse::<SegmentName>().is_ok(), good, "{name}");
    }
}

/// C3: a header says what was before its segment, and nothing that cannot have been.
#[test]
fn a_predecessor_that_cannot_have_been_is_refused() {
    let block = header().encode();
    let with = |changes: &[(usize, u64)]| {
        let mut changed = block;
        for (at, word) in changes {
            changed[*at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let crc = crc32fast::hash(&changed[..4092]);
        changed[4092..].copy_from_slice(&crc.to_le_bytes());
        SegmentHeader::decode(&changed).map(drop)
    };
    let refused = |field| Err(Fault::SegmentField { field });
    // Behind the chain at 80: the name at 96 and 104, where it ended at 112, at which position at 120.
    let (name_first, name_epoch, end_offset, end_position) = (96, 104, 112, 120);
    assert_eq!(with(&[]), Ok(()));
    assert_eq!(with(&[(name_first, 2)]), Ok(()));
    for (at, word) in [
        (name_first, 0),
        (name_first, POSITION_MAX + 1),
        (name_first, 11),
        (name_epoch, 0),
        (name_epoch, EPOCH_MAX + 1),
        // Later than the segment itself.
        (name_epoch, 5),
    ] {
        let said = with(&[(at, word)]);
        assert_eq!(said, refused("predecessor name"), "{word} at {at}");
    }
    // A segment of the same name is none before this one.
    let same = [(name_first, 10), (name_epoch, 4)];
    assert_eq!(with(&same), refused("predecessor name"));
    for (at, word) in [
        (end_offset, SEGMENT_HEADER_BYTES as u64 - 8),
        (end_offset, SEGMENT_HEADER_BYTES as u64 + 81),
        // With frames it is longer than its header.
        (end_offset, SEGMENT_HEADER_BYTES as u64),
        (end_position, 8),
        (end_position, 10),
    ] {
        let said = with(&[(at, word)]);
        assert_eq!(said, refused("predecessor end"), "{word} at {at}");
    }
    // The chain that it ended with is the one that this one begins with.
    assert_eq!(with(&[(80, 1)]), refused("predecessor end"));
}

fn place() -> Place {
    Place::in_segment(SALT, Position(10), Epoch(4)).at(SEGMENT_HEADER_BYTES as u64)
}

fn draft() -> Draft {
    let parts = Parts {
        facts: b"facts".to_vec(),
        ..Parts::default()
    };
    Draft {
        time: TimeMicros(7),
        parts,
    }
}

/// The first frame of the segment, in a life.
fn first(incarnation: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let before = header().start();
    let life = Incarnation(incarnation);
    encode_into(&mut bytes, &place(), before, Position(8), life, &draft()).expect("it fits");
    bytes
}

/// C6: a frame's own fields have limits, wherever it stands.
#[test]
fn a_frame_with_a_field_beyond_its_limits_is_not_carried() {
    let bytes = first(2);
    let (frame, _) = decode(&place(), &bytes, Depth::Whole).expect("good");
    let refused = |change: &dyn Fn(&mut FrameRef<'_>)| {
        let mut changed = frame;
        change(&mut changed);
        let mut buffer = Vec::new();
        let said = carry_into(&mut buffer, &place(), &changed).map(drop);
        assert_eq!(buffer.is_empty(), said.is_err(), "nothing of it is left");
        said
    };
    assert_eq!(refused(&|_| {}), Ok(()));
    for position in [0, POSITION_MAX + 1] {
        let found = Position(position);
        let said = refused(&|frame| {
            frame.header.position = found;
            frame.header.durable = Position::ZERO;
        });
        let expected = Position(1);
        assert_eq!(said, Err(Fault::Position { expected, found }));
    }
    for epoch in [0, 5, EPOCH_MAX + 1] {
        let found = Epoch(epoch);
        let said = refused(&|frame| frame.header.epoch = found);
        let segment = Epoch(4);
        assert_eq!(said, Err(Fault::Epoch { segment, found }));
    }
    // Where the segment's own epoch is beyond the limit, the frame's is still refused.
    let far = Epoch(EPOCH_MAX + 1);
    let place = Place::in_segment(SALT, Position(10), far).at(4096);
    let mut changed = frame;
    changed.header.epoch = far;
    let said = carry_into(&mut Vec::new(), &place, &changed).map(drop);
    let (segment, found) = (far, far);
    assert_eq!(said, Err(Fault::Epoch { segment, found }));
}

/// C3, F2 of the log: epochs and lives never go back within a segment, and none is later than its segment's.
#[test]
fn epochs_and_lives_never_go_back_within_a_segment() {
    let header = header();
    // The first frame has the epoch and the life that are asked for, the second those of the segment or others.
    let read = |lives: [u64; 2], epochs: [u64; 2]| {
        let (mut bytes, mut at, mut before) = (Vec::new(), place(), header.start());
        for (life, epoch) in lives.into_iter().zip(epochs) {
            let from = bytes.len();
            let (durable, life) = (Position(8), Incarnation(life));
            let mut made = Vec::new();
            encode_into(&mut made, &at, before, durable, life, &draft()).expect("it fits");
            let (mut frame, _) = decode(&at, &made, Depth::Whole).expect("good");
            frame.header.epoch = Epoch(epoch);
            frame.header.chain = frame.header.chain_after(before.chain, frame.facts);
            before = carry_into(&mut bytes, &at, &frame).expect("it is carried");
            at = at.at(SEGMENT_HEADER_BYTES as u64 + bytes.len() as u64);
            assert!(bytes.len() > from);
        }
        let mut cursor = Cursor::new(&header, Checks::ALL);
        let first = cursor.step(&bytes).map(|frame| frame.header.frame_bytes());
        first.and_then(|len| cursor.step(&bytes[len..]).map(drop))
    };
    let segment = Incarnation(2);
    let life = |found| {
        let found = Incarnation(found);
        Err(Fault::Incarnation { segment, found })
    };
    assert_eq!(read([1, 2], [3, 4]), Ok(()));
    assert_eq!(read([2, 2], [4, 4]), Ok(()));
    assert_eq!(read([2, 1], [4, 4]), life(1));
    assert_eq!(read([0, 2], [4, 4]), life(0));
    assert_eq!(read([3, 3], [4, 4]), life(3));
    let epoch = Fault::Epoch {
        segment: Epoch(4),
        found: Epoch(3),
    };
    assert_eq!(read([2, 2], [4, 3]), Err(epoch));
}
