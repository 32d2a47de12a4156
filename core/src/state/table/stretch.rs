//! A sealed stretch: packed rows that never change, and beside them those that changed later.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use once_cell::race::OnceBox;

use super::Row;
use crate::state::paged::Item;

/// Rows of a sealed stretch. Sealed when as many again stand behind it: most rows are over by then.
pub const STRETCH_ROWS: usize = 4096;

/// Rows of a part, which has a checksum of its own: one row costs the check of a part, not that of a stretch.
pub(super) const PART_ROWS: usize = 64;

/// Parts of a stretch.
pub const PARTS: usize = STRETCH_ROWS / PART_ROWS;

/// Where the bytes of a sealed stretch are. `None` when they cannot be had; whoever keeps stretches outside of memory
/// has to make sure that no answer is then given.
pub trait Packed: Send + Sync {
    /// The packed rows, whose digest is the stretch's.
    fn bytes(&self) -> Option<&[u8]>;
    /// Part `number` of [`PARTS`], of so many bytes, whose CRC-32 is `check`.
    fn part(&self, number: usize, bytes: usize, check: u32) -> Option<&[u8]>;
}

impl Packed for Box<[u8]> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn part(&self, number: usize, bytes: usize, _check: u32) -> Option<&[u8]> {
        self.get(number * bytes..(number + 1) * bytes)
    }
}

/// Where stretches are that are not in memory.
pub trait Stretches: Send + Sync {
    /// Where the bytes of a stretch are, by its place and digest.
    fn stretch(&self, number: usize, digest: Digest) -> Arc<dyn Packed>;
}

/// Takes bytes out of memory that are hardly ever asked for again.
pub trait Sink: Send + Sync {
    /// Where they are from now on; `None` where there is no room for them: then they stay in memory.
    fn put_away(&self, bytes: &[u8]) -> Option<Arc<dyn Packed>>;
}

/// The first 16 bytes of the BLAKE3 hash of a stretch's packed rows.
pub type Digest = [u8; 16];

/// The digest of packed rows.
#[must_use]
pub fn digest(packed: &[u8]) -> Digest {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(packed).as_bytes()[..16]);
    short
}

/// Packed rows that never change, and what became of them. What they are checked by is made when it is first asked for:
/// a replay seals many stretches, and few of them are written down.
#[derive(Clone)]
pub(super) struct Stretch<R> {
    digest: OnceBox<Digest>,
    /// The CRC-32 of each part, four bytes each; none where only the digest is known.
    checks: OnceBox<Vec<u8>>,
    pub changed: Changed<R>,
    pub rows: OnceBox<Arc<dyn Packed>>,
}

impl<R: Row> Stretch<R> {
    pub fn of(rows: Arc<dyn Packed>) -> Self {
        Self {
            digest: OnceBox::new(),
            checks: OnceBox::new(),
            changed: Changed::default(),
            rows: OnceBox::with_value(Box::new(rows)),
        }
    }

    /// One whose rows are elsewhere.
    pub fn known(digest: Digest, checks: Vec<u8>, changed: Changed<R>) -> Self {
        Self {
            digest: OnceBox::with_value(Box::new(digest)),
            checks: OnceBox::with_value(Box::new(checks)),
            changed,
            rows: OnceBox::new(),
        }
    }

    /// The rows, where they are known to be.
    fn bytes(&self) -> &[u8] {
        let rows = self.rows.get().and_then(|rows| rows.bytes());
        rows.unwrap_or_default()
    }

    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| Box::new(digest(self.bytes())))
    }

    fn checks(&self) -> &Vec<u8> {
        self.checks.get_or_init(|| {
            let parts = self.bytes().chunks_exact(PART_ROWS * R::BYTES);
            let checks = parts.flat_map(|part| crc32fast::hash(part).to_le_bytes());
            Box::new(checks.collect())
        })
    }

    /// The CRC-32 of a part, where it is known: of rows that were never out of this program's hands it need not be.
    pub fn check(&self, part: usize) -> Option<u32> {
        let check = self.checks.get()?.get(part * 4..)?.first_chunk()?;
        Some(u32::from_le_bytes(*check))
    }
}

