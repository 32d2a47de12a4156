//! `retire`: gives a session back.

use std::ffi::OsString;

use tenure_projection::call::Verb;
use tenure_projection::core::id::Name;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed};

/// Arguments of `retire`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The token, or @FILE that holds it [default: $TENURE_TOKEN_FILE, else $TENURE_TOKEN]; NAME with --force
    #[arg(value_name = "TOKEN")]
    token: Option<OsString>,
    /// Only when no dispatch is open and no envelope other than a notice is pending
    #[arg(long)]
    if_idle: bool,
    /// Without the token, as operator
    #[arg(long, requires = "token")]
    force: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Retires.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let force = input::force(self.force, self.reason.as_deref())?;
        let (name, token) = if force.is_some() {
            let text = self.token.as_deref().unwrap_or_default().to_string_lossy();
            (input::name(&text)?, None)
        } else {
            let token = input::required(input::token(self.token.as_deref())?)?;
            (token.name.clone(), Some(token))
        };
        let reason = match force {
            Some(_) => None,
            None => input::maybe_line("the reason", self.reason.as_deref())?,
        };
        let verb = Verb::Retire {
            name: name.clone(),
            if_idle: self.if_idle,
            reason,
        };
        let store = ctx.store()?;
        let done = ctx.execute(
            &store,
            Mutation::new(verb, &self.keyed).under(token).forced(force),
        )?;
        answer(ctx, &done, &name)
    }
}

fn answer(
    ctx: &mut Context,
    done: &tenure_projection::store::Done,
    name: &Name,
) -> Result<Exit, Stop> {
    super::super::done(
        ctx,
        done,
        &format!("{name} is retired"),
        &[("session", name.to_string())],
    )
}
