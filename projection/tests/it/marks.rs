//! Landmarks beside the snapshot: they say where frames stand, and are never believed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tenure_core::id::{Name, Position, Token};
use tenure_log::frame::Depth;
use tenure_log::journal::Landmark;
use tenure_log::position;
use tenure_log::reader::open::SegmentReader;
use tenure_log::storage::disk::Disk;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::host::System;
use tenure_projection::reader::Reader;
use tenure_projection::store::{OpenOptions, Store};

const FRAMES: u64 = 5000;
const HEADER_BYTES: usize = 24;

/// A store in which snapshots were written on the way.
fn filled(dir: &Path) {
    let options = OpenOptions::new(dir.join("store")).create(true);
    let store = Store::open(&options, Arc::new(System::new(&dir.join("host")))).expect("it opens");
    let register = Verb::Register {
        name: Name::parse("api").expect("a name"),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    let register = Call::new(register).by("test");
    store.execute(register).expect("registered");
    let token: Token = "api@1".parse().expect("a token");
    for together in (1..FRAMES).collect::<Vec<_>>().chunks(250) {
        let submit = |n: &u64| {
            let verb = Verb::Observe {
                status: format!("step {n}"),
                wrote: Vec::new(),
            };
            let call = Call::new(verb).by("test").under(&token);
            store.submit(call).expect("well-formed")
        };
        let tickets: Vec<_> = together.iter().map(submit).collect();
        for ticket in tickets {
            ticket.wait().expect("it stands");
        }
    }
    store.snapshot().expect("it is kept");
}

/// The position and time of the frame found at each of some positions.
fn found(dir: &Path) -> Vec<(u64, i64)> {
    let host = Arc::new(System::new(&dir.join("host")));
    let reader = Reader::open(&dir.join("store"), host).expect("it opens");
    let asked = (0..FRAMES / 250).map(|n| n * 250 + 1);
    let edges = [1, 31, 32, 33, 64, 65, 4095, 4096, 4097, FRAMES];
    let mut all = Vec::new();
    for at in asked.chain(edges).map(Position) {
        let look = reader.frames(at, at, Depth::Whole, |frame| {
            all.push((frame.header.position.0, frame.header.time.0));
            Ok(true)
        });
        look.expect("it reads");
    }
    all
}

/// Each landmark is where the frame stands, and there is one for every 32nd; exchanged, foreign, torn or lost
/// ones change no answer.
#[test]
fn landmarks_say_where_frames_stand_and_are_not_believed() {
    let dir = TempDir::new().expect("a directory");
    filled(dir.path());
    let file = dir.path().join("store/snapshots/marks-0");
    let good = fs::read(&file).expect("it is kept");
    let kept: Vec<Landmark> = good[HEADER_BYTES..]
        .as_chunks()
        .0
        .iter()
        .map(Landmark::from_bytes)
        .collect();
    let log = SegmentReader::open(Arc::new(Disk), &dir.path().join("store")).expect("it opens");
    let mut frames = log
        .read_from(position::Position::ZERO, Depth::Facts)
        .expect("it reads");
    let mut stands = Vec::new();
    while let Some(frame) = frames.next() {
        let at = frame.expect("it reads").header.position.0;
        if at % 32 == 0 {
            stands.push(frames.landmark().expect("it has a place"));
        }
    }
    assert_eq!(kept, stands);
    assert_eq!(kept.len() as u64, FRAMES / 32);

    let answers = found(dir.path());
    assert!(answers.iter().all(|(position, _)| *position > 0));
    let mut exchanged = good.clone();
    let (first, rest) = exchanged[HEADER_BYTES..].split_at_mut(Landmark::BYTES);
    first.swap_with_slice(&mut rest[..Landmark::BYTES]);
    let mut off = good.clone();
    // The offset of the second landmark, and what stands behind its position.
    off[HEADER_BYTES + Landmark::BYTES + 40] ^= 8;
    let mut foreign = good.clone();
    foreign[9] ^= 1;
    let garbage = vec![0xa5; good.len()];
    let torn = good[..HEADER_BYTES + Landmark::BYTES + 9].to_vec();
    for bytes in [exchanged, off, foreign, garbage, torn, Vec::new()] {
        fs::write(&file, bytes).expect("it writes");
        assert_eq!(found(dir.path()), answers);
    }
    fs::remove_file(&file).expect("it is there");
    assert_eq!(found(dir.path()), answers);
}
