//! Why something stands in the log: what was asked, what it was judged on, by which rule it was done or refused,
//! and what it changed.

use tenure_core::apply::apply;
use tenure_core::command::{Command, Request};
use tenure_core::event::{Entry, Event, FenceKind};
use tenure_core::generation::Standing;
use tenure_core::holder::{Evidence, Verdict};
use tenure_core::id::{Moment, Position, SessionNo};
use tenure_core::state::State;
use tenure_log::frame::Depth;

use crate::audit::{Audit, Finding};
use crate::diff::{Change, diff};
use crate::entry;
use crate::error::Error;
use crate::reader::Reader;
use crate::views::{EventView, code_word, events, shown};

mod shown_before;

pub use shown_before::{Disclosed, Disclosure};

/// Why one frame stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    /// Where and when.
    pub at: Moment,
    /// What was asked.
    pub command: &'static str,
    /// By whom.
    pub actor: String,
    /// The token presented, without a secret.
    pub presented: Option<String>,
    /// By force, for this reason.
    pub forced: Option<String>,
    /// What was found out about the holder.
    pub evidence: Option<Evidence>,
    /// The session concerned as it stood before: its current token, and who held it since when.
    pub judged_on: Option<Standpoint>,
    /// The rule that it was done or refused by, in a sentence.
    pub rule: String,
    /// Its events.
    pub events: Vec<EventView>,
    /// What it changed.
    pub changes: Vec<Change>,
    /// What a correct store says otherwise.
    pub findings: Vec<Finding>,
    /// Whom its session was shown by then, and its first write behind that.
    pub disclosure: Disclosure,
}

/// How a session stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standpoint {
    /// Its name.
    pub session: String,
    /// The newest token, without a secret.
    pub token: String,
    /// `held`, `not held`, or `retired`.
    pub standing: &'static str,
    /// Since when.
    pub since: Moment,
}

impl Why {
    /// Why the frame at `position` stands. Replays the log up to it.
    ///
    /// # Errors
    /// [`Error::BeyondHead`] when there is no such frame; [`Error::Facts`] when its input does not decode.
    pub fn of(reader: &Reader, position: Position) -> Result<Self, Error> {
        let newest = Position(reader.head()?.position.0);
        if position.0 == 0 || newest < position {
            return Err(Error::BeyondHead {
                head: newest,
                asked: position,
            });
        }
        let mut disclosed = Disclosed::default();
        let (mut before, mut found) = (State::new(), None);
        reader.frames(Position(1), newest, Depth::Whole, |frame| {
            let entry = entry::decode(frame)?;
            if entry.at.position < position {
                disclosed.note(&before, &entry);
                apply(&mut before, &entry);
                return Ok(true);
            }
            if entry.at.position == position {
                disclosed.note(&before, &entry);
                let mut after = before.clone();
                apply(&mut after, &entry);
                let mut audit = Audit::at(before.clone());
                audit.frame(frame)?;
                let request = entry::decode_request(frame)?;
                found = Some((entry, request, after, audit.into_report(), frame.to_owned()));
                return Ok(true);
            }
            // Its first write may be still to come.
            Ok(disclosed.follow(&entry))
        })?;
        let Some((entry, request, after, report, frame)) = found else {
            return Err(Error::BeyondHead {
                head: newest,
                asked: position,
            });
        };
        let about = concerned(&before, &entry, &request);
        Ok(Self {
            at: entry.at,
            command: request.input.command.word(),
            actor: shown(request.texts.get(request.input.origin.actor)),
            presented: request
                .input
                .presented
                .map(|p| format!("{}@{}", shown(request.texts.get(p.name)), p.generation)),
            forced: request.input.force.map(|r| shown(request.texts.get(r))),
            evidence: request.input.evidence.clone(),
            judged_on: about.and_then(|session| standpoint(&before, session)),
            rule: match tenure_core::decide::is_unproven(&before, &entry) {
                true => "nothing that can be proven: frames before it are lost".to_owned(),
                false => rule(&before, &entry, &request),
            },
            events: events(&frame.by_ref(), &after),
            changes: diff(&before, &after),
            findings: report.findings,
            disclosure: disclosed.of(about, &after),
        })
    }
}

