//! What is fed with arbitrary bytes: whatever they are, nothing panics, hangs or allocates without bound, and
//! what decodes once decodes the same again (C6, F07, F27, F33).
//!
//! The same functions run under `cargo test` on made-up bytes and on every file of `fuzz/corpus`, in the rig `fuzz` on
//! files of it that were changed by chance, and under libFuzzer (`cargo fuzz run facts`).

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use tenure_core::apply::apply;
use tenure_core::codec::{self, v1};
use tenure_core::decide::decide;
use tenure_core::id::{Moment, Name, Position, Time, Token};
use tenure_core::state::State;
use tenure_log::bundle::{Heading, unpack};
use tenure_log::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::look::Copied;
use tenure_log::position::{Position as LogPosition, Receipt};
use tenure_log::salvage;
use tenure_log::scan::{Checks, Step, Walk};
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, verify};
use tenure_projection::transcript;

use crate::unwritten::Unwritten;

/// A target: its name, which is that of its corpus too, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("facts", facts),
    ("segment", segment),
    ("store", store),
    ("projector", projector),
    ("snapshot", snapshot),
    ("typed", typed),
    ("transcript", transcript),
    ("bundle", bundle),
];

/// A frame's parts: the bytes are cut in three, the first byte says where.
pub fn facts(data: &[u8]) {
    let Some((cut, rest)) = data.split_first() else {
        return;
    };
    let facts_bytes = rest.len() * usize::from(*cut) / 255;
    let (facts, rest) = rest.split_at(facts_bytes);
    let (texts, bodies) = rest.split_at(rest.len() / 2);
    let at = Moment {
        position: Position(1),
        time: Time(0),
    };
    let mut state = State::new();
    if let Ok(entry) = v1::decode_entry(facts, texts, at, 1) {
        apply(&mut state, &entry);
        assert_eq!(v1::decode_entry(facts, texts, at, 1), Ok(entry));
    }
    // The key stands in the input: whoever decodes the whole input finds the same one.
    if let Ok(request) = v1::decode_request(facts, texts, bodies, Time(0)) {
        assert_eq!(v1::decode_key(facts), Ok(request.input.key));
        let _ = decide(&state, &request);
    }
    let _ = v1::decode_body(facts, texts, bodies, 0);
}

/// A segment file.
pub fn segment(data: &[u8]) {
    let Ok(header) = SegmentHeader::decode(data) else {
        return;
    };
    let mut walk = Walk::new(data, &header, Checks::ALL, None);
    let mut end = SEGMENT_HEADER_BYTES as u64;
    while let Ok(Some((span, _))) = walk.next() {
        assert!(
            span.offset >= end,
            "a walk goes forward and counts no byte twice"
        );
        end = span.end();
        assert!(end <= data.len() as u64, "a walk stays in the file");
    }
}

/// The segment files of a store, one after the other, each behind its length of four bytes: recovery's judgement, the
/// listing and a salvage. A salvage keeps what is good in itself, and nothing twice.
pub fn store(data: &[u8]) {
    let files = copied(data);
    let report = verify(&files, &Options::default());
    let mut frames = 0_u64;
    let listed = inspect_all(&files, Checks::ALL, &mut |entry| {
        let is_frame = matches!(
            entry,
            Entry::Step {
                step: Step::Frame(..),
                ..
            }
        );
        frames += u64::from(is_frame);
    });
    listed.expect("files in memory can be listed");
    assert!(report.coverage.frames <= frames, "a judged frame is listed");
    let storage: Arc<dyn Storage> = Arc::new(Disk);
    // Frames come in the order of their positions.
    let (mut last, mut kept) = (LogPosition::ZERO, 0);
    let mut scribe = Unwritten::new(|frame| {
        let position = frame.header.position;
        assert!(position > last, "{position} is kept behind {last}");
        last = position;
        kept += 1;
        true
    });
    if let Ok(report) = salvage::salvage(&files, &storage, None, &mut scribe) {
        assert_eq!(report.frames, kept, "what is kept is counted");
    }
}

