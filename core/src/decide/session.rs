//! Sessions: register, adopt, rename, retire, note, observe.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Adopt, Note, Observe, Register, Rename, Retire};
use crate::event::{
    Adopted, Carried, Event, Fence, FenceKind, Fenced, Noted, Observed, Registered, Renamed,
    Retired,
};
use crate::generation::{Generation, Standing};
use crate::holder::{Proof, Verdict};
use crate::id::SessionNo;
use crate::refusal::{Code, Refusal, Relation};
use crate::state::{EnvelopeKind, EnvelopeState, Session};
use crate::text::TextId;

use super::branch::name_taken;
use super::guard::{Ask, Authority};
use super::{Decision, policy};

pub(super) fn grant(
    session: SessionNo,
    named: Option<Generation>,
    granted: Generation,
    events: Vec<Event>,
) -> Decision {
    let fence = Fence {
        kind: FenceKind::Grant,
        session: Some(session),
        named,
        granted: Some(granted),
    };
    Decision { fence, events }
}

/// Absent -> active at generation 1 (REG-1); retired at g -> active at g+1, and everything older is fenced
/// in the same frame (REG-2, OUT-5, OUT-7, DIS-9); active -> refused, nobody is bumped silently (REG-3).
pub(super) fn register(ask: Ask<'_>, c: &Register) -> Result<Decision, Refusal> {
    let state = ask.state;
    let registered = |session, generation| {
        Event::from(Registered {
            session,
            name: c.name,
            generation,
            bearer: c.bearer,
            labels: c.labels.clone(),
            checkout: c.checkout.clone(),
        })
    };
    let Some(number) = state.find(ask.text(c.name)) else {
        let number = SessionNo(state.sessions.len() as u64);
        let first = Generation::first(state.incarnation);
        return Ok(grant(number, None, first, vec![registered(number, first)]));
    };
    let session = &state.sessions[number.index()];
    if !session.retired {
        return Err(already_active(ask, number));
    }
    let next = following(ask, number, session)?;
    let fenced = Fenced {
        session: number,
        below: next,
        first_review: state.next_envelope(),
    };
    let events = vec![registered(number, next), fenced.into()];
    Ok(grant(number, Some(session.generation), next, events))
}

fn following(ask: Ask<'_>, number: SessionNo, session: &Session) -> Result<Generation, Refusal> {
    session
        .generation
        .next(ask.state.incarnation)
        .ok_or_else(|| {
            let name = ask.state.name(number);
            ask.refusal(Code::Held, Some(number), &name)
                .say(format!("{name} has used up its generations"))
                .next(
                    "tenure register OTHER-NAME".into(),
                    "begins under another name",
                )
        })
}

