//! SQLite as people use it for this: WAL, `synchronous=FULL`, the generation checked by `UPDATE ... WHERE` in
//! the transaction that inserts the event.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use tenure_benches::workload::{Act, Crew, Step};

use super::{Hand, Peer, Place};

/// How its users share it between threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sqlite {
    /// Each thread has a connection and waits in the busy handler.
    ConnectionPerThread,
    /// One connection behind a mutex.
    OneConnection,
    /// One thread has the connection, and puts every write that waits into one transaction.
    BatchingThread,
}

impl Peer for Sqlite {
    fn name(&self) -> &'static str {
        match self {
            Self::ConnectionPerThread => "SQLite, a connection per thread",
            Self::OneConnection => "SQLite, one connection behind a mutex",
            Self::BatchingThread => "SQLite, a batching writer thread",
        }
    }

    fn sync_call(&self) -> &'static str {
        match self {
            Self::BatchingThread => "fdatasync of the WAL, per batch",
            _ => "fdatasync of the WAL, per transaction",
        }
    }

    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place> {
        let path = dir.join("sqlite.db");
        make(
            &path,
            crews
                .iter()
                .flat_map(|crew| &crew.seats)
                .map(|seat| seat.number),
        );
        match self {
            Self::ConnectionPerThread => Box::new(File(path)),
            Self::OneConnection => Box::new(Shared {
                connection: Mutex::new(connect(&path)),
                path,
            }),
            Self::BatchingThread => Box::new(Batching::start(path)),
        }
    }
}

/// Opens a connection as every writer here uses it.
pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the database opens");
    let set = |name, value: &str| {
        connection
            .pragma_update(None, name, value)
            .expect("it is set")
    };
    set("journal_mode", "WAL");
    set("synchronous", "FULL");
    // Nobody gives up: a store that fails under load would be compared with one that does not.
    connection
        .busy_timeout(Duration::from_secs(60))
        .expect("it is set");
    connection
}

/// Makes the tables and registers the sessions.
pub fn make(path: &Path, sessions: impl Iterator<Item = u64>) {
    let mut connection = connect(path);
    connection
        .execute_batch(
            "CREATE TABLE sessions(number INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
             CREATE TABLE events(position INTEGER PRIMARY KEY, session INTEGER NOT NULL,
                 generation INTEGER NOT NULL, kind INTEGER NOT NULL, body BLOB);",
        )
        .expect("the tables are made");
    let transaction = connection.transaction().expect("it begins");
    for number in sessions {
        let row = params![number as i64];
        transaction
            .execute("INSERT INTO sessions VALUES(?1, 1)", row)
            .expect("the session is new");
    }
    transaction.commit().expect("committed");
}

/// What a step asks of the database.
pub struct Write {
    session: i64,
    presented: i64,
    granted: i64,
    kind: i64,
    body: Option<Vec<u8>>,
}

impl Write {
    /// Of a step.
    pub fn of(crew: &Crew, step: &Step) -> Self {
        let seat = &crew.seats[step.seat];
        let (kind, late, grown) = match step.act {
            Act::Adopt => (2, 0, 1),
            Act::Dispatch { .. } => (6, 0, 0),
            Act::Accept => (7, 0, 0),
            Act::Report => (10, 0, 0),
            Act::Note => (12, 0, 0),
            Act::Late => (12, 1, 0),
        };
        let presented = seat.generation as i64 - late;
        Self {
            session: seat.number as i64,
            presented,
            granted: presented + grown,
            kind,
            body: step.has_body().then(|| step.body.to_vec()),
        }
    }

    /// Checks the generation and inserts the event, in a transaction that somebody else began.
    pub fn carry_out(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let Self {
            session,
            presented,
            granted,
            kind,
            body,
        } = self;
        let current = connection
            .prepare_cached(
                "UPDATE sessions SET generation = ?3 WHERE number = ?1 AND generation = ?2",
            )?
            .execute(params![session, presented, granted])?
            == 1;
        if current {
            connection
                .prepare_cached(
                    "INSERT INTO events(session, generation, kind, body) VALUES(?1, ?2, ?3, ?4)",
                )?
                .execute(params![session, granted, kind, body])?;
        }
        Ok(current)
    }

