//! One frame: its bytes, encoded and decoded over slices. A frame is one decision; what stands in its parts is none of
//! the log's business.

mod place;

pub use place::Place;

use crate::fault::{Fault, Part};
use crate::options::{BODIES_BYTES_MAX, EPOCH_MAX, FACTS_BYTES_MAX, POSITION_MAX, TEXTS_BYTES_MAX};
use crate::position::{Chain, Epoch, Head, Incarnation, Position, TimeMicros};
use crate::zoo::planted;
use place::crc32;

/// The first four bytes of every frame, little endian ("TNF1"). Never zero, so that zeros are never a frame.
pub const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"TNF1");

/// The bytes of a frame's header; the facts begin behind them.
pub const FRAME_HEADER_BYTES: usize = 84;

/// The most bytes a frame can have, padding included. No reader needs a greater buffer.
pub const FRAME_BYTES_MAX: usize = padded(
    FRAME_HEADER_BYTES
        + FACTS_BYTES_MAX as usize
        + TEXTS_BYTES_MAX as usize
        + BODIES_BYTES_MAX as usize,
);

/// The header bytes that the chain covers: everything before the chain itself.
pub(crate) const CHAINED_BYTES: usize = 56;
/// The header bytes that the header CRC covers: everything before the CRC itself.
const CRC_COVERED_BYTES: usize = 80;

const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(crate::format::FRAME_ALIGNMENT as usize)
}

/// How much of a frame is read and held against its CRCs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Depth {
    /// Header and facts: all that replay needs.
    Facts,
    /// Texts and bodies too.
    Whole,
}

/// What a frame says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The position of the frame.
    pub position: Position,
    /// The store's incarnation when it was decided.
    pub incarnation: Incarnation,
    /// The writer epoch in which it was decided. Lower than the segment's when a later epoch carried it over.
    pub epoch: Epoch,
    /// When it was decided. Information only.
    pub time: TimeMicros,
    /// Every position up to here was known durable when the frame was written. Always before `position`.
    pub durable: Position,
    /// Bytes of facts.
    pub facts_len: u32,
    /// Bytes of texts.
    pub texts_len: u32,
    /// Bytes of bodies.
    pub bodies_len: u32,
    /// The chain up to and with this frame.
    pub chain: Chain,
}

impl Header {
    /// The bytes of the whole frame, padding included.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        padded(
            FRAME_HEADER_BYTES
                + self.facts_len as usize
                + self.texts_len as usize
                + self.bodies_len as usize,
        )
    }

    /// The log's head when this frame is the last.
    #[must_use]
    pub fn head(&self) -> Head {
        Head {
            position: self.position,
            chain: self.chain,
        }
    }

    /// The chain that follows from `before` over this header and its facts; equal to [`Header::chain`] in a good frame.
    #[must_use]
    pub fn chain_after(&self, before: Chain, facts: &[u8]) -> Chain {
        chain_after(before, &self.chained_bytes(), facts)
    }

    pub(crate) fn chained_bytes(&self) -> [u8; CHAINED_BYTES] {
        let mut bytes = [0; CHAINED_BYTES];
        bytes[0..4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.facts_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.texts_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.bodies_len.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.position.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.incarnation.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.time.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.durable.0.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; FRAME_HEADER_BYTES]) -> Header {
        Header {
            facts_len: u32_at::<4>(bytes),
            texts_len: u32_at::<8>(bytes),
            bodies_len: u32_at::<12>(bytes),
            position: Position(u64_at::<16>(bytes)),
            incarnation: Incarnation(u64_at::<24>(bytes)),
            epoch: Epoch(u64_at::<32>(bytes)),
            time: TimeMicros(u64_at::<40>(bytes).cast_signed()),
            durable: Position(u64_at::<48>(bytes)),
            chain: Chain(chunk_at::<56, 16>(bytes)),
        }
    }

    /// What no writer writes, whatever stands around the frame.
    fn judge(&self, place: &Place) -> Result<(), Fault> {
        too_long(Part::Facts, u64::from(self.facts_len), FACTS_BYTES_MAX)?;
        too_long(Part::Texts, u64::from(self.texts_len), TEXTS_BYTES_MAX)?;
        too_long(Part::Bodies, u64::from(self.bodies_len), BODIES_BYTES_MAX)?;
        if self.position.0 == 0 || self.position.0 > POSITION_MAX {
            return Err(Fault::Position {
                expected: Position(1),
                found: self.position,
            });
        }
        if self.durable >= self.position {
            return Err(Fault::Durable {
                position: self.position,
                durable: self.durable,
            });
        }
        if self.epoch.0 == 0 || self.epoch > place.epoch() || self.epoch.0 > EPOCH_MAX {
            return Err(Fault::Epoch {
                segment: place.epoch(),
                found: self.epoch,
            });
        }
        Ok(())
    }
}

