//! Commands about what was, and who was allowed.

// The command of the group's own name.
#[allow(clippy::module_inception)]
pub mod audit;
pub mod bisect;
pub mod diff;
pub mod impact;
pub mod log;
pub mod place;
pub mod receipt;
pub mod refusals;
pub mod replay;
pub mod timeline;
pub mod who;
pub mod why;
