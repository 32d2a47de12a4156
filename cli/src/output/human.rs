//! What people read. Every function gives lines with a style each; [`Output`](super::Output) escapes and prints
//! them.

use anstyle::Style;
use tenure_projection::core::holder::{Source, Verdict};
use tenure_projection::core::id::Time;
use tenure_projection::core::refusal::Next;
use tenure_projection::views::{
    DispatchView, EnvelopeView, EventView, Field, HolderView, LossView, RefusalView, SessionView,
    SharedView, WhoView,
};

use super::{BAD, DIM, HEAD, PLAIN, WARN};
use crate::clock::{age, now, rfc3339};

pub mod history;
mod rights;
mod tree;

pub use rights::{policy, role, told};
pub use tree::tree;

/// A line and how it looks.
pub type Line = (Style, String);

/// What may be done, each command with its effect.
#[must_use]
pub fn next(next: &[Next]) -> Vec<Line> {
    let width = next
        .iter()
        .map(|n| n.command.chars().count())
        .max()
        .unwrap_or(0)
        .min(60);
    next.iter()
        .map(|n| (PLAIN, format!("  {:width$}  {}", n.command, n.effect)))
        .collect()
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Dead => "provably dead",
        Verdict::Alive => "alive",
        Verdict::Unknowable => "maybe alive",
    }
}

/// Who holds, on whose behalf, and whether it is still there.
#[must_use]
pub fn holder(holder: &HolderView) -> String {
    let proofs: Vec<&str> = holder.evidence.iter().map(|p| p.as_str()).collect();
    format!(
        "{}; {} ({})",
        bearer(holder),
        verdict(holder.verdict),
        proofs.join("; ")
    )
}

/// Who holds, and on whose behalf where the label does not say so already.
#[must_use]
pub fn bearer(holder: &HolderView) -> String {
    match holder.engine {
        Some(_) => format!("{} for {}", holder.label(), holder.actor),
        None => holder.label(),
    }
}

/// The process that was recorded, and how it was chosen.
#[must_use]
pub fn process(holder: &HolderView) -> String {
    match holder.process {
        None => "no process recorded: its verdict will be unknowable".to_owned(),
        Some(process) => {
            let chosen = match process.source {
                Source::Default => "the parent of this command; it can prove life, never death",
                Source::Declared => "as declared",
            };
            let start = process
                .start
                .map_or_else(|| "unknown".to_owned(), |s| s.to_string());
            format!(
                "pid {} start {start} on {}: {chosen}",
                process.pid, holder.host
            )
        }
    }
}

/// What happened behind somebody's back.
#[must_use]
pub fn lost(lost: &[LossView]) -> Vec<Line> {
    lost.iter()
        .map(|loss| {
            let by = loss
                .actor
                .as_ref()
                .map(|a| format!(" by {a}"))
                .unwrap_or_default();
            let why = loss
                .reason
                .as_ref()
                .map(|r| format!(": {r}"))
                .unwrap_or_default();
            let (event, generation, at) = (loss.event(), loss.generation, loss.at);
            let forced = if loss.is_forced() { " by force" } else { "" };
            let when = rfc3339(at.time);
            (
                PLAIN,
                format!(
                    "  {event}{forced} at {} ({when}), generation {generation}{by}{why}",
                    at.position
                ),
            )
        })
        .collect()
}

/// A refusal: what, who, since when, what now.
#[must_use]
pub fn refusal(refusal: &RefusalView) -> Vec<Line> {
    let mut lines = vec![(BAD, format!("{}: {}", refusal.word(), refusal.message))];
    if let Some(view) = &refusal.holder {
        let since = refusal
            .since
            .map(|s| format!(", since {} ({})", rfc3339(s.time), age(s.time, now())));
        lines.push((
            PLAIN,
            format!("held by {}{}", holder(view), since.unwrap_or_default()),
        ));
    }
    lines.extend(lost(&refusal.lost));
    if let Some(at) = refusal.recorded_at {
        lines.push((
            PLAIN,
            format!("that command stands recorded at position {at}"),
        ));
    }
    if let Some(stored) = &refusal.stored {
        let kept = match (stored.carried, stored.body_kept) {
            (false, _) => "",
            (true, true) => "; what it carried is kept",
            (true, false) => "; what it carried is not kept",
        };
        lines.push((DIM, format!("recorded as {}{kept}", stored.id)));
    }
    if !refusal.next.is_empty() {
        lines.push((PLAIN, "you may:".to_owned()));
        lines.extend(next(&refusal.next));
    }
    lines
}