fn already_active(ask: Ask<'_>, number: SessionNo) -> Refusal {
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

/// Takes over an active session: g -> g+1. What is unfinished belongs to the same conversation and is
/// carried (ADO-1, BND-3). A holder that may live is in the way unless the adopt is forced, or made by
/// whoever presents the current token (ADO-11).
pub(super) fn adopt(ask: Ask<'_>, c: &Adopt) -> Result<Decision, Refusal> {
    let (number, session) = ask.session(c.name)?;
    let name = ask.state.name(number);
    if session.retired {
        return Err(ask
            .refusal(Code::Retired, Some(number), &name)
            .relation(Relation::Retired)
            .say(format!(
                "{name} was retired at generation {}; it is registered, not adopted",
                session.generation
            ))
            .next(
                format!("tenure register {name}"),
                "makes it active at the next generation",
            ));
    }
    let handed_over = match ask.request.input.presented {
        Some(_) => ask.author()?.session == number,
        None => false,
    };
    let (verdict, proofs) = evidence(ask, number, session);
    let forced = ask.request.input.force;
    let free = handed_over || session.standing() == Standing::Ungranted || verdict == Verdict::Dead;
    if !free && forced.is_none() {
        return Err(held(ask, number, verdict, proofs));
    }
    let next = following(ask, number, session)?;
    let adopted = Adopted {
        session: number,
        generation: next,
        bearer: c.bearer,
        labels: c.labels.clone(),
        forced: if free { None } else { forced },
        former: session.holder.is_some() && !handed_over && verdict != Verdict::Dead,
    };
    let carried = Carried {
        session: number,
        generation: next,
    };
    Ok(grant(
        number,
        Some(session.generation),
        next,
        vec![adopted.into(), carried.into()],
    ))
}

/// The verdict on the current grant's holder. Evidence about any other grant counts for nothing, so two who
/// saw the same dead holder cannot both adopt.
pub(super) fn evidence(
    ask: Ask<'_>,
    number: SessionNo,
    session: &Session,
) -> (Verdict, Vec<Proof>) {
    match &ask.request.input.evidence {
        Some(e) if e.session == number && e.generation == session.generation => {
            (e.verdict, e.proofs.clone())
        }
        Some(_) => (Verdict::Unknowable, vec![Proof::OtherGrant]),
        None => (Verdict::Unknowable, vec![Proof::NotProbed]),
    }
}

fn held(ask: Ask<'_>, number: SessionNo, verdict: Verdict, proofs: Vec<Proof>) -> Refusal {
    let name = ask.state.name(number);
    let refusal = ask
        .refusal(Code::Held, Some(number), &name)
        .holder(ask.state);
    let current = refusal.current.clone().unwrap_or_default();
    let state = match verdict {
        Verdict::Alive => "is alive",
        _ => "may be alive",
    };
    refusal
        .relation(Relation::Foreign)
        .evidence(verdict, proofs)
        .say(format!(
            "{current} is held, and its holder {state}; that will not expire by itself"
        ))
        .next(
            format!("tenure show {name}"),
            "shows what the holder last did, to wait for its retire",
        )
        .next(
            format!("tenure branch {name} NEW-NAME"),
            "goes on from a copy of its history, and leaves it alone",
        )
        .next(
            format!("tenure adopt {name} --force --reason TEXT"),
            "takes over at once; the holder is fenced, not stopped, and may still be writing files",
        )
}

/// Gives a session another name (BRN-22). Number, generation and history are as they were, and the old name leads
/// to it for ever.
pub(super) fn rename(ask: Ask<'_>, c: &Rename) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let (number, session) = ask.session(c.name)?;
    if author.session != number {
        return Err(not_its_token(ask, number, "renamed"));
    }
    if ask.state.pool.get(session.name) == ask.text(c.to) {
        let name = ask.state.name(number);
        return Err(ask
            .refusal(Code::SameName, Some(number), &name)
            .say(format!("it is called {name} already"))
            .next(format!("tenure show {name}"), "shows it"));
    }
    // A name that it had before is its own, and it may go back to it.
    if let Some(taken) = ask.state.find(ask.text(c.to)).filter(|t| *t != number) {
        return Err(name_taken(ask, taken, &ask.string(c.to)));
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
        return Err(ask.missing_token());
    }
    let (number, session) = ask.session(c.name)?;
    let own = |name: TextId| ask.state.find(ask.text(name)) == Some(number);
    let authority = match input.presented {
        Some(p) if own(p.name) && session.retired && p.generation == session.generation => {
            return Ok(Decision::nothing());
        }
        Some(_) => match ask.author()? {
            author if author.session == number => Authority::Token(author),
            _ if input.force.is_some() => Authority::Operator,
            _ => {
                return Err(not_its_token(ask, number, "given back").next(
                    format!("tenure retire {} --force --reason TEXT", ask.string(c.name)),
                    "retires it as operator, on the record",
                ));
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
    Ok(authority.decides(vec![retired.into()]))
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
    Err(ask
        .refusal(Code::OpenObligations, Some(number), &name)
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
        ))
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
