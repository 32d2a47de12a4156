//! Snapshots: the state at a durable position, so that opening costs the tail. Never truth: whatever does not
//! fit is ignored and rebuilt.

use std::ops::Range;
use std::sync::Arc;

use tenure_core::state::State;
use tenure_core::state::paged::Layout;
use tenure_log::frame::Depth;
use tenure_log::journal::{Identity, Journal, Landmark};
use tenure_log::position::{Chain, Head, Position};

use crate::error::Error;
use crate::source::Source;
use crate::store::files::Files;
use crate::store::marks;
use crate::store::shelf::{Shelf, Stretches};

use super::RULES;

/// A snapshot that fits.
pub(crate) struct Found {
    pub state: State,
    pub head: Head,
    /// Where its frame stands, if that is known.
    pub mark: Option<Landmark>,
    pub shelf: Arc<Shelf>,
    /// What writing it cost, in bytes.
    pub cost: u64,
}

/// A state written down, with what it leaves to files of their own.
pub(super) struct Draft {
    head: Head,
    layout: Layout,
    stretches: Stretches,
}

/// ```text
/// magic:8 version:4 crc:4 store:16 incarnation:8 position:8 chain:16 bytes:8 rules:4 cost:8 landmark
/// head_bytes:8 head pages             crc: of head_bytes and head; bytes: of all behind the landmark
/// ```
/// The pages have their checksums in the head, and are looked at when they are asked for.
const MAGIC: &[u8; 8] = b"tnrsnp01";
const HEADER_BYTES: usize = 8 + 4 + 4 + 16 + 8 + 8 + 16 + 8 + 4 + 8 + Landmark::BYTES;

/// The name of the blob that holds the newest snapshot.
const BLOB: &str = "state";

/// Version of the state's encoding. A change of `State` or of what it encodes raises it; a change of what
/// events do to a state raises [`RULES`].
const STATE_VERSION: u32 = 11;

/// Frames between two snapshots at least.
const FRAMES_MIN: u64 = 2048;
/// A snapshot is due when the frames since the last one are worth what that cost at this rate, so that writing
/// snapshots costs a bounded share of appending.
const BYTES_PER_FRAME: u64 = 512;
/// A page that nobody wrote to is copied, which costs this part of encoding it.
const COPIES_PER_ENCODED: u64 = 16;

/// Whether the tail is long enough for a new snapshot, where writing the last one cost so many bytes.
pub(super) fn is_due(frames: u64, cost: u64) -> bool {
    frames >= FRAMES_MIN && frames * BYTES_PER_FRAME >= cost
}

/// What writing these pages costs, as bytes that are encoded.
fn cost(layout: &Layout) -> u64 {
    let copied = (layout.pages.len() as u64).saturating_sub(layout.anew);
    layout.head.len() as u64 + layout.anew + copied / COPIES_PER_ENCODED
}

/// Loads the newest snapshot, if it fits this log: its directory. The rest is read when it is asked for.
pub(crate) fn load(source: &Arc<dyn Source>) -> Result<Option<Found>, Error> {
    // A snapshot that cannot be read is as good as none.
    let Ok(Some(file)) = source.blobs().map(BLOB) else {
        return Ok(None);
    };
    let Some(parsed) = parse(source.identity()?, file.bytes()) else {
        return Ok(None);
    };
    let Parsed {
        head, mark, cost, ..
    } = parsed;
    let stood = mark.head == head && source.read_behind(&mark, Depth::Facts)?.is_some();
    let mark = stood.then_some(mark);
    if mark.is_none() && !stands(&**source, head)? {
        return Ok(None);
    }
    let pages = parsed.pages.clone();
    let shelf = Shelf::new(source, head, Arc::clone(&file), pages.start);
    let found = State::find_again(parsed.directory, Arc::clone(&shelf) as _);
    let Ok((mut state, found)) = found else {
        return Ok(None);
    };
    // What the program that wrote it did not understand, this one may.
    if state.at.position.0 != head.position.0
        || state.unknown.is_some()
        || found != pages.len() as u64
    {
        return Ok(None);
    }
    shelf.keep(&mut state);
    Ok(Some(Found {
        state,
        head,
        mark,
        shelf,
        cost,
    }))
}

