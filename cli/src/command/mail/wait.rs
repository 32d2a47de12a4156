//! `wait`: waits until a token is no longer current (E08).

use std::ffi::OsString;
use std::time::Duration;

use tenure_projection::core::refusal::Code;
use tenure_projection::log::journal::Deadline;

use crate::clock;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{human, json};

use super::super::unknown;

/// How long to sleep at most where nothing tells that the log went on.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Arguments of `wait`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Until the token is lost: superseded, retired, or of an older life of the log
    #[arg(long, required = true)]
    lost: bool,
    /// The token, or @FILE that holds it [default: $TENURE_TOKEN_FILE, else $TENURE_TOKEN]
    #[arg(value_name = "TOKEN")]
    token: Option<OsString>,
    /// Give up after this long, with exit 1 (30s, 10m) [default: never]
    #[arg(long = "for", value_name = "AGE")]
    at_most: Option<String>,
}

impl Args {
    /// Waits, and says what happened.
    ///
    /// # Errors
    /// When no session has the token's name, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(input::token(self.token.as_deref())?)?;
        let end = self.at_most.as_deref().map(bound).transpose()?;
        let reader = ctx.reading()?;
        loop {
            let (view, seen) =
                ctx.look(&reader, |lens| Ok((lens.check(&token), lens.position())))?;
            let Some(view) = view else {
                let name = token.name.as_str();
                return Err(unknown(
                    Code::UnknownSession,
                    name,
                    format!("no session is called {name}"),
                ));
            };
            let over = end.is_some_and(|end| end.passed(std::time::Instant::now()));
            if view.is_current() && !over {
                let pause = Deadline::after(end.map_or(LOOK_AGAIN, |e| {
                    e.bound(LOOK_AGAIN, std::time::Instant::now())
                }));
                reader
                    .wait_beyond(seen, pause)
                    .map_err(|error| ctx.fault(&error))?;
                continue;
            }
            if ctx.out.is_json() {
                ctx.out.object(&json::check(&view))?;
            } else if view.is_current() {
                ctx.out
                    .say(format_args!("{} is still current", view.token))?;
            } else {
                let current = format!("{}@{}", view.session, view.generation);
                ctx.out
                    .say(format_args!("{} is lost: {current} is current", view.token))?;
                ctx.out.lines(human::lost(&view.lost))?;
            }
            return Ok(if view.is_current() {
                Exit::NEGATIVE
            } else {
                Exit::DONE
            });
        }
    }
}

fn bound(text: &str) -> Result<Deadline, Stop> {
    let micros = clock::micros(text).and_then(|m| u64::try_from(m).ok());
    let micros = micros.ok_or_else(|| {
        Fault::usage(format!(
            "--for {text:?} is no length of time, as 30s or 10m are"
        ))
    })?;
    Ok(Deadline::after(Duration::from_micros(micros)))
}
