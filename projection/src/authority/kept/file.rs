//! The file of what lasts, and of when the log was written: a directory, and pages that are read when they are asked for.
//!
//! ```text
//! magic:8 version:4 crc:4 store:16 position:8 chain:16 head_bytes:8 head pages     crc: of all that follows, up to the pages
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::id::{Moment, Position, Time};
use tenure_core::state::Paged;
use tenure_core::state::paged::{self, Layout, Note, Span};
use tenure_log::position::{self, Chain, Head, StoreId};
use tenure_log::storage::SealedBytes;

use crate::authority::Authority;
use crate::authority::lasts::{LISTS, Lasts};
use crate::error::Error;
use crate::source::Source;
use crate::store::files::Files;

/// The name of the file that holds what lasts.
const BLOB: &str = "held";
/// Its first bytes, and those of the files of rows.
pub(super) const MAGIC: &[u8; 8] = b"tnrhld03";
/// Version of the form of that file.
const VERSION: u32 = 4;
/// Magic, version, check of what follows, store, position, chain, and the bytes of the head.
const HEADER_BYTES: usize = 8 + 4 + 4 + 16 + 8 + 16 + 8;
/// Positions whose times are kept as one.
const SPAN: u64 = 4096;

/// The times of some frames that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    pub first: Time,
    pub last: Time,
    pub least: Time,
    pub most: Time,
    pub newest: Position,
}

impl Times {
    fn note(self) -> Note {
        let time = |time: Time| time.0.cast_unsigned();
        let (first, last) = (time(self.first), time(self.last));
        let (least, most) = (time(self.least), time(self.most));
        Note {
            words: [first, last, least, most, self.newest.0, 0, 0, 0],
            ..Note::default()
        }
    }

    pub fn read(note: &Note) -> Self {
        let [first, last, least, most, newest, ..] = note.words;
        let time = |word: u64| Time(word.cast_signed());
        Self {
            first: time(first),
            last: time(last),
            least: time(least),
            most: time(most),
            newest: Position(newest),
        }
    }
}

/// The pages of one file of what lasts.
pub(in crate::authority) struct Pages {
    file: Arc<dyn SealedBytes>,
    /// Where they begin.
    begin: usize,
    /// Set when one was not what was written: then nothing counts that was read from this file.
    failed: AtomicBool,
}

impl Pages {
    /// Whether every page that was asked for was what was written.
    pub fn is_sound(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }
}

impl paged::Shelf for Pages {
    fn page(&self, at: Span) -> Option<&[u8]> {
        let begin = usize::try_from(at.begin).ok();
        let begin = begin.and_then(|begin| self.begin.checked_add(begin));
        let page = begin.and_then(|begin| self.file.bytes().get(begin..)?.get(..at.bytes as usize));
        let page = page.filter(|page| crc32fast::hash(page) == at.check);
        self.failed.fetch_or(page.is_none(), Ordering::Relaxed);
        page
    }
}

/// What lasted at a head, and when the frames up to it were written.
#[derive(Default)]
pub(super) struct Kept {
    pub head: Head,
    pub authority: Authority,
    pub times: Paged<Note>,
    /// Where the rest of it is.
    pub pages: Option<Arc<Pages>>,
}

impl Kept {
    pub fn load(source: &dyn Source) -> Result<Option<Self>, Error> {
        // A file that cannot be read is as good as none.
        let Ok(Some(file)) = source.blobs().map(BLOB) else {
            return Ok(None);
        };
        Ok(Self::parse(source.identity()?.store, file))
    }

    fn parse(store: StoreId, file: Arc<dyn SealedBytes>) -> Option<Self> {
        let bytes = file.bytes();
        let word = |at: usize| {
            bytes
                .get(at..)?
                .first_chunk()
                .map(|b| u64::from_le_bytes(*b))
        };
        let half = |at: usize| {
            bytes
                .get(at..)?
                .first_chunk()
                .map(|b| u32::from_le_bytes(*b))
        };
        let begin = usize::try_from(word(56)?).ok()?.checked_add(HEADER_BYTES)?;
        let fits = bytes[..8] == *MAGIC
            && half(8) == Some(VERSION)
            && half(12) == Some(crc32fast::hash(bytes.get(16..begin)?))
            && bytes[16..32] == store.0;
        if !fits {
            return None;
        }
        let pages = Arc::new(Pages {
            file: Arc::clone(&file),
            begin,
            failed: AtomicBool::new(false),
        });
        let head = Head {
            position: position::Position(word(32)?),
            chain: Chain(*bytes[40..].first_chunk()?),
        };
        let found = paged::find_again(&bytes[HEADER_BYTES..begin], Arc::clone(&pages) as _);
        let ([sessions, trees, roles, bindings, times], of_pages) = found.ok()?;
        let whole = of_pages == (bytes.len() - begin) as u64;
        let lasts: [Paged<Note>; LISTS] = [sessions, trees, roles, bindings];
        whole.then(|| Self {
            head,
            authority: Authority::resumed(Lasts::of(lasts)),
            times,
            pages: Some(pages),
        })
    }

    pub fn is_sound(&self) -> bool {
        self.pages.as_ref().is_none_or(|pages| pages.is_sound())
    }

    /// What is written of what lasts, and of the times. `None` where a page cannot be had any more.
    pub fn lay_out(&self, lasts: &Lasts) -> Option<Layout> {
        let [sessions, trees, roles, bindings] = lasts.lists();
        let lists = [&sessions, &trees, &roles, &bindings, &self.times];
        let layout = paged::lay_out(&lists).ok()?;
        self.is_sound().then_some(layout)
    }

    /// Has it written down, as it was laid out.
    pub fn save(head: Head, layout: &Layout, store: StoreId, into: &mut Files) {
        let mut behind = store.0.to_vec();
        behind.extend_from_slice(&head.position.0.to_le_bytes());
        behind.extend_from_slice(&head.chain.0);
        behind.extend_from_slice(&(layout.head.len() as u64).to_le_bytes());
        behind.extend_from_slice(&layout.head);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&behind).to_le_bytes());
        bytes.extend(behind);
        bytes.extend_from_slice(&layout.pages);
        into.write(BLOB, bytes);
    }

    pub fn note(&mut self, at: Moment) {
        let last = self.times.len().checked_sub(1);
        let last = last.and_then(|last| self.times.get_mut(last));
        match last.filter(|_| at.position.0 % SPAN != 1) {
            Some(last) => {
                let times = Times::read(last);
                *last = Times {
                    first: times.first,
                    last: at.time,
                    least: times.least.min(at.time),
                    most: times.most.max(at.time),
                    newest: at.position,
                }
                .note();
            }
            None => self.times.push(
                Times {
                    first: at.time,
                    last: at.time,
                    least: at.time,
                    most: at.time,
                    newest: at.position,
                }
                .note(),
            ),
        }
    }
}
