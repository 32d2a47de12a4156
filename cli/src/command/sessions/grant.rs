//! How a grant is answered: printed, and written to a file where one is named.

use std::path::Path;

use tenure_projection::call::IdempotencyKey;
use tenure_projection::core::holder::Source;
use tenure_projection::core::seal::Secret;
use tenure_projection::entry::draw_secret;
use tenure_projection::store::{Answer, Done, Grant, Store};

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::Keyed;
use crate::kept;
use crate::output::{WARN, human, json};
use crate::private_file::{self, PrivateFile};

use super::super::stands;

/// Where a grant's token goes, made ready before the grant.
#[derive(Default)]
pub struct Ready {
    file: Option<PrivateFile>,
    /// The secret that the grant is made with, where it has to be the same when the call is repeated.
    pub secret: Option<Secret>,
}

/// Makes ready where a grant's token goes. In a sealed store a call under a key keeps its secret beside the token's file
/// before it is made: the repeat of a call whose answer was lost has to carry the same one.
///
/// # Errors
/// When a file cannot be created, or a call under a key names none in a sealed store.
pub fn ready(
    ctx: &Context,
    store: &Store,
    path: Option<&Path>,
    keyed: &Keyed,
) -> Result<Ready, Stop> {
    let file = path.map(PrivateFile::prepare).transpose()?;
    let Some(key) = keyed.key() else {
        return Ok(Ready { file, secret: None });
    };
    if !ctx.look(store, |lens| Ok(lens.state.sealed))? {
        return Ok(Ready { file, secret: None });
    }
    let Some(path) = path else {
        let message = "a grant under a key in a sealed store needs --token-file PATH: a repeat has to carry its secret, which is kept beside that file";
        return Err(Fault::usage(message).into());
    };
    let secret = kept_secret(ctx, path, &key)?;
    Ok(Ready {
        file,
        secret: Some(secret),
    })
}

/// The secret that was chosen for that key, else a new one, which is kept.
fn kept_secret(ctx: &Context, path: &Path, key: &IdempotencyKey) -> Result<Secret, Stop> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".secret");
    let beside = Path::new(&beside);
    let own = blake3::hash(key.0.as_bytes()).to_hex();
    // What cannot be read, or is of another key, is no secret of this one.
    let kept = private_file::read_line(beside).ok();
    let kept = kept.as_deref().and_then(|line| line.split_once(' '));
    if let Some((_, secret)) = kept.filter(|(of, _)| *of == own.as_str())
        && let Ok(secret) = secret.parse()
    {
        return Ok(secret);
    }
    let secret = draw_secret().map_err(|error| ctx.fault(&error))?;
    PrivateFile::prepare(beside)?.commit(&format!("{own} {}", secret.reveal()))?;
    Ok(secret)
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
    Ready { file, .. }: Ready,
) -> Result<Exit, Stop> {
    let grant = granted(done)?;
    let process = grant.holder.bearing.process;
    if process.is_some_and(|process| process.source == Source::Declared) {
        // It is another process that is to write under it.
        kept::keep(ctx, &grant.token)?;
    }
    // A secret is told once: to the file, and where there is none, to whoever reads this answer.
    let token = match file {
        Some(file) => {
            file.commit(&grant.token.reveal())?;
            grant.token.to_string()
        }
        None => grant.token.reveal(),
    };
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
