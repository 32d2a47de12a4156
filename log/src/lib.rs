//! An append-only, checksummed segment log for many threads and processes.
//!
//! The log knows bytes, positions and epochs; what stands in a frame is its caller's business. The byte layout is
//! `docs/format.md`, what is found at open and what is done then is `docs/recovery.md`.

pub mod bundle;
#[cfg(feature = "testkit")]
pub mod conformance;
pub mod control;
pub mod error;
pub mod fault;
pub mod format;
pub mod frame;
pub mod inspect;
pub mod journal;
pub mod lock;
pub mod look;
pub mod options;
pub mod position;
pub mod reader;
pub mod recovery;
pub mod salvage;
pub mod scan;
pub mod seal;
pub mod segment;
pub mod storage;
pub mod verify;
pub mod writer;
#[path = "../../core/src/zoo.rs"]
mod zoo;
