//! The past of a log as it is taken up from what is kept, and read on from there.

use std::sync::Arc;

use tenure_core::apply::{Applied, apply_seen};
use tenure_core::id::Moment;
use tenure_core::state::State;
use tenure_log::frame::Depth;
use tenure_log::journal::{Blobs, Landmark};
use tenure_log::position::{self, Head};

use crate::authority::lasts::Lasts;
use crate::authority::over;
use crate::authority::resume::Settled;
use crate::authority::row::{Key, Row};
use crate::entry;
use crate::error::Error;
use crate::projection::Projection;
use crate::source::Source;
use crate::store::keys;
use crate::store::marks::{self, Marks};
use crate::store::runs::{Gathered, Rows, Runs};
use crate::store::scratch;
use crate::store::shelf::Shelf;
use crate::store::snapshot;
use crate::store::trail::Trail;

use super::file::{Kept, MAGIC};

/// Stretches that have ended.
pub(super) struct HeldRows;

impl Rows for HeldRows {
    const PREFIX: &'static str = "held-";
    const MAGIC: &'static [u8; 8] = MAGIC;
    const ROW_BYTES: usize = Row::BYTES;
}

/// The past of a log as far as it is kept, and the state where that ends.
pub(super) struct Past {
    pub runs: Runs<HeldRows>,
    pub kept: Kept,
    /// Where the kept ends, and what was read since.
    pub state: State,
    /// Where rows are that the state was opened without.
    pub shelf: Option<Arc<Shelf>>,
    /// The rows of what ended in the frames read, but for the newest of these.
    pub read: Gathered<HeldRows>,
    /// Frames read since then.
    unsettled: u64,
    /// Of the frames read, for whoever writes them down.
    pub marks: Option<Marks>,
}

/// Frames of which it is settled together what ended: until then it is in memory, as more than a row. Few where there are
/// debug assertions, so that every test of a question comes across it.
const SETTLED_TOGETHER: u64 = if cfg!(debug_assertions) { 32 } else { 1 << 13 };

impl Past {
    /// Nothing kept: everything is read from the log.
    pub fn unkept(source: &Arc<dyn Source>) -> Self {
        let mut state = State::new();
        scratch::put_away(&mut state, source);
        Self::of(Runs::none(), Kept::default(), state, None)
    }

    fn of(runs: Runs<HeldRows>, kept: Kept, state: State, shelf: Option<Arc<Shelf>>) -> Self {
        Self {
            runs,
            kept,
            state,
            shelf,
            read: Gathered::default(),
            unsettled: 0,
            marks: None,
        }
    }

    /// The same, noting where the frames stand that it reads.
    pub fn noting(self) -> Self {
        Self {
            marks: Some(Marks::default()),
            ..self
        }
    }

    /// What is kept, if all of it ends where the snapshot does.
    pub fn open(
        source: &Arc<dyn Source>,
        snapshot: Option<snapshot::Found>,
    ) -> Result<Self, Error> {
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
        Ok(Self::of(runs, kept, found.state, Some(found.shelf)))
    }

    /// Reads on to `head`.
    pub fn read_on(&mut self, source: &dyn Source, head: position::Position) -> Result<(), Error> {
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

    pub fn newest_mark(&self) -> Option<Landmark> {
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
    pub fn rows(&self, key: &Key<'_>) -> Option<Vec<Box<[u8]>>> {
        let subject = key.subject();
        let mut rows = self.runs.find(&subject)?;
        rows.extend(self.read.find(&subject));
        Some(rows)
    }

    /// Whether every row that was asked for was there.
    pub fn is_sound(&self) -> bool {
        self.kept.is_sound()
            && self
                .shelf
                .as_ref()
                .is_none_or(|shelf| shelf.sound().is_ok())
    }

    /// Reads on to `head`, with the keys in these frames, gathers the rows of everything that has ended, and says what lasts.
    pub fn settle(
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
    pub fn take_in(
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
    pub fn walk(
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
