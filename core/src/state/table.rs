//! Rows under dense numbers: the newest in memory, older ones in sealed stretches that may stand elsewhere.
//!
//! A dispatch or an envelope is written to while it is open, and then never again. So every so many rows are
//! sealed together, packed at fixed width under their digest, and a state can be kept without them: a snapshot
//! names them, and whoever opens it fetches a stretch when a row of it is asked for. When a stretch is sealed
//! follows from the log alone, so equal logs seal equal stretches.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use super::paged::{Directory, Item, Layout, Paged};

/// Rows of a sealed stretch. Sealed when as many again stand behind it: most rows are over by then.
pub const STRETCH_ROWS: usize = 4096;

/// A row that has the same width as every other.
pub trait Row: Item + Copy + PartialEq + fmt::Debug {
    /// Bytes of a packed row.
    const BYTES: usize;
    /// Appends the packed row.
    fn pack(&self, out: &mut Vec<u8>);
    /// Reads a packed row; `None` for bytes that none was packed to.
    fn unpack(bytes: &[u8]) -> Option<Self>;
}

/// Where the bytes of a sealed stretch are.
pub trait Packed: Send + Sync {
    /// The packed rows, whose digest is the stretch's. `None` when they cannot be had; whoever keeps stretches
    /// outside of memory has to make sure that no answer is then given.
    fn bytes(&self) -> Option<&[u8]>;
}

impl Packed for Box<[u8]> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

/// A stretch whose bytes were not fetched yet and that nobody knows where to find.
struct Nowhere;

impl Packed for Nowhere {
    fn bytes(&self) -> Option<&[u8]> {
        None
    }
}

/// The first 16 bytes of the BLAKE3 hash of a stretch's packed rows.
pub type Digest = [u8; 16];

/// Packed rows that never change.
#[derive(Clone)]
struct Stretch {
    digest: Digest,
    rows: Arc<dyn Packed>,
}

/// The digest of packed rows.
#[must_use]
pub fn digest(packed: &[u8]) -> Digest {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(packed).as_bytes()[..16]);
    short
}

/// Rows by number, from 0.
#[derive(Clone)]
pub struct Table<R> {
    sealed: Vec<Stretch>,
    /// Rows of sealed stretches that changed after they were sealed.
    changed: BTreeMap<u64, R>,
    recent: Paged<R>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self {
            sealed: Vec::new(),
            changed: BTreeMap::new(),
            recent: Paged::default(),
        }
    }
}

impl<R: Row> Table<R> {
    fn sealed_rows(&self) -> usize {
        self.sealed.len() * STRETCH_ROWS
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sealed_rows() + self.recent.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row under that number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<R> {
        if let Some(recent) = number.checked_sub(self.sealed_rows()) {
            return self.recent.get(recent).copied();
        }
        match self.changed.get(&(number as u64)) {
            Some(row) => Some(*row),
            None => self.unpack(number),
        }
    }

    fn unpack(&self, number: usize) -> Option<R> {
        let stretch = self.sealed.get(number / STRETCH_ROWS)?;
        let at = number % STRETCH_ROWS * R::BYTES;
        R::unpack(stretch.rows.bytes()?.get(at..at + R::BYTES)?)
    }

    /// The row under that number, to be changed.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut R> {
        if let Some(recent) = number.checked_sub(self.sealed_rows()) {
            return self.recent.get_mut(recent);
        }
        let row = self.get(number)?;
        Some(self.changed.entry(number as u64).or_insert(row))
    }

    /// Adds a row under the next number.
    pub fn push(&mut self, row: R) {
        self.recent.push(row);
        if self.recent.len() == 2 * STRETCH_ROWS {
            let mut packed = Vec::with_capacity(STRETCH_ROWS * R::BYTES);
            self.recent
                .take_front(STRETCH_ROWS)
                .iter()
                .for_each(|r| r.pack(&mut packed));
            self.sealed.push(Stretch {
                digest: digest(&packed),
                rows: Arc::new(packed.into_boxed_slice()),
            });
        }
    }

