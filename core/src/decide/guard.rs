//! What every decision has in common: reading the request, checking the token, and composing refusals.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::command::{Command, Ref, Request};
use crate::event::{Event, Fence, FenceKind, Refused};
use crate::generation::{Generation, Lapse, Standing};
use crate::holder::{Proof, Verdict};
use crate::id::{DispatchNo, EnvelopeNo, Position, SessionNo};
use crate::limits::{REFUSED_BODIES_MAX, REFUSED_BODY_BYTES_MAX};
use crate::refusal::{Code, Next, Refusal, Relation};
use crate::state::{DispatchRow, EnvelopeRow, RefusalKey, Session, State};
use crate::text::TextId;

use super::{Decision, seal};

/// A request in front of a state.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub state: &'a State,
    pub request: &'a Request,
}

/// Who asks, once the token has passed.
#[derive(Clone, Copy)]
pub(super) struct Author {
    pub session: SessionNo,
    pub generation: Generation,
}

impl Author {
    /// A frame whose write stands on this author's token.
    pub fn writes(self, events: Vec<Event>) -> Decision {
        let fence = Fence {
            kind: FenceKind::Write,
            session: Some(self.session),
            named: Some(self.generation),
            granted: None,
            tree: None,
        };
        Decision { fence, events }
    }
}

/// By whose authority something is done.
#[derive(Clone, Copy)]
pub(super) enum Authority {
    Token(Author),
    Operator,
}

impl Authority {
    pub fn session(self) -> Option<SessionNo> {
        match self {
            Self::Token(author) => Some(author.session),
            Self::Operator => None,
        }
    }

    /// An operator who had to say why.
    pub fn is_forced(self, ask: Ask<'_>) -> bool {
        matches!(self, Self::Operator) && ask.request.input.force.is_some()
    }

    pub fn decides(self, events: Vec<Event>) -> Decision {
        match self {
            Self::Token(author) => author.writes(events),
            Self::Operator => Decision::plain(events),
        }
    }
}

#[cfg(not(tenure_forge))]
impl Ask<'_> {
    /// A guard: every refusal is made here or in [`Ask::found`], so that a build for tests can leave out any one.
    pub fn refuse(self, refusal: Refusal) -> Result<(), Refusal> {
        Err(refusal)
    }

    /// A guard: a decision goes on with what was found, or not at all.
    pub fn found<T>(
        self,
        found: Option<T>,
        refusal: impl FnOnce() -> Refusal,
    ) -> Result<T, Refusal> {
        found.ok_or_else(refusal)
    }
}