fn too_long(part: Part, len: u64, max: u32) -> Result<(), Fault> {
    if len > u64::from(max) + u64::from(planted("length-off-by-one")) {
        Err(Fault::TooLong { part, len, max })
    } else {
        Ok(())
    }
}

fn chain_after(before: Chain, chained: &[u8; CHAINED_BYTES], facts: &[u8]) -> Chain {
    // Side by side first: a hash of one piece is made at once, and most are as short as this.
    let mut piece = [0; 512];
    let (lead, rest) = piece.split_at_mut(16 + CHAINED_BYTES);
    lead[..16].copy_from_slice(&before.0);
    lead[16..].copy_from_slice(chained);
    match rest.get_mut(..facts.len()) {
        Some(room) => {
            room.copy_from_slice(facts);
            Chain::of(&blake3::hash(&piece[..16 + CHAINED_BYTES + facts.len()]))
        }
        None => {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&before.0).update(chained).update(facts);
            Chain::of(&hasher.finalize())
        }
    }
}

/// The three parts of a frame, owned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// Numbers: the decision's input and its events.
    pub facts: Vec<u8>,
    /// Names, titles, paths, labels.
    pub texts: Vec<u8>,
    /// Free text and payload bytes.
    pub bodies: Vec<u8>,
}

/// What a decision hands over to be appended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Draft {
    /// When it was decided.
    pub time: TimeMicros,
    /// The frame's content.
    pub parts: Parts,
}

impl Draft {
    /// Whether every part keeps within its limit.
    ///
    /// # Errors
    /// [`Fault::TooLong`] for the first part that does not.
    pub fn judge(&self) -> Result<(), Fault> {
        too_long(Part::Facts, self.parts.facts.len() as u64, FACTS_BYTES_MAX)?;
        too_long(Part::Texts, self.parts.texts.len() as u64, TEXTS_BYTES_MAX)?;
        too_long(
            Part::Bodies,
            self.parts.bodies.len() as u64,
            BODIES_BYTES_MAX,
        )
    }

    /// The bytes of the frame this becomes, padding included.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        padded(
            FRAME_HEADER_BYTES
                + self.parts.facts.len()
                + self.parts.texts.len()
                + self.parts.bodies.len(),
        )
    }
}

/// A frame, owned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// What it says about itself.
    pub header: Header,
    /// Its content.
    pub parts: Parts,
}

/// A frame whose parts stand in somebody's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRef<'a> {
    /// What it says about itself.
    pub header: Header,
    /// Its facts, held against their CRC.
    pub facts: &'a [u8],
    /// Its texts, held against their CRC at [`Depth::Whole`] only.
    pub texts: &'a [u8],
    /// Its bodies, held against their CRC at [`Depth::Whole`] only.
    pub bodies: &'a [u8],
}

impl FrameRef<'_> {
    /// The same frame with its own bytes.
    #[must_use]
    pub fn to_owned(&self) -> Frame {
        let parts = Parts {
            facts: self.facts.to_vec(),
            texts: self.texts.to_vec(),
            bodies: self.bodies.to_vec(),
        };
        Frame {
            header: self.header,
            parts,
        }
    }
}

impl Frame {
    /// The same frame, borrowed.
    #[must_use]
    pub fn by_ref(&self) -> FrameRef<'_> {
        FrameRef {
            header: self.header,
            facts: &self.parts.facts,
            texts: &self.parts.texts,
            bodies: &self.parts.bodies,
        }
    }
}

