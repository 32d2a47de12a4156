//! Stretches of authority kept beside the snapshot, so that a question about the past costs the tail and a few pages.
//!
//! What has ended stands as sorted rows in files, by subject ([`Runs`]); what lasts, and when the log was written,
//! stands in one file with the head that it was true at. Never truth: where a file is missing or is not of this log,
//! the log is read instead.

use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::codec;
use tenure_core::id::{Moment, Position, Time};
use tenure_core::state::table::digest;
use tenure_core::text::Pool;
use tenure_log::frame::Depth;
use tenure_log::journal::Blobs;
use tenure_log::position::{self, Chain, Head, StoreId};

use crate::entry;
use crate::error::Error;
use crate::projector::Projector;
use crate::reader::Reader;
use crate::source::Source;
use crate::store::marks::{self, Marks};
use crate::store::runs::{Rows, Runs};
use crate::store::shelf::Shelf;
use crate::store::snapshot;

use super::over::{self, Piece};
use super::row::{About, Key, Lasting, Row};
use super::{Authority, Interval, When, find};

/// The name of the file that holds what lasts.
const BLOB: &str = "held";
/// Its first bytes, and those of the files of rows: one number for the form of both.
const MAGIC: &[u8; 8] = b"tnrhld03";
/// Magic, check of what follows, store, position and chain.
const HEADER_BYTES: usize = 8 + 16 + 16 + 8 + 16;
/// Positions whose times are kept as one.
const SPAN: u64 = 4096;

/// Stretches that have ended.
struct HeldRows;

impl Rows for HeldRows {
    const PREFIX: &'static str = "held-";
    const MAGIC: &'static [u8; 8] = MAGIC;
    const ROW_BYTES: usize = Row::BYTES;
}

/// The times of some frames that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    first: Time,
    last: Time,
    least: Time,
    most: Time,
    newest: Position,
}

/// What lasted at a head, and when the frames up to it were written.
#[derive(Default)]
struct Kept {
    head: Head,
    authority: Authority,
    spans: Vec<Span>,
}

/// What is written of it: the texts of holders, what lasts, and the spans in the order of their fields.
type Body = (Pool, Vec<Lasting>, Vec<(Time, Time, Time, Time, Position)>);

impl Kept {
    fn load(source: &dyn Source) -> Result<Option<Self>, Error> {
        // A file that cannot be read is as good as none.
        let Ok(Some(bytes)) = source.blobs().read(BLOB) else {
            return Ok(None);
        };
        let kept = Self::parse(source.identity()?.store, &bytes);
        let Some(kept) = kept else { return Ok(None) };
        Ok(snapshot::stands(source, kept.head)?.then_some(kept))
    }

    fn parse(store: StoreId, bytes: &[u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let fits = header[..8] == *MAGIC
            && header[8..24] == digest(&bytes[24..])
            && header[24..40] == store.0;
        if !fits {
            return None;
        }
        let (pool, lasting, spans): Body = codec::decode(body).ok()?;
        let span = |(first, last, least, most, newest)| Span {
            first,
            last,
            least,
            most,
            newest,
        };
        Some(Self {
            head: Head {
                position: position::Position(u64::from_le_bytes(*header[40..].first_chunk()?)),
                chain: Chain(*header[48..].first_chunk()?),
            },
            authority: Authority::resumed(pool, lasting)?,
            spans: spans.into_iter().map(span).collect(),
        })
    }

    fn save(self, store: StoreId, blobs: &dyn Blobs) -> Result<(), Error> {
        let (pool, lasting) = self.authority.lasting();
        let spans = self.spans.iter();
        let spans = spans.map(|s| (s.first, s.last, s.least, s.most, s.newest));
        let body: Body = (pool, lasting, spans.collect());
        let mut behind = store.0.to_vec();
        behind.extend_from_slice(&self.head.position.0.to_le_bytes());
        behind.extend_from_slice(&self.head.chain.0);
        behind.extend(codec::encode(&body).map_err(|_| Error::TooLarge)?);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&digest(&behind));
        bytes.extend(behind);
        Ok(blobs.write_atomic(BLOB, &bytes)?)
    }

    fn note(&mut self, at: Moment) {
        let fresh = Span {
            first: at.time,
            last: at.time,
            least: at.time,
            most: at.time,
            newest: at.position,
        };
        match self.spans.last_mut() {
            Some(span) if at.position.0 % SPAN != 1 => {
                span.last = at.time;
                span.least = span.least.min(at.time);
                span.most = span.most.max(at.time);
                span.newest = at.position;
            }
            _ => self.spans.push(fresh),
        }
    }
}

/// The past of a log as far as it is kept, and the state where that ends.
struct Past {
    runs: Runs<HeldRows>,
    kept: Kept,
    projector: Projector,
    /// Where rows are that the state was opened without.
    shelf: Option<Arc<Shelf>>,
    /// Of the frames read.
    marks: Marks,
}

