//! Mail: send, deliver, acknowledge. Delivery, acknowledgement, acceptance and report are separate facts.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use crate::command::{Acknowledge, Deliver, Send};
use crate::event::{Acknowledged, Delivered, Sent};
use crate::id::EnvelopeNo;
use crate::refusal::{Code, Refusal, Relation};
use crate::state::{EnvelopeRow, EnvelopeState};

use super::Decision;
use super::guard::{Ask, Author};

/// Sends a message to a session, under a token or as operator.
pub(super) fn send(ask: Ask<'_>, c: &Send) -> Result<Decision, Refusal> {
    let authority = ask.author_or_operator()?;
    let (number, session) = ask.session(c.to)?;
    super::work::addressed(ask, number, session, None)?;
    ask.refers(c.re)?;
    let sent = Sent {
        envelope: ask.state.next_envelope(),
        session: number,
        generation: session.generation,
        from: authority.session(),
        re: c.re,
        body: c.body,
    };
    Ok(authority.decides(vec![sent.into()]))
}

/// The envelope reached its session. A duplicate receipt is the same answer; one for a cancelled envelope is
/// refused with the reason (OUT-8).
pub(super) fn deliver(ask: Ask<'_>, c: &Deliver) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let row = own(ask, author, c.envelope)?;
    match row.state {
        EnvelopeState::Pending => {}
        EnvelopeState::Delivered | EnvelopeState::Acknowledged => return Ok(Decision::nothing()),
        EnvelopeState::Cancelled => ask.refuse(cancelled(ask, c.envelope, &row))?,
    }
    let envelope = c.envelope;
    Ok(author.writes(vec![Delivered { envelope }.into()]))
}

/// The session has read it.
pub(super) fn acknowledge(ask: Ask<'_>, c: &Acknowledge) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let row = own(ask, author, c.envelope)?;
    match row.state {
        EnvelopeState::Pending | EnvelopeState::Delivered => {}
        EnvelopeState::Acknowledged => return Ok(Decision::nothing()),
        EnvelopeState::Cancelled => ask.refuse(cancelled(ask, c.envelope, &row))?,
    }
    let envelope = c.envelope;
    Ok(author.writes(vec![Acknowledged { envelope }.into()]))
}

/// An adapter handles envelopes of its own session and generation only (OUT-1). What is over keeps the
/// generation it ended in, and its state says more than whose it was.
fn own(ask: Ask<'_>, author: Author, number: EnvelopeNo) -> Result<EnvelopeRow, Refusal> {
    let row = ask.envelope(number)?;
    if row.session == author.session && (row.generation == author.generation || !row.is_open()) {
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
        .next(format!("tenure show {number}"), "shows that envelope"),
    )?;
    Ok(row)
}

fn cancelled(ask: Ask<'_>, number: EnvelopeNo, row: &EnvelopeRow) -> Refusal {
    let mut refusal = ask
        .refusal(Code::NotPending, Some(row.session), &number.to_string())
        .say(format!("{number} is cancelled: {}", row.reason.as_str()))
        .next(format!("tenure show {number}"), "shows that envelope");
    refusal.current = Some(EnvelopeState::Cancelled.as_str().into());
    refusal
}
