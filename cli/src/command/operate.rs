//! Commands about the program itself.

pub mod completions;
pub mod guard;
pub mod man;
