//! Sessions: register, rename, retire, note, observe.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Bearer, Label, Note, Observe, Register, Rename, Retire};
use crate::event::{
    Event, Fence, FenceKind, Fenced, Noted, Observed, Registered, Renamed, Retired, TreeFence,
};
use crate::generation::Generation;
use crate::id::SessionNo;
use crate::path::Scope;
use crate::refusal::{Code, Refusal, Relation};
use crate::state::{EnvelopeKind, EnvelopeState, Session};
use crate::text::TextId;

use super::branch::name_taken;
use super::guard::{Ask, Authority};
use super::{Decision, policy, tree};

pub(super) fn grant(
    session: SessionNo,
    named: Option<Generation>,
    granted: Generation,
    tree: Option<TreeFence>,
    events: Vec<Event>,
) -> Decision {
    let fence = Fence {
        kind: FenceKind::Grant,
        session: Some(session),
        named,
        granted: Some(granted),
        tree,
    };
    Decision { fence, events }
}

/// Absent -> active at generation 1 (REG-1); retired at g -> active at g+1, and everything older is fenced
/// in the same frame (REG-2, OUT-5, OUT-7, DIS-9); active -> refused, nobody is bumped silently (REG-3). A
/// reservation whose holder is dead makes way.
pub(super) fn register(ask: Ask<'_>, c: &Register) -> Result<Decision, Refusal> {
    let new = Newcomer {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        checkout: c.checkout.as_ref(),
    };
    tree::root(ask, new, false)
}

/// A session that is to be registered, as one of several commands has it.
#[derive(Clone, Copy)]
pub(super) struct Newcomer<'a> {
    pub name: TextId,
    pub bearer: Bearer,
    pub labels: &'a [Label],
    pub checkout: Option<&'a Scope<TextId>>,
}

impl Newcomer<'_> {
    pub fn registered(self, session: SessionNo, generation: Generation) -> Event {
        Registered {
            session,
            name: self.name,
            generation,
            bearer: self.bearer,
            labels: self.labels.to_vec(),
            checkout: self.checkout.cloned(),
        }
        .into()
    }
}

/// What ends everything older, in the frame that makes a retired session active again.
pub(super) fn fenced(ask: Ask<'_>, session: SessionNo, below: Generation) -> Event {
    Fenced {
        session,
        below,
        first_review: ask.state.next_envelope(),
    }
    .into()
}

pub(super) fn following(
    ask: Ask<'_>,
    number: SessionNo,
    session: &Session,
) -> Result<Generation, Refusal> {
    ask.found(session.generation.next(ask.state.incarnation), || {
        let name = ask.state.name(number);
        ask.refusal(Code::Held, Some(number), &name)
            .say(format!("{name} has used up its generations"))
            .next(
                "tenure register OTHER-NAME".into(),
                "begins under another name",
            )
    })
}

pub(super) fn already_active(ask: Ask<'_>, number: SessionNo) -> Refusal {
    let name = ask.state.name(number);
    let refusal = ask
        .refusal(Code::AlreadyActive, Some(number), &name)
        .holder(ask.state);
    let current = refusal.current.clone().unwrap_or_default();
    refusal
        .relation(Relation::Taken)
        .say(format!(
            "{name} is active as {current}; only adopt takes over"
        ))
        .next(
            format!("tenure who {name}"),
            "says who holds it and since when",
        )
        .next(
            format!("tenure adopt {name}"),
            "takes over when the holder is provably dead or hands over",
        )
        .next(
            format!("tenure adopt {name} --force --reason TEXT"),
            "takes over at once; the holder is fenced, not stopped",
        )
}

/// A retired session is registered, not adopted.
pub(super) fn is_retired(ask: Ask<'_>, number: SessionNo, session: &Session) -> Refusal {
    let name = ask.state.name(number);
    ask.refusal(Code::Retired, Some(number), &name)
        .relation(Relation::Retired)
        .say(format!(
            "{name} was retired at generation {}; it is registered, not adopted",
            session.generation
        ))
        .next(
            format!("tenure register {name}"),
            "makes it active at the next generation",
        )
}

