//! Rigs that try to make the ledger break a promise.

pub mod hammer;
pub mod rig;
pub mod targets;
