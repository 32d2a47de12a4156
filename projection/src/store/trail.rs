//! What a handle notes of the frames that it appends, so that its next snapshot need not read them again: when each was
//! decided, the keys that came with them, and where they stand.

use tenure_core::id::{Moment, Position, Time};
use tenure_log::journal::Appended;
use tenure_log::position;

use super::keys::{KeyDigest, Prior};
use super::marks::Marks;

/// Of every frame behind some position, while nobody else appends.
pub(crate) struct Trail {
    since: position::Position,
    times: Vec<Time>,
    keys: Vec<(KeyDigest, Prior)>,
    marks: Marks,
}

/// The most frames that are noted: a handle that writes no snapshots itself does not note them for ever.
const FRAMES_MAX: usize = 1 << 16;

impl Trail {
    /// Of the frames behind `since`.
    pub fn behind(since: position::Position) -> Self {
        Self {
            since,
            times: Vec::new(),
            keys: Vec::new(),
            marks: Marks::default(),
        }
    }

    /// Behind which position it has every frame.
    pub fn since(&self) -> position::Position {
        self.since
    }

    /// Takes in the next frame. Whether there was room for it.
    pub fn note(&mut self, time: Time) -> bool {
        self.times.push(time);
        self.times.len() <= FRAMES_MAX
    }

    /// Takes in a key that the newest frame binds.
    pub fn note_key(&mut self, key: KeyDigest, prior: Prior) {
        self.keys.push((key, prior));
    }

    /// Takes in where frames stand that were noted before. Whether that is known of all of them, as far as frames have
    /// places at all.
    pub fn note_marks(&mut self, appended: &Appended) -> bool {
        for mark in &appended.marks {
            self.marks.note(Some(*mark));
        }
        appended.marks.len() == appended.heads.len() || appended.mark.is_none()
    }

    /// Whether it has every frame up to `head`.
    pub fn reaches(&self, head: position::Position) -> bool {
        self.since.0 + self.times.len() as u64 == head.0
    }

    /// When each frame was decided, oldest first.
    pub fn moments(&self) -> impl Iterator<Item = Moment> {
        let times = self.times.iter().zip(self.since.0 + 1..);
        times.map(|(time, position)| Moment {
            position: Position(position),
            time: *time,
        })
    }

    /// The keys in them, and where they stand.
    pub fn into_parts(self) -> (Vec<(KeyDigest, Prior)>, Marks) {
        (self.keys, self.marks)
    }
}
