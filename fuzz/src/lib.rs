//! Rigs that try to make the ledger break a promise.

pub mod allocator;
pub mod hammer;
pub mod mutate;
pub mod rig;
pub mod targets;
pub mod unwritten;