/// A snapshot that may be of this log.
struct Parsed<'a> {
    head: Head,
    mark: Landmark,
    cost: u64,
    directory: &'a [u8],
    /// Where its pages are.
    pages: Range<usize>,
}

fn parse(identity: Identity, bytes: &[u8]) -> Option<Parsed<'_>> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("in the header"));
    let half = |at: usize| u32::from_le_bytes(*header[at..].first_chunk().expect("in the header"));
    let sixteen = |at: usize| -> [u8; 16] { *header[at..].first_chunk().expect("in the header") };
    let behind = u64::from_le_bytes(*body.first_chunk()?);
    let eager = body.get(..usize::try_from(behind).ok()?.checked_add(8)?)?;
    let fits = &header[..8] == MAGIC
        && half(8) == STATE_VERSION
        && half(12) == crc(eager)
        && sixteen(16) == identity.store.0
        && word(32) == identity.incarnation.0
        && word(64) == body.len() as u64
        && half(72) == RULES.0;
    let head = Head {
        position: Position(word(40)),
        chain: Chain(sixteen(48)),
    };
    fits.then_some(Parsed {
        head,
        cost: word(76),
        // Zeros where an engine has no places: a head at position 0 is the head of no snapshot.
        mark: Landmark::from_bytes(header.last_chunk().expect("in the header")),
        directory: &eager[8..],
        pages: HEADER_BYTES + eager.len()..bytes.len(),
    })
}

/// Against bytes that rot. A digest would tell no more of what anybody may write anew, and costs ten times as much of
/// what opening costs.
fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// Whether the log has that head: a snapshot from another past is none.
pub(crate) fn stands(source: &dyn Source, head: Head) -> Result<bool, Error> {
    if head.position.0 == 0 || head.position > source.newest()? {
        return Ok(false);
    }
    let mut frames = marks::read_from(source, head.position.before(), Depth::Facts)?;
    Ok(match frames.next() {
        Some(frame) => frame?.header.head() == head,
        None => false,
    })
}

impl Draft {
    /// Of the state at `head`.
    pub fn of(state: &State, head: Head) -> Result<Self, Error> {
        Ok(Self {
            head,
            layout: state.lay_out().map_err(|_| Error::TooLarge)?,
            stretches: Stretches::of(state),
        })
    }

    /// Has it written as the newest snapshot, and writes the stretches that it leaves elsewhere; its position has to be
    /// durable. Says what that costs, in bytes.
    pub fn save(&self, journal: &dyn Journal, into: &mut Files) -> Result<u64, Error> {
        let Self {
            head,
            layout,
            stretches,
        } = self;
        let (identity, blobs) = (journal.identity(), journal.snapshots());
        let mark = journal
            .landmark(*head)?
            .map_or([0; Landmark::BYTES], |mark| mark.to_bytes());
        let eager = [&(layout.head.len() as u64).to_le_bytes(), &layout.head[..]].concat();
        let behind = eager.len() + layout.pages.len();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + behind);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&STATE_VERSION.to_le_bytes());
        bytes.extend_from_slice(&crc(&eager).to_le_bytes());
        bytes.extend_from_slice(&identity.store.0);
        bytes.extend_from_slice(&identity.incarnation.0.to_le_bytes());
        bytes.extend_from_slice(&head.position.0.to_le_bytes());
        bytes.extend_from_slice(&head.chain.0);
        bytes.extend_from_slice(&(behind as u64).to_le_bytes());
        bytes.extend_from_slice(&RULES.0.to_le_bytes());
        bytes.extend_from_slice(&cost(layout).to_le_bytes());
        bytes.extend_from_slice(&mark);
        bytes.extend_from_slice(&eager);
        bytes.extend_from_slice(&layout.pages);
        let there = blobs.list()?;
        stretches.save(blobs, &there)?;
        stretches.tidy(&there, into);
        into.write(BLOB, bytes);
        Ok(cost(layout))
    }
}
