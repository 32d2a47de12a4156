//! Asking: the socket where there is one, and the files where there is none.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use tenure_projection::call::ProcessChoice;
use tenure_projection::core::codec;
use tenure_projection::core::limits::BODY_BYTES_MAX;

use crate::app::Command;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop, quoted};

use super::wire::{self, Answer, Request};
use super::{Door, caller, is_own, is_served};

/// The longest answer, in bytes: far more than any change prints.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Has a server carry a command out; `None` where none is there, or none that may or can: then nothing happened.
///
/// # Errors
/// `outcome-unknown` when the server was asked and gave no answer.
pub fn ask(ctx: &mut Context, command: &Command) -> Result<Option<Exit>, Stop> {
    if !is_served(command) {
        return Ok(None);
    }
    let Some((mut stream, _door)) = connected(ctx) else {
        return Ok(None);
    };
    let Some(request) = request(ctx, command)? else {
        return Ok(None);
    };
    if wire::write_line(&mut stream, &request).is_err() {
        // Without its end the line is no request.
        return Ok(None);
    }
    let answer = wire::read_line(&mut stream, ANSWER_BYTES_MAX, None);
    let answer = answer.and_then(|line| Ok(serde_json::from_slice(&line)?));
    match answer {
        Ok(Answer::Unserved { .. }) => Ok(None),
        Ok(Answer::Ran {
            exit,
            stdout,
            stderr,
        }) => {
            ctx.out.raw(stdout.as_bytes())?;
            ctx.out.flush()?;
            ctx.out.beside(&stderr);
            Ok(Some(Exit::of_command(exit)))
        }
        Err(error) => Err(unknown(&request, &error)),
    }
}

fn connected(ctx: &Context) -> Option<(UnixStream, Door)> {
    let door = Door::of(&ctx.dir().ok()?, false).ok()??;
    let stream = UnixStream::connect(door.address()).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    is_own(&peer).then_some((stream, door))
}

/// The request for this process's own command line; `None` where it cannot be said in one.
fn request(ctx: &Context, command: &Command) -> Result<Option<Request>, Stop> {
    let text = |value: Option<std::ffi::OsString>| value.map(|v| v.into_string().ok());
    let args: Option<Vec<String>> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.into_string().ok())
        .collect();
    let cwd = std::env::current_dir().ok().map(Into::into);
    let (Some(args), Some(Some(cwd))) = (args, text(cwd)) else {
        return Ok(None);
    };
    let [token, token_file] = ["TENURE_TOKEN", "TENURE_TOKEN_FILE"].map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        text(value).map_or(Some(None), |value| value.map(Some))
    });
    let (Some(token), Some(token_file)) = (token, token_file) else {
        return Ok(None);
    };
    let Some(store) = text(Some(ctx.dir()?.into())).flatten() else {
        return Ok(None);
    };
    let bearing = match chosen(command) {
        None => None,
        Some(choice) => {
            let bearing = ctx.host().bearing(choice).ok();
            let encoded = bearing.and_then(|bearing| codec::encode(&bearing).ok());
            let Some(encoded) = encoded else {
                return Ok(None);
            };
            Some(wire::hexadecimal(&encoded))
        }
    };
    let reads = args.iter().any(|arg| arg == "-" || arg.ends_with("=-"));
    Ok(Some(Request {
        v: wire::VERSION,
        args,
        store: Some(store),
        cwd: Some(cwd),
        actor: ctx.actor(),
        token,
        token_file,
        stdin_hex: reads.then(stdin).transpose()?,
        stdin: None,
        bearing,
        color: ctx.out.colors(),
    }))
}

/// The process that a command wants its grant made to.
fn chosen(command: &Command) -> Option<ProcessChoice> {
    match command {
        Command::Register(args) => args.process().ok(),
        Command::Adopt(args) => args.process().ok(),
        Command::Branch(args) => args.process().ok(),
        _ => None,
    }
}

/// The standard input, which is kept for the case that the command is carried out here after all.
fn stdin() -> Result<String, Stop> {
    let mut bytes = Vec::new();
    // One more than is allowed: whoever carries the command out says how much too long it is.
    let read = io::stdin()
        .lock()
        .take(BODY_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes);
    read.map_err(|error| Fault::new(Cause::Io, format!("standard input cannot be read: {error}")))?;
    let text = wire::hexadecimal(&bytes);
    caller::keep_input(bytes);
    Ok(text)
}

fn unknown(request: &Request, error: &io::Error) -> Stop {
    let message = format!("the server gave no answer ({error}): it may have happened and may not");
    let fault = Fault::new(Cause::OutcomeUnknown, message);
    let mut args = request.args.iter();
    let key = args.find_map(|arg| match arg.strip_prefix("--idempotency-key") {
        Some("") => Some(None),
        Some(given) => Some(given.strip_prefix('=')),
        None => None,
    });
    let key = key.and_then(|given| given.or_else(|| args.next().map(String::as_str)));
    Stop::Failed(match key {
        Some(key) => fault.then(
            format!("tenure outcome {}", quoted(key)),
            "says whether it is in the log",
        ),
        None => fault.then("tenure log -n 5", "shows the newest events of the log"),
    })
}
