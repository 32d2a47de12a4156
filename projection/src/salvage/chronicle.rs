//! What the frames of a salvaged log mean: which numbers lost frames gave, which names later frames still have, and what
//! stands in place of what is lost.

use std::collections::BTreeMap;

use tenure_core::apply::apply;
use tenure_core::codec::v1;
use tenure_core::command::{Command, Lose, Origin, Regained, Request, Settle, Settlement};
use tenure_core::decide::{decide, is_unproven};
use tenure_core::event::{Entry, Event, FenceKind};
use tenure_core::generation::Generation;
use tenure_core::holder::HostId;
use tenure_core::id::{DispatchNo, Moment, Position, SessionNo, Time};
use tenure_core::limits::LABEL_BYTES_MAX;
use tenure_core::state::State;
use tenure_core::text::Texts;
use tenure_log::frame::{Draft, FrameRef};
use tenure_log::position::{self, Incarnation, TimeMicros};
use tenure_log::salvage::{Lost, Report as Bytes, Scribe};

use crate::entry;
use crate::error::Error;
use crate::host::Host;

use super::rights::Rights;
use super::{ItemLoss, Names, Order, Report, SessionLoss, lossy};

/// Folds what is kept, and what stands for the rest.
pub(super) struct Chronicle<'c> {
    state: State,
    actor: String,
    reason: String,
    origin: (u32, u32, HostId),
    now: Time,
    count: &'c mut dyn FnMut(u64),
    /// What an earlier pass found out.
    names: Names,
    /// Names that frames have for sessions.
    heard: BTreeMap<SessionNo, Vec<u8>>,
    /// Sessions introduced in lost frames, with the first position of the range in which.
    introduced: Vec<(SessionNo, Position)>,
    /// The newest range of lost positions.
    range: Option<(Position, Position)>,
    sessions: BTreeMap<SessionNo, (Option<Generation>, Option<Generation>)>,
    /// Dispatches that were live where positions were lost.
    live: BTreeMap<DispatchNo, ()>,
    lost_dispatches: Vec<DispatchNo>,
    envelopes: u64,
    rights: Rights,
    fault: Option<Error>,
}

impl<'c> Chronicle<'c> {
    pub(super) fn new(
        order: &Order,
        host: &dyn Host,
        count: &'c mut dyn FnMut(u64),
    ) -> Result<Self, Error> {
        let this = host.this();
        let actor = order
            .actor
            .clone()
            .unwrap_or_else(|| format!("uid{}@{}", this.uid, this.name));
        for (what, text) in [("the actor", &actor), ("a reason", &order.reason)] {
            let (offered, max) = (text.len(), LABEL_BYTES_MAX);
            if offered > max {
                return Err(Error::Limit { what, offered, max });
            }
            if text.trim().is_empty() {
                return Err(Error::Empty(what));
            }
        }
        Ok(Self {
            state: State::new(),
            actor,
            reason: order.reason.clone(),
            origin: (this.uid, this.pid, this.id),
            now: host.now(),
            count,
            names: Names::new(),
            heard: BTreeMap::new(),
            introduced: Vec::new(),
            range: None,
            sessions: BTreeMap::new(),
            live: BTreeMap::new(),
            lost_dispatches: Vec::new(),
            envelopes: 0,
            rights: Rights::default(),
            fault: None,
        })
    }

