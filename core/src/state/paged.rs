//! Items under dense numbers in pages, each of which may still be the bytes that a snapshot holds of it.
//!
//! What a command asks of one session must not cost the decoding of all of them. So a state that was opened from
//! a snapshot has only a directory of pages in memory: where each stands, and its checksum. A page is checked and
//! decoded when an item of it is first asked for, and from then on, or once it was written to, it is as if it had
//! always been in memory. Equality, encodings and `Debug` are those of the items, wherever they are.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bincode::de::Decoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use once_cell::race::OnceBox;

use crate::codec;

use super::table::{Packed, Sink};

mod items;
mod note;
#[cfg(test)]
pub(super) mod tests;

pub use items::Iter;
pub use note::{Note, find_again, lay_out};

/// What can stand in pages.
pub trait Item: Clone + Encode + Decode<()> {
    /// Items of a page; a power of two.
    const ROWS: usize;
    /// Pages that are put away together once as many again stand behind them: of items that are hardly ever asked for
    /// later. Zero: none is.
    const AWAY_PAGES: usize = 0;
    /// Reads the items of a page faster than [`codec::decode`] does, where there is a way; `None` where that has to be
    /// asked.
    #[must_use]
    fn read_page(_bytes: &[u8]) -> Option<Vec<Self>> {
        None
    }
    /// What stands where a page cannot be had: whoever keeps pages outside of memory makes sure that no answer
    /// is then given.
    fn blank() -> Self;
}

/// Where the pages of a snapshot are.
pub trait Shelf: Send + Sync {
    /// The bytes of a page, if they are those that were written.
    fn page(&self, at: Span) -> Option<&[u8]>;
}

/// Where a page stands among all pages of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Bytes before it.
    pub begin: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Their CRC-32.
    pub check: u32,
}

impl Span {
    /// Of a page that begins there.
    fn of(begin: usize, page: &[u8]) -> Self {
        Self {
            begin: begin as u64,
            bytes: page.len() as u32,
            check: crc32fast::hash(page),
        }
    }
}

/// A page whose items were not asked for when it was made.
#[derive(Clone)]
struct Kept<T> {
    at: Span,
    /// What was noted of its items when they were written down.
    quiet: bool,
    items: OnceBox<Arc<Vec<T>>>,
    /// Where it is, if it is not where the others are.
    away: Option<Arc<dyn Shelf>>,
}

/// Items of several states, and their bytes once one of these was written down.
struct Lent<T> {
    items: Vec<T>,
    written: OnceBox<Written>,
}

/// A page as it is written down.
struct Written {
    bytes: Vec<u8>,
    check: u32,
    quiet: bool,
}

#[derive(Clone)]
enum Page<T> {
    Own(Vec<T>),
    /// Until one of the states writes to it.
    Shared(Arc<Lent<T>>),
    Kept(Kept<T>),
}

/// Items by number, from 0.
#[derive(Clone)]
pub struct Paged<T> {
    pages: Vec<Page<T>>,
    len: usize,
    /// Where pages are that are not in memory.
    shelf: Option<Arc<dyn Shelf>>,
    /// Where pages go that were put away.
    sink: Option<Arc<dyn Sink>>,
    /// Pages before this one are not put away any more.
    settled: usize,
}

/// Pages that were put away together.
struct Away(Arc<dyn Packed>);

impl Shelf for Away {
    fn page(&self, at: Span) -> Option<&[u8]> {
        let begin = usize::try_from(at.begin).ok()?;
        self.0.bytes()?.get(begin..begin + at.bytes as usize)
    }
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
            shelf: None,
            sink: None,
            settled: 0,
        }
    }
}

impl<T: Item> Paged<T> {
    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Items of a page that is not the last, or of the last.
    fn items_of(&self, page: usize) -> usize {
        T::ROWS.min(self.len - page * T::ROWS)
    }

    fn page(&self, number: usize) -> Option<&[T]> {
        Some(match self.pages.get(number)? {
            Page::Own(items) => items,
            Page::Shared(lent) => &lent.items,
            Page::Kept(kept) => kept
                .items
                .get_or_init(|| Box::new(Arc::new(self.fetch(kept, self.items_of(number))))),
        })
    }

