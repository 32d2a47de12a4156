//! `bisect`: the first position at which a command's answer about the state turns.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use tenure_projection::core::id::{DispatchNo, EnvelopeNo, Position};
use tenure_projection::core::state::State;
use tenure_projection::reader::Reader;
use tenure_projection::views::Lens;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{DIM, Object, json, replaying};

use super::place::resolve;

/// Exit codes from here on mean that the command could not be run, as a shell has it.
const NOT_RUN: i32 = 126;

/// Arguments of `bisect`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to begin: here the command has to succeed [default: before the first position]
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Where to end: here it has to fail [default: the newest position]
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// A command that is given the state on its standard input, one JSON object a line as `sessions`, `work`,
    /// `inbox` and `role list` print them, and its position in TENURE_POSITION; it exits 0 while all is as before, and 1 to 125 once
    /// it has turned
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Args {
    /// Finds the position, in as many runs as the length of the log has binary digits.
    ///
    /// # Errors
    /// When the command cannot be run, says the same at both ends, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let from = self.from.as_deref().map(input::when).transpose()?;
        let to = self.to.as_deref().map(input::when).transpose()?;
        let reader = ctx.reading()?;
        let head = reader.head().map_err(|error| ctx.fault(&error))?;
        let place = |when| resolve(ctx, &reader, when).map(|resolved| resolved.position);
        let mut low = from.map_or(Ok(Position(0)), place)?;
        let mut high = to.map_or(Ok(Position(head.position.0)), place)?;
        let turned = |position: Position| self.turned(ctx, &reader, position);
        for (position, wanted) in [(low, false), (high, true)] {
            if turned(position)? != wanted {
                let said = if wanted { "succeeds" } else { "fails" };
                let message =
                    format!("the command {said} at position {position} already, so nothing turns");
                return Err(Fault::new(Cause::BadPosition, message).into());
            }
        }
        while high.0 - low.0 > 1 {
            let middle = Position(low.0 + (high.0 - low.0) / 2);
            if turned(middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        if ctx.out.is_json() {
            ctx.out
                .object(&Object::new("bisect").with("position", high.0))?;
        } else if ctx.out.is_quiet() {
            ctx.out.essential(high)?;
        } else {
            ctx.out.say(format_args!("it turned at position {high}"))?;
            ctx.out.styled(DIM, format_args!("  tenure why {high}"))?;
        }
        Ok(Exit::DONE)
    }

    /// Runs the command on the state at `position`.
    fn turned(&self, ctx: &Context, reader: &Reader, position: Position) -> Result<bool, Stop> {
        let state = replaying(ctx.out.is_quiet(), || reader.state_at(position))
            .map_err(|error| ctx.fault(&error))?;
        let told = told(reader, &state).map_err(|error| ctx.fault(&error))?;
        let (program, arguments) = self.command.split_first().expect("clap asks for one");
        let failed = |error| Fault::file("run", program.as_ref(), error);
        let mut child = Command::new(program)
            .args(arguments)
            .env("TENURE_POSITION", position.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that has seen enough closes it.
            let _ = stdin.write_all(&told);
        }
        let status = child.wait().map_err(failed)?;
        match status.code() {
            Some(0) => Ok(false),
            Some(code) if code < NOT_RUN => Ok(true),
            _ => {
                let message = format!("at position {position} the command ended with {status}");
                Err(Fault::new(Cause::Usage, message).into())
            }
        }
    }
}

/// The state for programs, one object a line.
fn told(reader: &Reader, state: &State) -> Result<Vec<u8>, tenure_projection::error::Error> {
    let lens = Lens {
        state,
        host: reader.host(),
        shelf: reader,
    };
    let mut bytes = Vec::new();
    let mut put = |object: Object| {
        json::write(&mut bytes, &object).expect("memory takes it");
        bytes.push(b'\n');
    };
    lens.sessions()
        .for_each(|session| put(json::session(&session)));
    for number in (1..state.dispatches.len()).map(|n| DispatchNo(n as u64)) {
        if let Some(dispatch) = lens.dispatch(number)? {
            put(json::dispatch(&dispatch));
        }
    }
    for number in (1..state.envelopes.len()).map(|n| EnvelopeNo(n as u64)) {
        if let Some(envelope) = lens.envelope(number)? {
            put(json::envelope(&envelope));
        }
    }
    lens.roles().for_each(|role| put(json::role(&role)));
    Ok(bytes)
}