/// A session, whole.
#[must_use]
pub fn session(session: &SessionView, now: Time) -> Vec<Line> {
    let state = if session.active { "active" } else { "retired" };
    let mut lines = vec![(HEAD, format!("{}  {state}", session.token))];
    let mut row = |name: &str, text: String| lines.push((PLAIN, format!("  {name:<10} {text}")));
    match &session.holder {
        Some(view) => row("holder", holder(view)),
        None if session.active => row("holder", "nobody: adopt it".to_owned()),
        None => {}
    }
    if let Some(parent) = &session.parent {
        row("tree", format!("{}, delegated by {parent}", session.tree));
    }
    for former in &session.former {
        let (generation, label) = (former.generation, holder(&former.holder));
        let writing = format!("generation {generation}: {label}; may still be writing files");
        row("former", writing);
    }
    let when = |time: Time| format!("{} ({})", rfc3339(time), age(time, now));
    row("since", when(session.since.time));
    row("last seen", when(session.last_seen.time));
    if let Some(status) = &session.status {
        row("status", status.clone());
    }
    if let Some(checkout) = &session.checkout {
        row("checkout", checkout.clone());
    }
    for superproject in &session.superprojects {
        row("submodule", format!("of {superproject}"));
    }
    for (key, value) in &session.labels {
        row("label", format!("{key}={value}"));
    }
    if let Some(branch) = &session.branch {
        row("branch", history::branched(branch));
    }
    if let Some((from, parent)) = &session.imported {
        let parent = parent.as_ref().map_or_else(String::new, |p| {
            format!(", which came from {p} there and from nothing here")
        });
        row("imported", format!("as {from}{parent}"));
    }
    if let Some(tip) = session.tip {
        let (records, at) = (session.records, tip.position);
        row(
            "history",
            format!("{records} records, the newest at position {at}"),
        );
    }
    if !session.activities.is_empty() {
        row("running", session.activities.join(" "));
    }
    if !session.aliases.is_empty() {
        row("once", session.aliases.join(" "));
    }
    if let Some(cursor) = session.cursor {
        row("read", format!("up to {cursor}"));
    }
    let open: Vec<String> = session.open.iter().map(ToString::to_string).collect();
    if !open.is_empty() {
        row("work", open.join(" "));
    }
    let (pending, delivered) = (session.pending, session.delivered);
    row(
        "mail",
        format!("{pending} pending, {delivered} delivered and not read"),
    );
    lines
}

/// One line for a list of sessions.
#[must_use]
pub fn session_row(session: &SessionView, now: Time) -> Vec<String> {
    let holder = match (&session.holder, session.active) {
        (Some(view), _) => view.label(),
        (None, true) => "nobody".to_owned(),
        (None, false) => "retired".to_owned(),
    };
    let verdict = session.holder.as_ref().map_or("", |h| verdict(h.verdict));
    vec![
        session.token.clone(),
        holder,
        verdict.to_owned(),
        format!("seen {}", age(session.last_seen.time, now)),
        format!("{} open", session.open.len()),
        format!("{} pending", session.pending),
        session.branch.as_ref().map_or_else(String::new, |branch| {
            let at = branch.at.map_or(0, |at| at.position.0);
            format!("from {} at {at}", branch.source)
        }),
    ]
}

/// One line for a list of dispatches.
#[must_use]
pub fn dispatch_row(dispatch: &DispatchView) -> Vec<String> {
    vec![
        dispatch.id.to_string(),
        dispatch.state.as_str().to_owned(),
        format!("{}@{}", dispatch.session, dispatch.generation),
        dispatch.item.clone(),
        dispatch.title.clone().unwrap_or_default(),
        dispatch.writes.join(" "),
    ]
}

/// A dispatch without its texts.
#[must_use]
pub fn dispatch(dispatch: &DispatchView) -> Vec<Line> {
    let (id, state, item) = (dispatch.id, dispatch.state.as_str(), &dispatch.item);
    let mut lines = vec![(HEAD, format!("{id}  {state}  {item}"))];
    let mut row = |name: &str, text: String| lines.push((PLAIN, format!("  {name:<10} {text}")));
    if let Some(title) = &dispatch.title {
        row("title", title.clone());
    }
    row(
        "session",
        format!("{}@{}", dispatch.session, dispatch.generation),
    );
    row(
        "from",
        dispatch
            .from
            .clone()
            .unwrap_or_else(|| "an operator".to_owned()),
    );
    for path in &dispatch.writes {
        row("writes", path.clone());
    }
    let (opened, since) = (dispatch.opened, dispatch.since);
    row(
        "given",
        format!("{} at {}", rfc3339(opened.time), opened.position),
    );
    row(
        "since",
        format!("{} at {}", rfc3339(since.time), since.position),
    );
    if let Some(reason) = &dispatch.reason {
        row("reason", reason.clone());
    }
    lines
}