    /// The bytes of a page that is not in memory.
    fn bytes<'s>(&'s self, kept: &'s Kept<T>) -> Option<&'s [u8]> {
        let shelf = kept.away.as_ref().or(self.shelf.as_ref());
        shelf.and_then(|shelf| shelf.page(kept.at))
    }

    /// The items of a page that is not in memory.
    #[cold]
    fn fetch(&self, kept: &Kept<T>, items: usize) -> Vec<T> {
        let decoded = self
            .bytes(kept)
            .and_then(|bytes| T::read_page(bytes).or_else(|| codec::decode::<Vec<T>>(bytes).ok()));
        decoded
            .filter(|decoded| decoded.len() == items)
            .unwrap_or_else(|| alloc::vec![T::blank(); items])
    }

    /// The item under that number.
    #[must_use]
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.page(number / T::ROWS)?.get(number % T::ROWS)
    }

    /// The item under that number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        let page = number / T::ROWS;
        if !matches!(self.pages.get(page)?, Page::Own(_)) {
            self.own(page);
        }
        match &mut self.pages[page] {
            Page::Own(items) => items.get_mut(number % T::ROWS),
            Page::Shared(_) | Page::Kept(_) => None,
        }
    }

    /// Makes a page one that is written to.
    #[cold]
    fn own(&mut self, page: usize) {
        let items = self.items_of(page);
        let items = match core::mem::replace(&mut self.pages[page], Page::Own(Vec::new())) {
            Page::Own(items) => items,
            Page::Shared(lent) => {
                Arc::try_unwrap(lent).map_or_else(|lent| lent.items.clone(), |lent| lent.items)
            }
            Page::Kept(kept) => match kept.items.get().map(Arc::clone) {
                Some(decoded) => {
                    // So that there is one owner of it.
                    drop(kept);
                    Arc::unwrap_or_clone(decoded)
                }
                None => self.fetch(&kept, items),
            },
        };
        self.pages[page] = Page::Own(items);
    }

    /// Lets a clone share every page, until either writes to it.
    pub fn share(&mut self) {
        for page in &mut self.pages {
            if let Page::Own(items) = page {
                *page = Page::Shared(Arc::new(Lent {
                    items: core::mem::take(items),
                    written: OnceBox::new(),
                }));
            }
        }
    }

    /// Adds an item under the next number.
    pub fn push(&mut self, item: T) {
        let page = self.len / T::ROWS;
        if page == self.pages.len() {
            self.settle();
            self.pages.push(Page::Own(Vec::new()));
        } else if !matches!(self.pages[page], Page::Own(_)) {
            self.own(page);
        }
        if let Page::Own(items) = &mut self.pages[page] {
            items.push(item);
            self.len += 1;
        }
    }

    /// Every item in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter::of(self)
    }

    /// As [`State::put_away_in`](super::State::put_away_in).
    pub(super) fn put_away_in(&mut self, sink: &Arc<dyn Sink>) {
        self.sink = Some(Arc::clone(sink));
    }

    /// Puts away the oldest pages in memory once there are enough.
    fn settle(&mut self) {
        if T::AWAY_PAGES == 0 {
            return;
        }
        let Some(sink) = self.sink.clone() else {
            return;
        };
        let rest = self.pages.get(self.settled..).unwrap_or_default();
        let kept = |page: &&Page<T>| matches!(page, Page::Kept(_));
        self.settled += rest.iter().take_while(kept).count();
        let until = self.settled + T::AWAY_PAGES;
        if self.pages.len() < until + T::AWAY_PAGES {
            return;
        }
        let pages = self.settled..until;
        self.settled = until;
        let (mut bytes, mut spans) = (Vec::new(), Vec::with_capacity(T::AWAY_PAGES));
        for number in pages.clone() {
            let begin = bytes.len();
            let items = self.page(number).unwrap_or_default();
            if codec::append(&mut bytes, &items).is_err() {
                return;
            }
            spans.push(Span::of(begin, &bytes[begin..]));
        }
        let Some(away) = sink.put_away(&bytes) else {
            return;
        };
        let away: Arc<dyn Shelf> = Arc::new(Away(away));
        for (number, at) in pages.zip(spans) {
            self.pages[number] = Page::Kept(Kept {
                at,
                quiet: false,
                items: OnceBox::new(),
                away: Some(Arc::clone(&away)),
            });
        }
    }

    /// Takes whole pages off the front: `items` is a multiple of those of a page, and no more than there are.
    pub(super) fn take_front(&mut self, items: usize, each: impl FnMut(&T)) {
        let pages = items / T::ROWS;
        (0..pages)
            .flat_map(|page| self.page(page).unwrap_or_default())
            .for_each(each);
        self.len -= pages * T::ROWS;
        self.pages.drain(..pages);
    }

    /// Writes the pages down: their bytes behind those of others, and their directory. A page that nobody wrote
    /// to is taken over as it is.
    ///
    /// # Errors
    /// When a page cannot be had, or is too long.
    pub(crate) fn lay_out(&self, layout: &mut Layout) -> Result<(), EncodeError> {
        self.lay_out_noting(layout, |_| false)
    }

    /// The same; pages none of whose items is other than `quiet` need not be looked at by [`Paged::unquiet`].
    /// Whether an item is may only depend on itself, and on what changes no more.
    ///
    /// # Errors
    /// As [`Paged::lay_out`].
    pub(super) fn lay_out_noting(
        &self,
        layout: &mut Layout,
        quiet: impl Fn(&T) -> bool,
    ) -> Result<(), EncodeError> {
        layout.note(self.len as u64)?;
        for page in &self.pages {
            match page {
                Page::Own(items) => {
                    layout.encode(items, items.iter().all(&quiet))?;
                }
                Page::Shared(lent) => match lent.written.get() {
                    Some(page) => layout.take_over(&page.bytes, page.check, page.quiet)?,
                    None => {
                        let (begin, quiet) = (layout.pages.len(), lent.items.iter().all(&quiet));
                        let check = layout.encode(&lent.items, quiet)?;
                        let bytes = layout.pages[begin..].to_vec();
                        let written = Written {
                            bytes,
                            check,
                            quiet,
                        };
                        // Where another state was faster, it wrote the same.
                        let _ = lent.written.set(Box::new(written));
                    }
                },
                Page::Kept(kept) => {
                    let bytes = self.bytes(kept);
                    let bytes = bytes.ok_or(EncodeError::Other("a page that cannot be had"))?;
                    layout.take_over(bytes, kept.at.check, kept.quiet)?;
                }
            }
        }
        Ok(())
    }

    /// Every item with its number, but for those of pages that are known to be quiet.
    pub(super) fn unquiet(&self) -> impl Iterator<Item = (usize, &T)> {
        let pages = self.pages.iter().enumerate();
        let loud = pages.filter(|(_, page)| !matches!(page, Page::Kept(Kept { quiet: true, .. })));
        loud.flat_map(|(number, _)| {
            let items = self.page(number).unwrap_or_default().iter();
            items
                .enumerate()
                .map(move |(n, item)| (number * T::ROWS + n, item))
        })
    }

    /// Reads what [`Paged::lay_out`] wrote of the directory; the pages themselves are read when they are asked for.
    ///
    /// # Errors
    /// For any other bytes.
    pub(crate) fn find_again<D: Decoder<Context = ()>>(
        decoder: &mut D,
        found: &mut Directory,
    ) -> Result<Self, DecodeError> {
        let len = usize::try_from(u64::decode(decoder)?);
        let len = len.map_err(|_| DecodeError::Other("more items than memory has room for"))?;
        let mut pages = Vec::new();
        for _ in 0..len.div_ceil(T::ROWS) {
            let (at, quiet) = found.span(decoder)?;
            pages.push(Page::Kept(Kept {
                at,
                quiet,
                items: OnceBox::new(),
                away: None,
            }));
        }
        Ok(Self {
            pages,
            len,
            shelf: Some(Arc::clone(&found.shelf)),
            ..Self::default()
        })
    }

    /// Looks at every item without keeping in memory what was not there.
    pub(crate) fn visit(&self, mut each: impl FnMut(&T)) {
        for (number, page) in self.pages.iter().enumerate() {
            match page {
                Page::Own(items) => items.iter().for_each(&mut each),
                Page::Shared(lent) => lent.items.iter().for_each(&mut each),
                Page::Kept(kept) => match kept.items.get() {
                    Some(items) => items.iter().for_each(&mut each),
                    None => self
                        .fetch(kept, self.items_of(number))
                        .iter()
                        .for_each(&mut each),
                },
            }
        }
    }
}

