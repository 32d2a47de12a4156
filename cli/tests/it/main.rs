//! Tests of the `tenure` command as its users meet it: processes, arguments, two streams, an exit code.

mod agents;
mod audit;
mod bundles;
mod contract;
mod demo;
mod doctor;
mod exec;
mod follow;
mod forensics;
mod guard;
mod histories;
mod hostile;
mod inspect;
mod live;
mod looking;
mod loss;
mod mail;
mod questions;
mod readme;
mod roles;
mod sessions;
mod snapshot;
mod terminal;
mod trees;
mod usage;
mod work;