impl<'a> Ask<'a> {
    pub fn text(self, id: TextId) -> &'a [u8] {
        self.request.texts.get(id)
    }

    pub fn string(self, id: TextId) -> String {
        String::from_utf8_lossy(self.text(id)).into_owned()
    }

    /// The session of that name.
    pub fn session(self, name: TextId) -> Result<(SessionNo, &'a Session), Refusal> {
        let text = self.text(name);
        let found = self
            .state
            .find(text)
            .and_then(|n| Some((n, self.state.session(n)?)));
        self.found(found, || self.unknown_session(&self.string(name)))
    }

    /// Nobody has that name, or nobody may know yet that somebody has.
    pub fn unknown_session(self, name: &str) -> Refusal {
        self.refusal(Code::UnknownSession, None, name)
            .say(format!("no session is called {name}"))
            .next(
                format!("tenure register {name}"),
                "registers it at generation 1",
            )
            .next("tenure sessions --all".into(), "lists the names there are")
    }

    /// Whether the session is there for whoever asks: one that is reserved and not published is there for its
    /// own tree only (TRE-8).
    pub fn sees(self, number: SessionNo) -> bool {
        let root = |n: SessionNo| self.state.session(n).map(|s| s.root);
        self.state.is_published(number) || self.presented_session().and_then(root) == root(number)
    }

    /// The session and generation behind the token, checked.
    pub fn author(self) -> Result<Author, Refusal> {
        let presented = self.found(self.request.input.presented, || self.missing_token())?;
        let (session, _) = self.session(presented.name)?;
        self.generation(session, presented.generation)?;
        seal::opens(self, session, presented)?;
        Ok(Author {
            session,
            generation: presented.generation,
        })
    }

    /// A call without a token that needs one: refused before anything is looked up (REG-8).
    pub fn missing_token(self) -> Refusal {
        self.refusal(Code::MissingToken, None, "")
            .say("this needs a token and none was given".into())
            .next(
                "tenure ... --as NAME@GENERATION".into(),
                "names the session and the generation it was granted",
            )
    }

    /// A token if one is presented, else an operator.
    pub fn author_or_operator(self) -> Result<Authority, Refusal> {
        match self.request.input.presented {
            Some(_) => self.author().map(Authority::Token),
            None => Ok(Authority::Operator),
        }
    }

    /// The check: does the session stand at the generation presented?
    fn generation(self, session: SessionNo, presented: Generation) -> Result<(), Refusal> {
        let Err(lapse) = self.state.check(session, presented) else {
            return Ok(());
        };
        let name = self.state.name(session);
        let (code, relation) = match lapse {
            Lapse::Stale => (Code::StaleGeneration, Relation::Superseded),
            Lapse::NeverIssued => (Code::NeverIssued, Relation::NeverIssued),
            Lapse::Retired => (Code::Retired, Relation::Retired),
        };
        let mut refusal = self.refusal(code, Some(session), &name).holder(self.state);
        let current = refusal.current.clone().unwrap_or_default();
        refusal.relation = Some(relation);
        if self.state.standing(session) == Some(Standing::Lapsed) && lapse == Lapse::Stale {
            refusal.current = None;
        }
        refusal.message = match lapse {
            Lapse::Stale if refusal.current.is_none() => {
                let root = self.state.session(session).map_or(session, |s| s.root);
                let root = self.state.name(root);
                format!("{name}@{presented} lapsed: the tree of {root} changed hands since")
            }
            Lapse::Stale => {
                format!("{name}@{presented} was superseded; {current} is current")
            }
            Lapse::NeverIssued => {
                format!("{name}@{presented} was never granted; {current} is the newest")
            }
            Lapse::Retired => format!("{name} was retired at generation {presented}"),
        };
        self.refuse(self.ways_back(refusal, &name, lapse))
    }

    fn ways_back(self, refusal: Refusal, name: &str, lapse: Lapse) -> Refusal {
        let active = refusal.session.is_some_and(|s| self.state.is_active(s));
        let refusal = refusal.next(
            format!("tenure who {name}"),
            "says who holds it and since when",
        );
        match lapse {
            _ if !active => refusal
                .next(format!("tenure register {name}"), "makes it active at the next generation"),
            Lapse::NeverIssued => refusal.next(
                format!("tenure show {name}"),
                "shows the current token; a number ahead of the log may mean that an older copy was put back",
            ),
            _ if refusal.holder.is_none() => refusal.next(
                format!("tenure adopt {name}"),
                "takes it at the next generation; nobody holds it",
            ),
            _ => refusal.next(
                format!("tenure adopt {name} --force --reason TEXT"),
                "takes it back and fences whoever holds it now",
            ),
        }
    }

    /// The row of a dispatch.
    pub fn dispatch(self, number: DispatchNo) -> Result<DispatchRow, Refusal> {
        self.found(self.state.dispatch(number), || {
            self.refusal(
                Code::UnknownDispatch,
                self.presented_session(),
                &number.to_string(),
            )
            .say(format!("no dispatch has the number {number}"))
            .next("tenure work --all".into(), "lists every dispatch")
        })
    }

    /// The row of an envelope.
    pub fn envelope(self, number: EnvelopeNo) -> Result<EnvelopeRow, Refusal> {
        self.found(self.state.envelope(number), || {
            self.refusal(
                Code::UnknownEnvelope,
                self.presented_session(),
                &number.to_string(),
            )
            .say(format!("no envelope has the number {number}"))
            .next(
                "tenure inbox NAME".into(),
                "lists the envelopes of a session",
            )
        })
    }

    /// What something refers to must exist.
    pub fn refers(self, to: Option<Ref>) -> Result<(), Refusal> {
        match to {
            None => Ok(()),
            Some(Ref::Dispatch(number)) => self.dispatch(number).map(|_| ()),
            Some(Ref::Envelope(number)) => self.envelope(number).map(|_| ()),
        }
    }

    /// The session of the token, current or not.
    pub fn presented_session(self) -> Option<SessionNo> {
        self.request
            .input
            .presented
            .and_then(|p| self.state.find(self.text(p.name)))
    }

    /// A refusal about `subject`, with the presented token filled in.
    pub fn refusal(self, code: Code, session: Option<SessionNo>, subject: &str) -> Refusal {
        let presented = self.request.input.presented;
        let token = presented.map(|p| format!("{}@{}", self.string(p.name), p.generation));
        let current = session.and_then(|s| describe(self.state, s));
        // Refusals are alike for who asked, not for whom it was about.
        let key = match self.presented_session().or(session) {
            Some(session) if code != Code::UnknownSession => RefusalKey {
                session: Some(session),
                presented: presented.map(|p| p.generation),
                command: self.request.input.command.kind(),
                subject: self.object(subject),
            },
            _ => RefusalKey::other(),
        };
        Refusal {
            code,
            message: String::new(),
            subject: subject.into(),
            session,
            presented: token,
            current,
            holder: None,
            since: None,
            relation: None,
            evidence: None,
            next: Vec::new(),
            recorded_at: None,
            key,
        }
    }

    /// What a command is about, as far as likeness of refusals goes: its object rather than its caller.
    fn object(self, subject: &str) -> Vec<u8> {
        match &self.request.input.command {
            Command::Accept(c) => c.dispatch.to_string().into_bytes(),
            Command::Decline(c) => c.dispatch.to_string().into_bytes(),
            Command::Report(c) => c.dispatch.to_string().into_bytes(),
            Command::Cancel(c) => c.dispatch.to_string().into_bytes(),
            Command::Fail(c) => c.dispatch.to_string().into_bytes(),
            Command::Deliver(c) => c.envelope.to_string().into_bytes(),
            Command::Acknowledge(c) => c.envelope.to_string().into_bytes(),
            Command::Dispatch(c) => self.text(c.item).to_vec(),
            Command::Send(c) => self.text(c.to).to_vec(),
            Command::HandOff(c) => c.dispatch.to_string().into_bytes(),
            Command::Attend(c) => c.dispatch.to_string().into_bytes(),
            _ => subject.as_bytes().to_vec(),
        }
    }
}