/// Pages as they are written down, and the directory of them.
#[derive(Default)]
pub struct Layout {
    /// The directory, and what is not kept in pages.
    pub head: Vec<u8>,
    /// The pages, one behind the other.
    pub pages: Vec<u8>,
    /// Bytes of the pages that were encoded for it; the others were taken over.
    pub anew: u64,
}

impl Layout {
    /// Writes a value where it is read at once.
    ///
    /// # Errors
    /// Whatever the encoder says.
    pub(crate) fn note<V: Encode>(&mut self, value: V) -> Result<(), EncodeError> {
        codec::append(&mut self.head, &value)
    }

    /// Writes so many items down, as [`Paged::lay_out`] writes those of its pages.
    ///
    /// # Errors
    /// When a page is too long.
    pub(super) fn list<'i, T: Item + 'i>(
        &mut self,
        len: usize,
        mut items: impl Iterator<Item = &'i T>,
    ) -> Result<(), EncodeError> {
        self.note(len as u64)?;
        for _ in 0..len.div_ceil(T::ROWS) {
            let page: Vec<&T> = items.by_ref().take(T::ROWS).collect();
            self.encode(page, false)?;
        }
        Ok(())
    }

    /// Adds a page of these items; says its checksum.
    fn encode<I: Encode>(&mut self, items: I, quiet: bool) -> Result<u32, EncodeError> {
        let begin = self.pages.len();
        codec::append(&mut self.pages, &items)?;
        let page = &self.pages[begin..];
        let (bytes, check) = (page.len(), crc32fast::hash(page));
        self.anew += bytes as u64;
        self.list_page(bytes, check, quiet)?;
        Ok(check)
    }

