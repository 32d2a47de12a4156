//! raft-engine: a log that knows no sessions, so that generations stand in memory beside it.

use std::path::Path;
use std::sync::Mutex;

use raft_engine::{Config, Engine, LogBatch, MessageExt};
use raft_proto::eraftpb::Entry;

use super::ledger::{Ledger, Write, parse};

struct Entries;

impl MessageExt for Entries {
    type Entry = Entry;

    fn index(entry: &Entry) -> u64 {
        entry.index
    }
}

fn engine(dir: &Path) -> Engine {
    let config = Config {
        dir: dir.to_string_lossy().into_owned(),
        ..Config::default()
    };
    Engine::open(config).expect("the engine opens")
}

fn entry(write: &Write, index: u64) -> Entry {
    Entry {
        index,
        data: write.row().into(),
        ..Entry::default()
    }
}

/// Reads the entries of groups, group by group.
fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
    /// Entries that are fetched at once.
    const TOGETHER: u64 = 10_000;
    let engine = engine(dir);
    let mut groups = engine.raft_groups();
    groups.sort_unstable();
    let mut entries: Vec<Entry> = Vec::new();
    for group in groups {
        let (Some(first), Some(last)) = (engine.first_index(group), engine.last_index(group))
        else {
            continue;
        };
        let mut from = first;
        while from <= last {
            let to = (from + TOGETHER).min(last + 1);
            engine
                .fetch_entries_to::<Entries>(group, from, to, None, &mut entries)
                .expect("fetched");
            for entry in entries.drain(..) {
                let (session, generation) = parse(std::hint::black_box(&entry.data));
                each(session, generation);
            }
            from = to;
        }
    }
}

/// A raft group for each session: writers of different sessions share a sync, and there is no order among them.
pub struct PerSession {
    engine: Engine,
    /// Of each session its generation and the last index of its group.
    sessions: Vec<Mutex<(u64, u64)>>,
}

impl Ledger for PerSession {
    fn open(dir: &Path, sessions: u64) -> Self {
        Self {
            engine: engine(dir),
            sessions: (0..sessions).map(|_| Mutex::new((1, 0))).collect(),
        }
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        // One write goes straight to the group of its session; several share one batch.
        let mut batch = LogBatch::with_capacity(writes.len());
        let mut answers = Vec::with_capacity(writes.len());
        let mut held = std::collections::HashMap::new();
        for write in writes {
            let session = held.entry(write.session).or_insert_with(|| {
                let session = &self.sessions[write.session as usize];
                session.lock().expect("nobody panicked")
            });
            let current = session.0 == write.presented;
            answers.push(current);
            if current {
                **session = (write.granted, session.1 + 1);
                let entry = entry(write, session.1);
                batch
                    .add_entries::<Entries>(write.session + 1, &[entry])
                    .expect("it fits");
            }
        }
        if !batch.is_empty() {
            self.engine.write(&mut batch, true).expect("written");
        }
        answers
    }

    fn read(dir: &Path, each: impl FnMut(u64, u64)) {
        read(dir, each);
    }
}

/// One raft group, which gives a total order.
pub struct OneGroup {
    engine: Engine,
    /// The last index, and the generation of each session.
    state: Mutex<(u64, Vec<u64>)>,
}

impl Ledger for OneGroup {
    fn open(dir: &Path, sessions: u64) -> Self {
        Self {
            engine: engine(dir),
            state: Mutex::new((0, vec![1; sessions as usize])),
        }
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        let mut state = self.state.lock().expect("nobody panicked");
        let (last, sessions) = &mut *state;
        let mut entries = Vec::with_capacity(writes.len());
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            let generation = &mut sessions[write.session as usize];
            let current = *generation == write.presented;
            answers.push(current);
            if current {
                *generation = write.granted;
                *last += 1;
                entries.push(entry(write, *last));
            }
        }
        if !entries.is_empty() {
            let mut batch = LogBatch::with_capacity(entries.len());
            batch.add_entries::<Entries>(1, &entries).expect("it fits");
            self.engine.write(&mut batch, true).expect("written");
        }
        answers
    }

    fn read(dir: &Path, each: impl FnMut(u64, u64)) {
        read(dir, each);
    }
}
