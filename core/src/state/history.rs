//! The history of a session: of fixed size beside what is open and what was reverted, however many records there
//! are. The records stay in the log.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::history::{ActivityKind, HistoryHash, Point};
use crate::id::{Moment, Position};
use crate::text::Text;

/// Something that a record opened and none has closed.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct OpenActivity {
    /// What it is.
    pub kind: ActivityKind,
    /// Its id within the session.
    pub id: Text,
    /// When it was opened.
    pub since: Moment,
}

/// A history as decisions need it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub struct History {
    /// The newest visible record; `None` in an empty history.
    pub tip: Option<Point>,
    /// The newest point outside every call and approval: where a branch begins when nobody says where. `None`
    /// before the first record.
    pub cut: Option<Point>,
    /// What is open, in the order of opening.
    pub open: Vec<OpenActivity>,
}

impl History {
    /// How many records are visible.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tip.map_or(0, |tip| tip.index)
    }

    /// The position of the newest visible record; zero in an empty history.
    #[must_use]
    pub fn tip_position(&self) -> Position {
        self.tip.map_or(Position(0), |tip| tip.position)
    }

    /// The digest of everything visible.
    #[must_use]
    pub fn hash(&self) -> HistoryHash {
        self.tip.map_or_else(HistoryHash::default, |tip| tip.hash)
    }

    /// The open activity of that kind and id.
    #[must_use]
    pub fn open_activity(&self, kind: ActivityKind, id: &[u8]) -> Option<&OpenActivity> {
        let named = |a: &&OpenActivity| a.kind == kind && a.id.as_bytes() == id;
        self.open.iter().find(named)
    }

    /// How many calls and approvals are open.
    #[must_use]
    pub fn depth(&self) -> u32 {
        let within = self.open.iter().filter(|a| a.kind.is_part_of_a_turn());
        u32::try_from(within.count()).unwrap_or(u32::MAX)
    }

    /// Ends everything that is open: nothing is in the middle of a turn any more.
    pub(crate) fn end_open(&mut self) {
        self.open.clear();
        self.cut = self.tip;
    }
}
