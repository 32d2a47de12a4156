//! Commands about envelopes, and about learning that one has lost.

pub mod ack;
pub mod deliver;
pub mod inbox;
pub mod send;
pub mod wait;
