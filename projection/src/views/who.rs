//! Who holds a subject, or held it then.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tenure_core::disclosure::meets;
use tenure_core::generation::Generation;
use tenure_core::id::{Moment, SessionNo};
use tenure_core::path::{Level, Scope};
use tenure_core::state::{DispatchState, Granted};
use tenure_core::text::Symbol;

use super::{HolderView, Lens};
use crate::authority::{Interval, Point};
use crate::host::Host;

/// One holder of a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WhoView {
    /// What was asked.
    pub subject: String,
    /// The moment asked about.
    pub at: Moment,
    /// The session that has it; `None` when nobody has.
    pub session: Option<String>,
    /// The generation it is held under.
    pub generation: Option<Generation>,
    /// Who holds that session.
    pub holder: Option<HolderView>,
    /// Since when.
    pub since: Option<PointView>,
    /// Until when; `None` while it lasts.
    pub until: Option<PointView>,
}

/// Where something began or ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointView {
    /// When.
    pub at: Moment,
    /// The word of the event.
    pub event: &'static str,
}

impl From<Point> for PointView {
    fn from(point: Point) -> Self {
        Self {
            at: point.at,
            event: point.event,
        }
    }
}

impl WhoView {
    /// Nobody.
    #[must_use]
    pub fn nobody(subject: &str, at: Moment) -> Self {
        Self {
            subject: subject.to_owned(),
            at,
            session: None,
            generation: None,
            holder: None,
            since: None,
            until: None,
        }
    }
}

impl Lens<'_> {
    /// Who holds a session now, without looking at the log.
    #[must_use]
    pub fn who_session(&self, subject: &str, number: SessionNo) -> WhoView {
        let nobody = WhoView::nobody(subject, self.state.at);
        let Some(session) = self.state.session(number) else {
            return nobody;
        };
        let Some(holder) = self.state.writer(number) else {
            return nobody;
        };
        let event = match session.grants.last().map(|g| g.how) {
            Some(Granted::Adopted | Granted::Forced) => "adopted",
            _ => "registered",
        };
        WhoView {
            session: Some(self.name(number)),
            generation: Some(session.generation),
            holder: Some(self.holder(&holder)),
            since: Some(PointView {
                at: session.since(),
                event,
            }),
            ..nobody
        }
    }

    /// Who holds the tree of a root now, without looking at the log.
    #[must_use]
    pub fn who_tree(&self, subject: &str, root: SessionNo) -> WhoView {
        let nobody = WhoView::nobody(subject, self.state.at);
        let (Some(session), Some((holder, since))) =
            (self.state.session(root), self.state.tree_holder(root))
        else {
            return nobody;
        };
        let event = match (&session.tree.claimer, session.grants.last().map(|g| g.how)) {
            (Some(_), _) => "claimed",
            (None, Some(Granted::Adopted | Granted::Forced)) => "adopted",
            _ => "registered",
        };
        WhoView {
            session: Some(self.name(root)),
            generation: Some(session.generation),
            holder: Some(self.holder(&holder)),
            since: Some(PointView { at: since, event }),
            ..nobody
        }
    }

    /// Who has the active binding of an item now, without looking at the log.
    #[must_use]
    pub fn who_item(&self, subject: &str, item: &[u8]) -> WhoView {
        let nobody = WhoView::nobody(subject, self.state.at);
        let live = self
            .state
            .live_dispatch_of(item)
            .and_then(|d| self.state.dispatch(d));
        let Some(row) = live.filter(|row| row.state == DispatchState::Accepted) else {
            return nobody;
        };
        let Some(session) = self.state.session(row.session) else {
            return nobody;
        };
        let live = self.state.live_dispatch_of(item);
        let live = live.and_then(|d| self.state.live.get(&d));
        let handed = live.and_then(|d| d.handed_by);
        // A binding that was carried begins anew, under the generation it was carried to.
        let last = session
            .grants
            .last()
            .filter(|note| note.at.position > row.since.position);
        let lapsed = self
            .state
            .tree_note_of(row.session)
            .filter(|note| note.at.position > row.since.position);
        let since = match last {
            _ if let Some(note) = lapsed => PointView {
                at: note.at,
                event: note.how.as_str(),
            },
            Some(note) if note.how == Granted::Raised => PointView {
                at: note.at,
                event: "incarnation-raised",
            },
            Some(note) => PointView {
                at: note.at,
                event: "carried",
            },
            None => PointView {
                at: row.since,
                event: handed.map_or("accepted", |_| "handed-over"),
            },
        };
        WhoView {
            session: Some(self.name(row.session)),
            generation: Some(row.generation),
            holder: self.state.writer(row.session).map(|h| self.holder(&h)),
            since: Some(since),
            ..nobody
        }
    }

    /// Who has declared work over a path now, one for each session, without looking at the log; one that says nobody
    /// where nobody has.
    #[must_use]
    pub fn who_path(&self, subject: &str, path: &Scope<&[u8]>) -> Vec<WhoView> {
        let state = self.state;
        let meets = |scope: &Scope<Symbol>| {
            let meeting = meets(state, path, &scope.map(|s| state.pool.get(*s)));
            meeting.is_some_and(|meeting| meeting.level == Level::Tree)
        };
        let mut found: BTreeMap<SessionNo, WhoView> = BTreeMap::new();
        for (number, live) in &state.live {
            let row = state.dispatch(number);
            let row = row.filter(|row| row.state == DispatchState::Accepted);
            if let Some(row) = row
                && live.writes.iter().any(meets)
            {
                let view = self.who_item(subject, live.item.as_bytes());
                let since = |view: &WhoView| view.since.map(|point| point.at.position);
                match found.entry(row.session) {
                    Entry::Occupied(older) if since(older.get()) <= since(&view) => {}
                    Entry::Occupied(mut newer) => drop(newer.insert(view)),
                    Entry::Vacant(none) => drop(none.insert(view)),
                }
            }
        }
        if found.is_empty() {
            return vec![WhoView::nobody(subject, state.at)];
        }
        found.into_values().collect()
    }

    /// One stretch of authority, as an answer. `pool` has the texts of its holder.
    #[must_use]
    pub fn who_then(
        &self,
        subject: &str,
        at: Moment,
        interval: &Interval,
        pool: &tenure_core::text::Pool,
    ) -> WhoView {
        let host: &dyn Host = self.host;
        WhoView {
            subject: subject.to_owned(),
            at,
            session: Some(self.name(interval.session)),
            generation: Some(interval.generation),
            holder: interval.holder.map(|h| HolderView::of(pool, &h, host)),
            since: Some(interval.since.into()),
            until: interval.until.map(PointView::from),
        }
    }
}
