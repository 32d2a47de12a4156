//! A stretch of authority as it is written down: the holder is found again by where it was granted.

use tenure_core::command::Bearer;
use tenure_core::event::{Entry, Event};
use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, Moment, Position, RoleNo, SessionNo, Time};
use tenure_core::state::Holder;
use tenure_core::text::Pool;
use tenure_log::frame::Depth;
use tenure_log::position;

use crate::entry;
use crate::error::Error;
use crate::source::Source;
use crate::store::keys::short;
use crate::store::marks;
use crate::store::runs::Subject;

use super::over::Piece;
use super::{Interval, Point};

/// What a stretch is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum About {
    /// A session.
    Session(SessionNo),
    /// The tree of a root.
    Tree(SessionNo),
    /// An item, by its id.
    Item(Vec<u8>),
    /// A role.
    Role(RoleNo),
}

/// What rows are found by.
pub(super) enum Key<'a> {
    /// What a stretch is about.
    About(&'a About),
    /// A piece of the log that a binding lasted through.
    Piece(Piece),
}

impl Key<'_> {
    pub fn subject(&self) -> Subject {
        match self {
            Self::About(about) => about.subject(),
            Self::Piece(Piece { level, index }) => {
                let mut hasher = blake3::Hasher::new();
                hasher
                    .update(b"piece")
                    .update(&level.to_le_bytes())
                    .update(&index.to_le_bytes());
                short(&hasher)
            }
        }
    }
}

impl About {
    pub(super) fn subject(&self) -> Subject {
        let mut hasher = blake3::Hasher::new();
        match self {
            Self::Session(number) => hasher.update(b"session").update(&number.0.to_le_bytes()),
            Self::Tree(root) => hasher.update(b"tree").update(&root.0.to_le_bytes()),
            Self::Item(item) => hasher.update(b"item").update(item),
            Self::Role(number) => hasher.update(b"role").update(&number.0.to_le_bytes()),
        };
        short(&hasher)
    }
}

/// The number of an event's kind, by its word.
pub(super) fn kind(word: &str) -> u16 {
    let known = Event::KINDS.iter().find(|(_, known)| *known == word);
    known.map_or(0, |(number, _)| *number)
}

/// The word of an event's kind.
pub(super) fn word(kind: u16) -> &'static str {
    let known = Event::KINDS.iter().find(|(number, _)| *number == kind);
    known.map_or("unknown", |(_, word)| word)
}

/// A stretch that has ended. Rows of a subject are sorted by where they began and then by where they ended.
pub(super) struct Row {
    subject: Subject,
    since: (Moment, u16),
    until: (Moment, u16),
    session: SessionNo,
    generation: Generation,
    granted: Option<Position>,
    dispatch: Option<DispatchNo>,
}

impl Row {
    pub const BYTES: usize = 16 + 10 * 8;

    /// Of an interval; one that lasts is written as if it ended with the log.
    pub fn of(key: &Key<'_>, interval: &Interval) -> Self {
        let point = |point: Point| (point.at, kind(point.event));
        let end = Moment {
            position: Position(u64::MAX),
            time: Time(i64::MAX),
        };
        Self {
            subject: key.subject(),
            since: point(interval.since),
            until: interval.until.map_or((end, 0), point),
            session: interval.session,
            generation: interval.generation,
            granted: interval.granted,
            dispatch: interval.dispatch,
        }
    }

    pub fn bytes(&self) -> Box<[u8]> {
        let ((since, by), (until, ended)) = (self.since, self.until);
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend_from_slice(&self.subject);
        // What rows are sorted by comes first, and its greatest byte first.
        bytes.extend_from_slice(&since.position.0.to_be_bytes());
        bytes.extend_from_slice(&until.position.0.to_be_bytes());
        let words = [
            since.time.0.cast_unsigned(),
            until.time.0.cast_unsigned(),
            u64::from(by) | u64::from(ended) << 16,
            self.session.0,
            self.generation.incarnation,
            self.generation.number,
            self.granted.map_or(0, |at| at.0),
            self.dispatch.map_or(0, |d| d.0),
        ];
        words
            .iter()
            .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.into()
    }