    /// Every row in order.
    pub fn iter(&self) -> impl Iterator<Item = R> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// The sealed stretches, oldest first.
    pub fn stretches(&self) -> impl ExactSizeIterator<Item = (Digest, Arc<dyn Packed>)> {
        let share = |stretch: &Stretch| (stretch.digest, Arc::clone(&stretch.rows));
        self.sealed.iter().map(share)
    }

    fn digests(&self) -> impl ExactSizeIterator<Item = Digest> {
        self.sealed.iter().map(|stretch| stretch.digest)
    }

    /// The packed rows of a sealed stretch.
    #[must_use]
    pub fn packed(&self, stretch: usize) -> Option<&[u8]> {
        self.sealed.get(stretch)?.rows.bytes()
    }

    /// Says where the bytes of each sealed stretch are, by its place and digest.
    pub fn keep_elsewhere(&mut self, mut place: impl FnMut(usize, Digest) -> Arc<dyn Packed>) {
        for (number, stretch) in self.sealed.iter_mut().enumerate() {
            stretch.rows = place(number, stretch.digest);
        }
    }
}

/// Equal rows under equal numbers: a digest stands for its rows.
impl<R: Row> PartialEq for Table<R> {
    fn eq(&self, other: &Self) -> bool {
        self.digests().eq(other.digests())
            && self.changed == other.changed
            && self.recent == other.recent
    }
}

impl<R: Row> fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("sealed", &self.digests().collect::<Vec<_>>())
            .field("changed", &self.changed)
            .field("recent", &self.recent)
            .finish()
    }
}

/// Digests in place of the sealed stretches: small, and still different for different rows.
impl<R: Row> Encode for Table<R> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.digests().collect::<Vec<_>>().encode(encoder)?;
        self.changed
            .keys()
            .copied()
            .collect::<Vec<_>>()
            .encode(encoder)?;
        packed(self.changed.values()).encode(encoder)?;
        packed(self.recent.iter()).encode(encoder)
    }
}

impl<R: Row> Table<R> {
    /// As [`Paged::share`].
    pub(super) fn share(&mut self) {
        self.recent.share();
    }

    /// Writes down the rows that are not sealed, and what the others are found by.
    ///
    /// # Errors
    /// As [`Paged::lay_out`].
    pub(super) fn lay_out(&self, layout: &mut Layout) -> Result<(), EncodeError> {
        layout.note(self.digests().collect::<Vec<_>>())?;
        layout.note(self.changed.keys().copied().collect::<Vec<_>>())?;
        layout.note(packed(self.changed.values()))?;
        self.recent.lay_out(layout)
    }

    /// Reads what [`Table::lay_out`] wrote. The sealed stretches are then nowhere, until [`Table::keep_elsewhere`]
    /// says where.
    ///
    /// # Errors
    /// For any other bytes.
    pub(super) fn find_again<D: Decoder<Context = ()>>(
        decoder: &mut D,
        found: &mut Directory,
    ) -> Result<Self, DecodeError> {
        Ok(Self {
            sealed: sealed(decoder)?,
            changed: changed(decoder)?,
            recent: Paged::find_again(decoder, found)?,
        })
    }
}

fn sealed<D: Decoder>(decoder: &mut D) -> Result<Vec<Stretch>, DecodeError> {
    let nowhere: Arc<dyn Packed> = Arc::new(Nowhere);
    let stretch = |digest| Stretch {
        digest,
        rows: Arc::clone(&nowhere),
    };
    let sealed: Vec<Digest> = Decode::decode(decoder)?;
    Ok(sealed.into_iter().map(stretch).collect())
}

fn changed<R: Row, D: Decoder>(decoder: &mut D) -> Result<BTreeMap<u64, R>, DecodeError> {
    let numbers: Vec<u64> = Decode::decode(decoder)?;
    let rows: Vec<R> = unpacked(&Vec::decode(decoder)?)?;
    if numbers.len() != rows.len() {
        return Err(DecodeError::Other("a table with a row too many"));
    }
    Ok(numbers.into_iter().zip(rows).collect())
}

