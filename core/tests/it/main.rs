//! Behaviours of the rules through their public door.

mod liveness;
mod paths;
