//! Reading a history: one walk along the log, forward, from the first record of its oldest ancestor to the newest
//! one asked for. What is visible follows from the state.

use tenure_core::event::{Entry, Event, Reconciliation, Recorded};
use tenure_core::generation::Generation;
use tenure_core::history::{Activity, ActivityKind, FoundRecord, Point};
use tenure_core::id::{Moment, Position, SessionNo};
use tenure_core::state::{State, Stretch};
use tenure_log::frame::{Depth, FrameRef};

use crate::entry;
use crate::error::Error;
use crate::reader::Reader;
use crate::views::shown;

/// One record of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordView {
    /// When it was recorded, and its position.
    pub at: Moment,
    /// Its index in the history, from 1.
    pub index: u64,
    /// Who recorded it: the session itself, or an ancestor.
    pub origin: SessionNo,
    /// Under which generation.
    pub generation: Option<Generation>,
    /// On whose behalf.
    pub actor: String,
    /// What kind of record it is.
    pub kind: String,
    /// The record; `None` where it was taken out of the log.
    pub body: Option<Vec<u8>>,
    /// The activity that begins with it, `KIND:ID`.
    pub opens: Option<String>,
    /// The activity that ends with it.
    pub closes: Option<String>,
    /// Whether a revert hides it.
    pub hidden: bool,
}

/// What a walk along a history comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Passage {
    /// A record.
    Record(Box<RecordView>),
    /// A revert: what stands between `to` and it is hidden. Only where what is hidden is asked for.
    Revert {
        /// When.
        at: Moment,
        /// By which session.
        session: SessionNo,
        /// The record that stayed the newest; zero for none.
        to: Position,
    },
}

/// What of a history is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Whose history.
    pub session: SessionNo,
    /// As it stood behind this position.
    pub until: Position,
    /// Also what is hidden, with the reverts that hide it.
    pub hidden: bool,
}

impl Reader {
    /// The record at a position, as decisions about it are given it; `None` when there is none.
    pub(crate) fn record_at(&self, position: Position) -> Result<Option<FoundRecord>, Error> {
        let mut found = None;
        if position.0 == 0 {
            return Ok(None);
        }
        self.frames(position, position, Depth::Whole, |frame| {
            let entry = entry::decode(frame)?;
            if let [Event::Recorded(e)] = &*entry.events {
                let body = entry.bodies.get(e.body.0 as usize);
                let hash = e.before.with(
                    e.index,
                    entry.texts.get(e.kind),
                    &body.copied().unwrap_or_default(),
                );
                found = Some(FoundRecord {
                    session: e.session,
                    point: Point {
                        position,
                        index: e.index,
                        hash,
                    },
                    depth: e.depth,
                });
            }
            Ok(false)
        })?;
        Ok(found)
    }

    /// Walks along a history, oldest record first. `state` is one that knows the session; `each` returns whether to
    /// go on.
    ///
    /// # Errors
    /// When the log cannot be read, and whatever `each` returns.
    pub fn history(
        &self,
        state: &State,
        span: Span,
        mut each: impl FnMut(Passage) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let lineage = state.lineage(span.session, span.until);
        let Some((first, last)) = reach(state, &lineage, span) else {
            return Ok(());
        };
        let mut decoded = Entry::default();
        self.frames(first, last, Depth::Facts, |frame| {
            entry::decode_into(&mut decoded, frame)?;
            let at = decoded.at;
            let passage = match &*decoded.events {
                [Event::Recorded(e)] => {
                    let shown_by = state.shown_in(&lineage, at.position);
                    let hidden = shown_by != Some(e.session);
                    if hidden && !(span.hidden && is_hidden(state, &lineage, e, at.position)) {
                        return Ok(true);
                    }
                    Passage::Record(Box::new(view(frame, &decoded, e, hidden)?))
                }
                [Event::Reverted(e)] if span.hidden && hides(state, &lineage, e.session, at) => {
                    Passage::Revert {
                        at,
                        session: e.session,
                        to: e.to.map_or(Position(0), |to| to.position),
                    }
                }
                _ => return Ok(true),
            };
            each(passage)
        })
    }
}

/// Where the walk begins and ends; `None` when there is nothing to be seen.
fn reach(state: &State, lineage: &[Stretch], span: Span) -> Option<(Position, Position)> {
    let oldest = lineage.iter().rfind(|s| s.to > s.after)?;
    let history = &state.session(span.session)?.history;
    // Behind the newest record there is nothing more to be found, unless what is hidden is asked for.
    let newest = match span.hidden {
        true => state.at.position,
        false => history.tip_position(),
    };
    let reverted = history.reverts.iter().any(|r| r.marker > span.until);
    let last = if reverted {
        span.until
    } else {
        newest.min(span.until)
    };
    let first = Position(oldest.after.0 + 1);
    (first <= last).then_some((first, last))
}

/// Whether a record that is not visible was recorded in this history all the same.
fn is_hidden(state: &State, lineage: &[Stretch], e: &Recorded, at: Position) -> bool {
    let stretch = lineage.iter().find(|s| s.session == e.session);
    stretch.is_some_and(|s| s.after < at && at <= s.taken) && !state.dishonoured.contains(&at)
}

