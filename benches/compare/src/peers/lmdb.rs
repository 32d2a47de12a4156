//! LMDB: sessions and events in two databases of one environment, a write transaction for each commit.

use std::path::Path;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvOpenOptions};

use super::ledger::{Ledger, Write, parse};

type Number = U64<BigEndian>;

/// Address space, not disk: the file grows as it is written.
const MAP_BYTES: usize = 64 << 30;

/// An environment.
pub struct Lmdb {
    env: Env,
    sessions: Database<Number, Number>,
    events: Database<Number, Bytes>,
}

fn environment(dir: &Path) -> Env {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_dbs(2);
    // SAFETY: the directory was made for this run, and nothing but this environment touches its files.
    unsafe { options.open(dir) }.expect("the environment opens")
}

impl Ledger for Lmdb {
    fn open(dir: &Path, count: u64) -> Self {
        let env = environment(dir);
        let mut transaction = env.write_txn().expect("nobody else writes");
        let sessions: Database<Number, Number> = env
            .create_database(&mut transaction, Some("sessions"))
            .expect("it is made");
        let events = env
            .create_database(&mut transaction, Some("events"))
            .expect("it is made");
        let first = sessions.get(&transaction, &0).expect("read");
        for number in 0..count {
            if first.is_none() {
                sessions.put(&mut transaction, &number, &1).expect("put");
            }
        }
        transaction.commit().expect("committed");
        Self {
            env,
            sessions,
            events,
        }
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        let mut transaction = self.env.write_txn().expect("the lock is given");
        let last = self.events.last(&transaction).expect("read");
        let mut next = last.map_or(0, |(position, _)| position + 1);
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            let current = self.sessions.get(&transaction, &write.session);
            let current = current.expect("read") == Some(write.presented);
            answers.push(current);
            if !current {
                continue;
            }
            if write.granted != write.presented {
                self.sessions
                    .put(&mut transaction, &write.session, &write.granted)
                    .expect("put");
            }
            self.events
                .put_with_flags(
                    &mut transaction,
                    heed::PutFlags::APPEND,
                    &next,
                    &write.row(),
                )
                .expect("put");
            next += 1;
        }
        if answers.contains(&true) {
            transaction.commit().expect("committed");
        } else {
            transaction.abort();
        }
        answers
    }

    fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
        let env = environment(dir);
        let transaction = env.read_txn().expect("it begins");
        let events: Database<Number, Bytes> = env
            .open_database(&transaction, Some("events"))
            .expect("it opens")
            .expect("it was made");
        for row in events.iter(&transaction).expect("it begins") {
            let (_, row) = row.expect("read");
            let (session, generation) = parse(std::hint::black_box(row));
            each(session, generation);
        }
    }
}
