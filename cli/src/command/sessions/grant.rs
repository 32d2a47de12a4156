//! How a grant is answered: printed, and written to a file where one is named.

use std::path::Path;

use tenure_projection::store::{Answer, Done, Grant, Store};

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::{WARN, human, json};
use crate::private_file::PrivateFile;

use super::super::stands;

/// The file a grant's token goes to, made ready before the grant.
///
/// # Errors
/// When it cannot be created.
pub fn ready(path: Option<&Path>) -> Result<Option<PrivateFile>, Stop> {
    path.map(PrivateFile::prepare).transpose()
}

/// What was granted.
///
/// # Errors
/// When the store answers a grant with something else.
pub fn granted(done: &Done) -> Result<&Grant, Stop> {
    match &done.answer {
        Answer::Granted(grant) | Answer::Branched { grant, .. } => Ok(grant),
        other => {
            Err(Fault::new(Cause::Fault, format!("a grant was answered with {other:?}")).into())
        }
    }
}

/// Puts the token where it belongs and prints the grant.
///
/// # Errors
/// When the token's file cannot be written, or the answer not be printed.
pub fn answer(
    ctx: &mut Context,
    store: &Store,
    done: &Done,
    file: Option<PrivateFile>,
) -> Result<Exit, Stop> {
    let grant = granted(done)?;
    let token = grant.token.to_string();
    if let Some(file) = file {
        file.commit(&token)?;
    }
    let seen = ctx.look(store, |lens| {
        Ok((lens.session(grant.session), lens.holder(&grant.holder)))
    })?;
    let (Some(mut view), holder) = seen else {
        let message = format!("session {} was granted and is not there", grant.session);
        return Err(Fault::new(Cause::Fault, message).into());
    };
    // What was granted, whatever has happened to the session in between.
    view.generation = grant.token.generation;
    view.token.clone_from(&token);
    view.holder = Some(holder);
    if ctx.out.is_json() {
        let branch = view.branch.as_ref().filter(|_| is_branch(done));
        ctx.out.object(&match branch {
            Some(branch) => json::history::branch(&view, branch, &done.receipt, done.repeated),
            None => json::grant(&view, &done.receipt, done.repeated),
        })?;
        return Ok(Exit::DONE);
    }
    ctx.out.essential(&token)?;
    if let Some(holder) = &view.holder {
        ctx.out
            .say(format_args!("holder: {}", human::bearer(holder)))?;
        ctx.out
            .say(format_args!("process: {}", human::process(holder)))?;
    }
    if let Some(branch) = view.branch.as_ref().filter(|_| is_branch(done)) {
        ctx.out.say(human::history::branched(branch))?;
    }
    for former in &view.former {
        let label = human::holder(&former.holder);
        let generation = former.generation;
        let text = format!(
            "former holder at generation {generation}: {label}; it may still be writing files"
        );
        ctx.out.styled(WARN, text)?;
    }
    if !view.open.is_empty() || view.pending > 0 {
        let (open, pending) = (view.open.len(), view.pending);
        ctx.out.say(format_args!(
            "{open} open dispatches, {pending} pending envelopes"
        ))?;
    }
    stands(ctx, done)?;
    Ok(Exit::DONE)
}

fn is_branch(done: &Done) -> bool {
    matches!(done.answer, Answer::Branched { .. })
}
