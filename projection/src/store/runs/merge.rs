//! Rows on their way into a file: gathered, sorted piece by piece, and merged with those of older files while they are
//! written, so that however many there are, few are in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use tenure_log::journal::{Blobs, Landmark};
use tenure_log::position::{Head, Position, StoreId};
use tenure_log::storage::{Pieces, SealedBytes};

use super::{PAGE_BYTES, ROOM, RUN_BYTES_MAX, Rows, Run, Subject, check, per_page};

/// Bytes of rows that are sorted together, and then put away.
const CHUNK_BYTES: usize = 1 << 23;

/// Rows in order.
enum Chunk {
    Here(Vec<u8>),
    Away(Arc<dyn SealedBytes>),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Here(bytes) => bytes,
            Self::Away(bytes) => bytes.bytes(),
        }
    }
}

/// The rows of the frames up to a head, behind those of the part before.
pub(crate) struct Part {
    pub head: Head,
    /// Where the frame of the head stands, if that is known.
    mark: Option<Landmark>,
    pub rows: usize,
    chunks: Vec<Chunk>,
}

/// Rows that stand in no file yet.
pub(crate) struct Gathered<R> {
    /// Those of the part that is not at its end, not sorted yet.
    open: Vec<u8>,
    chunks: Vec<Chunk>,
    rows: usize,
    parts: Vec<Part>,
    kind: PhantomData<R>,
}

impl<R> Default for Gathered<R> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            chunks: Vec::new(),
            rows: 0,
            parts: Vec::new(),
            kind: PhantomData,
        }
    }
}

impl<R: Rows> Gathered<R> {
    /// Takes in a row.
    pub fn push(&mut self, row: &[u8], blobs: &dyn Blobs) {
        if self.open.len() + row.len() > CHUNK_BYTES {
            self.cut(blobs);
        }
        self.open.extend_from_slice(row);
        self.rows += 1;
    }

    /// Sorts what is not sorted yet.
    fn sorted(&mut self) -> Vec<u8> {
        let mut rows: Vec<&[u8]> = self.open.chunks_exact(R::ROW_BYTES).collect();
        rows.sort_unstable();
        let sorted = rows.concat();
        self.open.clear();
        sorted
    }

    fn cut(&mut self, blobs: &dyn Blobs) {
        let sorted = self.sorted();
        let away = blobs.put_away(&sorted).map(Chunk::Away);
        self.chunks.push(away.unwrap_or(Chunk::Here(sorted)));
    }

