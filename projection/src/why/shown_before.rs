//! Who was shown to whom before they wrote: the proof that a disclosure came first.

use std::collections::BTreeMap;

use tenure_core::disclosure::shared;
use tenure_core::event::{Entry, Event, FenceKind};
use tenure_core::id::{Position, SessionNo};
use tenure_core::state::State;

/// Whom a session was shown, and where it first wrote behind that.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Disclosure {
    /// Each session it was shown, with the position of the first frame that did.
    pub shown: Vec<(String, Position)>,
    /// The first frame behind the newest of those in which it said that it wrote or ended work; `None` so far.
    pub first_write: Option<Position>,
}

/// What is remembered of every session while a log is replayed.
#[derive(Debug, Default)]
pub struct Disclosed {
    sessions: BTreeMap<SessionNo, Seen>,
    /// The session of the last entry that was taken in.
    about: Option<SessionNo>,
}

#[derive(Debug, Default)]
struct Seen {
    shown: BTreeMap<SessionNo, Position>,
    first_write: Option<Position>,
}

fn writes(event: &Event) -> bool {
    matches!(event, Event::Reported(_))
        || matches!(event, Event::Observed(e) if !e.wrote.is_empty())
}

impl Disclosed {
    /// Takes an entry in, with the state before it.
    pub fn note(&mut self, before: &State, entry: &Entry) {
        self.about = entry.fence.session;
        for event in &entry.events {
            if let Event::Joined(joined) = event
                && let Some(session) = before.dispatch(joined.dispatch).map(|row| row.session)
                && let Some(live) = before.live.get(&joined.dispatch)
            {
                let seen = self.sessions.entry(session).or_default();
                for other in shared(before, Some(session), &live.writes) {
                    seen.shown.entry(other.session).or_insert(entry.at.position);
                    seen.first_write = None;
                }
            }
        }
        self.write(entry);
    }

    /// Takes in an entry from behind the one asked about; says whether more is wanted.
    pub fn follow(&mut self, entry: &Entry) -> bool {
        let about = self.about;
        let open = about.and_then(|session| self.sessions.get(&session));
        if open.is_none_or(|seen| seen.first_write.is_some()) {
            return false;
        }
        self.write(entry);
        true
    }

    fn write(&mut self, entry: &Entry) {
        if entry.fence.kind == FenceKind::Write
            && entry.events.iter().any(writes)
            && let Some(seen) = entry.fence.session.and_then(|s| self.sessions.get_mut(&s))
        {
            seen.first_write.get_or_insert(entry.at.position);
        }
    }

    /// What is known of one session, in words.
    #[must_use]
    pub fn of(&self, session: Option<SessionNo>, state: &State) -> Disclosure {
        let Some(seen) = session.and_then(|session| self.sessions.get(&session)) else {
            return Disclosure::default();
        };
        Disclosure {
            shown: seen
                .shown
                .iter()
                .map(|(s, at)| (state.name(*s), *at))
                .collect(),
            first_write: seen.first_write,
        }
    }
}