    /// `None` for bytes of another length.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (subject, rest) = bytes.split_first_chunk()?;
        let (since, rest) = rest.split_first_chunk()?;
        let (until, rest) = rest.split_first_chunk()?;
        let (words, []) = rest.as_chunks::<8>() else {
            return None;
        };
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let [
            began,
            ended,
            kinds,
            session,
            incarnation,
            number,
            granted,
            dispatch,
        ] = words[..]
        else {
            return None;
        };
        let moment = |position: &[u8; 8], time: u64| Moment {
            position: Position(u64::from_be_bytes(*position)),
            time: Time(time.cast_signed()),
        };
        Some(Self {
            subject: *subject,
            since: (moment(since, began), (kinds & 0xffff) as u16),
            until: (moment(until, ended), (kinds >> 16 & 0xffff) as u16),
            session: SessionNo(session),
            generation: Generation {
                incarnation,
                number,
            },
            granted: (granted > 0).then_some(Position(granted)),
            dispatch: (dispatch > 0).then_some(DispatchNo(dispatch)),
        })
    }

    /// The interval without its holder.
    pub fn interval(&self) -> Interval {
        let point = |(at, kind): (Moment, u16)| Point {
            at,
            event: word(kind),
        };
        Interval {
            session: self.session,
            generation: self.generation,
            holder: None,
            granted: self.granted,
            dispatch: self.dispatch,
            since: point(self.since),
            until: Some(point(self.until)),
        }
    }
}

/// The holder of a stretch, from the frame that granted it; its texts join `pool`.
pub(super) fn holder(
    interval: &Interval,
    source: &dyn Source,
    pool: &mut Pool,
) -> Result<Option<Holder>, Error> {
    let (Some(at), None) = (interval.granted, interval.holder) else {
        return Ok(interval.holder);
    };
    let entry = entry_at(source, at)?;
    let mut holder = bearer(&entry, interval.session).map(|bearer| Holder {
        bearing: bearer.bearing,
        actor: pool.intern(entry.texts.get(bearer.actor)),
        host_name: pool.intern(entry.texts.get(bearer.host_name)),
        engine: bearer.engine.map(|e| pool.intern(entry.texts.get(e))),
    });
    if let Some(holder) = &mut holder
        && interval.since.event == word(ROLE_TAKEN)
    {
        let entry = entry_at(source, interval.since.at.position)?;
        let process = entry.events.iter().find_map(|event| match event {
            Event::RoleTaken(e) if e.session == interval.session => e.process,
            _ => None,
        });
        holder.bearing = process.unwrap_or(holder.bearing);
    }
    Ok(holder)
}

/// The kind of the event that gives a role, which may name a process of its own.
const ROLE_TAKEN: u16 = 50;

pub(super) fn entry_at(source: &dyn Source, at: Position) -> Result<Entry, Error> {
    let before = position::Position(at.0.saturating_sub(1));
    let mut frames = marks::read_from(source, before, Depth::Whole)?;
    match frames.next() {
        Some(frame) => entry::decode(&frame?),
        None => Err(Error::BeyondHead {
            head: Position(source.newest()?.0),
            asked: at,
        }),
    }
}

/// Who was granted the session there, or claimed its tree.
fn bearer(entry: &Entry, session: SessionNo) -> Option<Bearer> {
    let granted = entry.events.iter().find_map(|event| match event {
        Event::Registered(e) if e.session == session => Some(e.bearer),
        Event::Adopted(e) if e.session == session => Some(e.bearer),
        _ => None,
    });
    granted.or_else(|| {
        entry.events.iter().find_map(|event| match event {
            Event::Claimed(e) if e.root == session => Some(e.bearer),
            _ => None,
        })
    })
}
