//! Commands that work on a damaged directory, and the way out of a store that refuses to write.

pub mod inspect;
pub mod salvage;
pub mod store;
pub mod transcript;
pub mod verify;
