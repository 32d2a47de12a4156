//! The log's integration tests.

mod frame;
mod recovery;
mod store;
mod verify;
