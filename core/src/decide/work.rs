//! Dispatches: give, accept, decline, report, cancel, fail.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Accept, Cancel, Decline, Dispatch, Fail, Report};
use crate::disclosure::{Rule, shared};
use crate::event::{
    Accepted, AssignmentFailed, Cancelled, Declined, Dispatched, Event, Joined, Reported,
};
use crate::generation::{Generation, Lapse};
use crate::id::{DispatchNo, SessionNo};
use crate::refusal::{Code, Refusal, Relation};
use crate::state::{DispatchRow, DispatchState, Session};

use super::guard::{Ask, Author, Authority};
use super::{Decision, policy};

/// Gives an item to a session. Refused if the item has a live dispatch anywhere (DIS-2); overlapping write
/// scopes never refuse it (DIS-3).
pub(super) fn dispatch(ask: Ask<'_>, c: &Dispatch) -> Result<Decision, Refusal> {
    let authority = ask.author_or_operator()?;
    let (number, session) = ask.session(c.to)?;
    addressed(ask, number, session, c.to_generation)?;
    if let Some(live) = ask.state.live_dispatch_of(ask.text(c.item)) {
        ask.refuse(duplicate(ask, live, &ask.string(c.item)))?;
    }
    let dispatched = Dispatched {
        dispatch: ask.state.next_dispatch(),
        session: number,
        generation: session.generation,
        from: authority.session(),
        item: c.item,
        title: c.title,
        writes: c.writes.clone(),
        envelope: ask.state.next_envelope(),
        body: c.body,
    };
    Ok(authority.decides(vec![dispatched.into()]))
}

/// A session that is addressed must be active and, where a generation is named, stand at it.
pub(super) fn addressed(
    ask: Ask<'_>,
    number: SessionNo,
    session: &Session,
    named: Option<Generation>,
) -> Result<(), Refusal> {
    if !ask.sees(number) {
        ask.refuse(ask.unknown_session(&ask.state.name(number)))?;
    }
    let lapse = match ask.state.check(number, named.unwrap_or(session.generation)) {
        Ok(()) => return Ok(()),
        // Nobody can write as it now, but it is active, and mail addressed to it waits for its adopter.
        Err(Lapse::NeverIssued | Lapse::Stale) if named.is_none() => return Ok(()),
        Err(lapse) => lapse,
    };
    let name = ask.state.name(number);
    let (code, relation) = match lapse {
        Lapse::Stale => (Code::StaleGeneration, Relation::Superseded),
        Lapse::NeverIssued => (Code::NeverIssued, Relation::NeverIssued),
        Lapse::Retired => (Code::Retired, Relation::Retired),
    };
    let mut refusal = ask
        .refusal(code, Some(number), &name)
        .holder(ask.state)
        .relation(relation);
    let current = refusal.current.clone().unwrap_or_default();
    refusal.message = match (lapse, named) {
        (Lapse::Retired, _) => format!("{name} is retired and takes nothing"),
        (_, Some(named)) => format!("it was addressed to {name}@{named}, and {current} is current"),
        (_, None) => format!("{current} is current"),
    };
    ask.refuse(if lapse == Lapse::Retired {
        refusal.next(
            format!("tenure register {name}"),
            "makes it active at the next generation",
        )
    } else {
        refusal.next(format!("tenure show {name}"), "shows its current token")
    })
}

fn duplicate(ask: Ask<'_>, live: DispatchNo, item: &str) -> Refusal {
    let row = ask.state.dispatch(live);
    let (owner, state) = row.map_or((None, "live"), |r| (Some(r.session), r.state.as_str()));
    let name = owner.map(|o| ask.state.name(o)).unwrap_or_default();
    let mut refusal = ask
        .refusal(Code::DuplicateItem, owner, item)
        .holder(ask.state)
        .relation(Relation::Taken)
        .say(format!("{item} is {state} as {live} for {name}"))
        .next(format!("tenure show {live}"), "shows that dispatch")
        .next(
            format!("tenure cancel {live} --force --reason TEXT"),
            "withdraws it and frees the item",
        );
    refusal.current = Some(live.to_string());
    refusal.since = row.map(|r| r.since);
    refusal
}

/// Takes a dispatch on: the binding is active, and both sides learn of each other (DIS-1, DSC-1, NOT-6).
pub(super) fn accept(ask: Ask<'_>, c: &Accept) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let row = owned(ask, author, c.dispatch)?;
    match row.state {
        DispatchState::Queued => {}
        // Twice by the same session and generation is the same answer (DIS-5).
        DispatchState::Accepted => return Ok(Decision::nothing()),
        _ => ask.refuse(terminal(ask, c.dispatch, &row))?,
    }
    let accepted = Accepted {
        dispatch: c.dispatch,
        session: author.session,
        generation: author.generation,
    };
    let mut events: Vec<Event> = vec![accepted.into()];
    let writes = ask
        .state
        .live
        .get(&c.dispatch)
        .map_or(&[][..], |d| &d.writes);
    let list = shared(ask.state, Some(author.session), writes);
    if let Some(first) = list.iter().find(|s| s.rule == Rule::Refuse) {
        ask.refuse(policy::refused(ask, first, &c.dispatch.to_string()))?;
    }
    if !list.is_empty() {
        let first_notice = ask.state.next_envelope();
        events.push(
            Joined {
                dispatch: c.dispatch,
                first_notice,
            }
            .into(),
        );
    }
    Ok(author.writes(events))
}

