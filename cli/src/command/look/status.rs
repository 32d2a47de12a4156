//! `status`: the store and its health, who works where, and what needs a person.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tenure_projection::core::holder::Verdict;
use tenure_projection::core::id::{Position, SessionNo};
use tenure_projection::core::refusal::Next;
use tenure_projection::core::state::{EnvelopeKind, EnvelopeState, NoticeKind};
use tenure_projection::error::Error;
use tenure_projection::views::{Lens, SessionView};

use crate::clock;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{BAD, DIM, HEAD, Object, WARN, human, json};
use crate::served;

/// Arguments of `status`.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only the sessions that work where you are
    #[arg(long)]
    here: bool,
}

/// What `status` says.
struct Status {
    position: Position,
    incarnation: u64,
    sessions: Vec<SessionView>,
    findings: Vec<Position>,
    unknown: Option<u16>,
    needs: Vec<Need>,
}

/// What is shown of a report: `show dN` has the rest.
const REPORT_CHARS_MAX: usize = 120;

/// Something that waits for a person.
struct Need {
    what: String,
    next: Next,
}

impl Args {
    /// Whether it is about the directory that it was called in.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.here
    }

    /// Prints it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let store = ctx.reading()?;
        let here = if self.here {
            let (list, _) = store
                .shared_at(None, &[served::place(Path::new("."))])
                .map_err(|e| ctx.fault(&e))?;
            Some(list.iter().map(|s| s.session).collect::<Vec<SessionNo>>())
        } else {
            None
        };
        let status = ctx.look(&store, |lens| look(lens, here.as_deref()))?;
        let dir = ctx.dir()?;
        let store_id = store.id().map_err(|e| ctx.fault(&e))?.to_string();
        if ctx.out.is_json() {
            ctx.out
                .object(&object(&status, &store_id, &dir.to_string_lossy()))?;
            return Ok(Exit::DONE);
        }
        ctx.out
            .styled(HEAD, format_args!("store {}", dir.display()))?;
        let (position, incarnation) = (status.position, status.incarnation);
        ctx.out.say(format_args!(
            "  {store_id}, position {position}, incarnation {incarnation}"
        ))?;
        match (status.findings.len(), status.unknown) {
            (0, None) => ctx
                .out
                .say("  healthy as far as it was read; `tenure verify` looks at every byte")?,
            (0, Some(kind)) => {
                ctx.out.styled(
                    BAD,
                    format_args!(
                        "  event kind {kind} is of a newer program: nothing can be appended"
                    ),
                )?;
            }
            (count, _) => {
                ctx.out.styled(
                    BAD,
                    format_args!("  {count} frames do not stand: nothing can be appended"),
                )?;
            }
        }
        people(ctx, &status)
    }
}

fn people(ctx: &mut Context, status: &Status) -> Result<Exit, Stop> {
    let now = clock::now();
    for (place, sessions) in checkouts(&status.sessions) {
        ctx.out.gap()?;
        ctx.out
            .styled(HEAD, place.unwrap_or("in no checkout that they named"))?;
        let rows: Vec<_> = sessions
            .iter()
            .map(|s| human::session_row(s, now))
            .collect();
        for row in human::table(&rows) {
            ctx.out.say(format_args!("  {row}"))?;
        }
    }
    if status.sessions.is_empty() {
        ctx.out
            .styled(DIM, "  no active session; `tenure register NAME` makes one")?;
    }
    if !status.needs.is_empty() {
        ctx.out.gap()?;
        ctx.out.styled(HEAD, "needs a person")?;
    }
    for need in &status.needs {
        ctx.out.styled(WARN, format_args!("  {}", need.what))?;
        ctx.out.say(format_args!("    {}", need.next.command))?;
    }
    Ok(Exit::DONE)
}

/// Sessions by the checkouts they are present in; a session that is in several stands in each.
fn checkouts(sessions: &[SessionView]) -> BTreeMap<Option<&str>, Vec<&SessionView>> {
    let mut places: BTreeMap<Option<&str>, Vec<&SessionView>> = BTreeMap::new();
    for session in sessions {
        if session.tops.is_empty() {
            places.entry(None).or_default().push(session);
        }
        for top in &session.tops {
            places.entry(Some(top)).or_default().push(session);
        }
    }
    places
}

fn look(lens: Lens<'_>, here: Option<&[SessionNo]>) -> Result<Status, Error> {
    let sessions: Vec<SessionView> = lens
        .sessions()
        .filter(|s| s.active && here.is_none_or(|here| here.contains(&s.number)))
        .collect();
    let mut needs: Vec<Need> = lens
        .state
        .findings
        .iter()
        .map(|position| {
            need(
                format!("the frame at position {position} did not stand when it was written"),
                format!("tenure store accept finding:{position} --reason TEXT"),
                "acknowledges that frame, so that the store can be written to again",
            )
        })
        .collect();
    needs.extend(blocked(lens, here)?);
    for session in &sessions {
        needs.extend(of_session(session));
        needs.extend(of_mail(lens, session)?);
    }
    Ok(Status {
        position: lens.position(),
        incarnation: lens.state.incarnation,
        sessions,
        findings: lens.state.findings.clone(),
        unknown: lens.state.unknown,
        needs,
    })
}

