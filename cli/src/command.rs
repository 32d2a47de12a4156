//! The commands, in the groups of `--help`. A command reads its arguments, asks the store, and prints.

pub mod audit;
pub mod forensics;
pub mod history;
pub mod look;
pub mod mail;
pub mod operate;
pub mod roles;
pub mod sessions;
pub mod trees;
pub mod work;

use tenure_projection::core::id::{RefusalNo, SessionNo};
use tenure_projection::core::refusal::{Code, Next};
use tenure_projection::core::state::State;
use tenure_projection::store::Done;
use tenure_projection::views::{Lens, RefusalView};

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::{DIM, Object};
use crate::served;

/// What a session name may be cut to where a command only looks.
const PREFIX_BYTES_MIN: usize = 6;

/// The session of that name, or of the only name that begins so.
fn find(state: &State, name: &str) -> Result<SessionNo, Stop> {
    let shown = |number: &SessionNo| state.is_published(*number);
    if let Some(number) = state.find(name.as_bytes()).filter(shown) {
        return Ok(number);
    }
    let all = (0..state.sessions.len()).map(|n| SessionNo(n as u64));
    let matching: Vec<SessionNo> = all
        .filter(shown)
        .filter(|n| name.len() >= PREFIX_BYTES_MIN && state.name(*n).starts_with(name))
        .collect();
    match matching[..] {
        [number] => Ok(number),
        [] => Err(unknown(
            Code::UnknownSession,
            name,
            format!("no session is called {name}"),
        )),
        _ => {
            let names: Vec<String> = matching.iter().take(5).map(|n| state.name(*n)).collect();
            let message = format!(
                "{name} is the beginning of several names: {}",
                names.join(", ")
            );
            Err(unknown(Code::UnknownSession, name, message))
        }
    }
}

/// What is asked about is not there, or not named.
pub fn unknown(code: Code, subject: &str, message: String) -> Stop {
    let (command, effect) = match code {
        Code::UnknownDispatch => ("tenure work --all", "lists every dispatch"),
        Code::UnknownEnvelope => ("tenure inbox NAME", "lists the envelopes of a session"),
        Code::MissingToken => (
            "tenure ... --as NAME@GENERATION",
            "names the session and the generation it was granted",
        ),
        _ => ("tenure sessions --all", "lists the names there are"),
    };
    Stop::Refused(Box::new(RefusalView {
        code: Ok(code),
        message,
        subject: subject.to_owned(),
        presented: Some(subject.to_owned()).filter(|s| !s.is_empty()),
        current: None,
        holder: None,
        since: None,
        relation: None,
        evidence: Vec::new(),
        lost: Vec::new(),
        next: vec![Next {
            command: command.to_owned(),
            effect,
        }],
        recorded_at: None,
        stored: None,
    }))
}

/// No refusal has that number.
fn unknown_refusal(id: RefusalNo) -> Stop {
    let message = format!("no refusal has the number {id}");
    Fault::new(Cause::UnknownRefusal, message)
        .then("tenure refusals", "lists what was refused")
        .into()
}

/// The answer of a change that has no kind of its own. `said` is what people read, `fields` what programs do.
fn done(
    ctx: &mut Context,
    done: &Done,
    said: &str,
    fields: &[(&str, String)],
) -> Result<Exit, Stop> {
    if ctx.out.is_json() {
        let mut object = Object::new("done")
            .standing(&done.receipt)
            .with("repeated", done.repeated);
        for (key, value) in fields {
            object = object.with(key, value.as_str());
        }
        ctx.out.object(&object)?;
    } else {
        ctx.out.say(said)?;
        stands(ctx, done)?;
    }
    Ok(Exit::DONE)
}

/// A list, one of its things a line: an object for programs, a sentence for people.
fn listed<V>(
    ctx: &mut Context,
    views: &[V],
    object: impl Fn(&V) -> Object,
    said: impl Fn(&V) -> String,
) -> Result<Exit, Stop> {
    for view in views {
        if ctx.out.is_json() {
            ctx.out.object(&object(view))?;
        } else {
            ctx.out.say(said(view))?;
        }
    }
    Ok(Exit::DONE)
}

/// Where a change stands in the log.
fn stands(ctx: &mut Context, done: &Done) -> Result<(), Stop> {
    let again = if done.repeated { ", done before" } else { "" };
    ctx.out.styled(
        DIM,
        format_args!(
            "at position {}{again}; receipt {}",
            done.at.position, done.receipt
        ),
    )
}

/// Looks at the head of the store and prints, in one go.
fn looking<R>(
    ctx: &Context,
    look: impl FnOnce(Lens<'_>) -> Result<R, tenure_projection::error::Error>,
) -> Result<R, Stop> {
    let store = ctx.reading()?;
    let looked = ctx.look(&store, look);
    if !served::is_for_another() {
        // A state is as large as everything that is open, and this process ends soon: it is not given back piece by piece.
        std::mem::forget(store);
    }
    looked
}
