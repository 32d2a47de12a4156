//! Histories and branches: record, history, branch, lineage, revert, rename, export, import.

pub mod branch;
mod bundle;
pub mod export;
pub mod import;
pub mod lineage;
pub mod merge;
pub mod record;
pub mod records;
pub mod rename;
pub mod revert;