    /// Every row of a subject.
    pub fn find(&self, subject: &Subject) -> impl Iterator<Item = Box<[u8]>> {
        let chunks = self.parts.iter().flat_map(|part| &part.chunks);
        let sorted = chunks.chain(&self.chunks).flat_map(|chunk| {
            let bytes = chunk.bytes();
            let row = |n: usize| &bytes[n * R::ROW_BYTES..(n + 1) * R::ROW_BYTES];
            let count = bytes.len() / R::ROW_BYTES;
            let (mut low, mut high) = (0, count);
            while low < high {
                let middle = low.midpoint(high);
                if row(middle)[..16] < subject[..] {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            (low..count)
                .map(row)
                .take_while(|row| row.starts_with(subject))
        });
        let open = self.open.chunks_exact(R::ROW_BYTES);
        let open = open.filter(|row| row.starts_with(subject));
        sorted.chain(open).map(Box::from)
    }

    /// Whether a file has as many rows as one may have.
    pub fn is_full(&self) -> bool {
        self.rows * R::ROW_BYTES >= RUN_BYTES_MAX / 2
    }

    /// Every row of the frames up to `head`, which may be known to stand at `mark`, was taken in.
    pub fn end_at(&mut self, head: Head, mark: Option<Landmark>) {
        if self.rows == 0 && self.parts.last().is_some_and(|part| part.head == head) {
            return;
        }
        let last = Chunk::Here(self.sorted());
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        self.parts.push(Part {
            head,
            mark,
            rows: std::mem::take(&mut self.rows),
            chunks: chunks.chain([last]).collect(),
        });
    }

    pub(super) fn parts(self) -> Vec<Part> {
        self.parts
    }
}

/// A file of the rows of older ones and of new ones, as it is written.
pub(super) struct Merged<R> {
    first: Vec<u8>,
    runs: Vec<Run>,
    chunks: Vec<Chunk>,
    kind: PhantomData<R>,
}

/// Rows of one file or chunk, from one on; `None` in place of a page that is not what was written.
type Row<'r> = Option<&'r [u8]>;

impl<R: Rows> Merged<R> {
    /// The file behind `after`.
    pub fn of(store: StoreId, after: Position, runs: Vec<Run>, part: Part) -> Self {
        let older: usize = runs.iter().map(|run| run.rows).sum();
        let rows = (older + part.rows) as u64;
        let mark = part
            .mark
            .map_or([0; Landmark::BYTES], |mark| mark.to_bytes());
        let mut first = Vec::with_capacity(PAGE_BYTES);
        first.extend_from_slice(R::MAGIC);
        first.extend_from_slice(&(R::ROW_BYTES as u64).to_le_bytes());
        first.extend_from_slice(&store.0);
        first.extend_from_slice(&after.0.to_le_bytes());
        first.extend_from_slice(&part.head.position.0.to_le_bytes());
        first.extend_from_slice(&part.head.chain.0);
        first.extend_from_slice(&rows.to_le_bytes());
        first.extend_from_slice(&mark);
        first.resize(ROOM, 0);
        Self {
            first,
            runs,
            chunks: part.chunks,
            kind: PhantomData,
        }
    }

    /// The rows of each file and chunk, in order.
    fn sources(&self) -> impl Iterator<Item = Box<dyn Iterator<Item = Row<'_>> + '_>> {
        let runs = self.runs.iter().map(|run| {
            let pages = (1..=run.pages::<R>()).map(|number| run.rows::<R>(number));
            let rows = pages.flat_map(|page| {
                let broken = page.is_none().then_some(None);
                let rows = page.into_iter().flatten().map(Some);
                rows.chain(broken)
            });
            Box::new(rows) as Box<dyn Iterator<Item = _>>
        });
        let chunks = self.chunks.iter().map(|chunk| {
            let rows = chunk.bytes().chunks_exact(R::ROW_BYTES).map(Some);
            Box::new(rows) as Box<dyn Iterator<Item = _>>
        });
        runs.chain(chunks)
    }
}

impl<R: Rows> Pieces for Merged<R> {
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let seed = check(0, &[], &self.first);
        let mut page = [&self.first[..], &seed].concat();
        take(&page)?;
        page.clear();
        let broken = || io::Error::other("a page of a derived file is not what was written");
        let mut sources: Vec<_> = self.sources().collect();
        let mut next: BinaryHeap<Reverse<(&[u8], usize)>> = BinaryHeap::new();
        for (number, source) in sources.iter_mut().enumerate() {
            if let Some(row) = source.next() {
                next.push(Reverse((row.ok_or_else(broken)?, number)));
            }
        }
        let mut number = 1;
        while let Some(Reverse((row, source))) = next.pop() {
            page.extend_from_slice(row);
            if let Some(row) = sources[source].next() {
                next.push(Reverse((row.ok_or_else(broken)?, source)));
            }
            if page.len() == per_page::<R>() * R::ROW_BYTES || next.is_empty() {
                page.resize(ROOM, 0);
                let check = check(number, &seed, &page);
                page.extend_from_slice(&check);
                take(&page)?;
                page.clear();
                number += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_log::journal::segment::{Options, SegmentLog};
    use tenure_log::journal::{Journal, memory::MemoryLog};
    use tenure_log::position::Chain;
    use tenure_log::storage::disk::Disk;

    use super::*;

    struct Plain;

    impl Rows for Plain {
        const PREFIX: &'static str = "plain-";
        const MAGIC: &'static [u8; 8] = b"tnrplain";
        const ROW_BYTES: usize = 24;
    }

    /// Rows whose subjects lie anywhere; some are there several times.
    fn rows(from: u64, count: u64) -> impl Iterator<Item = Vec<u8>> {
        (from..from + count).map(|n| {
            let subject = blake3::hash(&(n % 900).to_le_bytes());
            [&subject.as_bytes()[..16], &n.to_be_bytes()].concat()
        })
    }

    fn head(at: u64) -> Head {
        Head {
            position: Position(at),
            chain: Chain([at as u8; 16]),
        }
    }

    /// Writes a file of older ones and of rows that are sorted in pieces of `together`.
    fn merge(
        blobs: &dyn Blobs,
        runs: Vec<Run>,
        (after, until): (u64, u64),
        together: usize,
    ) -> Run {
        let mut gathered = Gathered::<Plain>::default();
        let fresh = runs.iter().map(|run| run.head.position.0).max();
        let fresh = fresh.unwrap_or(after);
        for (number, row) in rows(fresh, until - fresh).enumerate() {
            gathered.push(&row, blobs);
            if number % together == together - 1 {
                gathered.cut(blobs);
            }
        }
        gathered.end_at(head(until), None);
        let part = gathered.parts().pop().expect("one was ended");
        let merged = Merged::<Plain>::of(StoreId([7; 16]), Position(after), runs, part);
        let name = format!("plain-{after}-{until}");
        let content: Box<dyn Pieces> = Box::new(merged);
        blobs
            .write_together(&[(name.clone(), content)])
            .expect("it is written");
        Run::open::<Plain>(blobs, &name, StoreId([7; 16])).expect("it is ours")
    }

    fn all(run: &Run) -> Vec<Vec<u8>> {
        let pages = (1..=run.pages::<Plain>()).map(|n| run.rows::<Plain>(n).expect("it is whole"));
        pages.flatten().map(<[u8]>::to_vec).collect()
    }

    /// Whatever was sorted together, in memory or put away, and however many files it is merged from: every row, in order.
    #[test]
    fn a_merged_file_holds_every_row_in_order() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options {
            create: true,
            ..Options::default()
        };
        let disk = SegmentLog::open(Arc::new(Disk), &dir.path().join("store"), options);
        let disk = disk.expect("it opens");
        let memory = MemoryLog::new(Default::default());
        for blobs in [disk.snapshots(), memory.snapshots()] {
            let older = vec![
                merge(blobs, Vec::new(), (1000, 3000), 10_000),
                merge(blobs, Vec::new(), (3000, 3001), 1),
                merge(blobs, Vec::new(), (3001, 4100), 64),
            ];
            let merged = merge(blobs, older, (1000, 9000), 700);
            let mut wanted: Vec<Vec<u8>> = rows(1000, 8000).collect();
            wanted.sort();
            assert_eq!(merged.rows, wanted.len());
            assert_eq!((merged.after, merged.head), (Position(1000), head(9000)));
            assert!(merged.is_whole::<Plain>());
            assert_eq!(all(&merged), wanted);
            for subject in wanted.iter().step_by(97) {
                let subject = subject.first_chunk().expect("a row begins with it");
                let found = merged.find::<Plain>(subject).expect("it is whole");
                let all = wanted.iter().filter(|row| row.starts_with(subject));
                assert!(found.iter().map(|row| &**row).eq(all.map(|row| &row[..])));
            }
        }
    }

    /// A file that was changed is not merged: what it stands for is read from the log.
    #[test]
    fn a_file_with_a_broken_page_gives_no_rows_to_another() {
        let memory = MemoryLog::new(Default::default());
        let blobs = memory.snapshots();
        let run = merge(blobs, Vec::new(), (0, 2000), 500);
        let mut bytes = blobs
            .read(&run.name)
            .expect("it is read")
            .expect("it is there");
        bytes[5 * PAGE_BYTES + 9] ^= 1;
        blobs
            .write_atomic(&run.name, &bytes)
            .expect("it is written");
        let run = Run::open::<Plain>(blobs, &run.name, StoreId([7; 16])).expect("it is ours");
        assert!(!run.is_whole::<Plain>());
        let part = {
            let mut none = Gathered::<Plain>::default();
            none.end_at(head(2000), None);
            none.parts().pop().expect("one was ended")
        };
        let merged = Merged::<Plain>::of(StoreId([7; 16]), Position(0), vec![run], part);
        assert!(merged.each(&mut |_| Ok(())).is_err());
    }
}
