//! Rows under dense numbers: the newest in memory, older ones in sealed stretches that may stand elsewhere.
//!
//! A dispatch or an envelope is written to while it is open, and then never again. So every so many rows are
//! sealed together, packed at fixed width under their digest, and a state can be kept without them: a snapshot
//! names them, and whoever opens it fetches what is asked for of a stretch. Rows that change after that stand beside
//! their stretch, and go into it when it is sealed a second time. When a stretch is sealed follows from the log
//! alone, so equal logs seal equal stretches.

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

use super::paged::{Directory, Item, Layout, Paged};

mod stretch;

pub use stretch::{Digest, PARTS, Packed, STRETCH_ROWS, Sealed, Sink, Stretches, digest};

use stretch::{Changed, PART_ROWS, Stretch, packed};

/// Stretches behind one that is sealed a second time: nearly all of its rows are over by then, so that what changes
/// later is little, however long the log is.
pub const SETTLING_STRETCHES: usize = 4;

/// A row that has the same width as every other.
pub trait Row: Item + Copy + PartialEq + fmt::Debug {
    /// Bytes of a packed row.
    const BYTES: usize;
    /// Appends the packed row.
    fn pack(&self, out: &mut Vec<u8>);
    /// Reads a packed row; `None` for bytes that none was packed to.
    fn unpack(bytes: &[u8]) -> Option<Self>;
}

/// Rows by number, from 0.
#[derive(Clone)]
pub struct Table<R> {
    sealed: Paged<Stretch<R>>,
    recent: Paged<R>,
    /// Where stretches are that are not in memory.
    elsewhere: Option<Arc<dyn Stretches>>,
    /// Where those go that are sealed from now on, once they are sealed a second time.
    sink: Option<Arc<dyn Sink>>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self {
            sealed: Paged::default(),
            recent: Paged::default(),
            elsewhere: None,
            sink: None,
        }
    }
}

/// A row's place in its stretch.
fn place(number: usize) -> u16 {
    (number % STRETCH_ROWS) as u16
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
        let stretch = self.sealed.get(number / STRETCH_ROWS)?;
        let changed = stretch.changed.get(place(number));
        changed.or_else(|| self.unpack(stretch, number))
    }

    fn unpack(&self, stretch: &Stretch<R>, number: usize) -> Option<R> {
        let (part, row) = (
            number % STRETCH_ROWS / PART_ROWS,
            number % PART_ROWS * R::BYTES,
        );
        let rows = self.rows(stretch, number / STRETCH_ROWS)?;
        let bytes = PART_ROWS * R::BYTES;
        let part = match stretch.check(part) {
            Some(check) => rows.part(part, bytes, check),
            None => rows.bytes()?.get(part * bytes..(part + 1) * bytes),
        };
        R::unpack(part?.get(row..row + R::BYTES)?)
    }

    fn rows<'s>(&self, stretch: &'s Stretch<R>, number: usize) -> Option<&'s dyn Packed> {
        if let Some(rows) = stretch.rows.get() {
            return Some(&**rows);
        }
        let place = self.elsewhere.as_ref()?.stretch(number, stretch.digest());
        Some(&**stretch.rows.get_or_init(|| Box::new(place)))
    }

    /// The row under that number, to be changed.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut R> {
        if let Some(recent) = number.checked_sub(self.sealed_rows()) {
            return self.recent.get_mut(recent);
        }
        let row = self.get(number)?;
        let stretch = self.sealed.get_mut(number / STRETCH_ROWS)?;
        Some(stretch.changed.own.entry(place(number)).or_insert(row))
    }

    /// Adds a row under the next number.
    pub fn push(&mut self, row: R) {
        self.recent.push(row);
        if self.recent.len() == 2 * STRETCH_ROWS {
            let mut rows = Vec::with_capacity(STRETCH_ROWS * R::BYTES);
            self.recent
                .take_front(STRETCH_ROWS, |row| row.pack(&mut rows));
            let rows: Arc<dyn Packed> = Arc::new(rows.into_boxed_slice());
            self.sealed.push(Stretch::of(rows));
            self.settle();
        }
    }

    /// Seals a stretch a second time, with the rows that changed since the first, and puts it away.
    fn settle(&mut self) {
        let behind = 1 + SETTLING_STRETCHES;
        let Some(number) = self.sealed.len().checked_sub(behind) else {
            return;
        };
        if self.sealed[number].changed.is_empty() {
            // One that was sealed before this state was opened is elsewhere already.
            let rows = self.sealed[number].rows.get();
            let bytes = rows.and_then(|rows| rows.bytes());
            if let Some(away) = bytes.and_then(|bytes| self.away(bytes)) {
                self.sealed[number].rows = OnceBox::with_value(Box::new(away));
            }
            return;
        }
        let changed = self.sealed[number].changed.all();
        // Where the bytes cannot be had, no answer counts that is found in this state.
        let Some(mut rows) = self.packed(number).map(<[u8]>::to_vec) else {
            return;
        };
        for (place, row) in changed {
            let (at, mut bytes) = (usize::from(place) * R::BYTES, Vec::with_capacity(R::BYTES));
            row.pack(&mut bytes);
            if let Some(slot) = rows.get_mut(at..at + R::BYTES) {
                slot.copy_from_slice(&bytes);
            }
        }
        let away = self.away(&rows);
        let rows = away.unwrap_or_else(|| Arc::new(rows.into_boxed_slice()));
        self.sealed[number] = Stretch::of(rows);
    }

    fn away(&self, rows: &[u8]) -> Option<Arc<dyn Packed>> {
        self.sink.as_ref()?.put_away(rows)
    }

    /// As [`State::put_away_in`](super::State::put_away_in).
    pub(super) fn put_away_in(&mut self, sink: &Arc<dyn Sink>) {
        self.sink = Some(Arc::clone(sink));
    }

    /// Every row in order.
    pub fn iter(&self) -> impl Iterator<Item = R> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// The sealed stretches, oldest first.
    pub fn stretches(&self) -> impl ExactSizeIterator<Item = Sealed> {
        let stretches = self.sealed.iter().enumerate();
        stretches.map(|(number, stretch)| Sealed {
            digest: stretch.digest(),
            rows: self.rows(stretch, number).and(stretch.rows.get().cloned()),
        })
    }

    fn digests(&self) -> impl ExactSizeIterator<Item = Digest> {
        self.sealed.iter().map(Stretch::digest)
    }

    /// The rows that changed after they were sealed, by number.
    fn changed(&self) -> BTreeMap<u64, R> {
        let stretches = self.sealed.iter().enumerate();
        let changed = stretches.flat_map(|(number, stretch)| {
            let first = (number * STRETCH_ROWS) as u64;
            let rows = stretch.changed.all().into_iter();
            rows.map(move |(place, row)| (first + u64::from(place), row))
        });
        changed.collect()
    }

    /// The packed rows of a sealed stretch.
    #[must_use]
    pub fn packed(&self, number: usize) -> Option<&[u8]> {
        let stretch = self.sealed.get(number)?;
        self.rows(stretch, number)?.bytes()
    }

    /// Says where the bytes of sealed stretches are that are not in memory.
    pub fn keep_elsewhere(&mut self, place: Arc<dyn Stretches>) {
        self.elsewhere = Some(place);
    }
}

