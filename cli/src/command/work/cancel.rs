//! `cancel`: withdraws a dispatch.

use std::ffi::OsString;

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `cancel`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The dispatch: d1, d2, ...
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    under: Under,
    /// As operator, also what was given under a token
    #[arg(long, conflicts_with = "token")]
    force: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: OsString,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Withdraws it.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dispatch = input::dispatch(&self.id)?;
        let reason = input::line("the reason", &self.reason)?;
        let force = self.force.then(|| reason.clone());
        // An operator acts without a token, also where the environment has one.
        let token = if self.force {
            None
        } else {
            self.under.token()?
        };
        let store = ctx.store()?;
        let verb = Verb::Cancel { dispatch, reason };
        let mutation = Mutation::new(verb, &self.keyed).under(token).forced(force);
        let answer = ctx.execute(&store, mutation)?;
        let fields = [
            ("dispatch", dispatch.to_string()),
            ("state", "cancelled".to_owned()),
        ];
        done(ctx, &answer, &format!("{dispatch} is cancelled"), &fields)
    }
}
