//! The log's integration tests.

mod conformance;
mod damage;
mod evidence;
mod failing;
mod frame;
mod golden;
mod inspect;
mod landmark;
mod limits;
mod listing;
mod old_page;
mod opening;
mod processes;
mod recovery;
mod salvage;
mod seal;
mod segment_log;
mod simulated;
mod store;
mod verify;