    /// Adds a page as it was written down.
    fn take_over(&mut self, page: &[u8], check: u32, quiet: bool) -> Result<(), EncodeError> {
        self.list_page(page.len(), check, quiet)?;
        self.pages.extend_from_slice(page);
        Ok(())
    }

    fn list_page(&mut self, bytes: usize, check: u32, quiet: bool) -> Result<(), EncodeError> {
        let bytes = u32::try_from(bytes);
        let bytes = bytes.map_err(|_| EncodeError::Other("a page that is too long"))?;
        self.note(u64::from(bytes) << 1 | u64::from(quiet))?;
        self.note(check.to_le_bytes())
    }
}

/// What a directory is read with.
pub(crate) struct Directory {
    shelf: Arc<dyn Shelf>,
    /// Bytes of the pages that were found so far.
    begin: u64,
}

impl Directory {
    /// Of pages that stand on that shelf.
    pub(crate) fn of(shelf: Arc<dyn Shelf>) -> Self {
        Self { shelf, begin: 0 }
    }

    /// Where the next page is, and whether it is quiet.
    fn span<D: Decoder>(&mut self, decoder: &mut D) -> Result<(Span, bool), DecodeError> {
        let word = u64::decode(decoder)?;
        let bytes = u32::try_from(word >> 1);
        let at = Span {
            begin: self.begin,
            bytes: bytes.map_err(|_| DecodeError::Other("a page that is too long"))?,
            check: u32::from_le_bytes(Decode::decode(decoder)?),
        };
        self.begin += u64::from(at.bytes);
        Ok((at, word & 1 == 1))
    }

    /// Bytes of all pages that were found.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.begin
    }
}