/// Equal rows under equal numbers: a digest stands for its rows.
impl<R: Row> PartialEq for Table<R> {
    fn eq(&self, other: &Self) -> bool {
        self.digests().eq(other.digests())
            && self.changed() == other.changed()
            && self.recent == other.recent
    }
}

impl<R: Row> fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("sealed", &self.digests().collect::<Vec<_>>())
            .field("changed", &self.changed())
            .field("recent", &self.recent)
            .finish()
    }
}

/// Digests in place of the sealed stretches: small, and still different for different rows.
impl<R: Row> Encode for Table<R> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let changed = self.changed();
        self.digests().collect::<Vec<_>>().encode(encoder)?;
        changed
            .keys()
            .copied()
            .collect::<Vec<_>>()
            .encode(encoder)?;
        packed(changed.values()).encode(encoder)?;
        packed(self.recent.iter()).encode(encoder)
    }
}

impl<R: Row> Table<R> {
    /// As [`Paged::share`].
    pub(super) fn share(&mut self) {
        self.sealed.share();
        self.recent.share();
    }

    /// Writes down the rows that are not sealed, and what the others are found by.
    ///
    /// # Errors
    /// As [`Paged::lay_out`].
    pub(super) fn lay_out(&self, layout: &mut Layout) -> Result<(), EncodeError> {
        self.sealed.lay_out(layout)?;
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
            sealed: Paged::find_again(decoder, found)?,
            recent: Paged::find_again(decoder, found)?,
            elsewhere: None,
            sink: None,
        })
    }
}

