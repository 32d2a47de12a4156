//! The rules, row by row.

mod identity;
mod registration;
