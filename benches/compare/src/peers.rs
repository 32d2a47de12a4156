//! The stores that are compared, behind one door.

use std::path::Path;

use tenure_benches::workload::{Crew, Step};

pub mod disk;
pub mod ours;
pub mod sqlite;

/// A kind of store.
pub trait Peer {
    /// What it is called in tables.
    fn name(&self) -> &'static str;
    /// The call that makes an append durable.
    fn sync_call(&self) -> &'static str;
    /// Makes an empty store in `dir` and registers every session.
    fn make(&self, dir: &Path, crews: &[Crew]) -> Box<dyn Place>;
}

/// A store that threads write to.
pub trait Place: Sync {
    /// What one thread holds of it.
    fn hand(&self) -> Box<dyn Hand + '_>;
    /// Opens the store again and counts the events of steps that stand in it, registrations left out.
    /// `None` where nothing is kept that could be counted.
    fn count(self: Box<Self>) -> Option<u64>;
}

/// One thread's way to a store.
pub trait Hand {
    /// Carries out a step and tells its crew. Returns when it is durable.
    fn perform(&mut self, crew: &mut Crew, step: &Step);
}

/// Every store, in the order of the table. The first is the physical limit, the second is ours.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(disk::Disk),
        Box::new(ours::Ours),
        Box::new(sqlite::Sqlite::ConnectionPerThread),
        Box::new(sqlite::Sqlite::OneConnection),
        Box::new(sqlite::Sqlite::BatchingThread),
    ]
}
