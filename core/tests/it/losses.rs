//! Behind a loss: every frame of the rules' scenes lost once, and everything behind it folded (`docs/recovery.md`).
//!
//! The file `losses-v1.txt` holds a digest of what came of each log; `WRITE_GOLDEN=1` writes it anew, for a change of the
//! state's encoding.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tenure_core::apply::{Applied, apply};
use tenure_core::codec::{self, v1};
use tenure_core::event::{Entry, Event, Fence, PositionLost};
use tenure_core::id::{Moment, Position};
use tenure_core::state::State;
use tenure_core::text::Texts;

use crate::decisions::{Log, read, short};

/// The life that a salvage would begin: no raise of the log ends what is unproven.
const LIFE: u64 = u64::MAX;

/// What stands in place of a lost frame.
fn lost(at: Moment, incarnation: u64) -> Entry {
    let mut texts = Texts::default();
    let found = texts.add(b"zeros");
    let event = PositionLost {
        first: Position(1),
        epoch: 1,
        offset: None,
        found,
        life: LIFE,
    };
    Entry {
        at,
        incarnation,
        fence: Fence::NONE,
        texts,
        events: vec![event.into()],
        ..Entry::default()
    }
}

fn entries(log: &Log) -> Vec<Entry> {
    let frames = log.frames.iter();
    let decoded = frames.map(|frame| {
        let [facts, texts, _] = &frame.parts;
        v1::decode_entry(facts, texts, frame.at, frame.incarnation).expect("it decodes")
    });
    decoded.collect()
}

/// What an entry gives a number or a generation to has it.
fn numbers_hold(state: &State, entry: &Entry) {
    let at = entry.at.position;
    for event in &entry.events {
        match event {
            Event::Registered(e) => {
                assert_eq!(state.find(entry.texts.get(e.name)), Some(e.session), "{at}");
                let known = state.session(e.session).expect("it is there");
                assert_eq!(known.generation, e.generation, "{at}");
            }
            Event::Dispatched(e) => {
                let row = state.dispatch(e.dispatch).expect("it is there");
                assert_eq!((row.session, row.opened), (e.session, entry.at), "{at}");
                let item = entry.texts.get(e.item);
                assert_eq!(state.live_dispatch_of(item), Some(e.dispatch), "{at}");
            }
            Event::Sent(e) => {
                let row = state.envelope(e.envelope).expect("it is there");
                assert_eq!((row.session, row.position), (e.session, at), "{at}");
            }
            Event::RoleTaken(e) => {
                let role = state.role(e.role).expect("it is there");
                assert_eq!(role.generation, e.generation, "{at}");
            }
            _ => {}
        }
    }
}

/// Folds a log with one position lost. `None` where the log has frames that do not stand anyhow.
fn without(entries: &[Entry], position: Position) -> Option<State> {
    let mut state = State::new();
    for entry in entries {
        if entry.at.position == position {
            let incarnation = state.incarnation;
            apply(&mut state, &lost(entry.at, incarnation));
            continue;
        }
        match apply(&mut state, entry) {
            Applied::Honoured if !state.is_unproven() => {}
            Applied::Unproven => {}
            _ => return None,
        }
        numbers_hold(&state, entry);
    }
    let bytes = codec::encode(&state).expect("it encodes");
    let back: State = codec::decode(&bytes).expect("it decodes");
    assert!(
        back == state,
        "what is written down of a state is that state"
    );
    Some(state)
}

/// F11: whatever one frame is lost, what the others give a number to keeps it, and nothing of them is red.
#[test]
fn behind_any_lost_frame_numbers_mean_what_they_meant() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/losses-v1.txt");
    let (mut folds, mut came) = (0, BTreeMap::new());
    for log in read() {
        let entries = entries(&log);
        let mut whole = State::new();
        let stands = |entry| apply(&mut whole, entry) == Applied::Honoured;
        if !entries.iter().all(stands) {
            continue;
        }
        // A long log in steps: its length squared is what this costs.
        let step = entries.len() / 40 + 1;
        let mut states = Vec::new();
        for entry in entries.iter().step_by(step) {
            let state = without(&entries, entry.at.position);
            let state =
                state.unwrap_or_else(|| panic!("{} without {}", log.name, entry.at.position));
            states.extend(codec::encode(&state).expect("it encodes"));
            folds += 1;
        }
        let digest: &mut u64 = came.entry(log.name).or_default();
        *digest = digest.rotate_left(7) ^ short(&states);
    }
    assert!(folds > 1000, "{folds}");
    let mut text = String::new();
    for (name, digest) in came {
        writeln!(text, "{digest:016x} {name}").expect("a string grows");
    }
    if std::env::var_os("WRITE_GOLDEN").is_some_and(|v| v == "1") {
        std::fs::write(&file, &text).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&file).expect("the golden file is there");
    for (is, was) in text.lines().zip(golden.lines()) {
        assert_eq!(is, was, "another state behind a loss");
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}
