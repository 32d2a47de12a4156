//! The locks by which threads share one store, and words that they sleep on: the system's, or under `cfg(tenure_shuttle)`
//! those of a scheduler that plays the same threads in many orders (`docs/testing.md`).

#[cfg(tenure_shuttle)]
mod shuttled;
#[cfg(not(tenure_shuttle))]
mod system;

#[cfg(not(tenure_shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
#[cfg(tenure_shuttle)]
pub(crate) use shuttled::{
    AtomicU32, AtomicU64, Mutex, MutexGuard, RwLock, RwLockWriteGuard, Word,
};
#[cfg(not(tenure_shuttle))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(tenure_shuttle))]
pub(crate) use system::Word;
