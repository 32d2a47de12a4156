//! The drawing of a segment file: constants and the segment header, over byte slices only. The page for people is
//! `docs/format.md`; it, this file and a new golden file change in one commit.

use std::fmt;
use std::str::FromStr;

use crate::fault::Fault;
use crate::options::{EPOCH_MAX, POSITION_MAX};
use crate::position::{Chain, Epoch, Head, Incarnation, Position, Salt, StoreId, decimal};

/// The format version written, and the newest one read.
pub const FORMAT_VERSION: u32 = 1;

/// The first eight bytes of every segment file, of every format version.
pub const SEGMENT_MAGIC: [u8; 8] = *b"tenurSEG";

/// The bytes of a segment header, of every format version. The first frame begins here.
pub const SEGMENT_HEADER_BYTES: usize = 4096;

/// Where the CRC of a segment header stands, of every format version: it covers every byte before it.
pub const SEGMENT_CRC_OFFSET: usize = SEGMENT_HEADER_BYTES - 4;

/// Frames begin at multiples of this, counted from the start of the file.
pub const FRAME_ALIGNMENT: u64 = 8;

/// Version 1 uses the segment header up to here; from here to the CRC it is zero.
const SEGMENT_FIELDS_END: usize = 144;
const FLAG_PREDECESSOR: u32 = 1;

/// The version of this program, as segment headers carry it: major × 1,000,000 + minor × 1,000 + patch.
#[must_use]
pub fn writer_version() -> WriterVersion {
    let number = |text: &str| {
        text.parse::<u32>()
            .expect("cargo gives version numbers in digits")
    };
    WriterVersion(
        number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
            + number(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
            + number(env!("CARGO_PKG_VERSION_PATCH")),
    )
}

/// The version of the program that wrote a segment: major × 1,000,000 + minor × 1,000 + patch. Information only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WriterVersion(pub u32);

impl fmt::Display for WriterVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}.{}",
            self.0 / 1_000_000,
            self.0 / 1_000 % 1_000,
            self.0 % 1_000
        )
    }
}

/// The version of the rules by which the frames of a segment were decided. The log keeps it and never interprets it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RulesVersion(pub u32);

impl fmt::Display for RulesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a segment file: `<first position, 20 digits>-<writer epoch>.seg`. Ordered by epoch, then first position:
/// the greatest name is the newest segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SegmentName {
    /// The position of the first frame the segment holds, or would hold.
    pub first: Position,
    /// The writer epoch the segment was made in.
    pub epoch: Epoch,
}

impl Ord for SegmentName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.epoch, self.first).cmp(&(other.epoch, other.first))
    }
}

impl PartialOrd for SegmentName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{}.seg", self.first.0, self.epoch)
    }
}

/// The file name is not one of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a segment file name, wanted 20 digits, a hyphen, an epoch and .seg")]
pub struct NotASegmentName;

impl FromStr for SegmentName {
    type Err = NotASegmentName;

    fn from_str(text: &str) -> Result<SegmentName, NotASegmentName> {
        let (first, epoch) = text
            .strip_suffix(".seg")
            .and_then(|stem| stem.split_once('-'))
            .ok_or(NotASegmentName)?;
        if first.len() != 20 || !first.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(NotASegmentName);
        }
        let first = first.parse().map_err(|_| NotASegmentName)?;
        let epoch = decimal(epoch).ok_or(NotASegmentName)?;
        if first == 0 || first > POSITION_MAX || epoch == 0 || epoch > EPOCH_MAX {
            return Err(NotASegmentName);
        }
        Ok(SegmentName {
            first: Position(first),
            epoch: Epoch(epoch),
        })
    }
}

/// Where the segment before this one ends. Bytes behind it are late and never read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predecessor {
    /// The predecessor's name.
    pub name: SegmentName,
    /// The offset in its file behind its last frame.
    pub end_offset: u64,
    /// Its last frame; position and chain before its own first frame when it holds none.
    pub end: Head,
}

/// The first block of a segment file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// The format of the file.
    pub format: u32,
    /// The program that made it.
    pub writer: WriterVersion,
    /// The rules its frames were decided by.
    pub rules: RulesVersion,
    /// The store it belongs to.
    pub store: StoreId,
    /// The life it belongs to; seeds every frame's header CRC.
    pub salt: Salt,
    /// The incarnation it was made in.
    pub incarnation: Incarnation,
    /// The writer epoch it was made in.
    pub epoch: Epoch,
    /// The position of its first frame.
    pub first: Position,
    /// The chain of the frame before its first.
    pub chain: Chain,
    /// The segment before it; none for the first of a store.
    pub predecessor: Option<Predecessor>,
}

impl SegmentHeader {
    /// The name the file must have.
    #[must_use]
    pub fn name(&self) -> SegmentName {
        SegmentName {
            first: self.first,
            epoch: self.epoch,
        }
    }

    /// The head before the segment's first frame.
    #[must_use]
    pub fn start(&self) -> Head {
        Head {
            position: self.first.before(),
            chain: self.chain,
        }
    }