/// Appends to `buf` the bytes of the frame that follows `head`, and returns the new head. `place` is where the first of
/// these bytes will stand.
///
/// # Errors
/// [`Fault::TooLong`] when a part exceeds its limit; [`Fault::Durable`] or [`Fault::Position`] when `durable` is above
/// `head` or the position out of range. `buf` is then as it was.
pub fn encode_into(
    buf: &mut Vec<u8>,
    place: &Place,
    head: Head,
    durable: Position,
    incarnation: Incarnation,
    draft: &Draft,
) -> Result<Head, Fault> {
    draft.judge()?;
    let Parts {
        facts,
        texts,
        bodies,
    } = &draft.parts;
    // The limits just judged are far below what 32 bits hold.
    let mut header = Header {
        position: head.position.next(),
        incarnation,
        epoch: place.epoch(),
        time: draft.time,
        durable,
        facts_len: facts.len() as u32,
        texts_len: texts.len() as u32,
        bodies_len: bodies.len() as u32,
        chain: Chain::default(),
    };
    header.judge(place)?;
    header.chain = header.chain_after(head.chain, facts);
    put(
        buf,
        place,
        &FrameRef {
            header,
            facts,
            texts,
            bodies,
        },
    );
    Ok(header.head())
}

/// Appends to `buf` the bytes of a verified frame for another place, unchanged but for its header CRC: position, times
/// and chain stay, so that receipts and repeated questions by position and chain find it. For the next epoch's segment,
/// which carries over what a failed sync left unproven.
///
/// # Errors
/// The [`Fault`] for which a reader would refuse the frame at that place.
pub fn carry_into(buf: &mut Vec<u8>, place: &Place, frame: &FrameRef<'_>) -> Result<Head, Fault> {
    frame.header.judge(place)?;
    put(buf, place, frame);
    Ok(frame.header.head())
}

fn put(buf: &mut Vec<u8>, place: &Place, frame: &FrameRef<'_>) {
    let start = buf.len();
    let FrameRef {
        header,
        facts,
        texts,
        bodies,
    } = frame;
    debug_assert!(
        facts.len() == header.facts_len as usize && texts.len() == header.texts_len as usize
    );
    buf.reserve(header.frame_bytes());
    buf.extend_from_slice(&header.chained_bytes());
    buf.extend_from_slice(&header.chain.0);
    buf.extend_from_slice(&crc32(facts).to_le_bytes());
    let mut rest = crc32fast::Hasher::new();
    rest.update(texts);
    rest.update(bodies);
    buf.extend_from_slice(&rest.finalize().to_le_bytes());
    let covered = buf[start..].first_chunk().expect("it was just written");
    let crc = place.header_crc(covered);
    buf.extend_from_slice(&crc.to_le_bytes());
    buf.extend_from_slice(facts);
    buf.extend_from_slice(texts);
    buf.extend_from_slice(bodies);
    buf.resize(start + header.frame_bytes(), 0);
}

/// Reads only the header at the start of `bytes`: magic, header CRC, limits and what no writer writes. Lengths in what it
/// returns are within their limits.
///
/// # Errors
/// [`Fault::Zeros`] when the whole header, or all that is left of one, is zero; [`Fault::Short`] when the bytes end
/// before the header does; otherwise the first fault met.
#[inline(always)]
pub fn decode_header(place: &Place, bytes: &[u8]) -> Result<Header, Fault> {
    let Some(block) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
        return Err(if bytes.iter().all(|byte| *byte == 0) {
            Fault::Zeros
        } else {
            Fault::Short {
                have: bytes.len() as u64,
                need: FRAME_HEADER_BYTES as u64,
            }
        });
    };
    let magic = u32_at::<0>(block);
    if magic != FRAME_MAGIC {
        let zeros = magic == 0 && block.iter().all(|byte| *byte == 0);
        return Err(if zeros {
            Fault::Zeros
        } else {
            Fault::Magic { found: magic }
        });
    }
    let covered = block.first_chunk::<CRC_COVERED_BYTES>();
    let covered = covered.expect("a header is longer than what its CRC covers");
    let (stored, computed) = (
        u32_at::<CRC_COVERED_BYTES>(block),
        place.header_crc(covered),
    );
    if stored != computed && !planted("header-crc-ignored") {
        return Err(Fault::HeaderCrc { stored, computed });
    }
    let header = Header::decode(block);
    header.judge(place)?;
    Ok(header)
}

