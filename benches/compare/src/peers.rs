//! The stores that are compared, behind one door.

use std::path::Path;

use tenure_benches::workload::{Crew, Step};

pub mod disk;
pub mod ledger;
pub mod ours;
pub mod sqlite;

#[cfg(feature = "commitlog")]
pub mod commitlog;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "okaywal")]
pub mod okaywal;
#[cfg(feature = "raft-engine")]
pub mod raft_engine;
#[cfg(feature = "redb")]
pub mod redb;

use ledger::{Shared, Sharing};
use sqlite::Sqlite;

/// A kind of store.
pub trait Peer {
    /// What it is called in tables.
    fn name(&self) -> &'static str;
    /// The call that makes an append durable.
    fn sync_call(&self) -> &'static str;
    /// Whether one thread can hand over the next commit before the last one is durable.
    fn goes_ahead(&self) -> bool {
        false
    }
    /// Makes an empty store in `dir` and registers every session.
    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place>;
    /// Opens a store that another process has made, where several can have one open.
    fn join(&self, _dir: &Path) -> Option<Box<dyn Place>> {
        None
    }
}

/// A store that threads write to.
pub trait Place: Sync {
    /// What one thread holds of it.
    fn hand(&self) -> Box<dyn Hand + '_>;
    /// As before, of one that need not wait; `None` where every commit blocks whoever asks for it.
    fn hand_ahead(&self) -> Option<Box<dyn Ahead + '_>> {
        None
    }
    /// Opens the store again and counts the events of steps that stand in it, registrations left out.
    /// `None` where nothing is kept that could be counted.
    fn count(self: Box<Self>) -> Option<u64>;
}

/// One thread's way to a store.
pub trait Hand {
    /// Carries out steps of different seats with one sync, and tells their crew. Returns when they are durable.
    fn perform(&mut self, crew: &mut Crew, steps: &[Step]);
}

/// One thread's way to a store that answers later.
pub trait Ahead {
    /// Hands over steps of different seats, to be carried out with one sync behind those that were handed over before.
    fn begin(&mut self, crew: &Crew, steps: &[Step]) -> Answers;
}

/// Waits until steps are durable, and tells their crew.
pub type Answers = Box<dyn FnOnce(&mut Crew, &[Step])>;

/// How many sessions crews have.
pub fn sessions(crews: &[Crew]) -> u64 {
    crews.iter().map(|crew| crew.seats.len() as u64).sum()
}

/// The name of the physical limit.
pub const DISK: &str = "disk: a write and a sync each, no grouping";
/// The name of this store.
pub const OURS: &str = "tenure";
/// SQLite as most people use it.
pub const SQLITE_USED: &str = "SQLite, a connection per thread";
/// SQLite with one connection.
pub const SQLITE_ONE: &str = "SQLite, one connection behind a mutex";
/// SQLite as a program can tune it.
pub const SQLITE_TUNED: &str = "SQLite, a batching writer thread";

/// Every store that this build has, in the order of the table.
pub fn all() -> Vec<Box<dyn Peer>> {
    let mut all: Vec<Box<dyn Peer>> = vec![Box::new(disk::Disk), Box::new(ours::Ours)];
    all.push(Box::new(sqlite::ConnectionPerThread));
    let per_transaction = "fsync of the WAL, per transaction";
    let per_batch = "fsync of the WAL, per batch";
    all.push(Shared::<Sqlite>::boxed(
        SQLITE_ONE,
        per_transaction,
        Sharing::Direct,
    ));
    all.push(Shared::<Sqlite>::boxed(
        SQLITE_TUNED,
        per_batch,
        Sharing::Batching,
    ));
    key_values(&mut all);
    logs(&mut all);
    all
}

/// Maps from keys to values, with and without a thread that batches.
fn key_values(all: &mut Vec<Box<dyn Peer>>) {
    #[cfg(feature = "lmdb")]
    {
        let call = "fdatasync, then a write of the meta page to a descriptor with O_DSYNC, per transaction";
        all.push(Shared::<lmdb::Lmdb>::boxed("LMDB", call, Sharing::Direct));
        all.push(Shared::<lmdb::Lmdb>::boxed(
            "LMDB, a batching writer thread",
            call,
            Sharing::Batching,
        ));
    }
    #[cfg(feature = "redb")]
    {
        let call = "fdatasync, per transaction (Durability::Immediate)";
        all.push(Shared::<redb::Redb>::boxed("redb", call, Sharing::Direct));
        all.push(Shared::<redb::Redb>::boxed(
            "redb, a batching writer thread",
            call,
            Sharing::Batching,
        ));
    }
    #[cfg(feature = "fjall")]
    {
        let call = "fdatasync of the journal, per batch (PersistMode::SyncData)";
        all.push(Shared::<fjall::Fjall>::boxed(
            "fjall",
            call,
            Sharing::Direct,
        ));
        all.push(Shared::<fjall::Fjall>::boxed(
            "fjall, a batching writer thread",
            call,
            Sharing::Batching,
        ));
    }
    // Without any of them the list stays as it is.
    let _ = all;
}

/// Logs: the generations stand in memory beside them, and nothing is refused by the log itself.
fn logs(all: &mut Vec<Box<dyn Peer>>) {
    #[cfg(feature = "raft-engine")]
    {
        let call = "fdatasync, per group of writers (write with sync)";
        all.push(Shared::<raft_engine::PerSession>::boxed(
            "raft-engine, a raft group per session (no total order)",
            call,
            Sharing::Direct,
        ));
        all.push(Shared::<raft_engine::OneGroup>::boxed(
            "raft-engine, one raft group, a batching writer thread",
            call,
            Sharing::Batching,
        ));
    }
    #[cfg(feature = "okaywal")]
    all.push(Shared::<okaywal::OkayWal>::boxed(
        "okaywal",
        "fdatasync, per group of committers",
        Sharing::Direct,
    ));
    #[cfg(feature = "commitlog")]
    {
        // Its own `flush` only reaches the page cache.
        let call = "fdatasync by hand (its own flush is no sync), per append";
        all.push(Shared::<commitlog::Commitlog>::boxed(
            "commitlog",
            call,
            Sharing::Direct,
        ));
        all.push(Shared::<commitlog::Commitlog>::boxed(
            "commitlog, a batching writer thread",
            call,
            Sharing::Batching,
        ));
    }
    let _ = all;
}

/// The stores that this build does not have, each with the reason.
pub fn skipped() -> Vec<(&'static str, String)> {
    let peers = [
        ("LMDB", "lmdb", cfg!(feature = "lmdb")),
        ("redb", "redb", cfg!(feature = "redb")),
        ("fjall", "fjall", cfg!(feature = "fjall")),
        ("raft-engine", "raft-engine", cfg!(feature = "raft-engine")),
        ("okaywal", "okaywal", cfg!(feature = "okaywal")),
        ("commitlog", "commitlog", cfg!(feature = "commitlog")),
    ];
    let absent = peers.into_iter().filter(|(_, _, built)| !built);
    absent
        .map(|(name, feature, _)| (name, format!("built without the feature `{feature}`")))
        .collect()
}