/// The sealed stretches are then nowhere, until [`Table::keep_elsewhere`] says where.
impl<R: Row, C> Decode<C> for Table<R> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Ok(Self {
            sealed: sealed(decoder)?,
            changed: changed(decoder)?,
            recent: unpacked(&Vec::decode(decoder)?)?.into_iter().collect(),
        })
    }
}

fn packed<'r, R: Row + 'r>(rows: impl ExactSizeIterator<Item = &'r R>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * R::BYTES);
    rows.for_each(|row| row.pack(&mut bytes));
    bytes
}

fn unpacked<R: Row>(bytes: &[u8]) -> Result<Vec<R>, DecodeError> {
    if !bytes.len().is_multiple_of(R::BYTES) {
        return Err(DecodeError::Other("a table with a broken row"));
    }
    bytes
        .chunks_exact(R::BYTES)
        .map(|b| R::unpack(b).ok_or(DecodeError::Other("a row of an unknown kind")))
        .collect()
}

/// Packs words of eight bytes, little endian.
pub(super) fn pack_words(words: &[u64], out: &mut Vec<u8>) {
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Reads what [`pack_words`] packed.
pub(super) fn unpack_words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, slot) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*slot);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
    struct Number(u64);

    impl Item for Number {
        const ROWS: usize = 64;
        fn blank() -> Self {
            Self(0)
        }
    }

    impl Row for Number {
        const BYTES: usize = 8;
        fn pack(&self, out: &mut Vec<u8>) {
            pack_words(&[self.0], out);
        }
        fn unpack(bytes: &[u8]) -> Option<Self> {
            let [word] = unpack_words(bytes);
            (word != u64::MAX).then_some(Self(word))
        }
    }

    fn table(rows: u64) -> Table<Number> {
        let mut table = Table::default();
        (0..rows).for_each(|n| table.push(Number(n * 3)));
        table
    }

    #[test]
    fn rows_are_found_and_change_whether_sealed_or_not() {
        let rows = 5 * STRETCH_ROWS as u64 + 7;
        let mut table = table(rows);
        assert_eq!(table.stretches().len(), 4);
        assert!(table.iter().eq((0..rows).map(|n| Number(n * 3))));
        for number in [
            0,
            1,
            STRETCH_ROWS,
            4 * STRETCH_ROWS - 1,
            4 * STRETCH_ROWS,
            table.len() - 1,
        ] {
            table.get_mut(number).expect("it is there").0 = 1;
            assert_eq!(table.get(number), Some(Number(1)));
        }
        assert_eq!(table.get(table.len()), None);
        assert!(table.get_mut(table.len()).is_none());
        assert_eq!(table.len() as u64, rows);
    }

    #[test]
    fn a_decoded_table_finds_sealed_rows_where_it_is_told() {
        let mut before = table(4 * STRETCH_ROWS as u64);
        before.get_mut(5).expect("it is there").0 = 2;
        let bytes = crate::codec::encode(&before).expect("it encodes");
        assert!(
            bytes.len() < 2 * STRETCH_ROWS * Number::BYTES + 100,
            "{}",
            bytes.len()
        );
        let mut after: Table<Number> = crate::codec::decode(&bytes).expect("it decodes");
        assert_eq!(after, before);
        assert_eq!((after.get(5), after.get(6)), (Some(Number(2)), None));
        after.keep_elsewhere(|stretch, wanted| {
            let packed = before.packed(stretch).expect("in memory");
            assert_eq!(digest(packed), wanted);
            Arc::new(Box::<[u8]>::from(packed))
        });
        assert!(after.iter().eq(before.iter()));
    }

    #[test]
    fn different_rows_make_different_bytes() {
        let (one, mut other) = (table(3 * STRETCH_ROWS as u64), table(0));
        for n in 0..3 * STRETCH_ROWS as u64 {
            other.push(Number(if n == 9 { 0 } else { n * 3 }));
        }
        assert_ne!(one, other);
        let encode = |t: &Table<Number>| crate::codec::encode(t).expect("it encodes");
        assert_ne!(encode(&one), encode(&other));
    }
}