/// The files; one whose header is none has a name all the same.
fn copied(data: &[u8]) -> Copied {
    let mut files = Copied {
        segments: BTreeMap::new(),
        seals: BTreeMap::new(),
        control: None,
    };
    let mut rest = data;
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = (u32::from_le_bytes(*length) as usize).min(behind.len());
        let (bytes, behind) = behind.split_at(length);
        let number = files.segments.len() + 1;
        let name = SegmentHeader::decode(bytes).map(|header| header.name().to_string());
        let name = name.unwrap_or_else(|_| format!("{number:020}-{number}.seg"));
        files.segments.insert(name, Arc::new(bytes.to_vec()));
        rest = behind;
    }
    files
}

/// A segment whose frames are folded into one state, whatever they say, as a projector does; and a decision on each. The
/// state can be kept and read again.
pub fn projector(data: &[u8]) {
    if let Some(state) = folded(data) {
        let bytes = codec::encode(&state).expect("a state encodes");
        assert_eq!(codec::decode::<State>(&bytes).ok().as_ref(), Some(&state));
    }
}

/// The state that a segment's frames fold into; none of what is no segment.
#[must_use]
pub fn folded(data: &[u8]) -> Option<State> {
    let header = SegmentHeader::decode(data).ok()?;
    let mut walk = Walk::new(data, &header, Checks::ALL, None);
    let mut state = State::new();
    while let Ok(Some((_, step))) = walk.next() {
        let Step::Frame(frame, _) = step else {
            continue;
        };
        let at = Moment {
            position: Position(frame.header.position.0),
            time: Time(frame.header.time.0),
        };
        let incarnation = frame.header.incarnation.0;
        if let Ok(request) = v1::decode_request(frame.facts, frame.texts, frame.bodies, at.time) {
            let _ = decide(&state, &request);
        }
        if let Ok(entry) = v1::decode_entry(frame.facts, frame.texts, at, incarnation) {
            apply(&mut state, &entry);
        }
    }
    Some(state)
}

/// A transcript of an agent's host: each byte of it is a record's, stands between records, or is damage; and each record
/// stands in a branch or is one that stands elsewhere already.
pub fn transcript(data: &[u8]) {
    let read = transcript::read(data, None, |_| {});
    let reading = read.expect("a slice can be read");
    assert_eq!(reading.bytes(), data.len() as u64);
    let apart = transcript::separate(&reading);
    for branch in &apart.branches {
        for record in &branch.records {
            assert!(
                *record < reading.records.len(),
                "a branch has records of the file"
            );
        }
    }
}

/// A bundle: a heading prints as it was read; and no store is made of what is not as it was written.
pub fn bundle(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Some(heading) = Heading::parse(text)
    {
        assert_eq!(Heading::parse(&heading.to_string()), Some(heading));
    }
    let room = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let room = room.expect("a directory can be made");
    let place = room.path().join("store");
    let made = unpack(&mut &*data, &place);
    assert_eq!(made.is_ok(), place.exists(), "all of it or nothing");
}

/// A snapshot's state: what decodes encodes to something that decodes to the same.
pub fn snapshot(data: &[u8]) {
    if let Ok(state) = codec::decode::<State>(data) {
        let again = codec::encode(&state).expect("a state encodes");
        assert_eq!(codec::decode::<State>(&again).ok().as_ref(), Some(&state));
    }
}

/// Texts that people type: names, tokens, receipts. What parses prints as it was typed.
pub fn typed(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(name) = Name::parse(text) {
        assert_eq!(name.as_str(), text);
    }
    if let Ok(token) = Token::from_str(text)
        && token.secret.is_none()
    {
        let printed = token.to_string();
        assert_eq!(Token::from_str(&printed).ok(), Some(token));
    }
    if let Ok(receipt) = Receipt::from_str(text) {
        assert_eq!(receipt.to_string(), text);
    }
}