/// The session that a frame is about: the one its fence names, or the one its command names.
fn concerned(before: &State, entry: &Entry, request: &Request) -> Option<SessionNo> {
    let named = match &request.input.command {
        Command::Register(c) => Some(c.name),
        Command::Adopt(c) => Some(c.name),
        Command::Retire(c) => Some(c.name),
        Command::Dispatch(c) => Some(c.to),
        Command::Send(c) => Some(c.to),
        Command::RegisterChild(c) => Some(c.name),
        Command::Reserve(c) => Some(c.name),
        Command::Publish(c) => Some(c.name),
        Command::Claim(c) => Some(c.name),
        Command::AdoptTree(c) => Some(c.name),
        Command::AdoptClaimed(c) => Some(c.name),
        Command::Rollback(c) => Some(c.name),
        Command::Recover(c) => Some(c.name),
        Command::Release(c) => Some(c.name),
        Command::ReleaseDead(c) => Some(c.name),
        _ => None,
    };
    let presented = request.input.presented.map(|p| p.name);
    let find = |name| before.find(request.texts.get(name));
    entry
        .fence
        .session
        .or_else(|| presented.and_then(find))
        .or_else(|| named.and_then(find))
}

fn standpoint(state: &State, number: SessionNo) -> Option<Standpoint> {
    let session = state.session(number)?;
    Some(Standpoint {
        session: state.name(number),
        token: tenure_core::decide::describe(state, number)?,
        standing: match state.standing(number)? {
            Standing::Granted => "held",
            Standing::Retired => "retired",
            _ => "not held",
        },
        since: state.since(number).unwrap_or_else(|| session.since()),
    })
}

fn rule(before: &State, entry: &Entry, request: &Request) -> String {
    if let Some(Event::Refused(refused)) = entry.events.first() {
        let code = code_word(refused.code);
        return match tenure_core::decide::decide(before, request) {
            Err(refusal) => format!("refused as {code}: {}", refusal.message),
            Ok(_) => format!("refused as {code}"),
        };
    }
    match entry.fence.kind {
        FenceKind::Grant => granted(before, entry, request),
        FenceKind::Write => written(before, entry),
        FenceKind::Claim => on_an_epoch(before, entry, request),
        FenceKind::None if request.input.force.is_some() => "an operator did it by force".into(),
        _ if entry.events.iter().all(is_the_stores) => "the store wrote it itself".into(),
        _ => "it was done as operator: it needs no token".into(),
    }
}

fn is_the_stores(event: &Event) -> bool {
    matches!(event, Event::RefusalsCounted(_))
}

fn written(before: &State, entry: &Entry) -> String {
    let (Some(session), Some(named)) = (entry.fence.session, entry.fence.named) else {
        return "its fence names no session".into();
    };
    let token = format!("{}@{named}", before.name(session));
    match (before.check(session, named), before.session(session)) {
        (Ok(()), Some(record)) => {
            format!(
                "{token} was current, since position {}",
                record.since().position
            )
        }
        _ => format!("{token} was not current"),
    }
}

/// By what right something was done to a tree without a token of it.
fn on_an_epoch(before: &State, entry: &Entry, request: &Request) -> String {
    let Some(root) = entry.fence.tree.map(|tree| tree.root) else {
        return "its fence names no tree".into();
    };
    let name = before.name(root);
    let dead = request.input.evidence.as_ref().filter(|e| {
        e.verdict == Verdict::Dead && before.holding(root) == Some((e.session, e.generation))
    });
    if before.tree_holder(root).is_none() {
        format!("nobody held the tree of {name}")
    } else if request.input.presented.is_some() {
        format!("whoever presents a current token of the tree of {name} may hand it over")
    } else if let Some(reason) = request.input.force {
        let reason = shown(request.texts.get(reason));
        format!("the tree of {name} was taken over by force: {reason}")
    } else if let Some(evidence) = dead {
        let proofs: Vec<_> = evidence.proofs.iter().map(|p| p.as_str()).collect();
        format!(
            "the holder of the tree of {name} was dead: {}",
            proofs.join("; ")
        )
    } else {
        format!("the epoch of the tree of {name} was presented and current")
    }
}

fn granted(before: &State, entry: &Entry, request: &Request) -> String {
    let Some((session, record)) = entry
        .fence
        .session
        .and_then(|s| Some((s, before.session(s)?)))
    else {
        return "nobody had the name".into();
    };
    let token = format!("{}@{}", before.name(session), record.generation);
    if record.retired {
        return format!(
            "{token} had been retired at position {}",
            record.since().position
        );
    }
    let input = &request.input;
    let dead = input
        .evidence
        .as_ref()
        .filter(|e| e.verdict == Verdict::Dead);
    if before.tree_holder(record.root).is_none() {
        format!("nobody held {token}")
    } else if input.presented.is_some() {
        format!("whoever presents {token}, which was current, may hand it over")
    } else if let Some(evidence) = dead {
        let proofs: Vec<_> = evidence.proofs.iter().map(|p| p.as_str()).collect();
        format!("the holder of {token} was dead: {}", proofs.join("; "))
    } else if let Some(reason) = input.force {
        format!(
            "{token} was taken over by force: {}",
            shown(request.texts.get(reason))
        )
    } else {
        format!("{token} was held, and nothing says why it was taken over")
    }
}