impl Past {
    /// Nothing kept: everything is read from the log.
    fn unkept() -> Self {
        Self {
            runs: Runs::none(),
            kept: Kept::default(),
            projector: Projector::new(),
            shelf: None,
            marks: Marks::default(),
        }
    }

    /// What is kept, if all of it ends where the snapshot does.
    fn open(source: &Arc<dyn Source>, snapshot: Option<snapshot::Found>) -> Result<Self, Error> {
        let (Some(mut kept), Some(found)) = (Kept::load(&**source)?, snapshot) else {
            return Ok(Self::unkept());
        };
        let runs = Runs::load(&**source, kept.head)?;
        if kept.head != found.head || runs.covered() != kept.head {
            return Ok(Self::unkept());
        }
        kept.authority.learn_scopes(&found.state);
        Ok(Self {
            runs,
            kept,
            projector: Projector::from_state(found.state),
            shelf: Some(found.shelf),
            marks: Marks::default(),
        })
    }

    /// Reads on to `head`.
    fn read_on(&mut self, source: &dyn Source, head: position::Position) -> Result<(), Error> {
        let mut frames = marks::read_from(source, self.kept.head.position, Depth::Whole)?;
        while self.kept.head.position < head
            && let Some(frame) = frames.next()
        {
            let frame = frame?;
            let entry = entry::decode(&frame)?;
            self.projector.feed(&entry, &mut [&mut self.kept.authority]);
            self.kept.note(entry.at);
            self.kept.head = frame.header.head();
            self.marks.note(frames.landmark());
        }
        Ok(())
    }

    /// Whether every row that was asked for was there.
    fn is_sound(&self) -> bool {
        self.shelf
            .as_ref()
            .is_none_or(|shelf| shelf.sound().is_ok())
    }
}

/// Keeps the past up to `head`, which has to be durable. `snapshot` is the newest one from before.
pub(crate) fn extend(
    source: &Arc<dyn Source>,
    snapshot: Option<snapshot::Found>,
    head: Head,
) -> Result<(), Error> {
    let mut past = Past::open(source, snapshot)?;
    if past.kept.head.position >= head.position {
        return Ok(());
    }
    past.read_on(&**source, head.position)?;
    if let Some(shelf) = &past.shelf {
        shelf.sound()?;
    }
    let mut rows = Vec::new();
    for (about, interval) in past.kept.authority.ended() {
        rows.push(Row::of(&Key::About(&about), &interval).bytes());
        // A binding without scopes is over no path.
        let scoped = |dispatch| past.kept.authority.scoped.contains(&dispatch);
        if interval.dispatch.is_some_and(scoped) {
            let pieces = over::pieces(&interval).into_iter().map(Key::Piece);
            rows.extend(pieces.map(|piece| Row::of(&piece, &interval).bytes()));
        }
    }
    past.marks.save(&**source, head.position)?;
    past.runs.extend(&**source, head, rows)?;
    past.kept.save(source.identity()?.store, source.blobs())
}

/// Every stretch in which one subject was held.
#[derive(Clone, Debug)]
pub struct Held {
    /// The stretches, oldest first.
    pub stretches: Vec<Interval>,
    /// The texts of their holders.
    pub pool: Pool,
}

/// The past as it was last asked for: loaded once, and read on from there.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<Option<Past>>);

/// What was found of some subjects.
struct Found {
    /// What is kept. Its holders are not looked up yet: each costs a look at the frame that granted it.
    rows: Vec<Row>,
    /// What the log says since, and what lasts.
    read: Vec<Interval>,
    /// The texts of the holders of what was read.
    pool: Pool,
}

impl Remembered {
    /// What is known under some keys up to now, and what `read` takes of the rest.
    fn find(
        &self,
        source: &Arc<dyn Source>,
        keys: &[Key<'_>],
        read: impl Fn(&Authority) -> Vec<Interval>,
    ) -> Result<Found, Error> {
        let newest = source.newest()?;
        // Nothing is remembered that may still be taken back.
        source.settle(newest)?;
        let mut remembered = self.0.lock();
        let past = match &mut *remembered {
            Some(past) => past,
            none => none.insert(Past::open(source, snapshot::load(source)?)?),
        };
        past.read_on(&**source, newest)?;
        let find = |key: &Key<'_>| past.runs.find(&key.subject());
        let mut rows: Option<Vec<_>> = keys.iter().map(find).collect();
        if rows.is_none() || !past.is_sound() {
            *past = Past::unkept();
            past.read_on(&**source, newest)?;
            rows = Some(Vec::new());
        }
        // Rows of another length are no pages of ours, and were not given.
        let row = |row: Box<[u8]>| Row::read(&row).expect("a row has its length");
        let rows = rows.into_iter().flatten().flatten();
        let authority = &past.kept.authority;
        let mut read = read(authority);
        let pool = authority.with_own_texts(&mut read);
        Ok(Found {
            rows: rows.map(row).collect(),
            read,
            pool,
        })
    }
}

/// The bindings that lasted at a position, and the texts of their holders.
pub(super) fn bindings_at(reader: &Reader, at: Position) -> Result<(Vec<Bound>, Pool), Error> {
    let keys: Vec<_> = Piece::with(at).into_iter().map(Key::Piece).collect();
    let found = reader.past.find(&reader.source, &keys, |authority| {
        let all = authority.items.values().flatten();
        all.filter(|i| i.holds_at(at)).copied().collect()
    })?;
    let ended = found.rows.into_iter().map(Bound::Kept);
    let mut all: Vec<Bound> = ended
        .chain(found.read.into_iter().map(Bound::Read))
        .collect();
    all.retain(|bound| bound.interval().holds_at(at));
    Ok((all, found.pool))
}

/// A binding, as it was found.
pub(super) enum Bound {
    /// In a row: its holder is not looked up yet.
    Kept(Row),
    /// In the log, or among what lasts.
    Read(Interval),
}

impl Bound {
    /// The stretch; of a row without its holder.
    pub fn interval(&self) -> Interval {
        match self {
            Self::Kept(row) => row.interval(),
            Self::Read(interval) => *interval,
        }
    }

