//! Pages as the items in them: in order, by number, and written down as a list.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use super::{Item, Paged};

/// Items in order.
pub struct Iter<'a, T> {
    paged: &'a Paged<T>,
    page: core::slice::Iter<'a, T>,
    /// The page behind that one.
    next: usize,
}

impl<'a, T> Iter<'a, T> {
    pub(super) fn of(paged: &'a Paged<T>) -> Self {
        Self {
            paged,
            page: [].iter(),
            next: 0,
        }
    }
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.page.next() {
                return Some(item);
            }
            self.page = self.paged.page(self.next)?.iter();
            self.next += 1;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let behind = self.paged.len.saturating_sub(self.next * T::ROWS);
        let left = self.page.len() + behind;
        (left, Some(left))
    }
}

impl<T: Item> ExactSizeIterator for Iter<'_, T> {}

impl<'a, T: Item> IntoIterator for &'a Paged<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T: Item> FromIterator<T> for Paged<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut paged = Self::default();
        items.into_iter().for_each(|item| paged.push(item));
        paged
    }
}

/// # Panics
/// For a number that no item has.
impl<T: Item> Index<usize> for Paged<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        self.get(number).expect("a number that was given")
    }
}

/// # Panics
/// For a number that no item has.
impl<T: Item> IndexMut<usize> for Paged<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.get_mut(number).expect("a number that was given")
    }
}

impl<T: Item + PartialEq> PartialEq for Paged<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T: Item + fmt::Debug> fmt::Debug for Paged<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// As a list of the items: what a digest of a state is made of.
impl<T: Item> Encode for Paged<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.len as u64).encode(encoder)?;
        self.iter().try_for_each(|item| item.encode(encoder))
    }
}

impl<T: Item> Decode<()> for Paged<T> {
    fn decode<D: Decoder<Context = ()>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Ok(Vec::<T>::decode(decoder)?.into_iter().collect())
    }
}
