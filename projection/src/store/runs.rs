//! Sorted rows beside the snapshot: what opening never reads, and whoever asks finds in a few pages.
//!
//! Each file holds the rows of the frames behind one position and up to another. Never truth: a file that does not
//! fit the log, or a page that is not what was written, is as good as none, and the frames are read instead.
//!
//! ```text
//! page 0  magic:8 row_bytes:8 store:16 after:8 until:8 chain:16 rows:8 landmark:56 ... check:4
//! page n  row* ... check:4           check = CRC-32 of the number of the page, page 0's check, and the page
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use tenure_log::frame::Depth;
use tenure_log::journal::{Blobs, Landmark};
use tenure_log::position::{Chain, Head, Position, StoreId};
use tenure_log::storage::SealedBytes;

use crate::error::Error;
use crate::source::Source;

use super::files::Files;
use super::snapshot::stands;

mod merge;

pub(crate) use merge::Gathered;

use merge::Merged;

const PAGE_BYTES: usize = 4096;
const CHECK_BYTES: usize = 4;
const ROOM: usize = PAGE_BYTES - CHECK_BYTES;

/// What rows are sorted by: the beginning of each.
pub(crate) type Subject = [u8; 16];

/// The most bytes that a file is merged to. Behind that, files follow each other, and a question looks into each: one
/// for some ten million events.
const RUN_BYTES_MAX: usize = 1 << 29;

/// A kind of rows. They are sorted by all their bytes, of which the first 16 are the subject.
pub(crate) trait Rows: 'static {
    /// How names of files begin.
    const PREFIX: &'static str;
    /// The first bytes of a file.
    const MAGIC: &'static [u8; 8];
    /// Bytes of a row.
    const ROW_BYTES: usize;
}

/// One file.
struct Run {
    name: String,
    after: Position,
    head: Head,
    rows: usize,
    /// Where the frame of its head stands, for whoever looks whether it does; zeros where that was not known.
    mark: Landmark,
    check: [u8; CHECK_BYTES],
    file: Arc<dyn SealedBytes>,
}

/// The files that fit a log, each behind the one before, from the beginning on.
pub(crate) struct Runs<R> {
    runs: Vec<Run>,
    /// The names of all files of this kind that went no further when these were looked for, if they were.
    names: Option<Vec<String>>,
    kind: PhantomData<R>,
}

fn check(number: u64, seed: &[u8], page: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(seed);
    hasher.update(page);
    hasher.finalize().to_le_bytes()
}

/// The bounds in a file's name: what is only chosen by, never believed.
fn bounds<R: Rows>(name: &str) -> Option<(u64, u64)> {
    let (after, until) = name.strip_prefix(R::PREFIX)?.split_once('-')?;
    Some((after.parse().ok()?, until.parse().ok()?))
}

/// What a page holds, if it is what was written.
fn page<'f>(file: &'f [u8], number: u64, seed: &[u8]) -> Option<&'f [u8]> {
    let begin = usize::try_from(number).ok()?.checked_mul(PAGE_BYTES)?;
    let bytes = file.get(begin..)?.first_chunk::<PAGE_BYTES>()?;
    (bytes[ROOM..] == check(number, seed, &bytes[..ROOM])).then_some(&bytes[..ROOM])
}

impl Run {
    /// Reads the first page of a file. `None` when it is none of ours, or of another store.
    fn open<R: Rows>(blobs: &dyn Blobs, name: &str, store: StoreId) -> Option<Self> {
        let file = blobs.map(name).ok()??;
        let first = page(file.bytes(), 0, &[])?;
        let word = |at: usize| first[at..].first_chunk().map(|b| u64::from_le_bytes(*b));
        let (after, until) = (word(32)?, word(40)?);
        let fits = first[..8] == *R::MAGIC
            && word(8) == Some(R::ROW_BYTES as u64)
            && first[16..32] == store.0
            && bounds::<R>(name) == Some((after, until));
        let head = Head {
            position: Position(until),
            chain: Chain(*first[48..].first_chunk()?),
        };
        fits.then_some(Self {
            name: name.to_owned(),
            after: Position(after),
            head,
            rows: usize::try_from(word(64)?).ok()?,
            mark: Landmark::from_bytes(first[72..].first_chunk()?),
            check: *file.bytes()[ROOM..].first_chunk()?,
            file: Arc::clone(&file),
        })
    }

    /// Whether the log has its head.
    fn stands(&self, source: &dyn Source) -> Result<bool, Error> {
        let marked = self.mark.head == self.head;
        if marked && source.read_behind(&self.mark, Depth::Facts)?.is_some() {
            return Ok(true);
        }
        stands(source, self.head)
    }

    fn pages<R: Rows>(&self) -> u64 {
        self.rows.div_ceil(per_page::<R>()) as u64
    }

    /// Whether every page is what was written.
    fn is_whole<R: Rows>(&self) -> bool {
        (1..=self.pages::<R>()).all(|number| page(self.file.bytes(), number, &self.check).is_some())
    }

    /// The rows of page number `number`, from 1. `None` when they cannot be had.
    fn rows<R: Rows>(&self, number: u64) -> Option<Vec<&[u8]>> {
        let page = page(self.file.bytes(), number, &self.check)?;
        let before = usize::try_from(number - 1).ok()? * per_page::<R>();
        let count = self.rows.checked_sub(before)?.min(per_page::<R>());
        Some(page.chunks_exact(R::ROW_BYTES).take(count).collect())
    }

