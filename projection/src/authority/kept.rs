//! Stretches of authority kept beside the snapshot, so that a question about the past costs the tail and a few pages.
//!
//! What has ended stands as sorted rows in files, by subject ([`Runs`]); what lasts, and when the log was written,
//! stands in the pages of one file with the head that it was true at. Never truth: where a file is missing or is not of
//! this log, or a page is not what was written, the log is read instead.

use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::apply::{Applied, apply_seen};
use tenure_core::id::{Moment, Position, Time};
use tenure_core::state::State;
use tenure_core::text::Pool;
use tenure_log::frame::Depth;
use tenure_log::journal::{Blobs, Landmark};
use tenure_log::position::{self, Head};

use crate::entry;
use crate::error::Error;
use crate::projection::Projection;
use crate::reader::Reader;
use crate::source::Source;
use crate::store::files::Files;
use crate::store::keys;
use crate::store::marks::{self, Marks};
use crate::store::runs::{Gathered, Rows, Runs};
use crate::store::scratch;
use crate::store::shelf::Shelf;
use crate::store::snapshot;
use crate::store::trail::Trail;

use super::lasts::Lasts;
use super::over::{self, Piece};
use super::resume::{Along, Rested, Settled};
use super::row::{self, About, Key, Row};
use super::{Authority, Interval, When, find};

mod file;

pub(super) use file::Pages;

use file::{Kept, MAGIC, Times};

/// Stretches that have ended.
struct HeldRows;

impl Rows for HeldRows {
    const PREFIX: &'static str = "held-";
    const MAGIC: &'static [u8; 8] = MAGIC;
    const ROW_BYTES: usize = Row::BYTES;
}

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

/// The past of a log as far as it is kept, and the state where that ends.
struct Past {
    runs: Runs<HeldRows>,
    kept: Kept,
    /// Where the kept ends, and what was read since.
    state: State,
    /// Where rows are that the state was opened without.
    shelf: Option<Arc<Shelf>>,
    /// The rows of what ended in the frames read, but for the newest of these.
    read: Gathered<HeldRows>,
    /// Frames read since then.
    unsettled: u64,
    /// Of the frames read, for whoever writes them down.
    marks: Option<Marks>,
}

/// Frames of which it is settled together what ended: until then it is in memory, as more than a row. Few where there are
/// debug assertions, so that every test of a question comes across it.
const SETTLED_TOGETHER: u64 = if cfg!(debug_assertions) { 32 } else { 1 << 13 };

impl Past {
    /// Nothing kept: everything is read from the log.
    fn unkept(source: &Arc<dyn Source>) -> Self {
        let mut state = State::new();
        scratch::put_away(&mut state, source);
        Self {
            runs: Runs::none(),
            kept: Kept::default(),
            state,
            shelf: None,
            read: Gathered::default(),
            unsettled: 0,
            marks: None,
        }
    }

    /// What is kept, if all of it ends where the snapshot does.
    fn open(source: &Arc<dyn Source>, snapshot: Option<snapshot::Found>) -> Result<Self, Error> {
        let (Some(kept), Some(found)) = (Kept::load(&**source)?, snapshot) else {
            return Ok(Self::unkept(source));
        };
        // The snapshot's head was looked for in the log.
        if kept.head != found.head {
            return Ok(Self::unkept(source));
        }
        let runs = Runs::load(&**source, kept.head)?;
        if runs.covered() != kept.head {
            return Ok(Self::unkept(source));
        }
        Ok(Self {
            runs,
            kept,
            state: found.state,
            shelf: Some(found.shelf),
            read: Gathered::default(),
            unsettled: 0,
            marks: None,
        })
    }

    /// Reads on to `head`.
    fn read_on(&mut self, source: &dyn Source, head: position::Position) -> Result<(), Error> {
        self.read_each(source, head, None)
    }

    /// Reads on to `head`, and the keys in these frames where somebody gathers them.
    fn read_each(
        &mut self,
        source: &dyn Source,
        head: position::Position,
        mut keys: Option<&mut keys::Fresh>,
    ) -> Result<(), Error> {
        if self.kept.head.position >= head {
            // To find the place is what would cost something.
            return Ok(());
        }
        let mut frames = marks::read_from(source, self.kept.head.position, Depth::Whole)?;
        while self.kept.head.position < head
            && let Some(frame) = frames.next()
        {
            let frame = frame?;
            if let Some(keys) = &mut keys {
                keys.take(&frame, source.blobs())?;
            }
            let entry = entry::decode(&frame)?;
            let authority = &mut self.kept.authority;
            let _: Applied = apply_seen(&mut self.state, &entry, |state| {
                authority.apply(&entry, state)
            });
            self.kept.note(entry.at);
            self.kept.head = frame.header.head();
            if let Some(marks) = &mut self.marks {
                marks.note(frames.landmark());
            }
            if let Some(keys) = &mut keys {
                keys.pass(self.kept.head, frames.landmark());
            }
            self.unsettled += 1;
            if self.unsettled == SETTLED_TOGETHER {
                self.let_go(source);
            }
        }
        Ok(())
    }

