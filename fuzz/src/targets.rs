//! What is fed with arbitrary bytes: whatever they are, nothing panics, hangs or allocates without bound, and
//! what decodes once decodes the same again (C6, F07, F27, F33).
//!
//! The same functions run under `cargo test` on made-up bytes and on every golden file with bytes changed, and
//! under libFuzzer (`cargo fuzz run facts`).

use std::str::FromStr;

use tenure_core::apply::apply;
use tenure_core::codec::{self, v1};
use tenure_core::decide::decide;
use tenure_core::id::{Moment, Name, Position, Time, Token};
use tenure_core::state::State;
use tenure_log::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use tenure_log::position::Receipt;
use tenure_log::scan::{Checks, Walk};

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
