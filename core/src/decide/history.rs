//! Histories: record, import.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use crate::command::{Import, Record};
use crate::event::{Imported, Recorded};
use crate::history::Activity;
use crate::id::{Position, SessionNo};
use crate::limits::ACTIVITIES_OPEN_MAX;
use crate::refusal::{Code, Refusal, Relation};
use crate::state::History;

use super::Decision;
use super::guard::{Ask, Author};

/// Appends to the history of the author's session. With an expectation it is a compare-and-append: whoever
/// computed against another record is refused (A11).
pub(super) fn record(ask: Ask<'_>, c: &Record) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let history = own(ask, author);
    let newest = history.tip_position();
    if let Some(expected) = c.expect.filter(|expected| *expected != newest) {
        ask.refuse(position_moved(ask, author.session, expected, newest))?;
    }
    if let Some(opens) = c.opens {
        may_open(ask, author, history, opens)?;
    }
    if let Some(closes) = c.closes {
        is_open(ask, author, history, closes)?;
    }
    let recorded = Recorded {
        session: author.session,
        index: history.count() + 1,
        previous: history.tip.map(|tip| tip.position),
        before: history.hash(),
        depth: depth_after(history, c.opens, c.closes),
        kind: c.kind,
        body: c.body,
        opens: c.opens,
        closes: c.closes,
    };
    Ok(author.writes(vec![recorded.into()]))
}

fn own<'a>(ask: Ask<'a>, author: Author) -> &'a History {
    &ask.state.sessions[author.session.index()].history
}

/// What the author's session recorded so far came from elsewhere.
pub(super) fn import(ask: Ask<'_>, c: &Import) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let imported = Imported {
        session: author.session,
        from: c.from,
        parent: c.parent,
        hash: c.hash,
    };
    Ok(author.writes(vec![imported.into()]))
}

/// How many calls and approvals are open once one activity was closed and another opened.
pub(super) fn depth_after(
    history: &History,
    opens: Option<Activity>,
    closes: Option<Activity>,
) -> u32 {
    let part = |a: Option<Activity>| u32::from(a.is_some_and(|a| a.kind.is_part_of_a_turn()));
    history
        .depth()
        .saturating_sub(part(closes))
        .saturating_add(part(opens))
}

fn position_moved(
    ask: Ask<'_>,
    session: SessionNo,
    expected: Position,
    newest: Position,
) -> Refusal {
    let name = ask.state.name(session);
    let stands = match newest.0 {
        0 => format!("the history of {name} is empty"),
        _ => format!("the newest record of {name} is at position {newest}"),
    };
    let offered = match expected.0 {
        0 => "an empty history was expected".to_string(),
        _ => format!("position {expected} was expected"),
    };
    let mut refusal = ask
        .refusal(Code::PositionMoved, Some(session), &name)
        .relation(Relation::Superseded)
        .say(format!("{stands}, and {offered}"))
        .next(
            format!("tenure history {name}"),
            "shows what was recorded since",
        );
    refusal.presented = Some(expected.to_string());
    refusal.current = Some(newest.to_string());
    refusal
}

/// An id that is open is taken until it is closed; later it may be used again.
fn may_open(
    ask: Ask<'_>,
    author: Author,
    history: &History,
    opens: Activity,
) -> Result<(), Refusal> {
    let (name, what) = (ask.state.name(author.session), named(ask, opens));
    if let Some(open) = history.open_activity(opens.kind, ask.text(opens.id)) {
        let mut refusal = ask
            .refusal(Code::NameTaken, Some(author.session), &what)
            .relation(Relation::Taken)
            .say(format!(
                "{what} of {name} is open since position {}",
                open.since.position
            ))
            .next(
                format!("tenure show {what} --session {name}"),
                "shows where it was opened",
            );
        refusal.since = Some(open.since);
        ask.refuse(refusal)?;
    }
    if history.open.len() >= ACTIVITIES_OPEN_MAX {
        return ask.refuse(
            ask.refusal(Code::OpenObligations, Some(author.session), &what)
                .say(format!(
                    "{name} has {} open activities, and at most {ACTIVITIES_OPEN_MAX} can be open",
                    history.open.len()
                ))
                .next(
                    "tenure record TEXT --closes KIND:ID".into(),
                    "ends one of them",
                ),
        );
    }
    Ok(())
}

fn is_open(
    ask: Ask<'_>,
    author: Author,
    history: &History,
    closes: Activity,
) -> Result<(), Refusal> {
    if history
        .open_activity(closes.kind, ask.text(closes.id))
        .is_some()
    {
        return Ok(());
    }
    let (name, what) = (ask.state.name(author.session), named(ask, closes));
    ask.refuse(
        ask.refusal(Code::NotPending, Some(author.session), &what)
            .say(format!("{what} of {name} is not open"))
            .next(
                format!("tenure show {what} --session {name}"),
                "says whether it ended, and how",
            ),
    )
}

fn named(ask: Ask<'_>, activity: Activity) -> alloc::string::String {
    format!("{}:{}", activity.kind.as_str(), ask.string(activity.id))
}