/// Reads the frame at the start of `bytes`, which stand at `place`; returns it with its length in bytes, padding
/// included. The chain is not held against anything here: the caller knows what stands before
/// ([`Header::chain_after`], [`crate::scan::Cursor`]).
///
/// # Errors
/// The first [`Fault`] met, in this order: the header's ([`decode_header`]), too few bytes, facts, padding, and at
/// [`Depth::Whole`] texts and bodies. Nothing is allocated.
#[inline(always)]
pub fn decode<'a>(
    place: &Place,
    bytes: &'a [u8],
    depth: Depth,
) -> Result<(FrameRef<'a>, usize), Fault> {
    let header = decode_header(place, bytes)?;
    let need = header.frame_bytes();
    let Some(bytes) = bytes.get(..need) else {
        return Err(Fault::Short {
            have: bytes.len() as u64,
            need: need as u64,
        });
    };
    let (block, parts) = bytes
        .split_first_chunk::<FRAME_HEADER_BYTES>()
        .expect("a frame is longer than its header");
    let (frame, padding) = split(header, parts);
    let rest = &parts[frame.facts.len()..parts.len() - padding.len()];
    let (stored, computed) = (u32_at::<72>(block), crc32(frame.facts));
    if stored != computed {
        return Err(Fault::FactsCrc { stored, computed });
    }
    // A frame ends with a whole word, and has less padding than that.
    let last = bytes.last_chunk::<8>();
    let last = u64::from_le_bytes(*last.expect("a frame is longer than its header"));
    if !padding.is_empty() && last >> (64 - 8 * padding.len()) != 0 {
        return Err(Fault::Padding);
    }
    if depth == Depth::Whole {
        let (stored, computed) = (u32_at::<76>(block), crc32(rest));
        if stored != computed {
            return Err(Fault::RestCrc { stored, computed });
        }
    }
    Ok((frame, need))
}

/// The bytes of the frame at the start of `bytes` as its header says, so that they can be fetched before anything is
/// checked: never more than a frame can have, and no less than its header.
#[inline]
pub(crate) fn stated_bytes(bytes: &[u8]) -> usize {
    let Some(block) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
        return FRAME_HEADER_BYTES;
    };
    let part = |len: u32, max: u32| len.min(max) as usize;
    let facts = part(u32_at::<4>(block), FACTS_BYTES_MAX);
    let texts = part(u32_at::<8>(block), TEXTS_BYTES_MAX);
    let bodies = part(u32_at::<12>(block), BODIES_BYTES_MAX);
    padded(FRAME_HEADER_BYTES + facts + texts + bodies)
}

/// The frame that fills `bytes`, which [`decode`] found good before: nothing is checked again.
///
/// # Panics
/// When it was not.
pub(crate) fn parts_of_good(bytes: &[u8]) -> FrameRef<'_> {
    let (block, parts) = bytes
        .split_first_chunk()
        .expect("a good frame is longer than its header");
    split(Header::decode(block), parts).0
}

/// Splits what stands behind a header, and returns the padding too.
#[inline]
fn split(header: Header, parts: &[u8]) -> (FrameRef<'_>, &[u8]) {
    let (facts, parts) = parts.split_at(header.facts_len as usize);
    let (texts, parts) = parts.split_at(header.texts_len as usize);
    let (bodies, padding) = parts.split_at(header.bodies_len as usize);
    (
        FrameRef {
            header,
            facts,
            texts,
            bodies,
        },
        padding,
    )
}

#[inline]
fn chunk_at<const AT: usize, const N: usize>(block: &[u8; FRAME_HEADER_BYTES]) -> [u8; N] {
    *block[AT..]
        .first_chunk()
        .expect("the fields of a header end before it does")
}

#[inline]
fn u32_at<const AT: usize>(block: &[u8; FRAME_HEADER_BYTES]) -> u32 {
    u32::from_le_bytes(chunk_at::<AT, 4>(block))
}

#[inline]
fn u64_at<const AT: usize>(block: &[u8; FRAME_HEADER_BYTES]) -> u64 {
    u64::from_le_bytes(chunk_at::<AT, 8>(block))
}