    fn commit(&self, connection: &mut Connection) -> bool {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .expect("the lock is given within a minute");
        if self.carry_out(&transaction).expect("carried out") {
            transaction.commit().expect("committed");
            true
        } else {
            transaction.rollback().expect("rolled back");
            false
        }
    }
}

fn settle(crew: &mut Crew, step: &Step, current: bool) {
    assert_eq!(current, step.act != Act::Late, "{:?}", step.act);
    crew.done(step, None);
}

fn count(path: &Path) -> Option<u64> {
    let count = "SELECT count(*) FROM events";
    let count: i64 = connect(path)
        .query_row(count, [], |row| row.get(0))
        .expect("counted");
    Some(count as u64)
}

struct File(PathBuf);

impl Place for File {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(connect(&self.0))
    }

    fn count(self: Box<Self>) -> Option<u64> {
        count(&self.0)
    }
}

impl Hand for Connection {
    fn perform(&mut self, crew: &mut Crew, step: &Step) {
        let current = Write::of(crew, step).commit(self);
        settle(crew, step, current);
    }
}

struct Shared {
    connection: Mutex<Connection>,
    path: PathBuf,
}

impl Place for Shared {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(&self.connection)
    }

    fn count(self: Box<Self>) -> Option<u64> {
        drop(self.connection);
        count(&self.path)
    }
}

impl Hand for &Mutex<Connection> {
    fn perform(&mut self, crew: &mut Crew, step: &Step) {
        let write = Write::of(crew, step);
        let mut connection: MutexGuard<'_, Connection> = self.lock().expect("nobody panicked");
        let current = write.commit(&mut connection);
        drop(connection);
        settle(crew, step, current);
    }
}

type Order = (Write, SyncSender<bool>);

struct Batching {
    path: PathBuf,
    orders: Mutex<Sender<Order>>,
    writer: JoinHandle<()>,
}

/// The most writes of one transaction, as many as this store's own groups have at most.
const BATCH_MAX: usize = 256;

impl Batching {
    fn start(path: PathBuf) -> Self {
        let (sender, orders) = channel();
        let connection = connect(&path);
        Self {
            path,
            orders: Mutex::new(sender),
            writer: std::thread::spawn(move || write_batches(connection, &orders)),
        }
    }
}

fn write_batches(mut connection: Connection, orders: &Receiver<Order>) {
    while let Ok(first) = orders.recv() {
        let more = std::iter::from_fn(|| orders.try_recv().ok());
        let batch: Vec<Order> = std::iter::once(first)
            .chain(more.take(BATCH_MAX - 1))
            .collect();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .expect("nobody else writes");
        let carry_out = |(write, _): &Order| write.carry_out(&transaction).expect("carried out");
        let answers: Vec<bool> = batch.iter().map(carry_out).collect();
        transaction.commit().expect("committed");
        for ((_, answer), current) in batch.into_iter().zip(answers) {
            // Whoever asked waits for this.
            answer.send(current).expect("the asker waits");
        }
    }
}

impl Place for Batching {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(self.orders.lock().expect("nobody panicked").clone())
    }

    fn count(self: Box<Self>) -> Option<u64> {
        drop(self.orders);
        self.writer.join().expect("the writer ends with its orders");
        count(&self.path)
    }
}

impl Hand for Sender<Order> {
    fn perform(&mut self, crew: &mut Crew, step: &Step) {
        let (answer, current) = sync_channel(1);
        self.send((Write::of(crew, step), answer))
            .expect("the writer lives");
        settle(crew, step, current.recv().expect("the writer answers"));
    }
}
