//! Behaviours of the rules through their public door.

mod decisions;
mod forged;
mod golden;
mod liveness;
mod losses;
mod meeting;
mod pages;
mod paths;
mod role;
mod tokens;
