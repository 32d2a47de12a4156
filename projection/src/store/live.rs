//! The state at the newest head that this handle knows.

use std::sync::Arc;

use tenure_core::apply::{Applied, apply, apply_seen};
use tenure_core::event::Entry;
use tenure_core::history::BodyDigest;
use tenure_core::state::State;
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::journal::{Appended, Frames, Landmark};
use tenure_log::position::{Head, Position};

use crate::authority::kept;
use crate::authority::resume::{Along, Rested, Settled};
use crate::error::Error;
use crate::source::Source;
use crate::{ahead, entry};

use crate::store::keys::{KeyDigest, Keys, Prior};
use crate::store::scratch;
use crate::store::shelf::Shelf;
use crate::store::snapshot;
use crate::store::trail::Trail;

/// State and head, always of one position.
pub(crate) struct Live {
    pub state: State,
    pub head: Head,
    /// Something was applied that may not be in the log: everything is rebuilt before it is used again.
    pub tainted: bool,
    /// Keys, once one was presented.
    keys: Option<Keys>,
    /// Frames applied since the newest snapshot.
    pub since_snapshot: u64,
    /// What writing that snapshot cost, in bytes.
    pub snapshot_bytes: u64,
    /// Where the newest frame that was read stands.
    mark: Option<Landmark>,
    /// Where rows are that the snapshot left elsewhere.
    shelf: Option<Arc<Shelf>>,
    /// Kept for the room it has.
    entry: Entry,
    /// Who held what since it was last settled, where this handle writes snapshots and has followed it.
    along: Option<Along>,
    /// Frames that it was followed over.
    followed: u64,
    /// Whose the newest frames are.
    share: Share,
    /// The frames since some position, where this handle writes snapshots and nobody else has appended since.
    trail: Option<Trail>,
    /// What it is used for.
    purpose: Purpose,
}

/// What a handle is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// It only reads.
    Reading,
    /// It writes too, and snapshots from time to time.
    Writing,
}

/// Of the newest frames, how many this handle has appended and how many others have; older ones count for less.
#[derive(Clone, Copy, Default)]
struct Share {
    own: u64,
    others: u64,
}

impl Share {
    /// Frames of others that have to be seen before anything is said.
    const OTHERS_MIN: u64 = 256;
    /// How many frames of others to one of its own make a handle one among many. One of them writes each snapshot: to read
    /// for it once costs less than that every one follows what it folds.
    const OTHERS_PER_OWN: u64 = 4;
    /// Frames after which those before count half.
    const FRAMES_MAX: u64 = 1 << 12;

    fn is_one_among_many(self) -> bool {
        self.others >= Self::OTHERS_MIN && self.others > Self::OTHERS_PER_OWN * self.own
    }

    fn is_mostly_own(self) -> bool {
        self.own >= self.others
    }

    /// Has older frames count for less.
    fn age(&mut self) {
        if self.own + self.others > Self::FRAMES_MAX {
            self.own /= 2;
            self.others /= 2;
        }
    }
}

/// The most frames in which it is followed who held what until a snapshot takes it over: a handle that writes none itself
/// does not keep it for ever.
pub(super) const ALONG_FRAMES_MAX: u64 = 1 << 16;

impl Live {
    /// From the newest snapshot that fits, and the tail behind it.
    pub fn open(source: &Arc<dyn Source>, purpose: Purpose) -> Result<Self, Error> {
        let mut live = match snapshot::load(source)? {
            Some(mut found) => {
                scratch::put_away(&mut found.state, source);
                Self {
                    mark: found.mark,
                    shelf: Some(found.shelf),
                    snapshot_bytes: found.cost,
                    along: match purpose {
                        Purpose::Reading => None,
                        Purpose::Writing => kept::along(&**source, found.head)?,
                    },
                    ..Self::with(found.state, found.head, purpose)
                }
            }
            None => Self::empty(source, purpose)?,
        };
        live.read_on(&**source)?;
        // Who opens behind a long tail is not one among many for that.
        live.share = Share::default();
        live.trail = (purpose == Purpose::Writing).then(|| Trail::behind(live.head.position));
        Ok(live)
    }

