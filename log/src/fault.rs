//! What can be wrong with bytes. A fault says what was found and what was expected; where it stands is said by
//! whoever holds it ([`crate::error::Damage`], [`crate::verify::Finding`]).

use crate::format::SegmentName;
use crate::position::{Chain, Epoch, Head, Incarnation, Position};

/// One of the three parts behind a frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Numbers: the decision's input and events.
    Facts,
    /// Names, titles, paths, labels.
    Texts,
    /// Free text and payload bytes.
    Bodies,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Facts => "facts",
            Part::Texts => "texts",
            Part::Bodies => "bodies",
        })
    }
}

/// Why bytes are not a good frame, or not a good segment header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Only zeros where a frame could begin: prepared space, or a page that never arrived.
    #[error("zeros where a frame would begin")]
    Zeros,
    /// The bytes end before the header, or the frame it announces, does.
    #[error("the bytes end after {have} of {need}")]
    Short {
        /// Bytes that are there.
        have: u64,
        /// Bytes that would have to be there.
        need: u64,
    },
    /// No frame begins here.
    #[error("no frame begins with {found:#010x}")]
    Magic {
        /// The four bytes found, little endian.
        found: u32,
    },
    /// The header's CRC is wrong: changed bytes, or a frame that was written for another place, store or life.
    #[error("header crc is {computed:#010x}, written was {stored:#010x}")]
    HeaderCrc {
        /// The CRC the header carries.
        stored: u32,
        /// The CRC of the bytes found, at this place.
        computed: u32,
    },
    /// A part is longer than the format allows.
    #[error("{part} of {len} bytes, at most {max} are allowed")]
    TooLong {
        /// Which part.
        part: Part,
        /// The length stated.
        len: u64,
        /// The length allowed.
        max: u32,
    },
    /// The facts' CRC is wrong.
    #[error("facts crc is {computed:#010x}, written was {stored:#010x}")]
    FactsCrc {
        /// The CRC the header carries.
        stored: u32,
        /// The CRC of the bytes found.
        computed: u32,
    },
    /// The CRC of texts and bodies is wrong.
    #[error("texts and bodies crc is {computed:#010x}, written was {stored:#010x}")]
    RestCrc {
        /// The CRC the header carries.
        stored: u32,
        /// The CRC of the bytes found.
        computed: u32,
    },
    /// The bytes that fill a frame up to a multiple of eight are not zero.
    #[error("padding is not zero")]
    Padding,
    /// Not the position that follows.
    #[error("position {found}, expected {expected}")]
    Position {
        /// The position that would follow.
        expected: Position,
        /// The position stated.
        found: Position,
    },
    /// A frame that says it, or one behind it, was durable before it was written.
    #[error("durable position {durable} stated by the frame at {position}")]
    Durable {
        /// The frame's own position.
        position: Position,
        /// The durable position it states.
        durable: Position,
    },
    /// An epoch above the one of the segment, below the frame before, or out of range.
    #[error("writer epoch {found} in a segment of epoch {segment}")]
    Epoch {
        /// The segment's epoch.
        segment: Epoch,
        /// The epoch stated.
        found: Epoch,
    },
    /// An incarnation above the one of the segment, below the frame before, or zero.
    #[error("incarnation {found} in a segment of incarnation {segment}")]
    Incarnation {
        /// The segment's incarnation.
        segment: Incarnation,
        /// The incarnation stated.
        found: Incarnation,
    },
    /// The chain does not follow from the frame before: an edit that recomputed the CRCs, or a frame in the wrong place.
    #[error("chain {stored} does not follow, expected {computed}")]
    Chain {
        /// The chain stated.
        stored: Chain,
        /// The chain that follows from the frame before.
        computed: Chain,
    },
    /// The file does not begin like a segment.
    #[error("no segment header: it begins with {found:02x?}")]
    SegmentMagic {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// The segment header's CRC is wrong.
    #[error("segment header crc is {computed:#010x}, written was {stored:#010x}")]
    SegmentCrc {
        /// The CRC the header carries.
        stored: u32,
        /// The CRC of the bytes found.
        computed: u32,
    },
    /// A good segment header of a format this program does not know.
    #[error("format version {found}, this program reads up to {known}")]
    NewerFormat {
        /// The version stated.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// A segment header whose CRC is right and whose fields contradict each other or their range.
    #[error("segment header states an impossible {field}")]
    SegmentField {
        /// Which field, by its name in `docs/format.md`.
        field: &'static str,
    },
    /// The segment's header belongs to a file of another name.
    #[error("the header is the one of segment {stated}")]
    SegmentRenamed {
        /// The name the header belongs to.
        stated: SegmentName,
    },
    /// A segment that another one names as its predecessor is not there.
    #[error("the segment is missing, segment {named_by} names it")]
    SegmentMissing {
        /// The segment that names it.
        named_by: SegmentName,
    },
    /// A segment of the newest epoch that is neither the newest nor named by the one behind it.
    #[error("no segment names it, newest is {newest}")]
    SegmentUnnamed {
        /// The newest segment.
        newest: SegmentName,
    },
    /// A closed segment's file is shorter than its successor states.
    #[error("the file has {bytes} bytes, its stated end is at {stated}")]
    SegmentCut {
        /// The bytes it has.
        bytes: u64,
        /// The bytes it had when it was closed.
        stated: u64,
    },
    /// A closed segment's last frame is not the one its successor states.
    #[error("the segment ends with position {}, chain {}, its successor states position {}, chain {}",
        found.position, found.chain, stated.position, stated.chain)]
    SegmentEnd {
        /// The last frame found.
        found: Head,
        /// The last frame stated.
        stated: Head,
    },
}

