//! The sync that was begun last, and under which signal to wait for a position.
//!
//! Who waits for a position that it covers waits for its end, and everybody else for that of the next one. So a sync wakes
//! whom it served, and of the others one, who leads the next. Two signals are enough, by turns. All of it is a hint, like
//! every wake-up: who is not told looks by itself.

use super::Signal;
use crate::position::Position;

/// The sync that was begun last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begun {
    /// Up to where it makes durable.
    target: Position,
    /// Whether its number is odd.
    odd: bool,
}

impl Begun {
    pub(super) fn pack(self) -> u64 {
        self.target.0 << 1 | u64::from(self.odd)
    }

    pub(super) fn unpack(word: u64) -> Begun {
        Begun {
            target: Position(word >> 1),
            odd: word & 1 == 1,
        }
    }

    /// The one that is begun after this one, up to `target`.
    #[must_use]
    pub fn next(self, target: Position) -> Begun {
        Begun {
            target,
            odd: !self.odd,
        }
    }

    /// What is signalled when it ends, and when the next one does.
    #[must_use]
    pub fn signals(self) -> [Signal; 2] {
        match self.odd {
            false => [Signal::SyncedEven, Signal::SyncedOdd],
            true => [Signal::SyncedOdd, Signal::SyncedEven],
        }
    }

    /// What is signalled when `position` is durable, if no sync fails.
    #[must_use]
    pub fn signal_for(self, position: Position) -> Signal {
        let [this, next] = self.signals();
        if position <= self.target { this } else { next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_is_told_by_the_first_sync_that_covers_it() {
        let mut begun = Begun::unpack(0);
        for target in [Position(5), Position(5), Position(9)] {
            let before = begun.signal_for(target.next());
            begun = begun.next(target);
            assert_eq!(Begun::unpack(begun.pack()), begun);
            // Whoever was too late for the sync before is served by this one, and waits already where it is told.
            assert_eq!(begun.signals()[0], before);
            assert_eq!(begun.signal_for(Position(1)), before);
            assert_eq!(begun.signal_for(target), before);
            assert_ne!(begun.signal_for(target.next()), before);
        }
    }
}
