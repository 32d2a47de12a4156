//! Replay of one long log, from the first event to the state.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tenure_benches::ours;
use tenure_benches::workload::{Act, Crew, SEED};
use tenure_core::codec::v1;
use tenure_core::id::Position;
use tenure_log::frame::{Depth, FrameRef};
use tenure_projection::error::Error;
use tenure_projection::reader::Reader;

use crate::options::Options;
use crate::peers::sqlite;

/// Sessions of the log.
const SEATS: usize = 10_000;

/// A way to replay, with how long it took in each round.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What is done.
    pub name: &'static str,
    /// How many events were read.
    pub events: u64,
    /// Seconds in each round.
    pub seconds: Vec<f64>,
}

type Way = fn(&Path) -> u64;

const WAYS: &[(&str, Way)] = &[
    ("tenure: checksums, decoding, the whole state", whole_state),
    (
        "tenure: checksums, fence fields, current generations",
        fences,
    ),
    ("tenure: checksums alone", checksums),
    (
        "SQLite: rows in order, current generations; no checksums",
        sqlite_rows,
    ),
];

/// Builds both logs, then reads them in turn.
pub fn measure(options: &Options) -> io::Result<Vec<Replay>> {
    if options.events == 0 {
        return Ok(Vec::new());
    }
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let dir = scratch.path();
    eprintln!("writing {} events twice", options.events);
    build_ours(dir, options.events);
    build_sqlite(dir, options.events);
    let mut replays: Vec<Replay> = WAYS
        .iter()
        .map(|(name, _)| Replay {
            name,
            events: 0,
            seconds: Vec::new(),
        })
        .collect();
    // The first time reads from the disk and counts for nobody.
    for round in 0..=options.rounds {
        for (replay, (name, way)) in replays.iter_mut().zip(WAYS) {
            eprintln!("replay {round} of {}: {name}", options.rounds);
            let began = Instant::now();
            let events = way(dir);
            let took = began.elapsed();
            replay.events = events;
            if round > 0 {
                replay.seconds.push(Duration::as_secs_f64(&took));
            }
        }
    }
    Ok(replays)
}

fn build_ours(dir: &Path, events: usize) {
    let store = ours::open(dir);
    let mut crew = Crew::new(SEED, 0, SEATS);
    ours::register(&store, &crew);
    ours::fill(&store, &mut crew, events);
    drop(store);
    // Without snapshots, opening replays everything.
    std::fs::remove_dir_all(dir.join("store/snapshots")).expect("snapshots can be removed");
}

fn build_sqlite(dir: &Path, events: usize) {
    let path = dir.join("sqlite.db");
    let mut crew = Crew::new(SEED, 0, SEATS);
    sqlite::make(&path, crew.seats.iter().map(|seat| seat.number));
    let mut connection = sqlite::connect(&path);
    let mut left = events;
    while left > 0 {
        let transaction = connection.transaction().expect("it begins");
        for _ in 0..left.min(10_000) {
            let step = crew.next_step();
            let current = sqlite::Write::of(&crew, &step).carry_out(&transaction);
            assert_eq!(current.expect("carried out"), step.act != Act::Late);
            // Late writes leave nothing behind; both logs get as many events as steps that stand.
            crew.done(&step, None);
        }
        transaction.commit().expect("committed");
        left -= left.min(10_000);
    }
}

fn reader(dir: &Path) -> Reader {
    Reader::open(&dir.join("store"), ours::host(dir)).expect("the store is readable")
}

fn whole_state(dir: &Path) -> u64 {
    let reader = reader(dir);
    reader
        .view(|state| state.at.position.0)
        .expect("the state is readable")
}

/// Reads every frame without opening a state first.
fn frames(
    dir: &Path,
    depth: Depth,
    mut each: impl FnMut(&FrameRef<'_>) -> Result<(), Error>,
) -> u64 {
    use tenure_log::reader::open::SegmentReader;
    use tenure_log::storage::disk::Disk;
    let reader = SegmentReader::open(std::sync::Arc::new(Disk), &dir.join("store"));
    let reader = reader.expect("the store is readable");
    let from = tenure_log::position::Position::ZERO;
    let mut frames = reader
        .read_from(from, depth)
        .expect("the store is readable");
    let mut count = 0;
    while let Some(frame) = frames.next() {
        each(&frame.expect("the frame is good")).expect("the frame decodes");
        count += 1;
    }
    count
}

fn checksums(dir: &Path) -> u64 {
    frames(dir, Depth::Whole, |_| Ok(()))
}

fn fences(dir: &Path) -> u64 {
    let mut current: HashMap<u64, u64> = HashMap::new();
    frames(dir, Depth::Facts, |frame| {
        let position = Position(frame.header.position.0);
        let fence = v1::decode_fence(frame.facts, frame.header.incarnation.0)
            .map_err(|fault| Error::Facts { position, fault })?;
        if let (Some(session), Some(granted)) = (fence.session, fence.granted) {
            current.insert(session.0, granted.number);
        }
        Ok(())
    })
}

fn sqlite_rows(dir: &Path) -> u64 {
    let connection = sqlite::connect(&dir.join("sqlite.db"));
    let mut rows = connection
        .prepare("SELECT position, session, generation, kind, body FROM events ORDER BY position")
        .expect("prepared");
    let mut current: HashMap<i64, i64> = HashMap::new();
    let mut rows = rows.query([]).expect("it begins");
    let (mut count, mut bytes) = (0, 0);
    while let Some(row) = rows.next().expect("read") {
        let body: Option<Vec<u8>> = row.get(4).expect("a body");
        bytes += body.map_or(0, |body| body.len());
        current.insert(row.get(1).expect("a number"), row.get(2).expect("a number"));
        count += 1;
    }
    std::hint::black_box((bytes, current));
    count
}
