//! Shared checkouts: something true and worth saying that is no reason to refuse (DSC-1 to DSC-7).

use alloc::vec::Vec;

use crate::generation::Generation;
use crate::id::{DispatchNo, SessionNo};
use crate::path::{Level, Scope, overlap};
use crate::state::{Holder, State};
use crate::text::Symbol;

wire_enum! {
    /// How it is known that a session works somewhere; the stronger first.
    pub enum Presence {
        /// The write scope of a dispatch it accepted.
        Declared = 1 "declared",
        /// A path it was seen to write.
        Observed = 2 "observed",
        /// The checkout it said it works in.
        Present = 3 "present",
    }
}

/// What to tell a session that shares files with others.
pub const INSTRUCTION_TREE: &str = "Others are changing files in this checkout. Leave their changes alone: \
no revert, stash, reset, clean or commit of what is not yours. Stage by explicit path. Ask before touching \
a file that another session is changing.";

/// What to tell a session that shares only a repository with others.
pub const INSTRUCTION_REPOSITORY: &str = "Others work in another worktree of this repository. Leave their \
branches, refs and stash entries alone.";

/// Another session, or a former holder of one, that works where somebody is about to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shared {
    /// Which session.
    pub session: SessionNo,
    /// Set for a former holder that was never proven dead: the generation it held, and who it was.
    pub former: Option<(Generation, Holder)>,
    /// The nearest level at which it meets the asker.
    pub level: Level,
    /// How it is known.
    pub source: Presence,
    /// Its scopes that meet the asker's.
    pub writes: Vec<Symbol>,
    /// Its dispatches to which those scopes belong.
    pub dispatches: Vec<DispatchNo>,
}

/// Every session at work where `scopes` are, in order of session numbers, each behind its former holders;
/// `asker` itself is left out, its former holders are not.
#[must_use]
pub fn shared(state: &State, asker: Option<SessionNo>, scopes: &[Scope<Symbol>]) -> Vec<Shared> {
    let mut found = Vec::new();
    if scopes.is_empty() {
        return found;
    }
    for (number, session) in state.sessions.iter().enumerate() {
        let number = SessionNo(number as u64);
        for former in &session.formers {
            let places = former.places.iter();
            let places = places.map(|p| (p.source, p.dispatch, &p.scope));
            found.extend(meet(state, number, places, scopes).map(|meeting| Shared {
                former: Some((former.generation, former.holder)),
                ..meeting
            }));
        }
        if Some(number) != asker && !session.retired {
            found.extend(meet(state, number, state.presence(number), scopes));
        }
    }
    found
}

/// Where somebody at `places` meets the scopes, by the strongest source that does.
fn meet<'s>(
    state: &State,
    session: SessionNo,
    places: impl Iterator<Item = (Presence, Option<DispatchNo>, &'s Scope<Symbol>)>,
    scopes: &[Scope<Symbol>],
) -> Option<Shared> {
    let mut meeting: Option<Shared> = None;
    for (source, dispatch, theirs) in places {
        let text = |s: Symbol| state.pool.get(s);
        let Some(level) = scopes
            .iter()
            .filter_map(|mine| overlap(mine, theirs, text))
            .min()
        else {
            continue;
        };
        let entry = meeting.get_or_insert_with(|| Shared {
            session,
            former: None,
            level,
            source,
            writes: Vec::new(),
            dispatches: Vec::new(),
        });
        entry.level = entry.level.min(level);
        entry.source = entry.source.min(source);
        if !entry.writes.contains(&theirs.path) {
            entry.writes.push(theirs.path);
        }
        if let Some(dispatch) = dispatch.filter(|d| !entry.dispatches.contains(d)) {
            entry.dispatches.push(dispatch);
        }
    }
    meeting
}

/// The instruction that goes with a list; `None` when alone (DSC-5).
#[must_use]
pub fn instruction(list: &[Shared]) -> Option<&'static str> {
    list.iter().map(|s| s.level).min().map(|level| match level {
        Level::Tree => INSTRUCTION_TREE,
        Level::Repository => INSTRUCTION_REPOSITORY,
    })
}
