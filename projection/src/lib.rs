//! The join of rules and log: replay, views, and the only guarded append.
//!
//! Embedders depend on this crate alone. [`Store`](store::Store) executes calls; [`Projector`](projector)
//! drives any [`Projection`](projection::Projection) along a log; [`authority`] answers who held what, from
//! where to where.
#![forbid(unsafe_code)]

pub mod again;
pub mod agents;
mod ahead;
pub mod audit;
pub mod authority;
pub mod bundle;
pub mod call;
pub mod checkouts;
pub mod diff;
pub mod doctor;
pub mod entry;
pub mod error;
pub mod gauge;
pub mod guards;
pub mod history;
pub mod host;
pub mod impact;
pub mod projection;
pub mod projector;
pub mod reader;
pub mod salvage;
pub mod session;
mod source;
pub mod store;
mod sync;
pub mod transcript;
pub mod tree;
pub mod views;
pub mod why;
#[path = "../../core/src/zoo.rs"]
mod zoo;

pub use tenure_core as core;
pub use tenure_log as log;
