//! Dispatches, and who else works where they write.

use tenure_core::disclosure::{Presence, Shared, instruction, shared};
use tenure_core::event::{Dispatched, Event};
use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, Moment, Position, SessionNo};
use tenure_core::path::Level;
use tenure_core::state::{DispatchRow, DispatchState};

use super::{HolderView, Lens, shown};
use crate::error::Error;
use crate::store::answer::retain_living;

/// A dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DispatchView {
    /// Its number.
    pub id: DispatchNo,
    /// The item it gives; empty when its frame cannot be found (a gap left by a salvage).
    pub item: String,
    /// A line about it.
    pub title: Option<String>,
    /// By which session; `None`: by an operator.
    pub from: Option<String>,
    /// To which session.
    pub session: String,
    /// The generation it is of: where it was given, or carried to.
    pub generation: Generation,
    /// Its state.
    pub state: DispatchState,
    /// Declared write scopes.
    pub writes: Vec<String>,
    /// What to do.
    pub body: Option<Vec<u8>>,
    /// Why it ended, where a reason was given.
    pub reason: Option<String>,
    /// What was reported.
    pub report: Option<Vec<u8>>,
    /// When it was given.
    pub opened: Moment,
    /// When it came into its state.
    pub since: Moment,
}

/// Another session, or a former holder of one, that works where the asker does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedView {
    /// Which session.
    pub session: String,
    /// For a former holder that was never proven dead: the generation it held.
    pub former: Option<Generation>,
    /// Who holds, or held, it.
    pub holder: Option<HolderView>,
    /// What it last said it is doing; else how it is known.
    pub status: String,
    /// Its scopes that meet the asker's.
    pub writes: Vec<String>,
    /// The items behind them.
    pub items: Vec<String>,
    /// A line about each of the items, where there is one.
    pub titles: Vec<Option<String>>,
    /// The nearest level at which it meets the asker.
    pub level: Level,
    /// How it is known.
    pub source: Presence,
}

