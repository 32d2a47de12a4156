//! Texts and bodies of one frame, and the pool of texts a state keeps.
//!
//! Facts never hold a text: they hold its number in the frame's table. So facts decode without allocation,
//! and a text can be redacted without touching them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};
use core::ops::Range;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::state::paged::{Directory, Item, Layout, Paged};

/// Number of a text in its frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct TextId(pub u32);

/// Number of a body in its frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct BodyId(pub u32);

/// The texts of one frame, in the order they were first mentioned; equal texts share a number.
#[derive(Clone, Default, Debug)]
pub struct Texts {
    /// Where they stand, and between them perhaps something else.
    bytes: Vec<u8>,
    /// From where to where each goes.
    spans: Spans,
}

/// As many texts as most frames have: where these stand takes no memory of its own.
const FEW: usize = 6;

/// Stretches of some bytes, which no frame has more of than 32 bits count.
#[derive(Clone, Default, Debug)]
struct Spans {
    few: [(u32, u32); FEW],
    count: usize,
    more: Vec<(u32, u32)>,
}

impl Spans {
    fn get(&self, index: usize) -> Option<Range<usize>> {
        let few = self.few[..self.count.min(FEW)].get(index);
        let (begin, end) = *few.or_else(|| self.more.get(index.checked_sub(FEW)?))?;
        Some(begin as usize..end as usize)
    }

    #[inline]
    fn push(&mut self, begin: usize, end: usize) {
        // One that begins further on stands nowhere, and is empty.
        let short = |at| u32::try_from(at).unwrap_or(u32::MAX);
        let span = (short(begin), short(end));
        match self.few.get_mut(self.count) {
            Some(slot) => *slot = span,
            None => self.more.push(span),
        }
        self.count += 1;
    }

    fn clear(&mut self) {
        self.count = 0;
        self.more.clear();
    }
}

/// Equal texts under equal numbers.
impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Texts {}

impl Texts {
    /// An empty table with room for the texts of most calls: an actor, a session, and what it is about.
    #[must_use]
    pub fn with_room() -> Self {
        Self {
            bytes: Vec::with_capacity(128),
            spans: Spans::default(),
        }
    }

    /// The number of `text`, which joins the table if it is new.
    pub fn add(&mut self, text: &[u8]) -> TextId {
        let known = self.iter().position(|t| t == text);
        let at = known.unwrap_or_else(|| {
            self.push(text);
            self.spans.count - 1
        });
        TextId(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// The text with that number; empty when there is none (a redacted or damaged frame).
    #[must_use]
    pub fn get(&self, id: TextId) -> &[u8] {
        self.at(id.0 as usize).unwrap_or(&[])
    }

    fn at(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(self.spans.get(index)?)
    }

    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.spans.count).map(|index| self.at(index).unwrap_or(&[]))
    }

    /// Appends a text under the next number, even if it stands there already: the decoder's way in.
    pub fn push(&mut self, text: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.spans.push(begin, self.bytes.len());
    }

    /// Forgets every text, and takes `part` over in one piece: [`Texts::name`] then says where in it texts stand.
    pub(crate) fn take(&mut self, part: &[u8]) {
        self.spans.clear();
        self.bytes.clear();
        self.bytes.extend_from_slice(part);
    }

    /// Gives the next number to the text that stands there in what was taken.
    #[inline]
    pub(crate) fn name(&mut self, begin: usize, end: usize) {
        self.spans.push(begin, end);
    }
}

/// The bodies of one frame, which has none or one.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Bodies {
    first: Option<Vec<u8>>,
    /// No program of ours writes more; whatever bytes are read may have them.
    more: Vec<Vec<u8>>,
}

impl Bodies {
    /// Adds a body and gives its number.
    pub fn add(&mut self, body: Vec<u8>) -> BodyId {
        match &self.first {
            None => self.first = Some(body),
            Some(_) => self.more.push(body),
        }
        BodyId(u32::try_from(self.more.len()).unwrap_or(u32::MAX))
    }

    /// The body with that number, if it is there.
    #[must_use]
    pub fn get(&self, id: BodyId) -> Option<&[u8]> {
        self.at(id.0 as usize)
    }

    fn at(&self, index: usize) -> Option<&[u8]> {
        let body = match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(index) => self.more.get(index),
        };
        body.map(Vec::as_slice)
    }

    /// All bodies in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let count = self.first.iter().len() + self.more.len();
        (0..count).map(|index| self.at(index).unwrap_or(&[]))
    }
}

/// A text that a state keeps as long as what it belongs to is live: items, titles, what sessions say they do.
#[derive(Clone)]
pub struct Text(Kept);

/// Bytes of a text that stands in place: items and ids nearly all do, and cost no memory of their own.
const SHORT_BYTES_MAX: usize = 22;

#[derive(Clone)]
enum Kept {
    Short(u8, [u8; SHORT_BYTES_MAX]),
    Long(Arc<[u8]>),
}

impl Text {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or(&[]),
            Kept::Long(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Text {
    fn from(text: &[u8]) -> Self {
        let mut bytes = [0; SHORT_BYTES_MAX];
        Self(
            match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
                (Some(short), Ok(len)) => {
                    short.copy_from_slice(text);
                    Kept::Short(len, bytes)
                }
                _ => Kept::Long(text.into()),
            },
        )
    }
}

impl core::borrow::Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

/// As of its bytes, since it is found by them.
impl core::hash::Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Encode for Text {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.as_bytes().encode(encoder)
    }
}

impl<C> Decode<C> for Text {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Ok(Vec::<u8>::decode(decoder)?.as_slice().into())
    }
}

