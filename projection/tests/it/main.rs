//! Tests of the join through its public door: rules over a log, and the machine they are asked on.

mod actors;
mod audit;
mod authority;
mod balky;
mod batches;
mod bundles;
mod cases;
mod checkouts;
mod corruption;
mod embedding;
mod forgery;
mod git;
mod guards;
mod host;
mod marks;
mod projector;
mod races;
mod rules;
mod salvage;
mod scene;
#[cfg(tenure_shuttle)]
mod shuttled;
mod snapshots;
mod transcripts;
mod views;