fn hides(state: &State, lineage: &[Stretch], session: SessionNo, at: Moment) -> bool {
    let stretch = lineage.iter().find(|s| s.session == session);
    stretch.is_some_and(|s| at.position <= s.until) && !state.dishonoured.contains(&at.position)
}

fn view(
    frame: &FrameRef<'_>,
    entry: &Entry,
    e: &Recorded,
    hidden: bool,
) -> Result<RecordView, Error> {
    let activity = |a: Activity| format!("{}:{}", a.kind.as_str(), shown(entry.texts.get(a.id)));
    let request = entry::decode_request(frame)?;
    let actor = request.texts.get(request.input.origin.actor);
    Ok(RecordView {
        at: entry.at,
        index: e.index,
        origin: e.session,
        generation: entry.fence.named,
        actor: shown(actor),
        kind: shown(entry.texts.get(e.kind)),
        body: request.bodies.get(e.body).map(<[u8]>::to_vec),
        opens: e.opens.map(activity),
        closes: e.closes.map(activity),
        hidden,
    })
}

/// How an activity stands. One that was ever recorded is never unknown (DIS-13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActivityState {
    /// It is open.
    Running,
    /// A record closed it.
    Finished,
    /// Its holder was lost while it was open, it was open when it was imported, or it was open where its history was branched, and goes on in the
    /// source alone.
    Interrupted,
    /// Its session or tree was given back while it was open.
    Cancelled,
}

impl ActivityState {
    /// The printed word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }
}

/// An activity that a history knows of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActivityView {
    /// How it stands.
    pub state: ActivityState,
    /// Who opened it: the session itself, or an ancestor.
    pub origin: SessionNo,
    /// When.
    pub opened: Moment,
    /// When it ended, if it did.
    pub ended: Option<Moment>,
}

impl ActivityView {
    fn end(&mut self, state: ActivityState, at: Moment) {
        if self.state == ActivityState::Running {
            (self.state, self.ended) = (state, Some(at));
        }
    }
}

impl Reader {
    /// How the newest activity of that kind and id stands in the history of a session, hidden records included;
    /// `None` when no record ever opened one.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn activity(
        &self,
        state: &State,
        session: SessionNo,
        kind: ActivityKind,
        id: &[u8],
    ) -> Result<Option<ActivityView>, Error> {
        let lineage = state.lineage(session, state.at.position);
        let Some(oldest) = lineage.last() else {
            return Ok(None);
        };
        let mut found: Option<ActivityView> = None;
        let mut decoded = Entry::default();
        let first = Position(oldest.after.0 + 1);
        self.frames(first, state.at.position, Depth::Facts, |frame| {
            entry::decode_into(&mut decoded, frame)?;
            let at = decoded.at;
            if state.dishonoured.contains(&at.position) {
                return Ok(true);
            }
            let within = |by: SessionNo| {
                let stretch = lineage.iter().find(|s| s.session == by);
                stretch.is_some_and(|s| s.after < at.position && at.position <= s.taken)
            };
            let names = |a: Activity| a.kind == kind && decoded.texts.get(a.id) == id;
            for event in &decoded.events {
                let (how, is_its) = match event {
                    Event::Recorded(e) if within(e.session) => {
                        if e.closes.is_some_and(names)
                            && let Some(view) = &mut found
                        {
                            view.end(ActivityState::Finished, at);
                        }
                        if e.opens.is_some_and(names) {
                            found = Some(ActivityView {
                                state: ActivityState::Running,
                                origin: e.session,
                                opened: at,
                                ended: None,
                            });
                        }
                        continue;
                    }
                    Event::Retired(e) => (ActivityState::Cancelled, within(e.session)),
                    Event::Reconciled(e) => (reconciled(e.how), within(e.session)),
                    Event::Released(e) => {
                        let released = released(state, &lineage, e.root, at.position);
                        (ActivityState::Cancelled, released)
                    }
                    Event::Imported(e) => (ActivityState::Interrupted, within(e.session)),
                    // Every ancestor below is over where the branch begins.
                    Event::Branched(e) => {
                        let is_its = lineage.iter().any(|s| s.session == e.session);
                        (ActivityState::Interrupted, is_its)
                    }
                    _ => continue,
                };
                if let Some(view) = found.as_mut().filter(|_| is_its) {
                    view.end(how, at);
                }
            }
            Ok(true)
        })?;
        Ok(found)
    }
}

fn reconciled(how: Reconciliation) -> ActivityState {
    match how {
        Reconciliation::Interrupted => ActivityState::Interrupted,
        Reconciliation::ParentCancelled => ActivityState::Cancelled,
    }
}

/// Whether the tree given back at `at` is that of a session whose part of the lineage lies there.
fn released(state: &State, lineage: &[Stretch], root: SessionNo, at: Position) -> bool {
    let mut there = lineage.iter().filter(|s| s.after < at && at <= s.taken);
    there.any(|s| state.session(s.session).is_some_and(|s| s.root == root))
}