impl<R: Row> Item for Stretch<R> {
    const ROWS: usize = 1;

    fn blank() -> Self {
        Self::known([0; 16], Vec::new(), Changed::default())
    }
}

impl<R: Row> Encode for Stretch<R> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.digest().encode(encoder)?;
        self.checks().encode(encoder)?;
        self.changed.encode(encoder)
    }
}

impl<R: Row> Decode<()> for Stretch<R> {
    fn decode<D: Decoder<Context = ()>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (digest, checks) = (Decode::decode(decoder)?, Decode::decode(decoder)?);
        Ok(Self::known(digest, checks, Changed::decode(decoder)?))
    }
}

/// Rows of a stretch that changed after it was sealed, by their place in it.
#[derive(Clone)]
pub(super) struct Changed<R> {
    /// Places of those that a snapshot holds, two bytes each, in order.
    places: Vec<u8>,
    /// Their rows, packed.
    packed: Vec<u8>,
    /// Those that changed since.
    pub own: BTreeMap<u16, R>,
}

impl<R> Default for Changed<R> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            packed: Vec::new(),
            own: BTreeMap::new(),
        }
    }
}

impl<R: Row> Changed<R> {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.own.is_empty()
    }

    pub fn get(&self, place: u16) -> Option<R> {
        if let Some(row) = self.own.get(&place) {
            return Some(*row);
        }
        let (places, _) = self.places.as_chunks::<2>();
        let at = places.binary_search_by_key(&place, |place| u16::from_le_bytes(*place));
        R::unpack(self.packed.get(at.ok()? * R::BYTES..)?.get(..R::BYTES)?)
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<u16, R> {
        let (places, _) = self.places.as_chunks::<2>();
        let rows = self.packed.chunks_exact(R::BYTES).map(R::unpack);
        let kept = places.iter().zip(rows);
        let kept = kept.filter_map(|(place, row)| Some((u16::from_le_bytes(*place), row?)));
        let mut all: BTreeMap<u16, R> = kept.collect();
        all.extend(&self.own);
        all
    }
}

/// Equal rows are equal bytes, whichever of them changed since the snapshot.
impl<R: Row> Encode for Changed<R> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        if self.own.is_empty() {
            self.places.encode(encoder)?;
            return self.packed.encode(encoder);
        }
        let all = self.all();
        let places = all.keys().flat_map(|place| place.to_le_bytes());
        places.collect::<Vec<u8>>().encode(encoder)?;
        packed(all.values()).encode(encoder)
    }
}

impl<R: Row> Changed<R> {
    fn decode<D: Decoder>(decoder: &mut D) -> Result<Self, DecodeError> {
        let (places, packed): (Vec<u8>, Vec<u8>) =
            (Decode::decode(decoder)?, Decode::decode(decoder)?);
        if !places.len().is_multiple_of(2) || places.len() / 2 * R::BYTES != packed.len() {
            return Err(DecodeError::Other("a stretch with a row too many"));
        }
        Ok(Self {
            places,
            packed,
            own: BTreeMap::new(),
        })
    }
}

/// A sealed stretch, as it is kept outside of a state.
#[derive(Clone)]
pub struct Sealed {
    /// The digest of its rows.
    pub digest: Digest,
    /// Its rows, where it is known where they are.
    pub rows: Option<Arc<dyn Packed>>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({:?})", self.digest)
    }
}

/// The bytes of rows, one behind the other.
pub(super) fn packed<'r, R: Row + 'r>(rows: impl ExactSizeIterator<Item = &'r R>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * R::BYTES);
    rows.for_each(|row| row.pack(&mut bytes));
    bytes
}
