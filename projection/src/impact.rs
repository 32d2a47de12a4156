//! What a generation brought about: everything done under its token, and what that led to.
//!
//! | an event is an effect | and then these are followed |
//! |---|---|
//! | when it was made under a token that is followed | what it introduces: a dispatch, an envelope, a grant |
//! | when it is about a dispatch that is followed: accepted, declined, reported, withdrawn, handed over | |
//! | when it is about an envelope that is followed: delivered, acknowledged, answered | the answer |
//! | when it branches a history behind a record that is an effect | the branch's grant |
//! | when it grants a session to whoever presents a token that is followed | that grant |
//!
//! What another session did besides is its own doing, however it came to its work.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::command::{Ref, Request};
use tenure_core::event::{Entry, Event};
use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, EnvelopeNo, Position, SessionNo};
use tenure_core::state::State;
use tenure_log::frame::Depth;

use crate::entry;
use crate::error::Error;
use crate::reader::Reader;
use crate::views::{EventView, events};

/// An event that a generation brought about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The event.
    pub event: EventView,
    /// Why it is one, in words.
    pub because: String,
}

/// What is followed so far.
#[derive(Debug, Default)]
struct Followed {
    grants: BTreeSet<(SessionNo, Generation)>,
    dispatches: BTreeSet<DispatchNo>,
    envelopes: BTreeSet<EnvelopeNo>,
    /// The first record of each session that is an effect.
    records: BTreeMap<SessionNo, Position>,
}

/// Everything that `generation` of `session` brought about, in the order of the log.
///
/// # Errors
/// When the log cannot be read.
pub fn impact(
    reader: &Reader,
    session: SessionNo,
    generation: Generation,
) -> Result<Vec<Effect>, Error> {
    let head = Position(reader.head()?.position.0);
    let mut followed = Followed::default();
    followed.grants.insert((session, generation));
    let mut effects = Vec::new();
    reader.view(|state| {
        reader.frames(Position(1), head, Depth::Whole, |frame| {
            let entry = entry::decode(frame)?;
            let request = entry::decode_request(frame).ok();
            if let Some(because) = followed.because(state, &entry, request.as_ref()) {
                followed.follow(&entry);
                let all = events(frame, state).into_iter();
                effects.extend(all.map(|event| Effect {
                    event,
                    because: because.clone(),
                }));
            }
            Ok(true)
        })
    })??;
    Ok(effects)
}

impl Followed {
    /// Why an entry is an effect; `None` when it is none.
    fn because(&self, state: &State, entry: &Entry, request: Option<&Request>) -> Option<String> {
        let fence = &entry.fence;
        let token = |session, generation| format!("{}@{generation}", state.name(session));
        if let (Some(session), Some(granted)) = (fence.session, fence.granted)
            && self.grants.contains(&(session, granted))
        {
            return Some(format!("it grants {}", token(session, granted)));
        }
        if fence.granted.is_none()
            && let (Some(session), Some(named)) = (fence.session, fence.named)
            && self.grants.contains(&(session, named))
        {
            return Some(format!("made under {}", token(session, named)));
        }
        // Whoever presents a token to be granted a session, or whose command was refused.
        if let Some((request, presented)) = request.and_then(|r| Some((r, r.input.presented?)))
            && let Some(session) = state.find(request.texts.get(presented.name))
            && self.grants.contains(&(session, presented.generation))
        {
            return Some(format!(
                "asked under {}",
                token(session, presented.generation)
            ));
        }
        entry.events.iter().find_map(|event| self.led_to(event))
    }

    fn led_to(&self, event: &Event) -> Option<String> {
        let dispatch = match event {
            Event::Accepted(e) => Some(e.dispatch),
            Event::Declined(e) => Some(e.dispatch),
            Event::Reported(e) => Some(e.dispatch),
            Event::Cancelled(e) => Some(e.dispatch),
            Event::AssignmentFailed(e) => Some(e.dispatch),
            Event::HandedOver(e) => Some(e.dispatch),
            Event::Attended(e) => Some(e.dispatch),
            _ => None,
        };
        if let Some(dispatch) = dispatch.filter(|d| self.dispatches.contains(d)) {
            return Some(format!("it is about {dispatch}"));
        }
        let envelope = match event {
            Event::Delivered(e) => Some(e.envelope),
            Event::Acknowledged(e) => Some(e.envelope),
            _ => None,
        };
        if let Some(envelope) = envelope.filter(|e| self.envelopes.contains(e)) {
            return Some(format!("it is about {envelope}"));
        }
        match event {
            Event::Sent(e) => match e.re? {
                Ref::Dispatch(d) if self.dispatches.contains(&d) => Some(format!("it answers {d}")),
                Ref::Envelope(n) if self.envelopes.contains(&n) => Some(format!("it answers {n}")),
                _ => None,
            },
            Event::Branched(e) => {
                let first = self.records.get(&e.source)?;
                let taken = e.at.is_some_and(|at| at.position >= *first);
                taken.then(|| format!("it takes over the record at position {first}"))
            }
            _ => None,
        }
    }

    /// What an effect leads to.
    fn follow(&mut self, entry: &Entry) {
        if let (Some(session), Some(granted)) = (entry.fence.session, entry.fence.granted) {
            self.grants.insert((session, granted));
        }
        for event in &entry.events {
            match event {
                Event::Dispatched(e) => {
                    self.dispatches.insert(e.dispatch);
                    self.envelopes.insert(e.envelope);
                }
                Event::Sent(e) => {
                    self.envelopes.insert(e.envelope);
                }
                Event::AssignmentFailed(e) => {
                    self.envelopes.insert(e.notice);
                }
                Event::HandedOver(e) => {
                    self.envelopes.insert(e.envelope);
                }
                Event::Recorded(e) => {
                    self.records.entry(e.session).or_insert(entry.at.position);
                }
                _ => {}
            }
        }
    }
}
