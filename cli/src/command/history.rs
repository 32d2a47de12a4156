//! Histories and branches: record, history, branch, lineage, revert, rename.

pub mod branch;
pub mod lineage;
pub mod merge;
pub mod record;
pub mod records;
pub mod rename;
pub mod revert;
