//! Shared checkouts: something true and worth saying that is no reason to refuse (DSC-1 to DSC-7).

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::generation::Generation;
use crate::id::{DispatchNo, Position, SessionNo};
use crate::path::{Level, Meeting, Scope, contains, is_in, meet, meet_elsewhere};
use crate::state::{Holder, Policy, State};
use crate::text::Symbol;

wire_enum! {
    /// What applies where two sessions meet in a place; the stricter later.
    pub enum Rule {
        /// Both are told of each other, and both go on.
        Disclose = 1 "disclose",
        /// The first attempt after somebody is met waits for an identical second one.
        WarnOnce = 2 "warn-once",
        /// One session writes there; others are refused.
        Refuse = 3 "refuse",
    }
}

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
    /// What the policies say of the places where it certainly meets the asker.
    pub rule: Rule,
    /// Its scopes that meet the asker's.
    pub writes: Vec<Symbol>,
    /// Its dispatches to which those scopes belong.
    pub dispatches: Vec<DispatchNo>,
}

/// Another session as an event names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Peer {
    /// Which session.
    pub session: SessionNo,
    /// Its generation, or the one that its former holder had.
    pub generation: Generation,
    /// The nearest level at which it meets the asker.
    pub level: Level,
}

/// Every session at work where `scopes` are, in order of session numbers, each behind its former holders;
/// `asker` itself is left out, its former holders are not.
#[must_use]
pub fn shared(state: &State, asker: Option<SessionNo>, scopes: &[Scope<Symbol>]) -> Vec<Shared> {
    let text = |s: &Symbol| state.pool.get(*s);
    let scopes: Vec<_> = scopes.iter().map(|scope| scope.map(text)).collect();
    shared_at(state, asker, &scopes)
}

/// As [`shared`], for scopes that the state need not know.
#[must_use]
pub fn shared_at(state: &State, asker: Option<SessionNo>, scopes: &[Scope<&[u8]>]) -> Vec<Shared> {
    shared_under(state, asker, scopes, Rule::Disclose)
}

/// As [`shared_at`], where at least `least` applies everywhere.
#[must_use]
pub fn shared_under(
    state: &State,
    asker: Option<SessionNo>,
    scopes: &[Scope<&[u8]>],
    least: Rule,
) -> Vec<Shared> {
    let mut found = Vec::new();
    if scopes.is_empty() {
        return found;
    }
    let look = Look {
        state,
        asker,
        scopes,
        least,
    };
    for (number, session) in state.sessions_at_work() {
        for former in &session.formers {
            let places = former.places.iter();
            let places = places.map(|p| (p.source, p.dispatch, &p.scope));
            let held = Some((former.generation, former.holder));
            found.extend(look.meet(number, held, places));
        }
        if Some(number) != asker && !session.retired {
            found.extend(look.meet(number, None, state.presence(number)));
        }
    }
    found
}

/// Somebody asks who is where.
#[derive(Clone, Copy)]
struct Look<'a> {
    state: &'a State,
    asker: Option<SessionNo>,
    scopes: &'a [Scope<&'a [u8]>],
    /// What applies at least.
    least: Rule,
}