    fn newest_mark(&self) -> Option<Landmark> {
        self.marks.as_ref().and_then(Marks::newest)
    }

    /// Gathers the rows of what has ended, and says what lasts.
    fn let_go(&mut self, source: &dyn Source) -> Lasts {
        self.unsettled = 0;
        let settled = self.kept.authority.settle();
        self.gather(&settled, source.blobs());
        if self.read.is_full() {
            self.read.end_at(self.kept.head, self.newest_mark());
        }
        settled.lasts
    }

    /// Gathers the rows of what ended behind the files.
    fn gather(&mut self, settled: &Settled, blobs: &dyn Blobs) {
        let after = self.runs.covered().position.0;
        let mut push = |row: Row| self.read.push(&row.bytes(), blobs);
        for (about, interval, scoped) in &settled.ended {
            // Somebody else may have written the others.
            if interval
                .until
                .is_none_or(|until| until.at.position.0 <= after)
            {
                continue;
            }
            push(Row::of(&Key::About(about), interval));
            // A binding without scopes is over no path.
            if *scoped {
                let pieces = over::pieces(interval).into_iter().map(Key::Piece);
                pieces.for_each(|piece| push(Row::of(&piece, interval)));
            }
        }
    }

    /// The rows of a subject. `None` when a page is not what was written.
    fn rows(&self, key: &Key<'_>) -> Option<Vec<Box<[u8]>>> {
        let subject = key.subject();
        let mut rows = self.runs.find(&subject)?;
        rows.extend(self.read.find(&subject));
        Some(rows)
    }

    /// Whether every row that was asked for was there.
    fn is_sound(&self) -> bool {
        self.kept.is_sound()
            && self
                .shelf
                .as_ref()
                .is_none_or(|shelf| shelf.sound().is_ok())
    }

    /// Reads on to `head`, with the keys in these frames, gathers the rows of everything that has ended, and says what lasts.
    fn settle(
        &mut self,
        source: &dyn Source,
        keys: Option<&mut keys::Fresh>,
        head: Head,
    ) -> Result<Lasts, Error> {
        self.read_each(source, head.position, keys)?;
        if let Some(shelf) = &self.shelf {
            shelf.sound()?;
        }
        Ok(self.let_go(source))
    }

    /// Gathers what became of authority up to `head`, and says what lasts; and when the frames were written, where they stand,
    /// and the keys in them. What was not noted is read.
    fn take_in(
        &mut self,
        source: &dyn Source,
        followed: Option<Settled>,
        trail: Option<Trail>,
        keys: &mut keys::Fresh,
        head: Head,
    ) -> Result<Lasts, Error> {
        let covered = self.kept.head.position;
        let least = covered.min(keys.covered());
        let trail = trail.filter(|trail| trail.since() <= least);
        let lasts = match (followed, trail) {
            (Some(settled), trail) => {
                self.gather(&settled, source.blobs());
                if let Some(trail) = trail {
                    self.follow(trail, keys, source.blobs(), head);
                    return Ok(settled.lasts);
                }
                settled.lasts
            }
            // Read once, for the one and the other.
            (None, _) if keys.covered() >= covered => {
                return self.settle(source, Some(keys), head);
            }
            (None, _) => self.settle(source, None, head)?,
        };
        self.walk(source, keys, head)?;
        Ok(lasts)
    }

    /// Takes over when the frames up to `head` were written and where they stand, and the keys in them, as it was noted.
    fn follow(&mut self, trail: Trail, keys: &mut keys::Fresh, blobs: &dyn Blobs, head: Head) {
        let covered = self.kept.head.position.0;
        let behind = |moment: &Moment| moment.position.0 > covered;
        for moment in trail.moments().filter(behind) {
            self.kept.note(moment);
        }
        let (noted, marks) = trail.into_parts();
        for (key, prior) in noted {
            keys.take_noted(key, prior, blobs);
        }
        if let Some(own) = &mut self.marks {
            own.join(marks);
        }
        self.kept.head = head;
    }

    /// Reads when the frames up to `head` were written and where they stand, where they were not read before, and the
    /// keys in them.
    fn walk(
        &mut self,
        source: &dyn Source,
        keys: &mut keys::Fresh,
        head: Head,
    ) -> Result<(), Error> {
        let after = self.kept.head.position.min(keys.covered());
        if after >= head.position {
            return Ok(());
        }
        let mut frames = marks::read_from(source, after, Depth::Facts)?;
        let mut at = after;
        while at < head.position
            && let Some(frame) = frames.next()
        {
            let frame = frame?;
            at = frame.header.position;
            keys.take(&frame, source.blobs())?;
            let head = frame.header.head();
            if at > self.kept.head.position {
                self.kept.note(entry::moment(&frame.header));
                self.kept.head = head;
                if let Some(marks) = &mut self.marks {
                    marks.note(frames.landmark());
                }
            }
            keys.pass(head, frames.landmark());
        }
        Ok(())
    }
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
    let mut past = Past::open(source, snapshot)?;
    past.marks = Some(Marks::default());
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
            past = Past::unkept(source);
            past.marks = Some(Marks::default());
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