/// Gives a session another name (BRN-22). Number, generation and history are as they were, and the old name leads
/// to it for ever.
pub(super) fn rename(ask: Ask<'_>, c: &Rename) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let (number, session) = ask.session(c.name)?;
    if author.session != number {
        ask.refuse(not_its_token(ask, number, "renamed"))?;
    }
    if ask.state.pool.get(session.name) == ask.text(c.to) {
        let name = ask.state.name(number);
        ask.refuse(
            ask.refusal(Code::SameName, Some(number), &name)
                .say(format!("it is called {name} already"))
                .next(format!("tenure show {name}"), "shows it"),
        )?;
    }
    // A name that it had before is its own, and it may go back to it.
    if let Some(taken) = ask.state.find(ask.text(c.to)).filter(|t| *t != number) {
        ask.refuse(name_taken(ask, taken, &ask.string(c.to)))?;
    }
    let renamed = Renamed {
        session: number,
        name: c.to,
    };
    Ok(author.writes(vec![renamed.into()]))
}

/// Gives a session back (REG-20): idempotent until the next register. Without its token only by force.
pub(super) fn retire(ask: Ask<'_>, c: &Retire) -> Result<Decision, Refusal> {
    let input = &ask.request.input;
    if input.presented.is_none() && input.force.is_none() {
        ask.refuse(ask.missing_token())?;
    }
    let (number, session) = ask.session(c.name)?;
    let own = |name: TextId| ask.state.find(ask.text(name)) == Some(number);
    let authority = match input.presented {
        Some(p)
            if own(p.name)
                && session.retired
                && p.generation == session.generation
                && ask.state.opens(p.secret_matched) =>
        {
            return Ok(Decision::nothing());
        }
        Some(_) => match ask.author()? {
            author if author.session == number => Authority::Token(author),
            _ if input.force.is_some() => Authority::Operator,
            author => {
                ask.refuse(not_its_token(ask, number, "given back").next(
                    format!("tenure retire {} --force --reason TEXT", ask.string(c.name)),
                    "retires it as operator, on the record",
                ))?;
                Authority::Token(author)
            }
        },
        None => Authority::Operator,
    };
    if session.retired {
        return Ok(Decision::nothing());
    }
    if c.if_idle {
        idle(ask, number, session)?;
    }
    let retired = Retired {
        session: number,
        generation: session.generation,
        reason: c.reason.or(input.force),
        forced: authority.session().is_none(),
    };
    tree::retire(ask, authority, retired)
}

/// What is done under its own token only.
fn not_its_token(ask: Ask<'_>, number: SessionNo, what: &str) -> Refusal {
    let name = ask.state.name(number);
    let refusal = ask
        .refusal(Code::Held, Some(number), &name)
        .holder(ask.state)
        .relation(Relation::Foreign);
    let current = refusal.current.clone().unwrap_or_default();
    refusal
        .say(format!("{current} is {what} under its own token only"))
        .next(
            format!("tenure who {name}"),
            "says who holds it and since when",
        )
}

/// Nothing open: no live dispatch, no envelope pending other than a notice (NOT-3).
fn idle(ask: Ask<'_>, number: SessionNo, session: &Session) -> Result<(), Refusal> {
    let pending = session.inbox.iter().filter(|e| {
        ask.state.envelope(**e).is_some_and(|row| {
            row.kind != EnvelopeKind::Notice && row.state == EnvelopeState::Pending
        })
    });
    let (work, mail) = (session.open.len(), pending.count());
    if work == 0 && mail == 0 {
        return Ok(());
    }
    let name = ask.state.name(number);
    ask.refuse(
        ask.refusal(Code::OpenObligations, Some(number), &name)
            .say(format!(
                "{name} has {work} open dispatches and {mail} pending envelopes"
            ))
            .next(format!("tenure work {name}"), "lists its dispatches")
            .next(
                format!("tenure inbox {name} --pending"),
                "lists its pending envelopes",
            )
            .next(
                format!("tenure retire {name}@{}", session.generation),
                "retires it all the same",
            ),
    )
}

/// Writes something down under a current token.
pub(super) fn note(ask: Ask<'_>, c: &Note) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    ask.refers(c.on)?;
    Ok(author.writes(vec![
        Noted {
            session: author.session,
            body: c.body,
            on: c.on,
        }
        .into(),
    ]))
}

/// A status and the paths written: checked like every write (REG-7). Whoever is at work there is shown, and told.
pub(super) fn observe(ask: Ask<'_>, c: &Observe) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let observed = Observed {
        session: author.session,
        status: c.status,
        wrote: c.wrote.clone(),
    };
    let list = policy::met(ask, author, &c.wrote);
    let shown = policy::shown(ask, author, &c.wrote, &list);
    let events = core::iter::once(observed.into()).chain(shown.map(Event::from));
    Ok(author.writes(events.collect()))
}
