//! A bounded model of the append protocol of `docs/protocol.md`: every interleaving of a few processes that append,
//! rotate, sync, raise the epoch, are killed or stopped, over a disk that fails syncs and loses power.
//!
//! `TENURE_MODEL_BOUNDS=large` goes further than the ordinary test run.

mod append;
mod birth;
mod branch;
mod check;
mod environment;
mod files;
mod holds;
mod process;
mod protocol;
mod rules;
mod state;
mod sync;
mod variants;
mod write;