/// Who else works there, with what to mind.
#[must_use]
pub fn shared(list: &[SharedView], instruction: Option<&str>) -> Vec<Line> {
    let mut lines = Vec::new();
    for entry in list {
        let who = entry
            .holder
            .as_ref()
            .map_or_else(|| "nobody".to_owned(), HolderView::label);
        let former = entry
            .former
            .map(|g| format!(", formerly at generation {g}"))
            .unwrap_or_default();
        lines.push((
            WARN,
            format!(
                "{} ({who}{former}) works here too: {}",
                entry.session, entry.status
            ),
        ));
        for (item, title) in entry.items.iter().zip(&entry.titles) {
            let title = title.as_ref().map(|t| format!(": {t}")).unwrap_or_default();
            lines.push((PLAIN, format!("  on {item}{title}")));
        }
        let (level, source) = (entry.level.as_str(), entry.source.as_str());
        lines.push((
            PLAIN,
            format!("  at {} ({source}; same {level})", entry.writes.join(", ")),
        ));
    }
    lines.extend(instruction.map(|text| (WARN, text.to_owned())));
    lines
}

/// An envelope without its text.
#[must_use]
pub fn envelope(envelope: &EnvelopeView) -> Line {
    let (id, kind, state) = (envelope.id, envelope.kind.as_str(), envelope.state.as_str());
    let age = age(envelope.issued, now());
    let reason = envelope
        .reason
        .map(|r| format!(" ({})", r.as_str()))
        .unwrap_or_default();
    let from = envelope
        .from
        .as_ref()
        .map(|f| format!(" from {f}"))
        .unwrap_or_default();
    let to = format!("{}@{}", envelope.session, envelope.generation);
    let about = match (&envelope.dispatch, envelope.re) {
        (Some(dispatch), _) => format!(" about {} ({})", dispatch.item, dispatch.id),
        (None, Some(re)) => format!(" re {re}"),
        (None, None) => String::new(),
    };
    (
        HEAD,
        format!("{id}  {kind}  {state}{reason}  for {to}{from}{about}, issued {age}"),
    )
}

/// Who holds a subject, on one line.
#[must_use]
pub fn who(who: &WhoView) -> String {
    let since = who.since.map(|p| {
        format!(
            " since {} ({} at {})",
            rfc3339(p.at.time),
            p.event,
            p.at.position
        )
    });
    let until = who.until.map(|p| {
        format!(
            " until {} ({} at {})",
            rfc3339(p.at.time),
            p.event,
            p.at.position
        )
    });
    let token = match (&who.session, who.generation) {
        (Some(session), Some(generation)) => format!("{session}@{generation}"),
        _ => "nobody".to_owned(),
    };
    let view = who
        .holder
        .as_ref()
        .map_or_else(|| "nobody".to_owned(), holder);
    if who.session.is_none() {
        return format!("{}: nobody at {}", who.subject, who.at.position);
    }
    format!(
        "{}: {token}, {view}{}{}",
        who.subject,
        since.unwrap_or_default(),
        until.unwrap_or_default()
    )
}

/// An event on one line, without its body.
#[must_use]
pub fn event(event: &EventView) -> String {
    format!(
        "{:>6}  {}  {}",
        event.at.position.to_string(),
        rfc3339(event.at.time),
        facts(event)
    )
}

/// An event without where and when.
#[must_use]
pub fn facts(event: &EventView) -> String {
    let token = match (&event.session, event.generation) {
        (Some(session), Some(generation)) => format!("{session}@{generation}"),
        (Some(session), None) => session.clone(),
        (None, _) => "-".to_owned(),
    };
    let mut text = format!("{:<18} {token}  by {}", event.kind, event.actor);
    for (name, field) in &event.payload {
        let value = match field {
            Field::None | Field::Flag(false) | Field::Body(_) => continue,
            Field::Flag(true) => "yes".to_owned(),
            Field::Number(number) => number.to_string(),
            Field::Text(text) => text.clone(),
            Field::List(list) if list.is_empty() => continue,
            Field::List(list) => list.join(" "),
            Field::Pairs(pairs) if pairs.is_empty() => continue,
            Field::Pairs(pairs) => pairs
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect::<Vec<_>>()
                .join(" "),
        };
        text.push_str(&format!("  {name}: {value}"));
    }
    text
}

/// Rows as columns of equal width; the last column is as long as it likes.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> Vec<String> {
    let escaped: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|cell| super::escape::line(cell).into_owned())
                .collect()
        })
        .collect();
    let columns = escaped.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        escaped
            .iter()
            .filter_map(|row| row.get(column))
            .map(|c| c.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    escaped
        .iter()
        .map(|row| {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}  "));
            }
            line.trim_end().to_owned()
        })
        .collect()
}
