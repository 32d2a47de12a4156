//! What a state was opened without: pages of its snapshot, and sealed stretches, each in a file of its own that never
//! changes. Fetched when something of one is asked for; what cannot be fetched is made again from the log.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tenure_core::apply::apply;
use tenure_core::state::State;
use tenure_core::state::paged::{self, Span};
use tenure_core::state::table::{
    self, Digest, PARTS, Packed, Row, SETTLING_STRETCHES, Sealed, Table, digest,
};
use tenure_log::frame::Depth;
use tenure_log::journal::Blobs;
use tenure_log::position::{Head, Position};
use tenure_log::storage::SealedBytes;

use crate::entry;
use crate::error::Error;
use crate::source::Source;
use crate::store::files::Files;
use crate::store::scratch;

/// Which table a stretch is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Dispatches,
    Envelopes,
    Grants,
}

impl Of {
    const ALL: [Self; 3] = [Self::Dispatches, Self::Envelopes, Self::Grants];

    fn word(self) -> &'static str {
        match self {
            Self::Dispatches => "dispatches",
            Self::Envelopes => "envelopes",
            Self::Grants => "grants",
        }
    }

    /// The name of a stretch's file; two histories of one number never share one.
    fn file(self, number: usize, digest: Digest) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut name = format!("{}-{number}-", self.word());
        for byte in digest {
            let digits = [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
            name.extend(digits.map(char::from));
        }
        name
    }

    /// The table and the number of the stretch in a file's name.
    fn parse(name: &str) -> Option<(Self, usize)> {
        let (word, rest) = name.split_once('-')?;
        let (number, _) = rest.split_once('-')?;
        let of = Self::ALL.into_iter().find(|of| of.word() == word)?;
        Some((of, number.parse().ok()?))
    }
}

/// Where the pages and sealed stretches of one snapshot are.
pub(crate) struct Shelf {
    source: Arc<dyn Source>,
    /// What the snapshot covers.
    head: Head,
    /// The snapshot as it was when it was opened.
    file: Arc<dyn SealedBytes>,
    /// Where its pages begin.
    pages: usize,
    /// The same state made from the log, once something could not be fetched.
    again: OnceLock<Option<Again>>,
    failed: OnceLock<Error>,
}

/// A state made from the log, and its pages.
struct Again {
    state: State,
    pages: Vec<u8>,
}

impl paged::Shelf for Shelf {
    fn page(&self, at: Span) -> Option<&[u8]> {
        let of = |pages: &'_ [u8]| -> Option<Range<usize>> {
            let begin = usize::try_from(at.begin).ok()?;
            let range = begin..begin.checked_add(at.bytes as usize)?;
            let page = pages.get(range.clone())?;
            (crc32fast::hash(page) == at.check).then_some(range)
        };
        let kept = &self.file.bytes()[self.pages..];
        if let Some(range) = of(kept) {
            return Some(&kept[range]);
        }
        let again = self.again()?;
        let range = of(&again.pages).or_else(|| self.differs())?;
        Some(&again.pages[range])
    }
}

impl Shelf {
    /// For the snapshot in `file`, whose pages begin there.
    pub fn new(
        source: &Arc<dyn Source>,
        head: Head,
        file: Arc<dyn SealedBytes>,
        pages: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            source: Arc::clone(source),
            head,
            file,
            pages,
            again: OnceLock::new(),
            failed: OnceLock::new(),
        })
    }

    /// Puts the sealed stretches of the state of that snapshot where their files are.
    pub fn keep(self: &Arc<Self>, state: &mut State) {
        let place = |of| {
            let shelf = Arc::clone(self);
            Arc::new(Placed { shelf, of })
        };
        state.dispatches.keep_elsewhere(place(Of::Dispatches));
        state.envelopes.keep_elsewhere(place(Of::Envelopes));
        state.grants.keep_elsewhere(place(Of::Grants));
    }

    /// Whether every row that was asked for was there.
    ///
    /// # Errors
    /// Why one was not: then nothing that was read since can be trusted.
    pub fn sound(&self) -> Result<(), Error> {
        self.failed.get().cloned().map_or(Ok(()), Err)
    }

    /// Whether everything that was asked for was as it was written down.
    pub fn is_whole(&self) -> bool {
        self.again.get().is_none() && self.failed.get().is_none()
    }

    /// The rows of a stretch as the log gives them.
    fn made(&self, of: Of, number: usize, wanted: Digest) -> Option<&[u8]> {
        let state = &self.again()?.state;
        let packed = match of {
            Of::Dispatches => state.dispatches.packed(number),
            Of::Envelopes => state.envelopes.packed(number),
            Of::Grants => state.grants.packed(number),
        };
        let found = packed.filter(|bytes| digest(bytes) == wanted);
        found.or_else(|| self.differs())
    }

    fn again(&self) -> Option<&Again> {
        self.again.get_or_init(|| self.made_again()).as_ref()
    }

    /// The snapshot is of another history than the log.
    fn differs<T>(&self) -> Option<T> {
        self.give_up(Error::Described(format!(
            "the snapshot at position {} does not follow from the log",
            self.head.position
        )));
        None
    }

    fn give_up(&self, error: Error) {
        // The first failure is the one to tell of.
        let _ = self.failed.set(error);
    }

    fn made_again(&self) -> Option<Again> {
        let replay = || -> Result<Again, Error> {
            let mut state = State::new();
            scratch::put_away(&mut state, &self.source);
            let mut frames = self.source.read_from(Position::ZERO, Depth::Whole)?;
            while state.at.position.0 < self.head.position.0
                && let Some(frame) = frames.next()
            {
                apply(&mut state, &entry::decode(&frame?)?);
            }
            let layout = state.lay_out().map_err(|_| Error::TooLarge)?;
            Ok(Again {
                pages: layout.pages,
                state,
            })
        };
        replay().map_err(|error| self.give_up(error)).ok()
    }
}

