//! An entry: a frame without its input, as it is folded.

use alloc::vec::Vec;

use crate::history::BodyDigest;
use crate::id::Moment;
use crate::text::Texts;

use super::{Event, Fence};

/// What one frame says, as a replay needs it: the texts, the digests of the bodies, and the events. The input is
/// skipped.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where it stands and when it was written.
    pub at: Moment,
    /// The incarnation it was written in.
    pub incarnation: u64,
    /// What it claims to stand on.
    pub fence: Fence,
    /// Its texts.
    pub texts: Texts,
    /// The digests of its bodies, which are not read.
    pub bodies: Vec<BodyDigest>,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// The first event kind below 32768 that this program does not know. Such an entry grants nothing, and
    /// a program that met one never appends (LOG-7).
    pub unknown: Option<u16>,
}
