//! Leaving out one guard at a time, so that a test can write what a store without it would have written. Compiled
//! under `--cfg tenure_forge` only, which no build sets by itself.

use std::cell::Cell;
use std::panic::Location;

use crate::command::{Command, Presented};
use crate::generation::{Epoch, Generation};
use crate::history::FoundRecord;
use crate::id::{DispatchNo, EnvelopeNo, SessionNo};
use crate::refusal::Refusal;
use crate::seal::Seal;
use crate::state::{DispatchRow, EnvelopeRow, Session};

use super::guard::Ask;

/// Where a guard stands in the code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Guard {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line of the call.
    pub line: u32,
}

std::thread_local! {
    static LEFT_OUT: Cell<Option<Guard>> = const { Cell::new(None) };
    static REFUSED: Cell<Option<Guard>> = const { Cell::new(None) };
}

/// Runs `f` without that guard, on this thread.
pub fn without<R>(guard: Guard, f: impl FnOnce() -> R) -> R {
    LEFT_OUT.set(Some(guard));
    let done = f();
    LEFT_OUT.set(None);
    done
}

/// The guard that made this thread's last refusal.
#[must_use]
pub fn last() -> Option<Guard> {
    REFUSED.get()
}

/// Whether the guard at that place is left out; else it is the one that refuses.
fn is_left_out(at: &'static Location<'static>) -> bool {
    let guard = Guard {
        file: at.file(),
        line: at.line(),
    };
    let left_out = LEFT_OUT.get() == Some(guard);
    if !left_out {
        REFUSED.set(Some(guard));
    }
    left_out
}

impl<'a> Ask<'a> {
    #[track_caller]
    pub(super) fn refuse(self, refusal: Refusal) -> Result<(), Refusal> {
        if is_left_out(Location::caller()) {
            return Ok(());
        }
        Err(refusal)
    }

    #[track_caller]
    pub(super) fn found<T: StandIn<'a>>(
        self,
        found: Option<T>,
        refusal: impl FnOnce() -> Refusal,
    ) -> Result<T, Refusal> {
        match found {
            Some(found) => Ok(found),
            None if is_left_out(Location::caller()) => T::stand_in(self).ok_or_else(refusal),
            None => Err(refusal()),
        }
    }
}

/// What a store takes that does not look whether there is what was asked for: the first there is.
pub(super) trait StandIn<'a>: Sized {
    fn stand_in(ask: Ask<'a>) -> Option<Self>;
}

impl<'a> StandIn<'a> for (SessionNo, &'a Session) {
    fn stand_in(ask: Ask<'a>) -> Option<Self> {
        Some((SessionNo(0), ask.state.session(SessionNo(0))?))
    }
}

impl StandIn<'_> for DispatchRow {
    fn stand_in(ask: Ask<'_>) -> Option<Self> {
        ask.state.dispatch(DispatchNo(1))
    }
}

impl StandIn<'_> for EnvelopeRow {
    fn stand_in(ask: Ask<'_>) -> Option<Self> {
        ask.state.envelope(EnvelopeNo(1))
    }
}

/// Whoever asks is taken for the first holder of the session of that name.
impl StandIn<'_> for Presented {
    fn stand_in(ask: Ask<'_>) -> Option<Self> {
        Some(Self {
            name: ask.request.input.origin.actor,
            generation: Generation::first(ask.state.incarnation),
            secret_matched: None,
        })
    }
}

/// Whatever record was found, seen by the history that is to be cut or not.
impl StandIn<'_> for FoundRecord {
    fn stand_in(ask: Ask<'_>) -> Option<Self> {
        match &ask.request.input.command {
            Command::Branch(c) => c.found,
            Command::BranchInTree(c) => c.found,
            Command::Revert(c) => c.found,
            _ => None,
        }
    }
}

impl StandIn<'_> for Generation {
    fn stand_in(_: Ask<'_>) -> Option<Self> {
        None
    }
}

impl StandIn<'_> for Epoch {
    fn stand_in(_: Ask<'_>) -> Option<Self> {
        None
    }
}

impl StandIn<'_> for Seal {
    fn stand_in(_: Ask<'_>) -> Option<Self> {
        None
    }
}