    /// Before the first frame.
    fn empty(source: &Arc<dyn Source>, purpose: Purpose) -> Result<Self, Error> {
        let mut state = State::new();
        scratch::put_away(&mut state, source);
        Ok(Self {
            along: (purpose == Purpose::Writing).then(Along::new),
            ..Self::with(state, beginning(&**source)?, purpose)
        })
    }

    fn with(state: State, head: Head, purpose: Purpose) -> Self {
        Self {
            state,
            head,
            tainted: false,
            keys: None,
            since_snapshot: 0,
            snapshot_bytes: 0,
            mark: None,
            shelf: None,
            entry: Entry::default(),
            along: None,
            followed: 0,
            share: Share::default(),
            trail: None,
            purpose,
        }
    }

    /// What became of authority since the newest snapshot, where that was followed.
    pub fn settle_along(&mut self) -> Option<Settled> {
        self.along = self.along.take().filter(Along::is_sound);
        let position = self.head.position;
        self.followed = 0;
        self.along.as_mut().map(|along| along.settle(position))
    }

    /// Whether authority is not followed, and should be: one that writes nearly all frames itself would read them again
    /// for each snapshot.
    pub fn is_to_follow(&self) -> bool {
        self.along.is_none() && self.share.is_mostly_own() && !self.tainted
    }

    /// Follows authority again, from where a snapshot was written without that.
    pub fn follow_again(&mut self, mut rested: Rested, source: &dyn Source) {
        // Near the head already, so that little is read while the lock is held. What cannot be read is not followed.
        if self.is_to_follow() && rested.read_on(source, self.head).is_ok() {
            self.along = rested.at(self.head);
            self.followed = 0;
        }
    }

    /// What was noted of the frames since the last snapshot that this handle made ready, if it appended all of them. From
    /// here on it is noted anew.
    pub fn settle_trail(&mut self) -> Option<Trail> {
        let position = self.head.position;
        let trail = self.trail.replace(Trail::behind(position));
        trail.filter(|trail| trail.reaches(position))
    }

    /// Whether every row that was asked for was there.
    ///
    /// # Errors
    /// Why one was not: then no answer counts that was found in this state.
    pub fn sound(&self) -> Result<(), Error> {
        self.shelf.as_ref().map_or(Ok(()), |shelf| shelf.sound())
    }

    /// Reads what the journal has beyond this head; rebuilds if this state cannot be trusted.
    pub fn catch_up(&mut self, source: &Arc<dyn Source>) -> Result<(), Error> {
        if self.sound().is_err() {
            // Not from the snapshot again.
            *self = Self::empty(source, self.purpose)?;
        } else if self.tainted {
            *self = Self::open(source, self.purpose)?;
            return Ok(());
        }
        self.read_on(&**source)
    }

    fn read_on(&mut self, source: &dyn Source) -> Result<(), Error> {
        let newest = source.newest()?;
        if self.head.position >= newest {
            return Ok(());
        }
        let mark = self.mark.filter(|mark| mark.head == self.head);
        let after = self.head.position;
        if self.keys.is_none() && ahead::pays(newest.0 - after.0) {
            let open = move || frames_behind(source, mark, after);
            let last = ahead::decoded(open, newest, |entry, head| {
                let _: Applied = self.apply(entry, head);
            })?;
            self.mark = last.or(self.mark);
            return self.sound();
        }
        let mut frames = frames_behind(source, mark, after)?;
        while self.head.position < newest
            && let Some(frame) = frames.next()
        {
            self.fold(&frame?)?;
        }
        self.mark = frames.landmark().or(self.mark);
        self.sound()
    }

    /// Folds one frame of the log.
    pub fn fold(&mut self, frame: &FrameRef<'_>) -> Result<(), Error> {
        let mut entry = std::mem::take(&mut self.entry);
        entry::decode_into(&mut entry, frame)?;
        if let Some(keys) = &mut self.keys {
            keys.note(frame)?;
        }
        let _: Applied = self.apply(&entry, frame.header.head());
        self.entry = entry;
        Ok(())
    }

