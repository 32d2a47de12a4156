//! `show`: one session, dispatch, envelope or refusal, whole.

use tenure_projection::call::Activity;
use tenure_projection::core::id::{DispatchNo, EnvelopeNo, RefusalNo, SessionNo};
use tenure_projection::core::refusal::Code;
use tenure_projection::reader::Reader;

use crate::clock::{self, rfc3339};
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{DIM, human, json};

use super::super::{find, unknown, unknown_refusal};

/// Arguments of `show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A session (or the beginning of its name, at least 6 characters), a dispatch, an envelope, a refusal;
    /// `session:NAME` for one called d1
    #[arg(value_name = "NAME|dN|eN|rN|KIND:ID")]
    what: String,
    /// The session whose history the activity KIND:ID (run:ID, call:ID, approval:ID) stands in
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl Args {
    /// Shows it.
    ///
    /// # Errors
    /// When there is no such thing, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let store = ctx.reading()?;
        let what = self.what.as_str();
        if let Some(name) = &self.session {
            return activity(ctx, &store, &input::activity(what)?, name);
        }
        if let Some(id) = DispatchNo::parse(what) {
            return dispatch(ctx, &store, id);
        }
        if let Some(id) = EnvelopeNo::parse(what) {
            return envelope(ctx, &store, id);
        }
        if let Some(id) = RefusalNo::parse(what) {
            return refusal(ctx, &store, id);
        }
        let name = what.strip_prefix("session:").unwrap_or(what);
        let number = ctx.look(&store, |lens| Ok(find(lens.state, name)))??;
        session(ctx, &store, number)
    }
}

fn session(ctx: &mut Context, store: &Reader, number: SessionNo) -> Result<Exit, Stop> {
    let view = ctx.look(store, |lens| {
        Ok(lens.session(number).map(|view| (view, lens.told(number))))
    })?;
    let Some((view, told)) = view else {
        return Err(Fault::new(
            Cause::Fault,
            format!("session {number} was found and is not there"),
        )
        .into());
    };
    if ctx.out.is_json() {
        let object = json::session(&view).with("shown", json::told(&told));
        ctx.out.object(&object)?;
    } else {
        ctx.out.lines(human::session(&view, clock::now()))?;
        ctx.out.lines(human::told(&told))?;
    }
    Ok(Exit::DONE)
}

/// Where the activity stands, whoever recorded it: one that was ever opened is never unknown (DIS-13).
fn activity(ctx: &mut Context, store: &Reader, asked: &Activity, name: &str) -> Result<Exit, Stop> {
    let state = ctx.look(store, |lens| Ok(lens.state.clone()))?;
    let number = find(&state, name)?;
    let (session, what) = (state.name(number), asked.to_string());
    let view = store
        .activity(&state, number, asked.kind, asked.id.as_str().as_bytes())
        .map_err(|error| ctx.fault(&error))?;
    let Some(view) = view else {
        let message = format!("no record of {session} opened {what}");
        return Err(Fault::new(Cause::UnknownActivity, message)
            .then(format!("tenure history {session}"), "lists its records")
            .into());
    };
    let origin = state.name(view.origin);
    if ctx.out.is_json() {
        ctx.out
            .object(&json::history::activity(&view, &what, &session, &origin))?;
    } else {
        ctx.out
            .lines(human::history::activity(&view, &what, &session, &origin))?;
    }
    Ok(Exit::DONE)
}

fn dispatch(ctx: &mut Context, store: &Reader, id: DispatchNo) -> Result<Exit, Stop> {
    let view = ctx.look(store, |lens| lens.dispatch(id))?;
    let Some(view) = view else {
        let message = format!("no dispatch has the number {id}");
        return Err(unknown(Code::UnknownDispatch, &id.to_string(), message));
    };
    if ctx.out.is_json() {
        ctx.out.object(&json::dispatch(&view))?;
        return Ok(Exit::DONE);
    }
    ctx.out.lines(human::dispatch(&view))?;
    for (head, text) in [("body", &view.body), ("report", &view.report)] {
        if let Some(text) = text {
            ctx.out.say(format_args!("  {head}"))?;
            ctx.out.body(&String::from_utf8_lossy(text))?;
        }
    }
    Ok(Exit::DONE)
}

fn envelope(ctx: &mut Context, store: &Reader, id: EnvelopeNo) -> Result<Exit, Stop> {
    let view = ctx.look(store, |lens| lens.envelope(id))?;
    let Some(view) = view else {
        let message = format!("no envelope has the number {id}");
        return Err(unknown(Code::UnknownEnvelope, &id.to_string(), message));
    };
    if ctx.out.is_json() {
        ctx.out.object(&json::envelope(&view))?;
        return Ok(Exit::DONE);
    }
    ctx.out.lines([human::envelope(&view)])?;
    if let Some(body) = &view.body {
        ctx.out.body(&String::from_utf8_lossy(body))?;
    }
    ctx.out
        .styled(DIM, format_args!("  issued at position {}", view.position))?;
    Ok(Exit::DONE)
}

fn refusal(ctx: &mut Context, store: &Reader, id: RefusalNo) -> Result<Exit, Stop> {
    let view = ctx.look(store, |lens| lens.refusal(id))?;
    let Some(view) = view else {
        return Err(unknown_refusal(id));
    };
    if ctx.out.is_json() {
        ctx.out.object(&json::refusal(&view))?;
        return Ok(Exit::DONE);
    }
    ctx.out.lines(human::refusal(&view))?;
    if let Some(stored) = &view.stored {
        let (first, last) = (rfc3339(stored.first.time), rfc3339(stored.last.time));
        ctx.out.say(format_args!(
            "{} times, first {first}, last {last}",
            stored.count
        ))?;
        for body in &stored.bodies {
            ctx.out.body(&String::from_utf8_lossy(body))?;
        }
    }
    Ok(Exit::DONE)
}
