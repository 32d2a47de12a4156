//! `why`: what was asked, what it was judged on, by which rule it stands, and what it changed.

use serde_json::{Value, json};
use tenure_projection::why::Why;

use crate::clock::rfc3339;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input;
use crate::output::{BAD, DIM, HEAD, Line, Object, PLAIN, human, json};

use super::diff;

/// Arguments of `why`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The position
    #[arg(value_name = "POSITION")]
    position: String,
}

impl Args {
    /// Explains one position of the log.
    ///
    /// # Errors
    /// When there is no such position, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let position = input::position(&self.position)?;
        let reader = ctx.reading()?;
        let why = Why::of(&reader, position).map_err(|error| ctx.fault(&error))?;
        if ctx.out.is_json() {
            ctx.out.object(&object(&why))?;
        } else {
            ctx.out.lines(lines(&why))?;
        }
        Ok(Exit::DONE)
    }
}

fn object(why: &Why) -> Object {
    let evidence = why.evidence.as_ref().map(|evidence| {
        let proofs: Vec<_> = evidence.proofs.iter().map(|p| p.as_str()).collect();
        json!({ "verdict": evidence.verdict.as_str(), "evidence": proofs })
    });
    let judged_on = why.judged_on.as_ref().map(|stood| {
        json!({
            "session": stood.session,
            "token": stood.token,
            "standing": stood.standing,
            "since": { "position": stood.since.position.0, "time": rfc3339(stood.since.time) },
        })
    });
    let events: Vec<Value> = why
        .events
        .iter()
        .map(|e| json::event(e).into_value())
        .collect();
    let findings: Vec<Value> = why
        .findings
        .iter()
        .map(|f| json!({ "rule": f.rule.as_str(), "message": f.message }))
        .collect();
    let shown: Vec<Value> = why
        .disclosure
        .shown
        .iter()
        .map(|(session, at)| json!({ "session": session, "position": at.0 }))
        .collect();
    Object::new("why")
        .with("position", why.at.position.0)
        .with("time", rfc3339(why.at.time))
        .with("command", why.command)
        .with("actor", why.actor.as_str())
        .with("presented", why.presented.as_deref())
        .with("forced", why.forced.as_deref())
        .with("holder_evidence", evidence)
        .with("judged_on", judged_on)
        .with("rule", why.rule.as_str())
        .with("events", events)
        .with("changes", diff::objects(&why.changes))
        .with("findings", findings)
        .with("disclosed", shown)
        .with("first_write", why.disclosure.first_write.map(|p| p.0))
}

fn lines(why: &Why) -> Vec<Line> {
    let mut lines = vec![(
        HEAD,
        format!(
            "{}  {}  {} by {}",
            why.at.position,
            rfc3339(why.at.time),
            why.command,
            why.actor
        ),
    )];
    let mut plain = |text: String| lines.push((PLAIN, text));
    if let Some(token) = &why.presented {
        plain(format!("presented {token}"));
    }
    if let Some(stood) = &why.judged_on {
        plain(format!(
            "before: {} was {} since position {}",
            stood.token, stood.standing, stood.since.position
        ));
    }
    if let Some(evidence) = &why.evidence {
        let proofs: Vec<_> = evidence.proofs.iter().map(|p| p.as_str()).collect();
        let verdict = evidence.verdict.as_str();
        plain(format!(
            "the holder was found {verdict}: {}",
            proofs.join("; ")
        ));
    }
    plain(format!("because {}", why.rule));
    for finding in &why.findings {
        lines.push((
            BAD,
            format!("{}: {}", finding.rule.as_str(), finding.message),
        ));
    }
    for (session, at) in &why.disclosure.shown {
        let wrote = match why.disclosure.first_write {
            Some(position) => format!("its first write behind that is at position {position}"),
            None => "it has not said that it wrote since".to_owned(),
        };
        lines.push((
            PLAIN,
            format!("it was shown {session} at position {at}; {wrote}"),
        ));
    }
    lines.push((DIM, "events".to_owned()));
    lines.extend(why.events.iter().map(|event| (PLAIN, human::event(event))));
    lines.push((DIM, "changed".to_owned()));
    lines.extend(diff::lines(&why.changes));
    lines
}
