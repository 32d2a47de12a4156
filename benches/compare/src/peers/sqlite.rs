//! SQLite as people use it for this: WAL, `synchronous=FULL`, the generation checked by `UPDATE ... WHERE` in
//! the transaction that inserts the event.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use tenure_benches::workload::{Crew, Step};

use super::ledger::{Ledger, Write, settle};
use super::{Hand, Peer, Place, sessions};

/// Opens a connection as every writer here uses it.
pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the database opens");
    // Nobody gives up: a store that fails under load would be compared with one that does not.
    connection
        .busy_timeout(Duration::from_secs(60))
        .expect("it is set");
    let set = |name, value: &str| {
        connection
            .pragma_update(None, name, value)
            .expect("it is set")
    };
    set("journal_mode", "WAL");
    set("synchronous", "FULL");
    connection
}

fn database(dir: &Path) -> PathBuf {
    dir.join("sqlite.db")
}

/// Makes the tables and registers the sessions, where the database is new.
fn make(connection: &mut Connection, sessions: u64) {
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS sessions(number INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
             CREATE TABLE IF NOT EXISTS events(position INTEGER PRIMARY KEY, session INTEGER NOT NULL,
                 generation INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB);",
        )
        .expect("the tables are made");
    let transaction = connection.transaction().expect("it begins");
    for number in 0..sessions {
        transaction
            .execute(
                "INSERT OR IGNORE INTO sessions VALUES(?1, 1)",
                [number as i64],
            )
            .expect("the session is there");
    }
    transaction.commit().expect("committed");
}

/// Checks the generation and inserts the event, in a transaction that somebody else began.
fn carry_out(write: &Write, connection: &Connection) -> rusqlite::Result<bool> {
    let (session, granted) = (write.session as i64, write.granted as i64);
    let current = connection
        .prepare_cached(
            "UPDATE sessions SET generation = ?3 WHERE number = ?1 AND generation = ?2",
        )?
        .execute(params![session, write.presented as i64, granted])?
        == 1;
    if current {
        connection
            .prepare_cached(
                "INSERT INTO events(session, generation, kind, body) VALUES(?1, ?2, ?3, ?4)",
            )?
            .execute(params![session, granted, write.kind, write.body])?;
    }
    Ok(current)
}

fn commit(connection: &mut Connection, writes: &[Write]) -> Vec<bool> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .expect("the lock is given within a minute");
    let one = |write| carry_out(write, &transaction).expect("carried out");
    let current: Vec<bool> = writes.iter().map(one).collect();
    if current.contains(&true) {
        transaction.commit().expect("committed");
    } else {
        transaction.rollback().expect("rolled back");
    }
    current
}

/// One connection behind a mutex.
pub struct Sqlite(Mutex<Connection>);

impl Ledger for Sqlite {
    fn open(dir: &Path, sessions: u64) -> Self {
        let mut connection = connect(&database(dir));
        make(&mut connection, sessions);
        Self(Mutex::new(connection))
    }

    fn commit(&self, writes: &[Write]) -> Vec<bool> {
        commit(&mut self.0.lock().expect("nobody panicked"), writes)
    }

    fn read(dir: &Path, mut each: impl FnMut(u64, u64)) {
        let connection = connect(&database(dir));
        let mut rows = connection
            .prepare("SELECT session, generation, kind, body FROM events ORDER BY position")
            .expect("prepared");
        let mut rows = rows.query([]).expect("it begins");
        let mut bytes = 0;
        while let Some(row) = rows.next().expect("read") {
            let body: Option<Vec<u8>> = row.get(3).expect("a body");
            bytes += body.map_or(0, |body| body.len());
            let number = |at| row.get::<_, i64>(at).expect("a number") as u64;
            each(number(0), number(1));
        }
        std::hint::black_box(bytes);
    }

    fn count(dir: &Path) -> u64 {
        let count = "SELECT count(*) FROM events";
        let count: i64 = connect(&database(dir))
            .query_row(count, [], |row| row.get(0))
            .expect("counted");
        count as u64
    }
}

/// Each thread has a connection and waits in the busy handler.
pub struct ConnectionPerThread;

impl Peer for ConnectionPerThread {
    fn name(&self) -> &'static str {
        super::SQLITE_USED
    }

    fn sync_call(&self) -> &'static str {
        "fsync of the WAL, per transaction"
    }

    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place> {
        make(&mut connect(&database(dir)), sessions(crews));
        Box::new(File(dir.to_owned()))
    }

    fn join(&self, dir: &Path) -> Option<Box<dyn Place>> {
        Some(Box::new(File(dir.to_owned())))
    }
}

struct File(PathBuf);

impl Place for File {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(connect(&database(&self.0)))
    }

    fn count(self: Box<Self>) -> Option<u64> {
        Some(Sqlite::count(&self.0))
    }
}

impl Hand for Connection {
    fn perform(&mut self, crew: &mut Crew, steps: &[Step]) {
        let writes: Vec<Write> = steps.iter().map(|step| Write::of(crew, step)).collect();
        let current = commit(self, &writes);
        settle(crew, steps, &current);
    }
}