    pub(super) fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// What was lost, and the names that the next pass can put back.
    pub(super) fn report(self, bytes: Bytes) -> Result<(Report, Names), Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let mut names = Names::new();
        for (session, range) in &self.introduced {
            if let Some(name) = self.heard.get(session) {
                let mut at = *range;
                while names.contains_key(&at) {
                    at.0 += 1;
                }
                names.insert(at, (*session, name.clone()));
            }
        }
        let state = &self.state;
        let name = |number: SessionNo, is_known: bool| {
            let heard = self.heard.get(&number).filter(|_| !is_known);
            heard.map_or_else(|| state.name(number), |name| lossy(name))
        };
        let sessions = self.sessions.iter();
        let sessions = sessions.map(|(number, (before, seen))| SessionLoss {
            number: *number,
            name: name(*number, before.is_some()),
            before: *before,
            seen: *seen,
        });
        let sessions = sessions.collect();
        let lost = self.lost_dispatches.iter().map(|dispatch| ItemLoss {
            dispatch: *dispatch,
            item: None,
            session: None,
            state: None,
        });
        let unsure = self.live.keys().filter_map(|dispatch| {
            let (live, row) = (state.live.get(dispatch)?, state.dispatch(*dispatch)?);
            Some(ItemLoss {
                dispatch: *dispatch,
                item: Some(lossy(live.item.as_bytes())),
                session: Some(state.name(row.session)),
                state: Some(row.state),
            })
        });
        let mut items: Vec<ItemLoss> = lost.chain(unsure).collect();
        items.sort_by_key(|item| item.dispatch);
        let of_root = |root: SessionNo| {
            let note = self.sessions.get(&root);
            name(root, note.is_none_or(|(before, _)| before.is_some()))
        };
        let report = Report {
            roles: self.rights.roles(state),
            trees: self.rights.trees(state, of_root),
            keys: self.rights.keys(&bytes.lost),
            bytes,
            sessions,
            items,
            envelopes: self.envelopes,
            store: None,
            damaged: None,
        };
        Ok((report, names))
    }

    /// Takes an entry in, and notes what it tells of lost ones.
    fn take(&mut self, entry: &Entry) {
        let state = &mut self.state;
        let counts = |state: &State| {
            let (sessions, dispatches) = (state.sessions.len() as u64, state.next_dispatch());
            (sessions, dispatches, state.next_envelope())
        };
        let unproven = is_unproven(state, entry);
        if unproven && let Some(session) = entry.fence.session {
            let known = state.session(session).map(|s| s.generation);
            // A row that stands for a lost one has generation 0.
            let known = known.filter(|generation| generation.number > 0);
            let is_lost = known < entry.fence.named;
            let note = self.sessions.get(&session).copied();
            match note {
                _ if is_lost => {
                    let before = note.map_or(known, |(before, _)| before);
                    self.sessions.insert(session, (before, entry.fence.named));
                }
                // Its generation is what it was: no grant of it is lost.
                Some((Some(_), None)) => drop(self.sessions.remove(&session)),
                _ => {}
            }
        }
        if unproven {
            self.rights.meet(state, entry);
        }
        let (before, roles) = (counts(state), state.next_role());
        let (mut new_sessions, mut new_dispatches) = (0, 0);
        for event in &entry.events {
            new_sessions +=
                u64::from(matches!(event, Event::Registered(e) if e.session.0 >= before.0));
            new_dispatches += u64::from(matches!(event, Event::Dispatched(_)));
        }
        apply(state, entry);
        let after = counts(state);
        if !unproven {
            return;
        }
        self.rights.filled(state, roles, entry);
        let range = self.range.map_or(entry.at.position, |(first, _)| first);
        for number in before.0..after.0.saturating_sub(new_sessions) {
            let session = SessionNo(number);
            self.introduced.push((session, range));
            let note = self.sessions.entry(session).or_insert((None, None));
            note.0 = None;
        }
        let lost = before.1.0..after.1.0.saturating_sub(new_dispatches);
        self.lost_dispatches.extend(lost.map(DispatchNo));
        let filled = (before.2.0..after.2.0).map(tenure_core::id::EnvelopeNo);
        let nobody =
            |row: tenure_core::state::EnvelopeRow| self.state.session(row.session).is_none();
        let filled = filled.filter(|number| self.state.envelope(*number).is_some_and(nobody));
        self.envelopes += filled.count() as u64;
    }

    /// Names that the frame has for sessions: that of the token presented, and of those it is about.
    fn hear(&mut self, entry: &Entry, frame: &FrameRef<'_>) {
        let Ok(request) = entry::decode_request(frame) else {
            return;
        };
        let texts = &request.texts;
        let mut heard = |session: Option<SessionNo>, name| {
            if let Some(session) = session {
                let name = texts.get(name).to_vec();
                self.heard.entry(session).or_insert(name);
            }
        };
        if let Some(presented) = request.input.presented
            && entry.fence.kind == FenceKind::Write
        {
            heard(entry.fence.session, presented.name);
        }
        for event in &entry.events {
            match (event, &request.input.command) {
                (Event::Registered(e), _) => heard(Some(e.session), e.name),
                (Event::Adopted(e), Command::Adopt(c)) => heard(Some(e.session), c.name),
                (Event::Dispatched(e), Command::Dispatch(c)) => heard(Some(e.session), c.to),
                (Event::Sent(e), Command::Send(c)) => heard(Some(e.session), c.to),
                _ => {}
            }
        }
    }

    /// Where positions are lost, everything that is active or live may have changed.
    fn loses(&mut self, lost: &Lost) {
        let last = lost.positions.last.unwrap_or(lost.positions.first);
        let range = (at(lost.positions.first), at(last));
        if self.range == Some(range) {
            return;
        }
        self.range = Some(range);
        let sessions = self.state.sessions.iter().enumerate();
        for (number, session) in sessions.filter(|(_, session)| !session.retired) {
            let number = SessionNo(number as u64);
            let known = (Some(session.generation), None);
            self.sessions.entry(number).or_insert(known);
        }
        self.rights.loses(&self.state);
        self.live
            .extend(self.state.live.keys().map(|dispatch| (dispatch, ())));
    }

    fn request(&self, command: Command, mut texts: Texts, time: Time) -> Request {
        let actor = texts.add(self.actor.as_bytes());
        let (uid, pid, host) = self.origin;
        let origin = Origin {
            actor,
            uid,
            pid,
            host,
        };
        Request::of_the_store(command, origin, texts, time)
    }

    /// Decides, encodes and folds a frame of the salvage's own.
    fn write(&mut self, request: &Request, position: Position, incarnation: u64) -> Draft {
        let decided = decide(&self.state, request)
            .map_err(|refusal| Error::Described(refusal.message))
            .and_then(|decision| Ok((entry::draft(request, &decision)?, decision)));
        match decided {
            Ok((draft, decision)) => {
                self.take(&Entry {
                    at: Moment {
                        position,
                        time: request.time,
                    },
                    incarnation,
                    fence: decision.fence,
                    texts: request.texts.clone(),
                    bodies: Vec::new(),
                    events: decision.events,
                    unknown: None,
                });
                draft
            }
            Err(error) => {
                self.fault.get_or_insert(error);
                Draft {
                    time: TimeMicros(request.time.0),
                    parts: Default::default(),
                }
            }
        }
    }
}

