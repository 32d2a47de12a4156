//! Stretches of authority kept beside the snapshot, so that a question about the past costs the tail and a few pages.
//!
//! What has ended stands as sorted rows in files, by subject ([`Runs`](crate::store::runs::Runs)); what lasts, and when the log was written,
//! stands in the pages of one file with the head that it was true at. Never truth: where a file is missing or is not of
//! this log, or a page is not what was written, the log is read instead.

use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::id::{Moment, Position, Time};
use tenure_core::state::State;
use tenure_core::text::Pool;
use tenure_log::frame::Depth;
use tenure_log::position::{self, Head};

use crate::entry;
use crate::error::Error;
use crate::reader::Reader;
use crate::source::Source;
use crate::store::files::Files;
use crate::store::keys;
use crate::store::marks;
use crate::store::snapshot;
use crate::store::trail::Trail;

use super::over::Piece;
use super::resume::{Along, Rested, Settled};
use super::row::{self, About, Key, Row};
use super::{Authority, Interval, When, find};

mod file;
mod past;

pub(super) use file::Pages;

use file::{Kept, Times};
use past::Past;

/// A projection that runs along with the state of a snapshot at `head`, where what is kept ends there too.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn along(source: &dyn Source, head: Head) -> Result<Option<Along>, Error> {
    let kept = Kept::load(source)?.filter(|kept| kept.head == head);
    Ok(kept.map(|kept| Along {
        authority: kept.authority,
        since: head.position,
        pages: kept.pages,
    }))
}

/// What a handle has noted of the frames up to some head. What it has not is read from the log.
pub(crate) struct Noted {
    /// What became of authority, where that was followed.
    pub settled: Option<Settled>,
    /// When the frames were decided, their keys and where they stand.
    pub trail: Option<Trail>,
}

/// Has the past kept up to `head`, which has to be durable, and the keys. `snapshot` is the newest one from before;
/// `noted` what is known of the frames since then. Where authority was not followed, the projection that was read instead
/// is given back.
pub(crate) fn extend(
    source: &Arc<dyn Source>,
    snapshot: Option<snapshot::Found>,
    head: Head,
    noted: Noted,
    into: &mut Files,
) -> Result<Option<Rested>, Error> {
    let mut past = Past::open(source, snapshot)?.noting();
    let mut keys = keys::Fresh::load(&**source, head)?;
    let covered = past.kept.head.position;
    if covered >= head.position {
        past.walk(&**source, &mut keys, head)?;
        keys.save(&**source, (head, None), into)?;
        return Ok(None);
    }
    let followed = noted.settled.filter(|settled| settled.since <= covered);
    let mut is_read = followed.is_none();
    let lasts = past.take_in(&**source, followed, noted.trail, &mut keys, head)?;
    let layout = match past.kept.lay_out(&lasts) {
        Some(layout) => layout,
        None => {
            past = Past::unkept(source).noting();
            is_read = true;
            let lasts = past.settle(&**source, None, head)?;
            past.kept.lay_out(&lasts).ok_or(Error::TooLarge)?
        }
    };
    let mark = past.newest_mark();
    keys.save(&**source, (head, mark), into)?;
    past.read.end_at(head, mark);
    past.runs.extend(&**source, past.read, into)?;
    if let Some(marks) = past.marks {
        marks.save(&**source, into)?;
    }
    Kept::save(head, &layout, source.identity()?.store, into);
    let (kept, state, shelf) = (past.kept, past.state, past.shelf);
    Ok(is_read.then(|| Rested {
        along: Along {
            authority: kept.authority,
            since: head.position,
            pages: kept.pages,
        },
        state,
        shelf,
        head,
    }))
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
        read: impl Fn(&mut Authority, &State) -> Vec<Interval>,
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
        let mut rows: Option<Vec<_>> = keys.iter().map(|key| past.rows(key)).collect();
        let mut last = read(&mut past.kept.authority, &past.state);
        if rows.is_none() || !past.is_sound() {
            *past = Past::unkept(source);
            past.read_on(&**source, newest)?;
            // No file, so no page of one.
            rows = keys.iter().map(|key| past.rows(key)).collect();
            last = read(&mut past.kept.authority, &past.state);
        }
        // Rows of another length are no pages of ours, and were not given.
        let row = |row: Box<[u8]>| Row::read(&row).expect("a row has its length");
        let rows = rows.into_iter().flatten().flatten();
        let pool = past.kept.authority.with_own_texts(&mut last);
        Ok(Found {
            rows: rows.map(row).collect(),
            read: last,
            pool,
        })
    }
}

/// The bindings that lasted at a position, and the texts of their holders.
pub(super) fn bindings_at(reader: &Reader, at: Position) -> Result<(Vec<Bound>, Pool), Error> {
    let keys: Vec<_> = Piece::with(at).into_iter().map(Key::Piece).collect();
    let found = reader
        .past
        .find(&reader.source, &keys, |authority, state| {
            authority.take_up_bindings(state);
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
        with_holder(self.interval(), source, pool)
    }
}

fn with_holder(
    interval: Interval,
    source: &dyn Source,
    pool: &mut Pool,
) -> Result<Interval, Error> {
    Ok(Interval {
        holder: row::holder(&interval, source, pool)?,
        ..interval
    })
}

impl Held {
    pub(crate) fn read(reader: &Reader, about: &About) -> Result<Self, Error> {
        let (stretches, mut pool) = Self::without_holders(reader, about)?;
        let whole = |interval| with_holder(interval, &*reader.source, &mut pool);
        let stretches: Result<_, _> = stretches.into_iter().map(whole).collect();
        Ok(Self {
            stretches: stretches?,
            pool,
        })
    }

    /// The stretch alone that covers a place in the log.
    pub(crate) fn read_at(
        reader: &Reader,
        about: &About,
        when: When,
    ) -> Result<Option<(Interval, Pool)>, Error> {
        let (stretches, mut pool) = Self::without_holders(reader, about)?;
        let Some(found) = find(&stretches, when).copied() else {
            return Ok(None);
        };
        let found = with_holder(found, &*reader.source, &mut pool)?;
        Ok(Some((found, pool)))
    }

    /// Stretches whose holders are not looked up, but for some of the newest.
    fn without_holders(reader: &Reader, about: &About) -> Result<(Vec<Interval>, Pool), Error> {
        let keys = [Key::About(about)];
        let found = reader
            .past
            .find(&reader.source, &keys, |authority, state| {
                authority.take_up_subject(about, state);
                authority.of(about).to_vec()
            })?;
        let mut stretches: Vec<Interval> = found.rows.iter().map(Row::interval).collect();
        stretches.extend(found.read);
        Ok((stretches, found.pool))
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
    let mut kept = match Kept::load(&**source)? {
        Some(kept) if snapshot::stands(&**source, kept.head)? => kept,
        _ => Kept::default(),
    };
    kept.times.iter().for_each(drop);
    if !kept.is_sound() {
        kept = Kept::default();
    }
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
    for span in kept.times.iter().map(Times::read) {
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
