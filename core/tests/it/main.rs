//! Behaviours of the rules through their public door.

mod decisions;
mod golden;
mod liveness;
mod losses;
mod meeting;
mod paths;
mod role;
