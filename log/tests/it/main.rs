//! The log's integration tests.

mod frame;
