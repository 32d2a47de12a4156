//! Texts and bodies of one frame, and the pool of texts a state keeps.
//!
//! Facts never hold a text: they hold its number in the frame's table. So facts decode without allocation,
//! and a text can be redacted without touching them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};

use bincode::{Decode, Encode};
use hashbrown::{DefaultHashBuilder, HashTable};

/// Number of a text in its frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct TextId(pub u32);

/// Number of a body in its frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Encode, Decode)]
pub struct BodyId(pub u32);

/// The texts of one frame, in the order they were first mentioned; equal texts share a number.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Texts {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Texts {
    /// The number of `text`, which joins the table if it is new.
    pub fn add(&mut self, text: &[u8]) -> TextId {
        let known = self.iter().position(|t| t == text);
        let at = known.unwrap_or_else(|| {
            self.push(text);
            self.ends.len() - 1
        });
        TextId(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// The text with that number; empty when there is none (a redacted or damaged frame).
    #[must_use]
    pub fn get(&self, id: TextId) -> &[u8] {
        self.at(id.0 as usize).unwrap_or(&[])
    }

    fn at(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(begin..end)
    }

    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.ends.len()).map(|index| self.at(index).unwrap_or(&[]))
    }

    /// Appends a text under the next number, even if it stands there already: the decoder's way in.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Forgets every text and keeps the room they had.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The bodies of one frame.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Bodies(Vec<Box<[u8]>>);

impl Bodies {
    /// Adds a body and gives its number.
    pub fn add(&mut self, body: &[u8]) -> BodyId {
        self.0.push(body.into());
        BodyId(u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX))
    }

    /// The body with that number, if it is there.
    #[must_use]
    pub fn get(&self, id: BodyId) -> Option<&[u8]> {
        self.0.get(id.0 as usize).map(|b| &**b)
    }

    /// All bodies in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.0.iter().map(|b| &**b)
    }
}

/// A text that a state keeps as long as what it belongs to is live: items, titles, what sessions say they do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Text(Arc<[u8]>);

impl Text {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl core::borrow::Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl core::fmt::Debug for Text {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// Number of a text in a state's [`Pool`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
pub struct Symbol(u32);

/// Every text that a state keeps for ever, once: names, actors, engines, hosts, labels, paths, reasons.
#[derive(Clone, Default)]
pub struct Pool {
    texts: Vec<Box<[u8]>>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
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
        self.index
            .find(hash, |n| &*self.texts[*n as usize] == text)
            .map(|n| Symbol(*n))
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
}

impl Encode for Pool {
    fn encode<E: bincode::enc::Encoder>(
        &self,
        encoder: &mut E,
    ) -> Result<(), bincode::error::EncodeError> {
        self.texts.encode(encoder)
    }
}

impl<C> Decode<C> for Pool {
    fn decode<D: bincode::de::Decoder<Context = C>>(
        decoder: &mut D,
    ) -> Result<Self, bincode::error::DecodeError> {
        let texts = Vec::<Box<[u8]>>::decode(decoder)?;
        let mut pool = Self {
            texts: Vec::with_capacity(texts.len()),
            ..Self::default()
        };
        for text in texts {
            pool.intern(&text);
        }
        Ok(pool)
    }
}