fn need(what: String, command: String, effect: &'static str) -> Need {
    Need {
        what,
        next: Next { command, effect },
    }
}

/// Work that was reported blocked, until somebody says to have seen to it or gives its item again.
fn blocked(lens: Lens<'_>, here: Option<&[SessionNo]>) -> Result<Vec<Need>, Error> {
    let mut needs = Vec::new();
    for id in lens.state.blocked.keys() {
        let owner = lens.state.dispatch(*id).map(|row| row.session);
        let is_here = here.is_none_or(|here| owner.is_some_and(|o| here.contains(&o)));
        let Some(view) = lens.dispatch(*id)?.filter(|_| is_here) else {
            continue;
        };
        let report = view.report.as_deref().unwrap_or_default();
        let report = String::from_utf8_lossy(report);
        let said = match report.lines().next() {
            Some(line) => format!(
                ": {}",
                line.chars().take(REPORT_CHARS_MAX).collect::<String>()
            ),
            None => String::new(),
        };
        needs.push(need(
            format!("{id} ({}) of {} is blocked{said}", view.item, view.session),
            format!("tenure ack {id} --reason TEXT"),
            "says that you have seen to it, and so does giving the item again",
        ));
    }
    Ok(needs)
}

fn of_session(session: &SessionView) -> Vec<Need> {
    let (name, open, pending) = (&session.name, session.open.len(), session.pending);
    let mut needs = Vec::new();
    match &session.holder {
        None => needs.push(need(
            format!("{name} has no holder: its tree changed hands, or the incarnation was raised"),
            format!("tenure adopt {name}"),
            "makes you its holder; its work and mail follow",
        )),
        Some(holder) if holder.verdict == Verdict::Dead && open + pending > 0 => needs.push(need(
            format!(
                "the holder of {name} is dead ({}); {open} open, {pending} pending",
                holder.label()
            ),
            format!("tenure adopt {name}"),
            "makes you its holder; its work and mail follow",
        )),
        Some(_) => {}
    }
    for former in &session.former {
        if former.holder.verdict != Verdict::Dead {
            needs.push(need(
                format!(
                    "a former holder of {name} (generation {}, {}) may still be writing files",
                    former.generation,
                    former.holder.label()
                ),
                format!("tenure show {name}"),
                "shows who it is",
            ));
        }
    }
    needs
}

/// Failed assignments until their notice is acknowledged, and replies that were fenced unread (NOT-1, OUT-7).
fn of_mail(lens: Lens<'_>, session: &SessionView) -> Result<Vec<Need>, Error> {
    let mut needs = Vec::new();
    for id in lens.envelopes_of(session.number, true) {
        let Some(row) = lens.state.envelope(id) else {
            continue;
        };
        let failed = row.notice == NoticeKind::AssignmentFailed;
        let review = row.kind == EnvelopeKind::Review && row.state == EnvelopeState::Pending;
        if !failed && !review {
            continue;
        }
        let Some(view) = lens.envelope(id)? else {
            continue;
        };
        let what = match (&view.dispatch, failed) {
            (Some(d), true) => {
                let reason = d.reason.as_deref().unwrap_or("no reason given");
                format!(
                    "the assignment of {} to {} ({}) failed: {reason}",
                    d.item, session.name, d.id
                )
            }
            _ => format!("{} has a reply to review", session.name),
        };
        needs.push(need(what, format!("tenure show {id}"), "shows it"));
    }
    Ok(needs)
}

fn object(status: &Status, store: &str, dir: &str) -> Object {
    let health = match (status.findings.len(), status.unknown) {
        (0, None) => "ok",
        (0, Some(_)) => "newer-events",
        _ => "findings",
    };
    let checkouts: Value = checkouts(&status.sessions)
        .into_iter()
        .map(|(place, sessions)| {
            let names: Vec<&str> = sessions.iter().map(|s| s.name.as_str()).collect();
            serde_json::json!({ "path": place, "sessions": names })
        })
        .collect();
    let needs: Value = status
        .needs
        .iter()
        .map(|need| {
            serde_json::json!({
                "what": need.what,
                "command": need.next.command,
                "effect": need.next.effect,
            })
        })
        .collect();
    let findings: Value = status.findings.iter().map(|p| Value::from(p.0)).collect();
    Object::new("status")
        .with("store", store)
        .with("dir", dir)
        .with("position", status.position.0)
        .with("incarnation", status.incarnation)
        .with("health", health)
        .with("findings", findings)
        .with(
            "sessions",
            status
                .sessions
                .iter()
                .map(|s| json::session(s).into())
                .collect::<Vec<Value>>(),
        )
        .with("checkouts", checkouts)
        .with("needs", needs)
}
