//! Tests of the join: rules over a log, through the store's own door.

mod rules;
mod scene;