impl<'de, C> bincode::BorrowDecode<'de, C> for Text {
    fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Decode::decode(decoder)
    }
}

impl core::fmt::Debug for Text {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// Number of a text in a state's [`Pool`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Encode, Decode)]
pub struct Symbol(u32);

impl Symbol {
    /// The symbol of that number, as it was written down.
    pub(crate) fn of(number: u32) -> Self {
        Self(number)
    }

    /// Its place in the pool.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every text that a state keeps for ever, once: names, actors, engines, hosts, labels, paths, reasons.
#[derive(Clone, Default)]
pub struct Pool {
    texts: Paged<Box<[u8]>>,
    /// How many of them a snapshot has an index of.
    indexed: usize,
    /// That index: in each shard the texts of one range of hashes.
    shards: Paged<Shard>,
    /// The others.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Item for Box<[u8]> {
    const ROWS: usize = 64;

    fn blank() -> Self {
        Self::default()
    }
}

/// Texts whose hashes are in one range: the lower half of each hash and the number of the text, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
struct Shard(Vec<(u32, u32)>);

impl Item for Shard {
    const ROWS: usize = 1;

    fn blank() -> Self {
        Self(Vec::new())
    }
}

/// Texts of a shard, on average.
const SHARD_TEXTS: usize = 128;

/// The hash that snapshots are indexed by: FNV-1a, whose bits are mixed once more at the end. Anything that spreads
/// names evenly serves; what collides is compared.
pub(crate) fn spread(text: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ hash >> 33
}

/// The shard of a hash, of so many.
fn shard_of(hash: u64, shards: usize) -> usize {
    ((u128::from(hash) * shards as u128) >> 64) as usize
}

impl core::fmt::Debug for Pool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Pool({} texts)", self.texts.len())
    }
}

/// Two pools are equal when they gave the same numbers to the same texts.
impl PartialEq for Pool {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Pool {
    fn hash(&self, text: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(text);
        hasher.finish()
    }

    /// The symbol of `text`, new if need be.
    pub fn intern(&mut self, text: &[u8]) -> Symbol {
        if let Some(symbol) = self.find(text) {
            return symbol;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.into());
        let hash = self.hash(text);
        let (texts, hasher) = (&self.texts, &self.hasher);
        self.index.insert_unique(hash, number, |n| {
            let mut h = hasher.build_hasher();
            h.write(&texts[*n as usize]);
            h.finish()
        });
        Symbol(number)
    }

    /// The symbol of `text`, if the pool knows it.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<Symbol> {
        let hash = self.hash(text);
        let is = |n: &u32| self.texts.get(*n as usize).is_some_and(|t| **t == *text);
        match self.index.find(hash, is) {
            Some(found) => Some(Symbol(*found)),
            None if self.indexed > 0 => self.find_indexed(text),
            None => None,
        }
    }

    fn find_indexed(&self, text: &[u8]) -> Option<Symbol> {
        let hash = spread(text);
        let shard = &self.shards.get(shard_of(hash, self.shards.len()))?.0;
        let low = hash as u32;
        let first = shard.partition_point(|(known, _)| *known < low);
        let alike = shard[first..].iter().take_while(|(known, _)| *known == low);
        let is = |n: u32| self.texts.get(n as usize).is_some_and(|t| **t == *text);
        alike.map(|(_, n)| *n).find(|n| is(*n)).map(Symbol)
    }

    /// The text of a symbol.
    #[must_use]
    pub fn get(&self, symbol: Symbol) -> &[u8] {
        self.texts.get(symbol.0 as usize).map_or(&[], |t| t)
    }

    /// The text of a symbol as a string; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn string(&self, symbol: Symbol) -> String {
        String::from_utf8_lossy(self.get(symbol)).into_owned()
    }

    /// As [`Paged::share`].
    pub(crate) fn share(&mut self) {
        self.texts.share();
    }

    /// Writes the texts and an index of them down.
    ///
    /// # Errors
    /// As [`Paged::lay_out`].
    pub(crate) fn lay_out(&self, layout: &mut Layout) -> Result<(), EncodeError> {
        self.texts.lay_out(layout)?;
        let mut hashed: Vec<(u64, u32)> = Vec::with_capacity(self.texts.len());
        let mut number = 0;
        self.texts.visit(|text| {
            hashed.push((spread(text), number));
            number += 1;
        });
        hashed.sort_unstable();
        let count = hashed.len().div_ceil(SHARD_TEXTS);
        let mut shards = alloc::vec![Shard::blank(); count];
        for (hash, number) in hashed {
            let low = hash as u32;
            shards[shard_of(hash, count)].0.push((low, number));
        }
        // The upper half of a hash leads to the shard, and the lower sorts it.
        shards.iter_mut().for_each(|shard| shard.0.sort_unstable());
        shards.into_iter().collect::<Paged<_>>().lay_out(layout)
    }

    /// Reads what [`Pool::lay_out`] wrote.
    ///
    /// # Errors
    /// As [`Paged::find_again`].
    pub(crate) fn find_again<D: Decoder<Context = ()>>(
        decoder: &mut D,
        found: &mut Directory,
    ) -> Result<Self, DecodeError> {
        let texts = Paged::find_again(decoder, found)?;
        Ok(Self {
            indexed: texts.len(),
            texts,
            shards: Paged::find_again(decoder, found)?,
            ..Self::default()
        })
    }
}

impl Encode for Pool {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.texts.encode(encoder)
    }
}

impl<C> Decode<C> for Pool {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let texts = Vec::<Box<[u8]>>::decode(decoder)?;
        let mut pool = Self::default();
        for text in texts {
            pool.intern(&text);
        }
        Ok(pool)
    }
}
