//! The dispatches that are queued or accepted, by number and by item.
//!
//! A state that was opened from a snapshot leaves them there: it has their numbers and the hashes of their items,
//! and beside them what happened since.

use alloc::collections::BTreeMap;
use alloc::vec::{self, Vec};
use core::fmt;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use hashbrown::HashMap;

use crate::id::{DispatchNo, EnvelopeNo};
use crate::text::{Text, spread};

use super::Dispatch;
use super::paged::{Directory, Item, Layout, Paged};
use super::table::pack_words;

impl Item for Dispatch {
    const ROWS: usize = 16;

    fn blank() -> Self {
        Self {
            item: Text::from(&[][..]),
            title: None,
            from: None,
            writes: Vec::new(),
            handed_by: None,
            envelope: EnvelopeNo(0),
            body: None,
        }
    }
}

/// Live dispatches.
#[derive(Clone, Default)]
pub struct Live {
    /// Those that the snapshot holds, in order.
    numbers: Vec<u64>,
    kept: Paged<Dispatch>,
    /// The lower half of the hash of each item and where it stands in `kept`, sorted.
    hashes: Vec<u64>,
    /// Those that were given or changed since; `None`: over since.
    own: HashMap<DispatchNo, Option<Dispatch>>,
    /// The dispatch of each item that was given or freed since.
    items: HashMap<Text, Option<DispatchNo>>,
    len: usize,
}

/// What an item is found by, above where it stands.
fn key(item: &[u8]) -> u64 {
    spread(item) << 32
}

impl Live {
    fn place(&self, number: DispatchNo) -> Option<usize> {
        self.numbers.binary_search(&number.0).ok()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The dispatch of that number, if it is live.
    #[must_use]
    pub fn get(&self, number: &DispatchNo) -> Option<&Dispatch> {
        match self.own.get(number) {
            Some(own) => own.as_ref(),
            None => self.kept.get(self.place(*number)?),
        }
    }

    /// Whether that dispatch is live.
    #[must_use]
    pub fn contains_key(&self, number: &DispatchNo) -> bool {
        match self.own.get(number) {
            Some(own) => own.is_some(),
            None => self.place(*number).is_some(),
        }
    }

    /// The dispatch of that number, to be changed.
    pub fn get_mut(&mut self, number: &DispatchNo) -> Option<&mut Dispatch> {
        if !self.own.contains_key(number) {
            let kept = self.kept.get(self.place(*number)?)?.clone();
            self.own.insert(*number, Some(kept));
        }
        self.own.get_mut(number)?.as_mut()
    }

    /// Adds one that was just given, or another under the same number.
    pub fn insert(&mut self, number: DispatchNo, dispatch: Dispatch) {
        let live = match self.own.insert(number, Some(dispatch)) {
            Some(before) => before.is_some(),
            None => self.place(number).is_some(),
        };
        self.len += usize::from(!live);
    }

    /// Takes out one that is over.
    pub fn remove(&mut self, number: &DispatchNo) -> Option<Dispatch> {
        let gone = if self.place(*number).is_some() {
            let there = self.get(number)?.clone();
            self.own.insert(*number, None);
            there
        } else {
            self.own.remove(number)??
        };
        self.len -= 1;
        Some(gone)
    }

    /// Each with its number, in the order of numbers.
    pub fn iter(&self) -> Iter<'_> {
        let mut own: Vec<_> = self.own.iter().collect();
        own.sort_unstable_by_key(|(number, _)| **number);
        Iter {
            live: self,
            place: 0,
            own: own.into_iter().peekable(),
        }
    }

    /// Their numbers, in order.
    pub fn keys(&self) -> impl Iterator<Item = DispatchNo> {
        self.iter().map(|(number, _)| number)
    }

    /// The live dispatch of an item.
    pub(super) fn of_item(&self, item: &[u8]) -> Option<DispatchNo> {
        match self.items.get(item) {
            Some(since) => *since,
            None => self.kept_of_item(item),
        }
    }

    fn kept_of_item(&self, item: &[u8]) -> Option<DispatchNo> {
        if self.hashes.is_empty() {
            return None;
        }
        let key = key(item);
        let first = self.hashes.partition_point(|known| *known < key);
        let alike = self.hashes[first..].iter();
        let alike = alike.take_while(|known| **known >> 32 == key >> 32);
        let places = alike.map(|known| (*known & 0xffff_ffff) as usize);
        let is = |place: &usize| {
            let kept = self.kept.get(*place);
            kept.is_some_and(|d| d.item.as_bytes() == item)
        };
        // Of two under one item, the newest counts.
        let newest = places.filter(is).max()?;
        self.numbers.get(newest).copied().map(DispatchNo)
    }

