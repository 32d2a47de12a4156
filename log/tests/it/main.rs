//! The log's integration tests.

mod conformance;
mod damage;
mod evidence;
mod frame;
mod golden;
mod inspect;
mod landmark;
mod listing;
mod opening;
mod processes;
mod recovery;
mod salvage;
mod seal;
mod segment_log;
mod simulated;
mod store;
mod verify;