    /// The first page that begins with a subject or with a greater one; one behind the last if there is none.
    /// Subjects are digests, so where one stands can be guessed; every other look halves what is left, whatever they
    /// are. `None` when a page cannot be had.
    fn first_page<R: Rows>(&self, subject: &Subject) -> Option<u64> {
        let word = |row: &[u8]| row.first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
        let (mut low, mut high) = (1, self.pages::<R>() + 1);
        let (mut least, mut most) = (0, u64::MAX);
        let mut guess = true;
        while low < high {
            let left = u128::from(high - low);
            let within = u128::from(word(subject).saturating_sub(least));
            let whole = u128::from(most.saturating_sub(least)) + 1;
            let ahead = (left * within / whole).min(left - 1);
            let middle = low
                + if guess {
                    ahead as u64
                } else {
                    (high - low) / 2
                };
            guess = !guess;
            let first = *self.rows::<R>(middle)?.first()?;
            if first[..16] < subject[..] {
                (low, least) = (middle + 1, word(first));
            } else {
                (high, most) = (middle, word(first));
            }
        }
        Some(low)
    }

    /// Every row of a subject, in order. `None` when they cannot be had.
    fn find<R: Rows>(&self, subject: &Subject) -> Option<Vec<Box<[u8]>>> {
        let first = self.first_page::<R>(subject)?;
        let mut found = Vec::new();
        // The last page that begins below the subject may end with it.
        for number in first.saturating_sub(1).max(1)..=self.pages::<R>() {
            let rows = self.rows::<R>(number)?;
            let beyond = rows.last().is_some_and(|row| row[..16] > subject[..]);
            let ours = rows.into_iter().filter(|row| row.starts_with(subject));
            found.extend(ours.map(Box::from));
            if beyond {
                break;
            }
        }
        Some(found)
    }
}

fn per_page<R: Rows>() -> usize {
    ROOM / R::ROW_BYTES
}

impl<R: Rows> Runs<R> {
    /// No files at all.
    pub fn none() -> Self {
        Self {
            runs: Vec::new(),
            names: None,
            kind: PhantomData,
        }
    }

    /// The files that fit the log, up to `head` at most.
    ///
    /// # Errors
    /// When the log cannot be read; a file that cannot be is as good as none.
    pub fn load(source: &dyn Source, head: Head) -> Result<Self, Error> {
        let (blobs, store) = (source.blobs(), source.identity()?.store);
        // The longest run behind each position first.
        let mut files: BTreeMap<(u64, Reverse<u64>), String> = BTreeMap::new();
        for name in blobs.list().unwrap_or_default() {
            let until = bounds::<R>(&name).filter(|(_, until)| *until <= head.position.0);
            if let Some((after, until)) = until {
                files.insert((after, Reverse(until)), name);
            }
        }
        let (mut found, mut names) = (Self::none(), Vec::new());
        for ((after, _), name) in files {
            if after == found.covered().position.0
                && let Some(run) = Run::open::<R>(blobs, &name, store)
                && run.stands(source)?
            {
                found.runs.push(run);
            }
            names.push(name);
        }
        found.names = Some(names);
        Ok(found)
    }

    /// Up to where they go.
    pub fn covered(&self) -> Head {
        self.runs.last().map_or(Head::default(), |run| run.head)
    }

    /// Every row of a subject, in the order of the log. `None` when a page is not what was written: then what the
    /// files stand for has to be read from the log.
    pub fn find(&self, subject: &Subject) -> Option<Vec<Box<[u8]>>> {
        let mut all = Vec::new();
        for run in &self.runs {
            all.extend(run.find::<R>(subject)?);
        }
        Some(all)
    }

    /// Has gathered rows written down: those of the frames behind [`Runs::covered`], each part up to its head, which has to be
    /// durable. Files that are then not needed are removed. A file is merged into the one before unless that is twice as
    /// long, or both are too long together: so there are few of them, and a row is written a few times in all.
    ///
    /// # Errors
    /// When the files cannot be listed.
    pub fn extend(
        mut self,
        source: &dyn Source,
        gathered: Gathered<R>,
        into: &mut Files,
    ) -> Result<(), Error> {
        let (blobs, store) = (source.blobs(), source.identity()?.store);
        let mut after = self.covered().position;
        let mut saved: Vec<String> = Vec::new();
        for part in gathered.parts() {
            let mut merged = Vec::new();
            if saved.is_empty() {
                let mut rows = part.rows;
                let grows = |run: &mut Run, rows: usize| {
                    run.rows <= 2 * rows && (run.rows + rows) * R::ROW_BYTES <= RUN_BYTES_MAX
                };
                while let Some(last) = self.runs.pop_if(|run| grows(run, rows)) {
                    rows += last.rows;
                    after = last.after;
                    merged.push(last);
                }
            }
            if let Some(broken) = merged.iter().find(|run| !run.is_whole::<R>()) {
                // What it stands for is read from the log by whoever asks.
                into.remove(&broken.name);
                return Ok(());
            }
            let head = part.head;
            let name = format!("{}{after}-{}", R::PREFIX, head.position);
            into.write(name.clone(), Merged::<R>::of(store, after, merged, part));
            saved.push(name);
            after = head.position;
        }
        let names = match self.names {
            Some(names) => names,
            None => blobs.list()?,
        };
        for name in names {
            let over = bounds::<R>(&name).is_some_and(|(_, until)| until <= after.0);
            let kept = saved.contains(&name) || self.runs.iter().any(|run| run.name == name);
            if over && !kept {
                into.remove(name);
            }
        }
        Ok(())
    }
}