impl Lens<'_> {
    /// The dispatch of that number, with what the log has of it; `None` when it was never given.
    ///
    /// # Errors
    /// When its frames cannot be read.
    pub fn dispatch(&self, id: DispatchNo) -> Result<Option<DispatchView>, Error> {
        let Some(row) = self.state.dispatch(id) else {
            return Ok(None);
        };
        let mut view = self.opened(id, &row)?;
        if !row.state.is_live() {
            (view.reason, view.report) = self.ended(id, &row)?;
        }
        Ok(Some(view))
    }

    /// What the frame that gave it says.
    fn opened(&self, id: DispatchNo, row: &DispatchRow) -> Result<DispatchView, Error> {
        let mut view = DispatchView {
            id,
            item: String::new(),
            title: None,
            from: None,
            session: self.name(row.session),
            generation: row.generation,
            state: row.state,
            writes: Vec::new(),
            body: None,
            reason: None,
            report: None,
            opened: row.opened,
            since: row.since,
        };
        if let Some(live) = self.state.live.get(&id) {
            view.item = shown(live.item.as_bytes());
            view.title = live.title.as_ref().map(|t| shown(t.as_bytes()));
            view.from = live.from.map(|s| self.name(s));
            view.writes = live.writes.iter().map(|w| self.text(w.path)).collect();
            view.body = self.body(live.body)?;
            return Ok(view);
        }
        let Some((entry, request)) = self.frame(row.opened.position)? else {
            return Ok(view);
        };
        let given = entry.events.iter().find_map(|event| match event {
            Event::Dispatched(e) if e.dispatch == id => Some(e),
            _ => None,
        });
        if let Some(Dispatched {
            item,
            title,
            from,
            writes,
            body,
            ..
        }) = given
        {
            let text = |t: &tenure_core::text::TextId| shown(entry.texts.get(*t));
            view.item = text(item);
            view.title = title.as_ref().map(text);
            view.from = from.map(|s| self.name(s));
            view.writes = writes.iter().map(|w| text(&w.path)).collect();
            view.body = body.and_then(|b| request.bodies.get(b)).map(<[u8]>::to_vec);
        }
        Ok(view)
    }

    /// Why it ended, and what was reported.
    fn ended(
        &self,
        id: DispatchNo,
        row: &DispatchRow,
    ) -> Result<(Option<String>, Option<Vec<u8>>), Error> {
        let Some((entry, request)) = self.frame(row.since.position)? else {
            return Ok((None, None));
        };
        let text = |t| Some(shown(entry.texts.get(t)));
        for event in &entry.events {
            match event {
                Event::Declined(e) if e.dispatch == id => return Ok((text(e.reason), None)),
                Event::Cancelled(e) if e.dispatch == id => return Ok((text(e.reason), None)),
                Event::AssignmentFailed(e) if e.dispatch == id => {
                    return Ok((text(e.reason), None));
                }
                Event::Reported(e) if e.dispatch == id => {
                    let body = e.body.and_then(|b| request.bodies.get(b));
                    return Ok((None, body.map(<[u8]>::to_vec)));
                }
                Event::Retired(e) if e.session == row.session => {
                    return Ok((Some("session-retired".into()), None));
                }
                Event::Fenced(e) if e.session == row.session => {
                    return Ok((Some("fenced-generation".into()), None));
                }
                _ => {}
            }
        }
        Ok((None, None))
    }

    /// One entry of a list of shared checkouts.
    #[must_use]
    pub fn shared(&self, shared: &Shared) -> SharedView {
        let session = self.state.session(shared.session);
        let live = shared
            .dispatches
            .iter()
            .filter_map(|d| self.state.live.get(d));
        let (items, titles) = live
            .map(|d| {
                let title = d.title.as_ref().map(|t| shown(t.as_bytes()));
                (shown(d.item.as_bytes()), title)
            })
            .unzip();
        let said = session.and_then(|s| s.status.as_ref());
        let said = said.map(|s| shown(s.as_bytes()));
        let holder = match &shared.former {
            Some((_, holder)) => Some(*holder),
            None => session.and_then(|s| s.holder),
        };
        let status = match (&shared.former, said) {
            (Some(_), _) => "superseded, and may still be writing".to_owned(),
            (None, Some(said)) => said,
            (None, None) if shared.dispatches.is_empty() => shared.source.as_str().to_owned(),
            (None, None) => DispatchState::Accepted.as_str().to_owned(),
        };
        SharedView {
            session: self.name(shared.session),
            former: shared.former.as_ref().map(|(generation, _)| *generation),
            holder: holder.map(|h| self.holder(&h)),
            status,
            writes: shared.writes.iter().map(|w| self.text(*w)).collect(),
            items,
            titles,
            level: shared.level,
            source: shared.source,
        }
    }

    /// Who else is at work where a session is, with what to mind (DSC-10).
    #[must_use]
    pub fn shared_with(&self, session: SessionNo) -> (Vec<SharedView>, Option<&'static str>) {
        let scopes: Vec<_> = self
            .state
            .presence(session)
            .map(|(_, _, scope)| scope.clone())
            .collect();
        let mut list = shared(self.state, Some(session), &scopes);
        retain_living(self.host, &mut list);
        (
            list.iter().map(|s| self.shared(s)).collect(),
            instruction(&list),
        )
    }

    /// The dispatch that has the item, if one is live.
    #[must_use]
    pub fn live_dispatch_of(&self, item: &[u8]) -> Option<DispatchNo> {
        self.state.live_dispatch_of(item)
    }

    /// Numbers of every dispatch ever given, oldest first.
    pub fn dispatches(&self) -> impl Iterator<Item = DispatchNo> {
        (1..self.state.dispatches.len() as u64)
            .map(DispatchNo)
            .filter(|d| self.state.dispatch(*d).is_some())
    }

    /// The position of the newest entry.
    #[must_use]
    pub fn position(&self) -> Position {
        self.state.at.position
    }
}
