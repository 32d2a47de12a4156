//! The rules, row by row.

mod registration;
