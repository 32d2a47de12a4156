//! Commands that only look at what is true now.

pub mod demo;
pub mod sessions;
pub mod shared;
pub mod show;
pub mod status;
pub mod work;