    /// The stretch with its holder, whose texts join `pool`.
    pub fn whole(&self, source: &dyn Source, pool: &mut Pool) -> Result<Interval, Error> {
        let holder = match self {
            Self::Kept(row) => row.holder(source, pool)?,
            Self::Read(interval) => interval.holder,
        };
        Ok(Interval {
            holder,
            ..self.interval()
        })
    }
}

impl Held {
    pub(crate) fn read(reader: &Reader, about: &About) -> Result<Self, Error> {
        let (source, keys) = (&reader.source, [Key::About(about)]);
        let found = reader
            .past
            .find(source, &keys, |authority| authority.of(about).to_vec())?;
        let (mut stretches, mut pool) = (Vec::new(), found.pool);
        for row in found.rows {
            let holder = row.holder(&**source, &mut pool)?;
            stretches.push(Interval {
                holder,
                ..row.interval()
            });
        }
        stretches.extend(found.read);
        Ok(Self { stretches, pool })
    }

    /// The stretch alone that covers a place in the log.
    pub(crate) fn read_at(
        reader: &Reader,
        about: &About,
        when: When,
    ) -> Result<Option<(Interval, Pool)>, Error> {
        let (source, keys) = (&reader.source, [Key::About(about)]);
        let past = reader
            .past
            .find(source, &keys, |authority| authority.of(about).to_vec())?;
        let (rows, mut pool) = (past.rows, past.pool);
        let mut stretches: Vec<Interval> = rows.iter().map(Row::interval).collect();
        stretches.extend(past.read);
        let Some(mut found) = find(&stretches, when).copied() else {
            return Ok(None);
        };
        if let Some(row) = rows.iter().find(|row| row.interval() == found) {
            found.holder = row.holder(&**source, &mut pool)?;
        }
        Ok(Some((found, pool)))
    }
}

/// Where in the log a time is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// The newest position that was written by then, though its successor was not; zero before the first.
    pub position: Position,
    /// Earlier positions of which the same is true, because a clock was set back between them.
    pub also: Vec<Position>,
}

/// Finds the positions behind which the clock passed `time`.
pub(crate) fn resolve(source: &Arc<dyn Source>, time: Time) -> Result<Resolved, Error> {
    let newest = source.newest()?;
    let mut kept = Kept::load(&**source)?.unwrap_or_default();
    let mut frames = marks::read_from(&**source, kept.head.position, Depth::Facts)?;
    while kept.head.position < newest
        && let Some(frame) = frames.next()
    {
        let frame = frame?;
        kept.note(entry::moment(&frame.header));
        kept.head = frame.header.head();
    }
    drop(frames);
    let mut passed = Vec::new();
    let mut before = Moment {
        position: Position(0),
        time: Time(i64::MIN),
    };
    for span in &kept.spans {
        if before.time <= time && span.first > time {
            passed.push(before.position);
        }
        if span.least <= time && span.most > time {
            within(&**source, (before.position, span.newest), time, &mut passed)?;
        }
        before = Moment {
            position: span.newest,
            time: span.last,
        };
    }
    if before.time <= time {
        passed.push(before.position);
    }
    let position = passed.pop().unwrap_or_default();
    Ok(Resolved {
        position,
        also: passed,
    })
}

/// The positions behind `after` and up to `until` whose successor in that range was written after `time`, and they
/// were not.
fn within(
    source: &dyn Source,
    (after, until): (Position, Position),
    time: Time,
    passed: &mut Vec<Position>,
) -> Result<(), Error> {
    let mut frames = marks::read_from(source, position::Position(after.0), Depth::Facts)?;
    let mut before: Option<Moment> = None;
    while before.is_none_or(|before| before.position < until)
        && let Some(frame) = frames.next()
    {
        let at = entry::moment(&frame?.header);
        if let Some(before) = before.filter(|before| before.time <= time && at.time > time) {
            passed.push(before.position);
        }
        before = Some(at);
    }
    Ok(())
}
