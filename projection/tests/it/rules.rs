//! The rules, row by row.

mod adoption;
mod binding;
mod branch;
mod checkout;
mod disclosure;
mod dispatch;
mod forged;
mod history;
mod idempotency;
mod identity;
mod limits;
mod notice;
mod outbox;
mod raise;
mod refusal;
mod registration;
mod replay;
mod tree;