    /// The header's bytes. The format version written is always [`FORMAT_VERSION`].
    ///
    /// # Panics
    /// When the fields are ones that [`SegmentHeader::decode`] refuses: a writer that would make a file nobody opens.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut block = [0; SEGMENT_HEADER_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            block[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&SEGMENT_MAGIC);
        put(&FORMAT_VERSION.to_le_bytes());
        put(&self.writer.0.to_le_bytes());
        put(&self.rules.0.to_le_bytes());
        put(&if self.predecessor.is_some() {
            FLAG_PREDECESSOR
        } else {
            0
        }
        .to_le_bytes());
        put(&self.store.0);
        put(&self.salt.0);
        put(&self.incarnation.0.to_le_bytes());
        put(&self.epoch.0.to_le_bytes());
        put(&self.first.0.to_le_bytes());
        put(&self.chain.0);
        if let Some(predecessor) = &self.predecessor {
            put(&predecessor.name.first.0.to_le_bytes());
            put(&predecessor.name.epoch.0.to_le_bytes());
            put(&predecessor.end_offset.to_le_bytes());
            put(&predecessor.end.position.0.to_le_bytes());
            put(&predecessor.end.chain.0);
        }
        let crc = crc32fast::hash(&block[..SEGMENT_CRC_OFFSET]);
        block[SEGMENT_CRC_OFFSET..].copy_from_slice(&crc.to_le_bytes());
        if let Err(fault) = SegmentHeader::decode(&block) {
            panic!("a segment header that cannot be read back: {fault}");
        }
        block
    }

    /// Reads the header from the start of a file.
    ///
    /// # Errors
    /// The first [`Fault`] met: too short, another magic, a wrong CRC, a newer format, an impossible field.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, Fault> {
        let Some(block) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() else {
            return Err(Fault::Short {
                have: bytes.len() as u64,
                need: SEGMENT_HEADER_BYTES as u64,
            });
        };
        let format = judge_envelope(block)?;
        let mut fields = Fields { block, at: 12 };
        let writer = WriterVersion(fields.u32());
        let rules = RulesVersion(fields.u32());
        let flags = fields.u32();
        let header = SegmentHeader {
            format,
            writer,
            rules,
            store: StoreId(fields.take()),
            salt: Salt(fields.take()),
            incarnation: Incarnation(fields.u64()),
            epoch: Epoch(fields.u64()),
            first: Position(fields.u64()),
            chain: Chain(fields.take()),
            predecessor: match flags {
                0 => None,
                FLAG_PREDECESSOR => Some(Predecessor {
                    name: SegmentName {
                        first: Position(fields.u64()),
                        epoch: Epoch(fields.u64()),
                    },
                    end_offset: fields.u64(),
                    end: Head {
                        position: Position(fields.u64()),
                        chain: Chain(fields.take()),
                    },
                }),
                _ => return Err(Fault::SegmentField { field: "flags" }),
            },
        };
        let unused = if header.predecessor.is_some() {
            SEGMENT_FIELDS_END
        } else {
            fields.at
        };
        // Compared with a run of zeros, which is faster than byte by byte: nearly all of a header is unused.
        let rest = &block[unused..SEGMENT_CRC_OFFSET];
        if *rest != ZEROS[..rest.len()] {
            return Err(Fault::SegmentField {
                field: "unused space",
            });
        }
        header
            .judge()
            .map_or(Ok(header), |field| Err(Fault::SegmentField { field }))
    }

    /// The field that is out of its range or contradicts another, if one does.
    fn judge(&self) -> Option<&'static str> {
        let position = |position: Position| (1..=POSITION_MAX).contains(&position.0);
        let epoch = |epoch: Epoch| (1..=EPOCH_MAX).contains(&epoch.0);
        if !position(self.first) {
            return Some("first position");
        }
        if !epoch(self.epoch) {
            return Some("epoch");
        }
        if self.incarnation.0 == 0 {
            return Some("incarnation");
        }
        match &self.predecessor {
            None if self.first != Position(1) => Some("predecessor"),
            None => None,
            Some(before) => {
                let named = position(before.name.first)
                    && epoch(before.name.epoch)
                    && before.name < self.name()
                    && before.name.first <= self.first;
                let ended = before.end_offset >= SEGMENT_HEADER_BYTES as u64
                    && before.end_offset.is_multiple_of(FRAME_ALIGNMENT)
                    && before.end == self.start()
                    && (before.end.position < before.name.first)
                        == (before.end_offset == SEGMENT_HEADER_BYTES as u64);
                if !named {
                    Some("predecessor name")
                } else if !ended {
                    Some("predecessor end")
                } else {
                    None
                }
            }
        }
    }
}

/// What stands where nothing does. It is compared, and written, in pieces of at most so many bytes.
pub(crate) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What stands at the same places in every format version: magic, CRC and the version, which is returned. The CRC comes
/// first, so that a flipped version field is damage and not "made by a newer program".
fn judge_envelope(block: &[u8; SEGMENT_HEADER_BYTES]) -> Result<u32, Fault> {
    let field = |at| Fields { block, at };
    let magic = field(0).take();
    if magic != SEGMENT_MAGIC {
        return Err(Fault::SegmentMagic { found: magic });
    }
    let (stored, computed) = (
        field(SEGMENT_CRC_OFFSET).u32(),
        crc32fast::hash(&block[..SEGMENT_CRC_OFFSET]),
    );
    if stored != computed {
        return Err(Fault::SegmentCrc { stored, computed });
    }
    match field(8).u32() {
        0 => Err(Fault::SegmentField {
            field: "format version",
        }),
        found if found > FORMAT_VERSION => Err(Fault::NewerFormat {
            found,
            known: FORMAT_VERSION,
        }),
        format => Ok(format),
    }
}

/// Reads little-endian fields one after the other from a block of known size.
struct Fields<'a> {
    block: &'a [u8; SEGMENT_HEADER_BYTES],
    at: usize,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let chunk = self.block[self.at..]
            .first_chunk::<N>()
            .expect("the fields of a header end before its block does");
        self.at += N;
        *chunk
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
