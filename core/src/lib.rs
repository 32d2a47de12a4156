//! The rules of the ledger of authority: who may write, what follows, and why not.
//!
//! Two functions carry everything. [`decide`](decide::decide) reads a [`State`](state::State) and a
//! request and answers with events or a refusal; it changes nothing. [`apply`](apply::apply) folds events
//! into a state; it refuses nothing. The crate has no clock, no file, no process: time, liveness evidence
//! and canonical paths enter as arguments.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(tenure_forge, tenure_zoo))]
extern crate std;

#[macro_use]
mod wire;

pub mod apply;
pub mod codec;
pub mod command;
pub mod decide;
pub mod disclosure;
pub mod event;
pub mod generation;
pub mod history;
pub mod holder;
pub mod id;
pub mod limits;
pub mod path;
pub mod redaction;
pub mod refusal;
pub mod role;
pub mod seal;
pub mod state;
pub mod text;
mod zoo;
