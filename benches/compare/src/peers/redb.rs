//! redb: sessions and events in two tables, a write transaction for each commit.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::ledger::{Ledger, Write, parse};

const SESSIONS: TableDefinition<'_, u64, u64> = TableDefinition::new("sessions");
const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");

/// A database; its transactions are durable when they are committed.
pub struct Redb(Database);

fn database(dir: &Path) -> Database {
    Database::create(dir.join("redb.db")).expect("the database opens")
}

impl Ledger for Redb {
    fn open(dir: &Path, count: u64) -> Self {
        let database = database(dir);
        let transaction = database.begin_write().expect("nobody else writes");
        {
            let mut sessions = transaction.open_table(SESSIONS).expect("it opens");
            transaction.open_table(EVENTS).expect("it opens");
            let made = sessions.get(0).expect("read").is_some();
            for number in 0..count {
                if !made {
                    sessions.insert(number, 1).expect("inserted");
                }
            }
        }
        transaction.commit().expect("committed");
        Self(database)
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        let transaction = self.0.begin_write().expect("the lock is given");
        let mut answers = Vec::with_capacity(writes.len());
        {
            let mut sessions = transaction.open_table(SESSIONS).expect("it opens");
            let mut events = transaction.open_table(EVENTS).expect("it opens");
            let last = events.last().expect("read");
            let mut next = last.map_or(0, |(position, _)| position.value() + 1);
            for write in writes {
                let current = sessions.get(write.session).expect("read");
                let current = current.map(|row| row.value()) == Some(write.presented);
                answers.push(current);
                if !current {
                    continue;
                }
                if write.granted != write.presented {
                    sessions
                        .insert(write.session, write.granted)
                        .expect("inserted");
                }
                events
                    .insert(next, write.row().as_slice())
                    .expect("inserted");
                next += 1;
            }
        }
        if answers.contains(&true) {
            transaction.commit().expect("committed");
        } else {
            transaction.abort().expect("aborted");
        }
        answers
    }

    fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
        let database = database(dir);
        let transaction = database.begin_read().expect("it begins");
        let events = transaction.open_table(EVENTS).expect("it opens");
        for row in events.iter().expect("it begins") {
            let (_, row) = row.expect("read");
            let (session, generation) = parse(std::hint::black_box(row.value()));
            each(session, generation);
        }
    }
}
