//! Commands about the program itself.

pub mod completions;
pub mod man;
