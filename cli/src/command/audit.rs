//! Commands about what was, and who was allowed.

pub mod log;
pub mod refusals;
pub mod who;