impl<'a> Look<'a> {
    /// Where somebody at `places` meets the scopes, by the strongest source that does.
    fn meet(
        self,
        session: SessionNo,
        former: Option<(Generation, Holder)>,
        places: impl Iterator<Item = (Presence, Option<DispatchNo>, &'a Scope<Symbol>)>,
    ) -> Option<Shared> {
        let mut meeting: Option<Shared> = None;
        for (source, dispatch, place) in places {
            let theirs = place.map(|s| self.state.pool.get(*s));
            let mine = |mine| Some((mine, meets(self.state, mine, &theirs)?));
            let meetings: Vec<_> = self.scopes.iter().filter_map(mine).collect();
            let Some(level) = meetings.iter().map(|(_, m)| m.level).min() else {
                continue;
            };
            let entry = meeting.get_or_insert_with(|| Shared {
                session,
                former,
                level,
                source,
                rule: Rule::Disclose,
                writes: Vec::new(),
                dispatches: Vec::new(),
            });
            entry.level = entry.level.min(level);
            entry.source = entry.source.min(source);
            for (mine, meeting) in meetings.iter().filter(|(_, m)| m.certain) {
                let at = if meeting.second_is_deeper {
                    &theirs
                } else {
                    *mine
                };
                let first = former.is_none() && self.goes_before(source, dispatch, at);
                entry.rule = entry
                    .rule
                    .max(match rule_at(self.state, at).max(self.least) {
                        Rule::Refuse if !first => Rule::Disclose,
                        rule => rule,
                    });
            }
            if !entry.writes.contains(&place.path) {
                entry.writes.push(place.path);
            }
            if let Some(dispatch) = dispatch.filter(|d| !entry.dispatches.contains(d)) {
                entry.dispatches.push(dispatch);
            }
        }
        meeting
    }

    /// Whether another session goes before the asker at a place where one alone may write: it accepted work there
    /// before the asker did, or it was seen to write there and the asker accepted none.
    fn goes_before(
        self,
        source: Presence,
        dispatch: Option<DispatchNo>,
        place: &Scope<&[u8]>,
    ) -> bool {
        let own = self
            .asker
            .and_then(|asker| self.accepted_there(asker, place));
        let since = |d: DispatchNo| self.state.dispatch(d).map(|row| row.since.position);
        match (source, own) {
            (Presence::Present, _) | (Presence::Observed, Some(_)) => false,
            (_, None) => true,
            (Presence::Declared, Some(own)) => {
                dispatch.and_then(since).is_some_and(|theirs| theirs < own)
            }
        }
    }

    /// Since when a session has accepted work with a scope that contains the place.
    fn accepted_there(self, session: SessionNo, place: &Scope<&[u8]>) -> Option<Position> {
        let declared = self.state.presence(session).filter(|(source, _, scope)| {
            let scope = scope.map(|s| self.state.pool.get(*s));
            *source == Presence::Declared && contains(&scope, place).is_some()
        });
        declared
            .filter_map(|(_, dispatch, _)| Some(self.state.dispatch(dispatch?)?.since.position))
            .min()
    }
}

/// How two scopes meet, where those of different hosts do so in places that were declared shared.
#[must_use]
pub fn meets(state: &State, mine: &Scope<&[u8]>, theirs: &Scope<&[u8]>) -> Option<Meeting> {
    if mine.host == theirs.host {
        return meet(mine, theirs);
    }
    let declared = |scope| is_shared(state, scope);
    let shared = declared(mine) && declared(theirs);
    shared.then(|| meet_elsewhere(mine, theirs)).flatten()
}

/// What applies at a place: the rule of the longest policy scope that contains it, the newest of equals.
#[must_use]
pub fn rule_at(state: &State, place: &Scope<&[u8]>) -> Rule {
    let length = |policy: &Policy| contains(&policy.scope.map(|s| state.pool.get(*s)), place);
    let containing = state.policies.iter().filter_map(|p| Some((length(p)?, p)));
    containing
        .max_by_key(|(length, policy)| (*length, policy.at.position))
        .map_or(Rule::Disclose, |(_, policy)| policy.rule)
}

/// Whether a path was declared to be one place on every host.
fn is_shared(state: &State, place: &Scope<&[u8]>) -> bool {
    state
        .policies
        .iter()
        .any(|p| p.shared && is_in(state.pool.get(p.scope.path), place.path))
}

/// The instruction that goes with a list; `None` when alone (DSC-5).
#[must_use]
pub fn instruction(list: &[Shared]) -> Option<&'static str> {
    list.iter().map(|s| s.level).min().map(|level| match level {
        Level::Tree => INSTRUCTION_TREE,
        Level::Repository => INSTRUCTION_REPOSITORY,
    })
}
