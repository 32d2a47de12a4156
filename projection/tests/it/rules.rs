//! The rules, row by row.

mod adoption;
mod binding;
mod branch;
mod checkout;
mod disclosure;
mod dispatch;
mod forged;
mod handoff;
mod history;
mod idempotency;
mod identity;
mod limits;
mod newer;
mod notice;
mod outbox;
mod policies;
mod raise;
mod refusal;
mod registration;
pub mod replay;
mod roles;
mod sealed;
mod tree;
