//! fjall: sessions and events in two keyspaces, a batch with its sync for each commit. Its plain database checks
//! nothing, so that the check and the batch stand behind a mutex.

use std::path::Path;
use std::sync::Mutex;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::ledger::{Ledger, Write, parse};

/// A database.
pub struct Fjall {
    database: Database,
    sessions: Keyspace,
    events: Keyspace,
    /// The next position.
    next: Mutex<u64>,
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

fn open(dir: &Path) -> (Database, Keyspace, Keyspace) {
    let database = Database::builder(dir).open().expect("the database opens");
    let keyspace = |name| {
        database
            .keyspace(name, KeyspaceCreateOptions::default)
            .expect("the keyspace opens")
    };
    let (sessions, events) = (keyspace("sessions"), keyspace("events"));
    (database, sessions, events)
}

impl Ledger for Fjall {
    fn open(dir: &Path, count: u64) -> Self {
        let (database, sessions, events) = open(dir);
        let made = sessions.get(0_u64.to_be_bytes()).expect("read").is_some();
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        for session in 0..count {
            if !made {
                batch.insert(&sessions, session.to_be_bytes(), 1_u64.to_be_bytes());
            }
        }
        batch.commit().expect("committed");
        let last = events.last_key_value();
        let last = last.map(|row| number(&row.key().expect("read")));
        Self {
            next: Mutex::new(last.map_or(0, |last| last + 1)),
            database,
            sessions,
            events,
        }
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        let mut next = self.next.lock().expect("nobody panicked");
        let mut batch = self
            .database
            .batch()
            .durability(Some(PersistMode::SyncData));
        let mut answers = Vec::with_capacity(writes.len());
        // What this batch grants, which is not to be read back before it is committed.
        let mut granted = std::collections::HashMap::new();
        for write in writes {
            let known = granted.get(&write.session).copied();
            let current = known.unwrap_or_else(|| {
                let row = self.sessions.get(write.session.to_be_bytes());
                row.expect("read").map_or(0, |row| number(&row))
            });
            let current = current == write.presented;
            answers.push(current);
            if !current {
                continue;
            }
            if write.granted != write.presented {
                let (key, value) = (write.session.to_be_bytes(), write.granted.to_be_bytes());
                batch.insert(&self.sessions, key, value);
                granted.insert(write.session, write.granted);
            }
            batch.insert(&self.events, next.to_be_bytes(), write.row());
            *next += 1;
        }
        if answers.contains(&true) {
            batch.commit().expect("committed");
        }
        answers
    }

    fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
        let (_database, _sessions, events) = open(dir);
        for row in events.iter() {
            let row = row.value().expect("read");
            let (session, generation) = parse(std::hint::black_box(&row));
            each(session, generation);
        }
    }
}
