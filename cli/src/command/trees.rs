//! Commands about whole trees.

pub mod release;
pub mod tree;