/// The stretches of one table.
struct Placed {
    shelf: Arc<Shelf>,
    of: Of,
}

impl table::Stretches for Placed {
    fn stretch(&self, number: usize, digest: Digest) -> Arc<dyn Packed> {
        Arc::new(Shelved {
            shelf: Arc::clone(&self.shelf),
            of: self.of,
            number,
            digest,
            file: OnceLock::new(),
            checked: AtomicU64::new(0),
        })
    }
}

/// A stretch in a file that is mapped when it is first read.
struct Shelved {
    shelf: Arc<Shelf>,
    of: Of,
    number: usize,
    digest: Digest,
    /// `None`: there is none.
    file: OnceLock<Option<Arc<dyn SealedBytes>>>,
    /// A bit for each part that was found to be what was written. A file is replaced and never written to.
    checked: AtomicU64,
}

const _: () = assert!(PARTS <= u64::BITS as usize);

impl Shelved {
    fn file(&self) -> Option<&[u8]> {
        let open = || {
            let name = self.of.file(self.number, self.digest);
            // What cannot be read is as good as gone.
            self.shelf.source.blobs().map(&name).ok().flatten()
        };
        let file = self.file.get_or_init(open).as_ref();
        file.map(|file| file.bytes())
    }

    fn made(&self) -> Option<&[u8]> {
        self.shelf.made(self.of, self.number, self.digest)
    }
}

impl Packed for Shelved {
    fn bytes(&self) -> Option<&[u8]> {
        let file = self.file().filter(|bytes| digest(bytes) == self.digest);
        file.or_else(|| self.made())
    }

    fn part(&self, number: usize, bytes: usize, check: u32) -> Option<&[u8]> {
        let part = number * bytes..(number + 1) * bytes;
        let bit = 1 << number;
        let kept = self.file().and_then(|file| file.get(part.clone()));
        let fits = |kept: &&[u8]| {
            let known = self.checked.load(Ordering::Relaxed) & bit != 0;
            known || crc32fast::hash(kept) == check
        };
        if let Some(kept) = kept.filter(fits) {
            self.checked.fetch_or(bit, Ordering::Relaxed);
            return Some(kept);
        }
        self.made()?.get(part)
    }
}

/// The sealed stretches of a state and the names of their files, by table.
pub(super) struct Stretches([Vec<(String, Sealed)>; Of::ALL.len()]);

/// Stretches behind one that was sealed a second time, until nobody asks any more for what it was before: whoever has not
/// read as far may.
const FORMER_STRETCHES: usize = 16;

impl Stretches {
    /// Of a state; shared, not copied.
    pub fn of(state: &State) -> Self {
        fn named<R: Row>(of: Of, table: &Table<R>) -> Vec<(String, Sealed)> {
            let stretches = table.stretches().enumerate();
            let named = stretches.map(|(n, sealed)| (of.file(n, sealed.digest), sealed));
            named.collect()
        }
        Self(Of::ALL.map(|of| match of {
            Of::Dispatches => named(of, &state.dispatches),
            Of::Envelopes => named(of, &state.envelopes),
            Of::Grants => named(of, &state.grants),
        }))
    }

    /// Writes those that have no file yet; `there` are the names of all files, in order.
    pub fn save(&self, blobs: &dyn Blobs, there: &[String]) -> Result<(), Error> {
        for (name, sealed) in self.0.iter().flatten() {
            if there.binary_search(name).is_err() {
                let rows = sealed.rows.as_ref().and_then(|rows| rows.bytes());
                blobs.write_atomic(name, rows.ok_or(Error::TooLarge)?)?;
            }
        }
        Ok(())
    }

    /// Has those files removed of other histories under the same numbers: before a salvage, a restore, or a change of
    /// the rules. A file of a greater number may belong to a newer snapshot, and stays.
    pub fn tidy(&self, there: &[String], into: &mut Files) {
        for name in there {
            let Some((of, number)) = Of::parse(name) else {
                continue;
            };
            let stretches = &self.0[of as usize];
            let lately = number + SETTLING_STRETCHES < stretches.len()
                && number + FORMER_STRETCHES > stretches.len();
            let other = |(current, _): &(String, Sealed)| current != name && !lately;
            if stretches.get(number).is_some_and(other) {
                into.remove(name);
            }
        }
    }
}
