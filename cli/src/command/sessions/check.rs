//! `check`: is this token current?

use std::ffi::OsString;

use tenure_projection::core::refusal::Code;

use crate::clock::rfc3339;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input;
use crate::output::{BAD, human, json};

use super::super::{looking, unknown};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The token, or @FILE that holds it [default: $TENURE_TOKEN_FILE, else $TENURE_TOKEN]
    #[arg(value_name = "TOKEN")]
    token: Option<OsString>,
}

impl Args {
    /// Says whether a write under the token would pass.
    ///
    /// # Errors
    /// When no session has its name, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(input::token(self.token.as_deref())?)?;
        let view = looking(ctx, |lens| Ok(lens.check(&token)))?;
        let Some(view) = view else {
            let name = token.name.as_str();
            return Err(unknown(
                Code::UnknownSession,
                name,
                format!("no session is called {name}"),
            ));
        };
        if ctx.out.is_json() {
            ctx.out.object(&json::check(&view))?;
        } else if view.is_current() {
            let since = rfc3339(view.since.time);
            ctx.out
                .say(format_args!("{} is current, since {since}", view.token))?;
        } else {
            let relation = view.relation().map_or("", |r| r.as_str());
            let current = format!("{}@{}", view.session, view.generation);
            ctx.out.styled(
                BAD,
                format_args!("{} is not current ({relation}): {current} is", view.token),
            )?;
            if let Some(holder) = &view.holder {
                ctx.out
                    .say(format_args!("held by {}", human::holder(holder)))?;
            }
            ctx.out.lines(human::lost(&view.lost))?;
        }
        Ok(if view.is_current() {
            Exit::DONE
        } else {
            Exit::NOT_CURRENT
        })
    }
}
