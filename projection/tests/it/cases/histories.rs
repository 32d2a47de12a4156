//! Histories on real directories: large records, branches cut off anywhere, and what appending costs.

use std::sync::Arc;

use tenure_core::codec;
use tenure_core::limits::RECORD_BYTES_MAX;
use tenure_core::state::State;
use tenure_log::position::Position;
use tenure_log::recovery::Row;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::history::{Passage, Span};
use tenure_projection::reader::Reader;
use tenure_projection::session::Session;
use tenure_projection::store::{Done, Store};

use super::{Ground, bytes_at, cut, name, session, write_private};
use crate::balky::Balky;
use crate::scene::{Scene, frames_of};

fn record(session: &Session, body: &[u8]) -> Done {
    let verb = Verb::Record {
        kind: "text".into(),
        body: body.to_vec(),
        expect: None,
        opens: None,
        closes: None,
    };
    session.call(verb).expect("recorded")
}

fn branch(source: &str, dest: &str) -> Call {
    Call::new(Verb::Branch {
        source: name(source),
        name: name(dest),
        at: None,
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
        in_tree: false,
    })
}

fn bodies(reader: &Reader, of: &str) -> Vec<Vec<u8>> {
    let state = reader.view(Clone::clone).expect("it reads");
    let mut found = Vec::new();
    let span = Span {
        session: state.find(of.as_bytes()).expect("it is there"),
        until: state.at.position,
        hidden: false,
    };
    let each = |passage| {
        if let Passage::Record(record) = passage {
            found.push(record.body.expect("it is there"));
        }
        Ok(true)
    };
    reader.history(&state, span, each).expect("it reads");
    found
}

/// B11: records of the greatest size are taken whatever the size of segments: each stands in a segment that has room for
/// it, comes back byte for byte after opening anew, and nothing is found to be wrong.
#[test]
fn the_largest_record_fits_into_segments_of_any_size() {
    let ground = Ground::new();
    let large: Vec<u8> = (0..RECORD_BYTES_MAX).map(|n| (n % 253) as u8).collect();
    {
        let store = ground.open();
        let api = session(&store, "api");
        record(&api, b"before");
        record(&api, &large);
        record(&api, b"between");
        record(&api, &large);
        record(&api, b"behind");
        store.execute(branch("api", "new")).expect("branched");
    }
    ground.assert_clean();
    ground.forget_control();
    let store = ground.open();
    for of in ["api", "new"] {
        let found = bodies(&store, of);
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(sizes, [6, RECORD_BYTES_MAX, 7, RECORD_BYTES_MAX, 6], "{of}");
        assert!(found[1] == large && found[3] == large, "{of}");
    }
}

/// BRN-9, F26, A17: a branch is one frame: cut off at any byte, its name is free and its source whole, and the name can be
/// branched again at once; with its last byte the branch is complete.
#[test]
fn a_branch_that_was_cut_off_anywhere_is_not_there_or_complete() {
    let ground = Ground::new();
    {
        let store = ground.open();
        let api = session(&store, "api");
        record(&api, b"one");
        record(&api, b"two");
        store.execute(branch("api", "new")).expect("branched");
    }
    ground.forget_control();
    let whole = ground.tree();
    let last = ground.frames().pop().expect("a frame");
    assert_eq!(last.position, 4);
    let frame = bytes_at(&last.path, last.offset, last.bytes);
    for left in 0..=last.bytes {
        ground.restore(&whole);
        let file = last.path.strip_prefix(&ground.dir).expect("beneath");
        let mut bytes = whole[file].clone();
        let (from, kept) = (last.offset as usize, left as usize);
        bytes[from + kept..].fill(0);
        write_private(&last.path, &bytes);
        // Torn off, or never written into the space that was prepared for it.
        let torn = left % 2 == 1;
        if torn {
            cut(&last.path, last.offset + left);
        }
        let complete = !torn && frame[kept..].iter().all(|byte| *byte == 0);
        let store = ground.open();
        assert_eq!(
            bodies(&store, "api"),
            [b"one".to_vec(), b"two".to_vec()],
            "{left}"
        );
        let there = store.view(|s| s.find(b"new").is_some()).expect("it reads");
        assert_eq!(there, complete, "{left} of {} bytes", last.bytes);
        if !there {
            store
                .execute(branch("api", "new"))
                .expect("the name is free");
        }
        assert_eq!(bodies(&store, "new").len(), 2, "{left}");
        drop(store);
        let row = ground.verify().row;
        assert!(matches!(row, Row::Clean), "{left}: {row:?}");
    }
}