    /// Takes in what the log says of the frames that were just applied: the newest head, and where they stand.
    pub fn settle(&mut self, appended: &Appended) {
        self.head = appended.head;
        self.mark = appended.mark.or(self.mark);
        let trail = self.trail.as_mut();
        if trail.is_some_and(|trail| !trail.note_marks(appended)) {
            self.trail = None;
        }
        if self.share.is_one_among_many() {
            self.along = None;
        }
        self.share.age();
    }

    /// An empty list of bodies, with the room of the last one.
    pub fn room_for_bodies(&mut self) -> Vec<BodyDigest> {
        let mut bodies = std::mem::take(&mut self.entry.bodies);
        bodies.clear();
        bodies
    }

    /// Takes back what [`Live::room_for_bodies`] gave.
    pub fn give_back(&mut self, bodies: Vec<BodyDigest>) {
        self.entry.bodies = bodies;
    }

    /// Applies an entry that this handle is about to append at `head`.
    pub fn append(&mut self, entry: &Entry, head: Head) -> Applied {
        let trail = self.trail.as_mut();
        if trail.is_some_and(|trail| !trail.note(entry.at.time)) {
            self.trail = None;
        }
        self.share.own += 1;
        self.take_in(entry, head)
    }

    /// Applies an entry that was read at `head`.
    fn apply(&mut self, entry: &Entry, head: Head) -> Applied {
        self.trail = None;
        self.share.others += 1;
        self.take_in(entry, head)
    }

    fn take_in(&mut self, entry: &Entry, head: Head) -> Applied {
        let applied = match &mut self.along {
            Some(along) => apply_seen(&mut self.state, entry, |state| along.apply(entry, state)),
            None => apply(&mut self.state, entry),
        };
        self.head = head;
        self.since_snapshot += 1;
        self.followed += 1;
        if self.followed > ALONG_FRAMES_MAX {
            self.along = None;
        }
        applied
    }

    /// Makes sure that it is known where a key was used.
    pub fn look_up(&mut self, source: &dyn Source, key: KeyDigest) -> Result<(), Error> {
        let keys = match &mut self.keys {
            Some(keys) => keys,
            none => none.insert(Keys::read(source, self.head)?),
        };
        keys.look_up(source, key, self.head)
    }

    /// Lets go of keys that were noted, once there are many: they stand beside the snapshot that was written.
    pub fn forget_keys(&mut self) {
        self.keys = self.keys.take().filter(|keys| !keys.are_many());
    }

    /// Where a key was used up to the head.
    pub fn prior(
        &mut self,
        source: &dyn Source,
        key: KeyDigest,
    ) -> Result<(Head, Option<Prior>), Error> {
        self.look_up(source, key)?;
        Ok((self.head, self.known_prior(key).flatten()))
    }

    /// What was recorded under a key; `None` when it was not looked up.
    pub fn known_prior(&self, key: KeyDigest) -> Option<Option<Prior>> {
        self.keys.as_ref()?.get(key)
    }

    /// Notes a key that was just appended.
    pub fn note_key(&mut self, key: KeyDigest, prior: Prior) {
        if let Some(keys) = &mut self.keys {
            keys.insert(key, prior);
        }
        if let Some(trail) = &mut self.trail {
            trail.note_key(key, prior);
        }
    }
}

fn frames_behind(
    source: &dyn Source,
    mark: Option<Landmark>,
    after: Position,
) -> Result<Box<dyn Frames + '_>, Error> {
    let behind = match mark {
        Some(mark) => source.read_behind(&mark, Depth::Whole)?,
        None => None,
    };
    match behind {
        Some(frames) => Ok(frames),
        None => Ok(source.read_from(after, Depth::Whole)?),
    }
}

/// The head before the first frame. Its chain counts only while there is no frame: a walk from the start
/// compares it with nothing.
fn beginning(source: &dyn Source) -> Result<Head, Error> {
    let head = source.head()?;
    Ok(if head.position.0 == 0 {
        head
    } else {
        Head::default()
    })
}
