//! Every maximum of the byte format, with its reason. What is read is held against these before anything is allocated.

/// The most bytes of facts in one frame. Facts are numbers whose size does not follow counts; a command with the most
/// paths and dependencies the rules allow stays well below.
pub const FACTS_BYTES_MAX: u32 = 1 << 20;

/// The most bytes of texts (names, titles, paths, labels) in one frame.
pub const TEXTS_BYTES_MAX: u32 = 4 << 20;

/// The most bytes of bodies (free text and payloads) in one frame.
pub const BODIES_BYTES_MAX: u32 = 32 << 20;

/// The greatest position a frame may state: nine million frames a second for a year. The bound lets every reader
/// add to a position without looking for an overflow.
pub const POSITION_MAX: u64 = (1 << 48) - 1;

/// The greatest writer epoch a header may state; an epoch is raised only when a writer stands still or a sync fails.
pub const EPOCH_MAX: u64 = (1 << 32) - 1;

/// The most segment files looked at in one directory (at 1 MiB each, the smallest size, a terabyte).
pub const SEGMENTS_MAX: usize = 1 << 20;
