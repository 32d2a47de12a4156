//! Events of one frame, each with its payload spelled out.

use tenure_core::command::{Bearer, Label, Request};
use tenure_core::event::{Entry, Event};
use tenure_core::generation::{Epoch, Generation};
use tenure_core::history::{Activity, Point};
use tenure_core::id::{DispatchNo, EnvelopeNo, Moment, Position, SessionNo};
use tenure_core::path::Scope;
use tenure_core::refusal::Code;
use tenure_core::state::State;
use tenure_core::text::{BodyId, TextId};
use tenure_log::format::SegmentName;
use tenure_log::frame::FrameRef;

use super::shown;
use crate::entry;

mod rights;

/// An event of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventView {
    /// Where it stands.
    pub at: Moment,
    /// Its place among the events of its frame, from 0.
    pub index: usize,
    /// The word of its kind.
    pub kind: String,
    /// Who asked for it.
    pub actor: String,
    /// The session it is about.
    pub session: Option<String>,
    /// The generation it was made under, or that it granted.
    pub generation: Option<Generation>,
    /// What else it says, in order.
    pub payload: Vec<(&'static str, Field)>,
}

/// One value of a payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Field {
    /// Nothing.
    None,
    /// A yes or no.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A short text.
    Text(String),
    /// A free text, which may be any bytes.
    Body(Vec<u8>),
    /// A list of short texts.
    List(Vec<String>),
    /// Pairs of short texts.
    Pairs(Vec<(String, String)>),
}

impl Field {
    fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    fn maybe<T: ToString>(value: Option<T>) -> Self {
        value.map_or(Self::None, |v| Self::Text(v.to_string()))
    }
}

/// What the payload of an event is spelled out with.
#[derive(Clone, Copy)]
struct Spelling<'a> {
    entry: &'a Entry,
    /// `None` where the input is of a newer program.
    request: Option<&'a Request>,
    state: &'a State,
}

/// Every event of a frame, whatever stands in it. `state` is any state that knows the sessions, dispatches and
/// envelopes named; names never change, so one from after the frame does. A deciding kind that this program does
/// not know stands last, as `unknown-N` (LOG-7); content that does not decode is one event, `undecodable`.
#[must_use]
pub fn events(frame: &FrameRef<'_>, state: &State) -> Vec<EventView> {
    let entry = match entry::decode(frame) {
        Ok(entry) => entry,
        Err(error) => {
            return vec![EventView {
                at: entry::moment(&frame.header),
                index: 0,
                kind: "undecodable".to_owned(),
                actor: String::new(),
                session: None,
                generation: None,
                payload: vec![("fault", Field::text(error))],
            }];
        }
    };
    let request = entry::decode_request(frame).ok();
    let spelling = Spelling {
        entry: &entry,
        request: request.as_ref(),
        state,
    };
    let mut views: Vec<EventView> = Vec::with_capacity(entry.events.len());
    for event in &entry.events {
        let (session, generation, payload) = spelling.event(event);
        let named = entry.fence.granted.or(entry.fence.named);
        views.push(EventView {
            at: entry.at,
            index: views.len(),
            kind: event.word().to_owned(),
            actor: spelling.actor(),
            session: session.map(|s| spelling.name(s)),
            generation: generation.or(named.filter(|_| session == entry.fence.session)),
            payload,
        });
    }
    if let Some(kind) = entry.unknown {
        views.push(EventView {
            at: entry.at,
            index: views.len(),
            kind: format!("unknown-{kind}"),
            actor: spelling.actor(),
            session: entry.fence.session.map(|s| spelling.name(s)),
            generation: entry.fence.named,
            payload: Vec::new(),
        });
    }
    views
}