fn at(position: position::Position) -> Position {
    Position(position.0)
}

impl Scribe for Chronicle<'_> {
    fn keeps(&mut self, frame: &FrameRef<'_>) -> bool {
        let Ok(entry) = entry::decode(frame) else {
            return false;
        };
        // A frame may be one whose input only a newer program reads.
        if let Ok(Some(key)) = v1::decode_key(frame.facts) {
            self.rights.key(key.digest, key.taken);
        }
        if self.state.is_unproven() {
            self.hear(&entry, frame);
        }
        self.take(&entry);
        true
    }

    fn lost(&mut self, position: position::Position, life: Incarnation, why: &Lost) -> Draft {
        self.loses(why);
        let position = at(position);
        let mut texts = Texts::default();
        let found = texts.add(why.found.to_string().as_bytes());
        let regained = self.names.get(&position);
        let regained = regained.map(|(session, name)| Regained {
            session: *session,
            name: texts.add(name),
        });
        let lose = Lose {
            first: at(why.segment.first),
            epoch: why.segment.epoch.0,
            offset: why.offset,
            found,
            life: life.0,
            regained,
        };
        // The clock of the frames around it, so that times still lead to positions.
        let time = self.state.at.time;
        let request = self.request(lose.into(), texts, time);
        let incarnation = self.state.incarnation;
        self.write(&request, position, incarnation)
    }

    fn raised(&mut self, report: &Bytes) -> Draft {
        let mut texts = Texts::default();
        let settle = Settle {
            how: Settlement::Salvaged,
            reason: texts.add(self.reason.as_bytes()),
            incarnation: report.incarnation.0,
        };
        let time = self.now.max(self.state.at.time);
        let request = self.request(settle.into(), texts, time);
        self.write(&request, at(report.end.next()), report.incarnation.0)
    }

    fn passed(&mut self, bytes: u64) {
        (self.count)(bytes);
    }
}