/// The dispatch must be the author's: of its session and generation.
pub(super) fn owned(
    ask: Ask<'_>,
    author: Author,
    number: DispatchNo,
) -> Result<DispatchRow, Refusal> {
    let row = ask.dispatch(number)?;
    if row.session == author.session
        && (row.generation == author.generation || !row.state.is_live())
    {
        return Ok(row);
    }
    let name = ask.state.name(row.session);
    ask.refuse(
        ask.refusal(
            Code::NotYourEnvelope,
            Some(row.session),
            &number.to_string(),
        )
        .holder(ask.state)
        .relation(Relation::Foreign)
        .say(format!("{number} is for {name}@{}", row.generation))
        .next(format!("tenure show {number}"), "shows that dispatch"),
    )?;
    Ok(row)
}

pub(super) fn terminal(ask: Ask<'_>, number: DispatchNo, row: &DispatchRow) -> Refusal {
    let mut refusal = ask
        .refusal(
            Code::AlreadyTerminal,
            Some(row.session),
            &number.to_string(),
        )
        .say(format!(
            "{number} is {} since position {}; it ends once",
            row.state.as_str(),
            row.since.position
        ))
        .next(format!("tenure show {number}"), "shows how it ended");
    refusal.current = Some(row.state.as_str().into());
    refusal.since = Some(row.since);
    refusal.recorded_at = Some(row.since.position);
    refusal
}

/// Turns a dispatch down; no binding, and the item is free again (DIS-4).
pub(super) fn decline(ask: Ask<'_>, c: &Decline) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let row = owned(ask, author, c.dispatch)?;
    match row.state {
        DispatchState::Queued => {}
        DispatchState::Accepted => {
            ask.refuse(accepted_already(ask, c.dispatch, &row, "report"))?;
        }
        _ => ask.refuse(terminal(ask, c.dispatch, &row))?,
    }
    Ok(author.writes(vec![
        Declined {
            dispatch: c.dispatch,
            reason: c.reason,
        }
        .into(),
    ]))
}

fn accepted_already(ask: Ask<'_>, number: DispatchNo, row: &DispatchRow, verb: &str) -> Refusal {
    let mut refusal = ask
        .refusal(Code::NotPending, Some(row.session), &number.to_string())
        .say(format!("{number} is accepted, not queued"))
        .next(
            format!("tenure {verb} {number}"),
            "ends an accepted dispatch",
        );
    refusal.current = Some(row.state.as_str().into());
    refusal.since = Some(row.since);
    refusal
}

/// Ends an accepted dispatch. The binding must be of this session, of this generation, and active; each
/// violation alone is its own refusal (DIS-6).
pub(super) fn report(ask: Ask<'_>, c: &Report) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let row = owned(ask, author, c.dispatch)?;
    match row.state {
        DispatchState::Accepted => {}
        DispatchState::Queued => {
            ask.refuse(
                ask.refusal(Code::NoBinding, Some(row.session), &c.dispatch.to_string())
                    .say(format!("{} is queued: nobody has accepted it", c.dispatch))
                    .next(
                        format!("tenure accept {}", c.dispatch),
                        "makes the binding a report needs",
                    ),
            )?;
        }
        _ => ask.refuse(terminal(ask, c.dispatch, &row))?,
    }
    let reported = Reported {
        dispatch: c.dispatch,
        outcome: c.outcome,
        body: c.body,
    };
    Ok(author.writes(vec![reported.into()]))
}

/// Withdraws a dispatch. What was given under a token is withdrawn under a current token of that session, or
/// by an operator with force and a reason.
pub(super) fn cancel(ask: Ask<'_>, c: &Cancel) -> Result<Decision, Refusal> {
    let authority = over(ask, c.dispatch)?;
    let row = ask.dispatch(c.dispatch)?;
    if !row.state.is_live() {
        ask.refuse(terminal(ask, c.dispatch, &row))?;
    }
    let cancelled = Cancelled {
        dispatch: c.dispatch,
        reason: c.reason,
        forced: authority.is_forced(ask),
    };
    Ok(authority.decides(vec![cancelled.into()]))
}

/// An assignment failed after its session was connected: nothing is claimed, the session gets a notice
/// (DIS-8, NOT-1).
pub(super) fn fail(ask: Ask<'_>, c: &Fail) -> Result<Decision, Refusal> {
    let authority = over(ask, c.dispatch)?;
    let row = ask.dispatch(c.dispatch)?;
    match row.state {
        DispatchState::Queued => {}
        DispatchState::Accepted => {
            ask.refuse(accepted_already(ask, c.dispatch, &row, "cancel"))?;
        }
        _ => ask.refuse(terminal(ask, c.dispatch, &row))?,
    }
    let failed = AssignmentFailed {
        dispatch: c.dispatch,
        reason: c.reason,
        notice: ask.state.next_envelope(),
        forced: authority.is_forced(ask),
    };
    Ok(authority.decides(vec![failed.into()]))
}

/// By whose authority a dispatch is ended from outside: whoever gave it, or an operator by force. What an
/// operator gave, anybody may end. A token that is presented must be current, whatever else is said.
fn over(ask: Ask<'_>, number: DispatchNo) -> Result<Authority, Refusal> {
    let authority = ask.author_or_operator()?;
    ask.dispatch(number)?;
    let Some(giver) = ask.state.live.get(&number).and_then(|d| d.from) else {
        return Ok(authority);
    };
    match authority {
        Authority::Token(author) if author.session == giver => return Ok(authority),
        _ if ask.request.input.force.is_some() => return Ok(Authority::Operator),
        _ => {}
    }
    let by = ask.state.name(giver);
    ask.refuse(
        ask.refusal(Code::NotYourEnvelope, Some(giver), &number.to_string())
            .holder(ask.state)
            .relation(Relation::Foreign)
            .say(format!("{number} was given by {by}"))
            .next(
                format!("tenure cancel {number} --force --reason TEXT"),
                "withdraws it as operator, on the record",
            ),
    )?;
    Ok(authority)
}