type Payload = Vec<(&'static str, Field)>;
type Spelled = (Option<SessionNo>, Option<Generation>, Payload);

impl Spelling<'_> {
    fn text(self, id: TextId) -> String {
        shown(self.entry.texts.get(id))
    }

    fn actor(self) -> String {
        self.request
            .map(|r| self.text(r.input.origin.actor))
            .unwrap_or_default()
    }

    fn maybe_text(self, id: Option<TextId>) -> Field {
        Field::maybe(id.map(|t| self.text(t)))
    }

    fn body(self, id: Option<BodyId>) -> Field {
        let body = id.and_then(|b| self.request?.bodies.get(b));
        body.map_or(Field::None, |b| Field::Body(b.to_vec()))
    }

    /// The session's name; in the frame that introduces it, the one the frame gives.
    fn name(self, session: SessionNo) -> String {
        if self.state.session(session).is_some() {
            return shown(self.state.name(session).as_bytes());
        }
        let named = self.entry.events.iter().find_map(|event| match event {
            Event::Registered(e) if e.session == session => Some(self.text(e.name)),
            _ => None,
        });
        named.unwrap_or_else(|| session.to_string())
    }

    fn owner(self, dispatch: DispatchNo) -> Option<SessionNo> {
        self.state
            .dispatch(dispatch)
            .map(|row| row.session)
            .or(self.entry.fence.session)
    }

    fn addressee(self, envelope: EnvelopeNo) -> Option<SessionNo> {
        self.state
            .envelope(envelope)
            .map(|row| row.session)
            .or(self.entry.fence.session)
    }

    fn paths(self, scopes: &[Scope<TextId>]) -> Field {
        Field::List(scopes.iter().map(|s| self.text(s.path)).collect())
    }

    fn grant(self, bearer: &Bearer, labels: &[Label]) -> Payload {
        let process = bearer.bearing.process;
        vec![
            ("holder_actor", Field::text(self.text(bearer.actor))),
            ("host", Field::text(self.text(bearer.host_name))),
            ("boot", Field::maybe(bearer.bearing.boot)),
            (
                "pid",
                process.map_or(Field::None, |p| Field::Number(u64::from(p.pid))),
            ),
            ("engine", self.maybe_text(bearer.engine)),
            (
                "labels",
                Field::Pairs(
                    labels
                        .iter()
                        .map(|(k, v)| (self.text(*k), self.text(*v)))
                        .collect(),
                ),
            ),
        ]
    }

    fn event(self, event: &Event) -> Spelled {
        match event {
            Event::Registered(e) => {
                let mut payload = self.grant(&e.bearer, &e.labels);
                let checkout = e.checkout.as_ref().map(|c| self.text(c.path));
                payload.push(("checkout", Field::maybe(checkout)));
                (Some(e.session), Some(e.generation), payload)
            }
            Event::Adopted(e) => {
                let mut payload = self.grant(&e.bearer, &e.labels);
                payload.push(("forced", Field::Flag(e.forced.is_some())));
                payload.push(("reason", self.maybe_text(e.forced)));
                payload.push(("former", Field::Flag(e.former)));
                (Some(e.session), Some(e.generation), payload)
            }
            Event::Carried(e) => (Some(e.session), Some(e.generation), Vec::new()),
            Event::Fenced(e) => (
                Some(e.session),
                Some(e.below),
                vec![("below", Field::text(e.below))],
            ),
            Event::Retired(e) => (
                Some(e.session),
                Some(e.generation),
                vec![
                    ("reason", self.maybe_text(e.reason)),
                    ("forced", Field::Flag(e.forced)),
                ],
            ),
            Event::Noted(e) => (
                Some(e.session),
                None,
                vec![
                    ("on", Field::maybe(e.on)),
                    ("body", self.body(Some(e.body))),
                ],
            ),
            Event::Observed(e) => (
                Some(e.session),
                None,
                vec![
                    ("status", Field::text(self.text(e.status))),
                    ("wrote", self.paths(&e.wrote)),
                ],
            ),
            other => self.work(other),
        }
    }

    fn work(self, event: &Event) -> Spelled {
        match event {
            Event::Dispatched(e) => (
                Some(e.session),
                Some(e.generation),
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("item", Field::text(self.text(e.item))),
                    ("title", self.maybe_text(e.title)),
                    ("from", Field::maybe(e.from.map(|s| self.name(s)))),
                    ("writes", self.paths(&e.writes)),
                    ("envelope", Field::text(e.envelope)),
                    ("body", self.body(e.body)),
                ],
            ),
            Event::Accepted(e) => (
                Some(e.session),
                Some(e.generation),
                vec![("dispatch", Field::text(e.dispatch))],
            ),
            Event::Joined(e) => (
                self.owner(e.dispatch),
                None,
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("first_notice", Field::text(e.first_notice)),
                ],
            ),
            Event::Declined(e) => (
                self.owner(e.dispatch),
                None,
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("reason", Field::text(self.text(e.reason))),
                ],
            ),
            Event::Reported(e) => (
                self.owner(e.dispatch),
                None,
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("outcome", Field::text(e.outcome.as_str())),
                    ("body", self.body(e.body)),
                ],
            ),
            Event::Cancelled(e) => (
                self.owner(e.dispatch),
                None,
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("reason", Field::text(self.text(e.reason))),
                    ("forced", Field::Flag(e.forced)),
                ],
            ),
            Event::AssignmentFailed(e) => (
                self.owner(e.dispatch),
                None,
                vec![
                    ("dispatch", Field::text(e.dispatch)),
                    ("reason", Field::text(self.text(e.reason))),
                    ("notice", Field::text(e.notice)),
                    ("forced", Field::Flag(e.forced)),
                ],
            ),
            other => self.mail(other),
        }
    }

    fn mail(self, event: &Event) -> Spelled {
        match event {
            Event::Sent(e) => (
                Some(e.session),
                Some(e.generation),
                vec![
                    ("envelope", Field::text(e.envelope)),
                    ("from", Field::maybe(e.from.map(|s| self.name(s)))),
                    ("re", Field::maybe(e.re)),
                    ("body", self.body(Some(e.body))),
                ],
            ),
            Event::Delivered(e) => (
                self.addressee(e.envelope),
                None,
                vec![("envelope", Field::text(e.envelope))],
            ),
            Event::Acknowledged(e) => (
                self.addressee(e.envelope),
                None,
                vec![("envelope", Field::text(e.envelope))],
            ),
            other => self.history(other),
        }
    }

    fn activity(self, activity: Option<Activity>) -> Field {
        Field::maybe(activity.map(|a| format!("{}:{}", a.kind.as_str(), self.text(a.id))))
    }

    fn history(self, event: &Event) -> Spelled {
        match event {
            Event::Recorded(e) => (
                Some(e.session),
                None,
                vec![
                    ("record_index", Field::Number(e.index)),
                    (
                        "previous",
                        e.previous.map_or(Field::None, |p| Field::Number(p.0)),
                    ),
                    ("before", Field::text(e.before)),
                    ("record_kind", Field::text(self.text(e.kind))),
                    ("opens", self.activity(e.opens)),
                    ("closes", self.activity(e.closes)),
                    ("body", self.body(Some(e.body))),
                ],
            ),
            Event::Reverted(e) => (Some(e.session), None, point("to", e.to)),
            Event::Branched(e) => {
                let mut payload = vec![("source", Field::text(self.name(e.source)))];
                payload.extend(point("at", e.at));
                payload.push(("first_envelope", Field::text(e.first_envelope)));
                (Some(e.session), None, payload)
            }
            Event::Imported(e) => (
                Some(e.session),
                None,
                vec![
                    ("from", Field::text(self.text(e.from))),
                    ("parent", self.maybe_text(e.parent)),
                    ("foreign_hash", Field::text(e.hash)),
                ],
            ),
            Event::Renamed(e) => (
                Some(e.session),
                None,
                vec![("name", Field::text(self.text(e.name)))],
            ),
            other => self.tree(other),
        }
    }

    fn tree(self, event: &Event) -> Spelled {
        let of_tree = |root: SessionNo, epoch: Epoch| {
            vec![
                ("tree", Field::text(self.name(root))),
                ("epoch", Field::Number(epoch.0)),
            ]
        };
        match event {
            Event::Delegated(e) => (
                Some(e.session),
                None,
                vec![
                    ("tree", Field::text(self.name(e.root))),
                    ("parent", Field::text(self.name(e.parent))),
                ],
            ),
            Event::Reserved(e) => (Some(e.root), None, Vec::new()),
            Event::Published(e) => (Some(e.root), None, Vec::new()),
            Event::Claimed(e) => {
                let mut payload = of_tree(e.root, e.epoch);
                payload.extend(self.grant(&e.bearer, &[]));
                payload.push(("forced", Field::Flag(e.forced.is_some())));
                payload.push(("reason", self.maybe_text(e.forced)));
                (Some(e.root), None, payload)
            }
            Event::RolledBack(e) => (Some(e.root), None, of_tree(e.root, e.epoch)),
            Event::Recovered(e) => (
                Some(e.session),
                None,
                vec![("body", self.body(Some(e.body)))],
            ),
            Event::Released(e) => {
                let mut payload = of_tree(e.root, e.epoch);
                payload.push(("how", Field::text(e.how.as_str())));
                payload.push(("reason", self.maybe_text(e.reason)));
                (Some(e.root), None, payload)
            }
            Event::Unreserved(e) => (Some(e.root), None, of_tree(e.root, e.epoch)),
            Event::Reconciled(e) => (
                Some(e.session),
                None,
                vec![("how", Field::text(e.how.as_str()))],
            ),
            other => self.store(other),
        }
    }

    fn store(self, event: &Event) -> Spelled {
        match event {
            Event::Refused(e) => {
                let code = Code::from_number(e.code);
                let carried = self.request.and_then(|r| r.bodies.iter().next());
                (
                    e.session,
                    e.presented,
                    vec![
                        ("refusal", Field::text(e.refusal)),
                        (
                            "code",
                            code.map_or(Field::Number(u64::from(e.code)), |c| {
                                Field::text(c.as_str())
                            }),
                        ),
                        (
                            "command",
                            Field::maybe(self.request.map(|r| r.input.command.word())),
                        ),
                        ("subject", Field::text(self.text(e.subject))),
                        ("current", Field::maybe(e.current)),
                        (
                            "body",
                            carried.map_or(Field::None, |b| Field::Body(b.to_vec())),
                        ),
                    ],
                )
            }
            Event::RefusalsCounted(e) => (
                None,
                None,
                vec![
                    ("refusal", Field::text(e.refusal)),
                    ("count", Field::Number(e.count)),
                ],
            ),
            Event::IncarnationRaised(e) => (
                None,
                None,
                vec![
                    ("incarnation", Field::Number(e.incarnation)),
                    ("how", Field::text(e.how.as_str())),
                    ("reason", Field::text(self.text(e.reason))),
                ],
            ),
            Event::HomeAccepted(e) => (
                None,
                None,
                vec![("reason", Field::text(self.text(e.reason)))],
            ),
            Event::FindingAccepted(e) => (
                None,
                None,
                vec![
                    ("finding", Field::Number(e.position.0)),
                    ("reason", Field::text(self.text(e.reason))),
                ],
            ),
            other => self.checkout(other),
        }
    }

    fn checkout(self, event: &Event) -> Spelled {
        match event {
            Event::GuardBypassed(e) => (
                e.session,
                e.presented,
                vec![
                    ("hook", Field::text(self.text(e.hook))),
                    ("checkout", Field::text(self.text(e.checkout))),
                    ("said", Field::text(self.text(e.said))),
                    ("reason", Field::text(self.text(e.reason))),
                ],
            ),
            Event::TailSetAside(e) => (
                None,
                None,
                vec![
                    ("segment", Field::text(segment(e.first, e.epoch))),
                    ("offset", Field::Number(e.offset)),
                    ("bytes", Field::Number(e.bytes)),
                    ("quarantine", Field::text(self.text(e.file))),
                ],
            ),
            Event::PositionLost(e) => (
                None,
                None,
                vec![
                    ("segment", Field::text(segment(e.first, e.epoch))),
                    ("offset", e.offset.map_or(Field::None, Field::Number)),
                    ("found", Field::text(self.text(e.found))),
                    ("life", Field::Number(e.life)),
                ],
            ),
            Event::StoreSealed(_) => (None, None, Vec::new()),
            Event::GrantSealed(e) => (
                Some(e.session),
                Some(e.generation),
                vec![("seal", Field::text(e.seal))],
            ),
            Event::SessionRegained(e) => (
                Some(e.session),
                None,
                vec![("name", Field::text(self.text(e.name)))],
            ),
            Event::LockRemoved(e) => (
                None,
                None,
                vec![
                    ("path", Field::text(self.text(e.path))),
                    ("uid", Field::Number(u64::from(e.uid))),
                    ("bytes", Field::Number(e.bytes)),
                    ("modified", Field::text(e.modified.0)),
                    ("reason", Field::text(self.text(e.reason))),
                ],
            ),
            other => self.rights(other),
        }
    }
}

/// A point of a history; nothing for its beginning.
fn point(name: &'static str, at: Option<Point>) -> Payload {
    let number = |n: Option<u64>| n.map_or(Field::None, Field::Number);
    vec![
        (name, number(at.map(|p| p.position.0))),
        ("record_index", number(at.map(|p| p.index))),
        ("prefix_hash", Field::maybe(at.map(|p| p.hash))),
    ]
}

/// The name of a segment file.
fn segment(first: Position, epoch: u64) -> SegmentName {
    SegmentName {
        first: tenure_log::position::Position(first.0),
        epoch: tenure_log::position::Epoch(epoch),
    }
}
