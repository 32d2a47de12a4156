//! A second judge: a few rules of authority, kept without the code that decides and applies.

use std::collections::BTreeMap;

use tenure_core::event::{Entry, Event, Reconciliation};
use tenure_core::generation::Generation;
use tenure_core::id::{DispatchNo, EnvelopeNo, SessionNo};

use super::Rule;

/// What it takes to see that a token was issued twice, a generation went back, an item was bound twice, an
/// envelope is ahead, or a stranger gave a receipt. It takes every frame at its word, also those that nobody
/// honours.
#[derive(Debug, Default)]
pub struct Ledger {
    granted: BTreeMap<SessionNo, Generation>,
    dispatches: BTreeMap<DispatchNo, Given>,
    bound: BTreeMap<Vec<u8>, DispatchNo>,
    envelopes: BTreeMap<EnvelopeNo, SessionNo>,
    /// The root of the tree that a session was delegated into.
    roots: BTreeMap<SessionNo, SessionNo>,
}

#[derive(Debug)]
struct Given {
    item: Vec<u8>,
    session: SessionNo,
}

impl Ledger {
    /// Takes an entry in; gives the rules it breaks.
    pub fn note(&mut self, entry: &Entry) -> Vec<(Rule, String)> {
        let mut broken = Vec::new();
        for event in &entry.events {
            broken.extend(self.event(entry, event));
        }
        broken
    }

    /// Takes in an entry behind a loss, where what broke a rule may only have lost its reason: whatever it takes for
    /// granted was so.
    pub fn believe(&mut self, entry: &Entry) {
        if let (Some(session), Some(named)) = (entry.fence.session, entry.fence.named) {
            let newest = self.granted.entry(session).or_insert(named);
            *newest = named.max(*newest);
        }
        for event in &entry.events {
            let addressed = match event {
                Event::Dispatched(e) => Some((e.session, e.generation)),
                Event::Sent(e) => Some((e.session, e.generation)),
                Event::HandedOver(e) => Some((e.session, e.generation)),
                _ => None,
            };
            if let Some((session, generation)) = addressed {
                let newest = self.granted.entry(session).or_insert(generation);
                *newest = generation.max(*newest);
            }
            if let Event::Dispatched(e) = event {
                self.bound.remove(entry.texts.get(e.item));
            }
        }
        drop(self.note(entry));
    }

    fn event(&mut self, entry: &Entry, event: &Event) -> Option<(Rule, String)> {
        match event {
            Event::Registered(e) => {
                self.roots.remove(&e.session);
                return self.grant(e.session, e.generation);
            }
            Event::Delegated(e) => drop(self.roots.insert(e.session, e.root)),
            Event::Unreserved(e) => {
                let members = self.roots.iter().filter(|(_, root)| **root == e.root);
                let members: Vec<_> = members.map(|(session, _)| *session).collect();
                self.free_all(e.root);
                members
                    .into_iter()
                    .for_each(|session| self.free_all(session));
            }
            Event::Reconciled(e) if e.how == Reconciliation::ParentCancelled => {
                self.free_all(e.session);
            }
            Event::Adopted(e) => return self.grant(e.session, e.generation),
            Event::Dispatched(e) => {
                let item = entry.texts.get(e.item).to_vec();
                let session = e.session;
                self.dispatches.insert(e.dispatch, Given { item, session });
                return self.address(e.envelope, e.session, e.generation);
            }
            Event::Sent(e) => return self.address(e.envelope, e.session, e.generation),
            Event::AssignmentFailed(e) => {
                if let Some(given) = self.dispatches.get(&e.dispatch) {
                    self.envelopes.insert(e.notice, given.session);
                }
                self.free(e.dispatch);
            }
            Event::Accepted(e) => return self.bind(e.dispatch),
            Event::Declined(e) => self.free(e.dispatch),
            Event::Reported(e) => self.free(e.dispatch),
            Event::Cancelled(e) => self.free(e.dispatch),
            Event::Retired(e) => self.free_all(e.session),
            Event::Fenced(e) => self.free_all(e.session),
            Event::Delivered(e) => return self.receipt(entry, e.envelope),
            Event::Acknowledged(e) => return self.receipt(entry, e.envelope),
            _ => {}
        }
        None
    }

    fn grant(&mut self, session: SessionNo, generation: Generation) -> Option<(Rule, String)> {
        let before = self.granted.get(&session).copied();
        match before {
            Some(before) if generation == before => {
                let message = format!("generation {generation} of this session was issued before");
                Some((Rule::TokenIssuedTwice, message))
            }
            Some(before) if generation < before => {
                let message = format!("generation {generation} was granted after {before}");
                Some((Rule::GenerationWentBack, message))
            }
            _ => {
                self.granted.insert(session, generation);
                None
            }
        }
    }

    fn address(
        &mut self,
        envelope: EnvelopeNo,
        session: SessionNo,
        generation: Generation,
    ) -> Option<(Rule, String)> {
        self.envelopes.insert(envelope, session);
        let newest = self.granted.get(&session).copied();
        // After a raise the session stands at a number of the new life that was granted to nobody yet.
        let ahead =
            newest.is_none_or(|newest| newest < generation && newest.number < generation.number);
        ahead.then(|| {
            let newest = newest.map_or("none".to_owned(), |newest| newest.to_string());
            let message =
                format!("{envelope} is of generation {generation}; the newest granted is {newest}");
            (Rule::EnvelopeAhead, message)
        })
    }

    fn bind(&mut self, dispatch: DispatchNo) -> Option<(Rule, String)> {
        let item = self.dispatches.get(&dispatch)?.item.clone();
        match self.bound.insert(item, dispatch) {
            Some(other) if other != dispatch => {
                let message =
                    format!("{dispatch} is for an item that {other} has an active binding of");
                Some((Rule::TwoBindings, message))
            }
            _ => None,
        }
    }

    fn free(&mut self, dispatch: DispatchNo) {
        if let Some(given) = self.dispatches.get(&dispatch)
            && self.bound.get(&given.item) == Some(&dispatch)
        {
            self.bound.remove(&given.item);
        }
    }

    fn free_all(&mut self, session: SessionNo) {
        let dispatches = &self.dispatches;
        self.bound.retain(|_, dispatch| {
            dispatches
                .get(dispatch)
                .is_none_or(|given| given.session != session)
        });
    }

    fn receipt(&self, entry: &Entry, envelope: EnvelopeNo) -> Option<(Rule, String)> {
        let owner = *self.envelopes.get(&envelope)?;
        let stranger = entry.fence.session.filter(|session| *session != owner)?;
        let message =
            format!("{envelope} is session {owner}'s; session {stranger} gave a receipt for it");
        Some((Rule::ReceiptByStranger, message))
    }
}
