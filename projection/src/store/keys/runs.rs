//! Keys that stand beside the snapshot, so that asking for one costs the tail: sorted rows in files of their
//! own, which opening never reads. Never truth: a file that does not fit the log is read past, and the frames
//! that it stood for are read again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tenure_core::id::Position;
use tenure_log::journal::Blobs;
use tenure_log::position::{self, Chain, Head, StoreId};

use crate::error::Error;
use crate::source::Source;

use super::super::snapshot::stands;
use super::{Keys, Prior, short};

const MAGIC: &[u8; 8] = b"tnrkey01";
/// Magic, digest of everything behind it, store, behind which position it begins, head.
const HEADER_BYTES: usize = 8 + 16 + 16 + 8 + 8 + 16;
/// Key, payload, position.
const ROW_BYTES: usize = 16 + 16 + 8;
const PREFIX: &str = "keys-";

/// The keys of the frames behind one position and up to another.
pub(super) struct Run {
    name: String,
    /// Behind which position it begins.
    after: position::Position,
    /// The head that it was read at.
    head: Head,
    /// Sorted by key.
    rows: Vec<u8>,
}

/// The bounds in a file's name: what is only chosen by, never believed.
fn bounds(name: &str) -> Option<(u64, u64)> {
    let (after, until) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((after.parse().ok()?, until.parse().ok()?))
}

impl Run {
    fn new(after: position::Position, head: Head, rows: Vec<u8>) -> Self {
        Self {
            name: format!("{PREFIX}{after}-{}", head.position),
            after,
            head,
            rows,
        }
    }

    /// Reads the file of that name, if it is whole and the log has its head.
    fn load(source: &dyn Source, name: &str) -> Result<Option<Self>, Error> {
        // A file that cannot be read is as good as none.
        let Ok(Some(bytes)) = source.blobs().read(name) else {
            return Ok(None);
        };
        let Some(run) = Self::parse(name, source.identity()?.store, &bytes) else {
            return Ok(None);
        };
        Ok(stands(source, run.head)?.then_some(run))
    }

    fn parse(name: &str, store: StoreId, bytes: &[u8]) -> Option<Self> {
        let (header, rows) = bytes.split_at_checked(HEADER_BYTES)?;
        let word = |at: usize| header[at..].first_chunk().map(|b| u64::from_le_bytes(*b));
        let fits = &header[..8] == MAGIC
            && header[8..24] == check(&bytes[24..])
            && header[24..40] == store.0
            && rows.len().is_multiple_of(ROW_BYTES);
        let (after, until) = (word(40)?, word(48)?);
        let run = Self {
            name: name.to_owned(),
            after: position::Position(after),
            head: Head {
                position: position::Position(until),
                chain: Chain(*header[56..].first_chunk()?),
            },
            rows: rows.to_vec(),
        };
        (fits && bounds(name) == Some((after, until))).then_some(run)
    }

    fn save(&self, store: StoreId, blobs: &dyn Blobs) -> Result<(), Error> {
        let mut behind = Vec::with_capacity(HEADER_BYTES + self.rows.len());
        behind.extend_from_slice(&store.0);
        behind.extend_from_slice(&self.after.0.to_le_bytes());
        behind.extend_from_slice(&self.head.position.0.to_le_bytes());
        behind.extend_from_slice(&self.head.chain.0);
        behind.extend_from_slice(&self.rows);
        let mut bytes = Vec::with_capacity(24 + behind.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&check(&behind));
        bytes.extend_from_slice(&behind);
        Ok(blobs.write_atomic(&self.name, &bytes)?)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8; ROW_BYTES]> {
        self.rows.as_chunks().0.iter()
    }

    pub(super) fn get(&self, key: [u8; 16]) -> Option<Prior> {
        let (rows, _) = self.rows.as_chunks::<ROW_BYTES>();
        let at = rows.binary_search_by(|row| row[..16].cmp(&key)).ok()?;
        let row = &rows[at];
        Some(Prior {
            payload: *row[16..].first_chunk().expect("in the row"),
            position: Position(u64::from_le_bytes(*row.last_chunk().expect("in the row"))),
        })
    }
}

fn check(bytes: &[u8]) -> [u8; 16] {
    short(blake3::Hasher::new().update(bytes))
}

fn row(key: [u8; 16], prior: Prior) -> [u8; ROW_BYTES] {
    let mut row = [0; ROW_BYTES];
    row[..16].copy_from_slice(&key);
    row[16..32].copy_from_slice(&prior.payload);
    row[32..].copy_from_slice(&prior.position.0.to_le_bytes());
    row
}

/// The runs that fit this log, each behind the one before, from the beginning up to `head` at most.
pub(super) fn load(source: &dyn Source, head: Head) -> Result<Vec<Run>, Error> {
    // The longest run behind each position first.
    let mut files: BTreeMap<(u64, Reverse<u64>), String> = BTreeMap::new();
    for name in source.blobs().list().unwrap_or_default() {
        if let Some((after, until)) = bounds(&name).filter(|(_, until)| *until <= head.position.0) {
            files.insert((after, Reverse(until)), name);
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    for ((after, _), name) in &files {
        if *after == covered(&runs).position.0
            && let Some(run) = Run::load(source, name)?
        {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Up to where runs say which keys there are.
pub(super) fn covered(runs: &[Run]) -> Head {
    runs.last().map_or(Head::default(), |run| run.head)
}

/// Writes down the keys up to `head`, which has to be durable, and removes the files that are then not needed.
/// A run is merged into the one before unless that is twice as long, so that there are few of them and a key is
/// written a few times in all.
pub(in crate::store) fn extend(source: &dyn Source, head: Head) -> Result<(), Error> {
    let mut runs = load(source, head)?;
    let after = covered(&runs);
    if after.position >= head.position {
        return Ok(());
    }
    let mut fresh = Keys::default();
    fresh.read_on(source, after.position, head)?;
    let mut rows: BTreeMap<[u8; 16], Prior> = fresh.fresh.into_iter().collect();
    let mut after = after.position;
    while let Some(last) =
        runs.pop_if(|run| run.rows.len() < 2 * rows.len() * ROW_BYTES + ROW_BYTES)
    {
        after = last.after;
        for older in last.iter() {
            let key = *older.first_chunk().expect("in the row");
            rows.insert(key, last.get(key).expect("it is in it"));
        }
    }
    let rows = rows.into_iter().flat_map(|(key, prior)| row(key, prior));
    let run = Run::new(after, head, rows.collect());
    let blobs = source.blobs();
    run.save(source.identity()?.store, blobs)?;
    for name in blobs.list()? {
        let (kept, end) = (
            runs.iter().any(|kept| kept.name == name),
            run.head.position.0,
        );
        let over = bounds(&name).is_some_and(|(_, until)| until <= end);
        if over && !kept && name != run.name {
            blobs.remove(&name)?;
        }
    }
    Ok(())
}
