//! Commands about items: giving, taking, ending, and saying what is done.

pub mod accept;
pub mod cancel;
pub mod decline;
pub mod dispatch;
pub mod fail;
pub mod handoff;
pub mod note;
pub mod observe;
pub mod outcome;
pub mod policy;
pub mod report;
