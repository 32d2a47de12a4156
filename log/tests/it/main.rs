//! The log's integration tests.

mod frame;
mod store;
mod verify;
