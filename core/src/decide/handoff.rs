//! Handing a dispatch over to another session: the table of `docs/roles.md` (DIS-14, DIS-15).

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::HandOff;
use crate::disclosure::shared;
use crate::event::{Event, HandedOver, Joined};
use crate::generation::Standing;
use crate::holder::Verdict;
use crate::id::{EnvelopeNo, SessionNo};
use crate::refusal::{Code, Refusal, Relation};
use crate::state::DispatchState;

use super::Decision;
use super::adopt::evidence_about;
use super::guard::Ask;
use super::work::{addressed, owned, terminal};

/// Gives a dispatch over: by its holder only, to one session that can be identified and is not known to be dead.
/// The dispatch keeps its state, so that its item is blocked throughout.
pub(super) fn hand_off(ask: Ask<'_>, c: &HandOff) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let row = owned(ask, author, c.dispatch)?;
    if !row.state.is_live() {
        ask.refuse(terminal(ask, c.dispatch, &row))?;
    }
    let (number, session) = ask.session(c.to)?;
    if number == author.session {
        return Ok(Decision::nothing());
    }
    addressed(ask, number, session, c.to_generation)?;
    live(ask, number)?;
    let envelope = ask.state.next_envelope();
    let handed = HandedOver {
        dispatch: c.dispatch,
        from: author.session,
        session: number,
        generation: session.generation,
        envelope,
    };
    let mut events: Vec<Event> = vec![handed.into()];
    let writes = ask
        .state
        .live
        .get(&c.dispatch)
        .map_or(&[][..], |d| &d.writes);
    // The author is among them, with what it declared and what it was seen to write.
    let list = shared(ask.state, Some(number), writes);
    if row.state == DispatchState::Accepted && !list.is_empty() {
        let first_notice = EnvelopeNo(envelope.0.saturating_add(1));
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

/// Nobody is given work who is known not to be there.
fn live(ask: Ask<'_>, number: SessionNo) -> Result<(), Refusal> {
    let (verdict, proofs) = evidence_about(ask, number);
    let name = ask.state.name(number);
    let vacant = ask.state.standing(number) != Some(Standing::Granted);
    if !vacant && verdict != Verdict::Dead {
        return Ok(());
    }
    let why = if vacant {
        "nobody holds it"
    } else {
        "its holder is provably dead"
    };
    ask.refuse(
        ask.refusal(Code::Held, Some(number), &name)
            .holder(ask.state)
            .relation(Relation::Foreign)
            .evidence(verdict, proofs)
            .say(format!("{name} is not live: {why}"))
            .next(
                format!("tenure adopt {name}"),
                "makes you its holder; then the dispatch can be handed over to it",
            ),
    )
}