    pub(super) fn index_item(&mut self, item: Text, number: DispatchNo) {
        self.items.insert(item, Some(number));
    }

    pub(super) fn free_item(&mut self, item: &Text) {
        if self.kept_of_item(item.as_bytes()).is_some() {
            self.items.insert(item.clone(), None);
        } else {
            self.items.remove(item);
        }
    }

    /// Writes them down, and what they are found by.
    ///
    /// # Errors
    /// As [`Paged::lay_out`].
    pub(super) fn lay_out(&self, layout: &mut Layout) -> Result<(), EncodeError> {
        let mut numbers = Vec::with_capacity(self.len);
        let mut hashes = Vec::with_capacity(self.len);
        // What happened since is brought into order once.
        let all: Vec<_> = self.iter().collect();
        for (place, (number, dispatch)) in all.iter().enumerate() {
            numbers.push(number.0);
            hashes.push(key(dispatch.item.as_bytes()) | place as u64);
        }
        hashes.sort_unstable();
        for words in [&numbers, &hashes] {
            let mut bytes = Vec::with_capacity(words.len() * 8);
            pack_words(words, &mut bytes);
            layout.note(bytes)?;
        }
        if self.own.is_empty() {
            return self.kept.lay_out(layout);
        }
        layout.list(self.len, all.into_iter().map(|(_, dispatch)| dispatch))
    }

    /// Reads what [`Live::lay_out`] wrote.
    ///
    /// # Errors
    /// For any other bytes.
    pub(super) fn find_again<D: Decoder<Context = ()>>(
        decoder: &mut D,
        found: &mut Directory,
    ) -> Result<Self, DecodeError> {
        let mut words = || -> Result<Vec<u64>, DecodeError> {
            let bytes: Vec<u8> = Decode::decode(decoder)?;
            let words = bytes.as_chunks::<8>().0.iter();
            Ok(words.map(|word| u64::from_le_bytes(*word)).collect())
        };
        let (numbers, hashes) = (words()?, words()?);
        let kept = Paged::find_again(decoder, found)?;
        if numbers.len() != kept.len() || hashes.len() != kept.len() {
            return Err(DecodeError::Other("a live dispatch too many"));
        }
        Ok(Self {
            len: kept.len(),
            numbers,
            kept,
            hashes,
            ..Self::default()
        })
    }
}

/// Live dispatches in the order of their numbers.
pub struct Iter<'a> {
    live: &'a Live,
    place: usize,
    own: core::iter::Peekable<vec::IntoIter<(&'a DispatchNo, &'a Option<Dispatch>)>>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (DispatchNo, &'a Dispatch);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let kept = self.live.numbers.get(self.place).copied();
            let own = self.own.peek().map(|(number, _)| number.0);
            match (kept, own) {
                (Some(kept), own) if own.is_none_or(|own| kept < own) => {
                    let place = self.place;
                    self.place += 1;
                    return Some((DispatchNo(kept), self.live.kept.get(place)?));
                }
                (kept, Some(own)) => {
                    // What happened since stands for what was kept.
                    self.place += usize::from(kept == Some(own));
                    let (number, dispatch) = self.own.next()?;
                    if let Some(dispatch) = dispatch {
                        return Some((*number, dispatch));
                    }
                }
                (_, None) => return None,
            }
        }
    }
}

impl<'a> IntoIterator for &'a Live {
    type Item = (DispatchNo, &'a Dispatch);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl PartialEq for Live {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// As a map of numbers to dispatches.
impl Encode for Live {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.len as u64).encode(encoder)?;
        self.iter().try_for_each(|entry| entry.encode(encoder))
    }
}

impl<C> Decode<C> for Live {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let own: HashMap<DispatchNo, Option<Dispatch>> =
            BTreeMap::<DispatchNo, Dispatch>::decode(decoder)?
                .into_iter()
                .map(|(number, dispatch)| (number, Some(dispatch)))
                .collect();
        let items = own.iter().filter_map(|(number, dispatch)| {
            let item = dispatch.as_ref()?.item.clone();
            Some((item, Some(*number)))
        });
        Ok(Self {
            items: items.collect(),
            len: own.len(),
            own,
            ..Self::default()
        })
    }
}