impl Fault {
    /// A short name for tables and machine output; never changes its meaning.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Zeros => "zeros",
            Fault::Short { .. } => "short",
            Fault::Magic { .. } => "magic",
            Fault::HeaderCrc { .. } => "header-crc",
            Fault::TooLong { .. } => "too-long",
            Fault::FactsCrc { .. } => "facts-crc",
            Fault::RestCrc { .. } => "rest-crc",
            Fault::Padding => "padding",
            Fault::Position { .. } => "position",
            Fault::Durable { .. } => "durable",
            Fault::Epoch { .. } => "epoch",
            Fault::Incarnation { .. } => "incarnation",
            Fault::Chain { .. } => "chain",
            Fault::SegmentMagic { .. } => "segment-magic",
            Fault::SegmentCrc { .. } => "segment-crc",
            Fault::NewerFormat { .. } => "newer-format",
            Fault::SegmentField { .. } => "segment-field",
            Fault::SegmentRenamed { .. } => "segment-renamed",
            Fault::SegmentMissing { .. } => "segment-missing",
            Fault::SegmentUnnamed { .. } => "segment-unnamed",
            Fault::SegmentCut { .. } => "segment-cut",
            Fault::SegmentEnd { .. } => "segment-end",
        }
    }

    /// What happened to bytes that were part of the log, in one word: `bit-rot` where they read otherwise than they
    /// were written, `gap` where something between others is missing, `truncation` where an end is, and `impossible`
    /// where the checksums are right and no writer writes that.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match self {
            Fault::Magic { .. }
            | Fault::HeaderCrc { .. }
            | Fault::FactsCrc { .. }
            | Fault::RestCrc { .. }
            | Fault::Padding
            | Fault::SegmentMagic { .. }
            | Fault::SegmentCrc { .. } => "bit-rot",
            Fault::Zeros | Fault::Position { .. } | Fault::SegmentMissing { .. } => "gap",
            Fault::Short { .. } | Fault::SegmentCut { .. } | Fault::SegmentEnd { .. } => {
                "truncation"
            }
            Fault::NewerFormat { .. } => "newer-format",
            Fault::TooLong { .. }
            | Fault::Durable { .. }
            | Fault::Epoch { .. }
            | Fault::Incarnation { .. }
            | Fault::Chain { .. }
            | Fault::SegmentField { .. }
            | Fault::SegmentRenamed { .. }
            | Fault::SegmentUnnamed { .. } => "impossible",
        }
    }

    /// Whether no write that was interrupted, torn or lost can look like this: the CRC over the header is right, and what
    /// it states cannot be. Row 2 of the recovery table, even in the newest segment.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        matches!(
            self,
            Fault::TooLong { .. }
                | Fault::Position { .. }
                | Fault::Durable { .. }
                | Fault::Epoch { .. }
                | Fault::Incarnation { .. }
                | Fault::Chain { .. }
        )
    }
}
