//! Drives projections along a log: from a state, to a position or the head, and on as the log grows.

use tenure_core::apply::{Applied, apply};
use tenure_core::decide::stands;
use tenure_core::event::Entry;
use tenure_core::id::Position;
use tenure_core::state::State;
use tenure_log::journal::Deadline;

use crate::error::Error;
use crate::projection::Projection;
use crate::reader::Reader;
use crate::store::scratch;

/// An entry that no projection was shown, because it grants nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Its fence was not current at its position: no program that keeps to the rules wrote it (F2).
    DoesNotStand(Position),
    /// It holds an event kind that a newer program wrote and that may decide about authority (LOG-7).
    Unknown {
        /// Where.
        position: Position,
        /// The first such kind.
        kind: u16,
    },
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DoesNotStand(position) => {
                write!(f, "the frame at position {position} did not stand there")
            }
            Self::Unknown { position, kind } => {
                write!(
                    f,
                    "event kind {kind} at position {position} is of a newer program"
                )
            }
        }
    }
}

/// A replay: the state at one position of a log, moved forward entry by entry.
#[derive(Clone, Debug, Default)]
pub struct Projector {
    state: State,
    findings: Vec<Finding>,
}

impl Projector {
    /// Before the first frame.
    #[must_use]
    pub fn new() -> Self {
        Self::from_state(State::new())
    }

    /// At the position of `state`. Projections shown what follows must have seen what came before, or need
    /// nothing of it.
    #[must_use]
    pub fn from_state(state: State) -> Self {
        Self {
            state,
            findings: Vec::new(),
        }
    }

    /// The state at the position reached.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The position reached.
    #[must_use]
    pub fn position(&self) -> Position {
        self.state.at.position
    }

    /// What was passed over so far, in order.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Shows one entry to the projections, then folds it. It has to be the one behind [`Projector::position`].
    pub fn feed(&mut self, entry: &Entry, projections: &mut [&mut dyn Projection]) {
        if !projections.is_empty() && entry.unknown.is_none() && stands(&self.state, entry) {
            for projection in projections {
                projection.apply(entry, &self.state);
            }
        }
        let position = entry.at.position;
        match (apply(&mut self.state, entry), entry.unknown) {
            (_, Some(kind)) => self.findings.push(Finding::Unknown { position, kind }),
            (Applied::Finding, None) => self.findings.push(Finding::DoesNotStand(position)),
            (Applied::Honoured | Applied::Unproven | Applied::Unknown, None) => {}
        }
    }

    /// Moves along a store to `to`, or to the newest position that can be shown.
    ///
    /// # Errors
    /// [`Error::BeyondHead`] when the log does not reach `to`; when a frame cannot be read or does not decode: the
    /// projector then stands before it.
    pub fn read(
        &mut self,
        reader: &Reader,
        to: Option<Position>,
        projections: &mut [&mut dyn Projection],
    ) -> Result<(), Error> {
        let head = Position(reader.head()?.position.0);
        let asked = to.unwrap_or(head);
        if head < asked {
            return Err(Error::BeyondHead { head, asked });
        }
        if self.position() >= asked {
            return Ok(());
        }
        scratch::put_away(&mut self.state, &reader.source);
        let next = Position(self.position().0 + 1);
        reader.each_entry(next, asked, |entry| self.feed(entry, projections))
    }

    /// Waits until the log goes on, or the deadline has passed, and moves to the newest position that can be shown.
    /// Says whether it moved.
    ///
    /// # Errors
    /// As [`Projector::read`].
    pub fn follow(
        &mut self,
        reader: &Reader,
        deadline: Deadline,
        projections: &mut [&mut dyn Projection],
    ) -> Result<bool, Error> {
        let before = self.position();
        reader.wait_beyond(before, deadline)?;
        self.read(reader, None, projections)?;
        Ok(self.position() > before)
    }
}
