//! `diff`: what changed between two places of the log.

use serde_json::{Value, json};
use tenure_projection::authority::Resolved;
use tenure_projection::diff::{Change, diff};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input;
use crate::output::{DIM, HEAD, Line, Object, PLAIN, replaying};

use super::place::{resolve, say};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The earlier place: a position, an RFC 3339 time, or an age
    #[arg(value_name = "A")]
    from: String,
    /// The later place
    #[arg(value_name = "B")]
    to: String,
}

impl Args {
    /// Prints the differences: from A to B, whichever is earlier.
    ///
    /// # Errors
    /// When a place is not in the log, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let (from, to) = (input::when(&self.from)?, input::when(&self.to)?);
        let reader = ctx.reading()?;
        let from = resolve(ctx, &reader, from)?;
        let to = resolve(ctx, &reader, to)?;
        say(ctx, &from)?;
        say(ctx, &to)?;
        let state = |place: &Resolved| {
            let state = replaying(ctx.out.is_quiet(), || reader.state_at(place.position));
            state.map_err(|error| ctx.fault(&error))
        };
        let changes = diff(&state(&from)?, &state(&to)?);
        if ctx.out.is_json() {
            let object = Object::new("diff")
                .with("from", from.position.0)
                .with("to", to.position.0)
                .with("changes", objects(&changes));
            ctx.out.object(&object)?;
        } else {
            ctx.out.lines(lines(&changes))?;
            if changes.is_empty() {
                ctx.out.styled(DIM, "nothing changed")?;
            }
        }
        Ok(Exit::DONE)
    }
}

/// Changes for programs.
pub fn objects(changes: &[Change]) -> Vec<Value> {
    changes
        .iter()
        .map(|change| {
            json!({
                "subject": change.subject,
                "what": change.what,
                "before": change.before,
                "after": change.after,
            })
        })
        .collect()
}

/// Changes for people: a line for each subject, and under it one for each property.
pub fn lines(changes: &[Change]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut subject = None;
    for change in changes {
        if subject != Some(&change.subject) {
            lines.push((HEAD, change.subject.clone()));
            subject = Some(&change.subject);
        }
        let said = match (&change.before, &change.after) {
            (None, Some(after)) => format!("  {}: {after}", change.what),
            (Some(before), None) => format!("  {}: {before} -> none", change.what),
            (Some(before), Some(after)) => format!("  {}: {before} -> {after}", change.what),
            (None, None) => continue,
        };
        lines.push((PLAIN, said));
    }
    lines
}