/// The sealed stretches are then nowhere, until [`Table::keep_elsewhere`] says where.
impl<R: Row, C> Decode<C> for Table<R> {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let digests: Vec<Digest> = Decode::decode(decoder)?;
        let numbers: Vec<u64> = Decode::decode(decoder)?;
        let rows: Vec<R> = unpacked(&Vec::decode(decoder)?)?;
        let known = |digest| Stretch::known(digest, Vec::new(), Changed::default());
        let mut sealed: Paged<Stretch<R>> = digests.into_iter().map(known).collect();
        if numbers.len() != rows.len() {
            return Err(DecodeError::Other("a table with a row too many"));
        }
        for (number, row) in numbers.into_iter().zip(rows) {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let stretch = sealed.get_mut(number / STRETCH_ROWS);
            let stretch = stretch.ok_or(DecodeError::Other("a row of no stretch"))?;
            stretch.changed.own.insert(place(number), row);
        }
        Ok(Self {
            sealed,
            recent: unpacked(&Vec::decode(decoder)?)?.into_iter().collect(),
            elsewhere: None,
            sink: None,
        })
    }
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
    use core::sync::atomic::AtomicUsize;
    use core::sync::atomic::Ordering::Relaxed;

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

    /// Where another table keeps its stretches.
    struct Beside(Table<Number>);

    impl Stretches for Beside {
        fn stretch(&self, number: usize, wanted: Digest) -> Arc<dyn Packed> {
            let packed = self.0.packed(number).expect("in memory");
            assert_eq!(digest(packed), wanted);
            Arc::new(Box::<[u8]>::from(packed))
        }
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
        after.keep_elsewhere(Arc::new(Beside(before.clone())));
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

    /// What changed goes into its stretch when that is sealed a second time, and what changes later stands beside it.
    #[test]
    fn a_stretch_is_sealed_again_with_what_changed_since() {
        let mut table = table(2 * STRETCH_ROWS as u64);
        let first = table.stretches().next().expect("it is sealed").digest;
        for number in (0..STRETCH_ROWS).step_by(7) {
            table.get_mut(number).expect("it is there").0 = 1;
        }
        let wanted: Vec<Number> = table.iter().take(STRETCH_ROWS).collect();
        let rows = (SETTLING_STRETCHES * STRETCH_ROWS) as u64;
        (0..rows - 1).for_each(|n| table.push(Number(n)));
        assert_eq!(table.stretches().next().map(|s| s.digest), Some(first));
        assert_eq!(table.changed().len(), STRETCH_ROWS.div_ceil(7));
        table.push(Number(5));
        let sealed = table.stretches().next().expect("it is sealed");
        assert_eq!(table.packed(0).map(digest), Some(sealed.digest));
        assert_ne!(sealed.digest, first);
        assert!(table.changed().is_empty());
        assert!(table.iter().take(STRETCH_ROWS).eq(wanted));
        table.get_mut(7).expect("it is there").0 = 2;
        assert_eq!(table.get(7), Some(Number(2)));
        assert_eq!(table.changed().len(), 1);
    }

    /// Where stretches are put away: in memory too, as far as there is room.
    struct Aside(AtomicUsize);

    impl Sink for Aside {
        fn put_away(&self, bytes: &[u8]) -> Option<Arc<dyn Packed>> {
            let left = |room: usize| room.checked_sub(1);
            self.0.fetch_update(Relaxed, Relaxed, left).ok()?;
            Some(Arc::new(Box::<[u8]>::from(bytes)))
        }
    }

    /// Where a stretch is says nothing about its rows: put away, or kept in memory because there is no room for it, and
    /// changed before that and after.
    #[test]
    fn a_table_is_the_same_whatever_was_put_away() {
        const ROOM: usize = 100;
        for room in [0, 3, ROOM] {
            let sink = Arc::new(Aside(AtomicUsize::new(room)));
            let (mut kept, mut away) = (table(0), table(0));
            away.put_away_in(&(Arc::clone(&sink) as Arc<dyn Sink>));
            for n in 0..12 * STRETCH_ROWS {
                for table in [&mut kept, &mut away] {
                    table.push(Number(n as u64));
                    // Rows of every age: not sealed, and sealed once and twice.
                    if n.is_multiple_of(37) {
                        table.get_mut(n / 37 * 11).expect("it is there").0 += 1;
                    }
                }
            }
            let settled = kept.stretches().len() - SETTLING_STRETCHES;
            assert_eq!(room - sink.0.load(Relaxed), room.min(settled));
            assert_eq!(away, kept);
            assert!(away.iter().eq(kept.iter()));
            let laid_out = |table: &Table<Number>| {
                let mut layout = Layout::default();
                table.lay_out(&mut layout).expect("it is laid out");
                (layout.head, layout.pages)
            };
            assert_eq!(laid_out(&away), laid_out(&kept));
        }
    }

    /// Reading one row checks its part, and not the stretch.
    #[test]
    fn a_row_costs_a_part_and_one_that_is_not_as_it_was_written_is_none() {
        struct Torn(Box<[u8]>);
        impl Packed for Torn {
            fn bytes(&self) -> Option<&[u8]> {
                panic!("one row was asked for")
            }
            fn part(&self, number: usize, bytes: usize, check: u32) -> Option<&[u8]> {
                let part = &self.0[number * bytes..(number + 1) * bytes];
                (crc32fast::hash(part) == check).then_some(part)
            }
        }
        struct Kept(Box<[u8]>);
        impl Stretches for Kept {
            fn stretch(&self, _: usize, _: Digest) -> Arc<dyn Packed> {
                Arc::new(Torn(self.0.clone()))
            }
        }
        let before = table(2 * STRETCH_ROWS as u64);
        let mut layout = Layout::default();
        before.lay_out(&mut layout).expect("it is laid out");
        let shelf = crate::state::paged::tests::InMemory::of(layout.pages);
        let mut after: Table<Number> = crate::codec::read_with(&layout.head, |decoder| {
            Table::find_again(decoder, &mut Directory::of(shelf))
        })
        .expect("it decodes");
        let mut rows = Box::<[u8]>::from(before.packed(0).expect("in memory"));
        rows[PART_ROWS * Number::BYTES] ^= 1;
        after.keep_elsewhere(Arc::new(Kept(rows)));
        for number in 0..STRETCH_ROWS {
            let bad = number / PART_ROWS == 1;
            assert_eq!(after.get(number), before.get(number).filter(|_| !bad));
        }
    }
}