/// What one call writes and reads on a store with a history of so many records.
#[derive(Debug)]
struct Cost {
    frame_bytes: usize,
    state_bytes: usize,
    read_behind: Vec<Position>,
}

fn state_bytes(store: &Store) -> usize {
    store
        .view(|state: &State| codec::encode(state).expect("it encodes").len())
        .expect("it reads")
}

/// The costs of a record, of a branch, and of a record of that branch.
fn costs(records: usize) -> [Cost; 3] {
    let scene = Scene::new();
    scene.play("register api");
    let token = "api@1".parse().expect("a token");
    let mut tickets = Vec::new();
    for n in 0..records {
        let verb = Verb::Record {
            kind: "text".into(),
            body: format!("{n:08}").into_bytes(),
            expect: None,
            opens: None,
            closes: None,
        };
        tickets.push(
            scene
                .store
                .submit(Call::new(verb).under(&token))
                .expect("it is taken"),
        );
        if tickets.len() == 256 {
            scene.store.drive().expect("they are decided");
            tickets
                .drain(..)
                .for_each(|t| drop(t.wait().expect("recorded")));
        }
    }
    scene.store.drive().expect("they are decided");
    tickets
        .drain(..)
        .for_each(|t| drop(t.wait().expect("recorded")));
    let balky = Arc::new(Balky::new(&scene.log));
    let store = scene.upon(balky.clone());
    let cost = |call: Call| {
        let (before, _) = (state_bytes(&store), balky.reads());
        let position = store.execute(call).expect("it is done").at.position;
        let read_behind = balky.reads();
        let frame = frames_of(&scene.log).pop().expect("a frame");
        assert_eq!(frame.header.position.0, position.0);
        Cost {
            frame_bytes: frame.parts.facts.len()
                + frame.parts.texts.len()
                + frame.parts.bodies.len(),
            state_bytes: state_bytes(&store) - before,
            read_behind,
        }
    };
    let more = |token: &str| {
        Call::new(Verb::Record {
            kind: "text".into(),
            body: b"one more".to_vec(),
            expect: None,
            opens: None,
            closes: None,
        })
        .under(&token.parse().expect("a token"))
    };
    let own = cost(more("api@1"));
    let branched = cost(branch("api", "new"));
    [own, branched, cost(more("new@1"))]
}

/// How much longer a number may get when it is written down: index, position, record before, of up to 9 bytes each.
const NUMBERS_BYTES: usize = 64;

/// What is written for a record and for a branch, what is kept of it, and what is read for it, is the same for a history of
/// 10 records and one of 100,000: a record and a branch read nothing at all of the log.
#[test]
fn a_record_and_a_branch_cost_the_same_in_a_long_history() {
    let long = std::env::var("TENURE_RECORDS").ok();
    let long = long.map_or(100_000, |n| n.parse().expect("TENURE_RECORDS is a number"));
    for (few, many) in costs(10).iter().zip(&costs(long)) {
        assert_eq!((&*few.read_behind, &*many.read_behind), (&[][..], &[][..]));
        assert!(
            many.frame_bytes <= few.frame_bytes + NUMBERS_BYTES,
            "{few:?} {many:?}"
        );
        assert!(
            many.state_bytes <= few.state_bytes + NUMBERS_BYTES,
            "{few:?} {many:?}"
        );
    }
}
