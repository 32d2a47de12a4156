//! Commands about the program itself.

pub mod completions;
pub mod doctor;
pub mod guard;
pub mod install;
pub mod man;
pub mod serve;