impl Refusal {
    /// Sets the sentence.
    pub(super) fn say(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// Adds a way on.
    pub(super) fn next(mut self, command: String, effect: &'static str) -> Self {
        self.next.push(Next { command, effect });
        self
    }

    /// Sets how the asker stands to what is current.
    pub(super) fn relation(mut self, relation: Relation) -> Self {
        self.relation = Some(relation);
        self
    }

    /// Fills in who holds the session concerned, and since when.
    pub(super) fn holder(mut self, state: &State) -> Self {
        self.holder = self.session.and_then(|s| state.holder(s));
        self.since = self.session.and_then(|s| state.since(s));
        self
    }

    /// Sets the verdict that mattered.
    pub(super) fn evidence(mut self, verdict: Verdict, proofs: Vec<Proof>) -> Self {
        self.evidence = Some((verdict, proofs));
        self
    }
}

/// The current token of a session, without a secret.
#[must_use]
pub fn describe(state: &State, session: SessionNo) -> Option<String> {
    let record = state.session(session)?;
    Some(format!("{}@{}", state.name(session), record.generation))
}

/// A key that was used for another command: with another payload it is refused, wherever that payload leads.
pub(super) fn key_reused(ask: Ask<'_>, at: Position) -> Refusal {
    let mut refusal = repeated(ask.state, ask.request, Code::KeyReused);
    refusal.message = format!("the key was used for another command, at position {at}");
    refusal.recorded_at = Some(at);
    refusal.next(
        "tenure outcome KEY".into(),
        "says what the key was used for",
    )
}

/// The refusal of a command that is recorded already at `at`, while what it stood on or gave is no longer
/// current.
#[must_use]
pub fn stale_repeat(state: &State, request: &Request, at: Position) -> Refusal {
    let refusal = repeated(state, request, Code::StaleGeneration);
    let name = refusal.subject.clone();
    let current = refusal.current.clone().unwrap_or_default();
    let active = refusal.session.is_some_and(|s| state.is_active(s));
    let lapsed = refusal.session.and_then(|s| state.standing(s)) == Some(Standing::Lapsed);
    let (since, relation) = if lapsed {
        ("its tree changed hands since".into(), Relation::Superseded)
    } else if active {
        (format!("{current} is current now"), Relation::Superseded)
    } else {
        (format!("{name} was retired since"), Relation::Retired)
    };
    let mut refusal = refusal
        .relation(relation)
        .say(format!("it is recorded at position {at}, and {since}"))
        .next(
            format!("tenure who {name}"),
            "says who holds it and since when",
        );
    refusal.recorded_at = Some(at);
    refusal
}

fn repeated(state: &State, request: &Request, code: Code) -> Refusal {
    let ask = Ask { state, request };
    let named = match &request.input.command {
        Command::Register(c) => state.find(ask.text(c.name)),
        Command::Adopt(c) => state.find(ask.text(c.name)),
        Command::Branch(c) => state.find(ask.text(c.name)),
        Command::BranchInTree(c) => state.find(ask.text(c.name)),
        Command::RegisterChild(c) => state.find(ask.text(c.name)),
        Command::Reserve(c) => state.find(ask.text(c.name)),
        Command::Claim(c) => state.find(ask.text(c.name)),
        Command::AdoptTree(c) => state.find(ask.text(c.name)),
        Command::AdoptClaimed(c) => state.find(ask.text(c.name)),
        _ => None,
    };
    let session = ask.presented_session().or(named);
    let name = session.map(|s| state.name(s)).unwrap_or_default();
    ask.refusal(code, session, &name).holder(state)
}

/// The events that record a refusal: the first of its kind, or one that carries a body not seen before.
/// `None`: it is only counted. The subject joins the texts of the request.
#[must_use]
pub fn refused(state: &State, request: &mut Request, refusal: &Refusal) -> Option<Decision> {
    let digest = request.bodies.iter().next().map(|body| {
        let mut short = [0; 16];
        short.copy_from_slice(&blake3::hash(body).as_bytes()[..16]);
        short
    });
    refused_with(state, request, refusal, digest)
}

/// As [`refused`], where the digest of the body that the command carried is known and the body may have been taken out.
#[must_use]
pub fn refused_with(
    state: &State,
    request: &mut Request,
    refusal: &Refusal,
    digest: Option<[u8; 16]>,
) -> Option<Decision> {
    let other = state.shares_record(&refusal.key);
    let key = if other {
        RefusalKey::other()
    } else {
        refusal.key.clone()
    };
    let record = state.refusal_record(&key);
    let body = request.bodies.iter().next();
    let body_bytes = body.map_or(0, |b| b.len() as u64);
    if let Some(kept) = record.and_then(|n| state.refusal(n)) {
        let bytes = kept.body_bytes.saturating_add(body_bytes);
        let room = kept.bodies.len() < REFUSED_BODIES_MAX && bytes <= REFUSED_BODY_BYTES_MAX;
        let new = digest.is_some_and(|d| kept.bodies.iter().all(|(known, _)| *known != d));
        if !new || !room {
            return None;
        }
    }
    let current = key.session.and_then(|s| state.session(s));
    Some(Decision::plain(alloc::vec![
        Refused {
            refusal: record.unwrap_or_else(|| state.next_refusal()),
            code: refusal.code.number(),
            session: key.session,
            presented: key.presented,
            command: key.command,
            current: current.map(|s| s.generation),
            subject: request.texts.add(&key.subject),
            body: digest,
            body_bytes,
        }
        .into()
    ]))
}
