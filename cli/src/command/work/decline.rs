//! `decline`: turns a dispatch down.

use std::ffi::OsString;

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `decline`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The dispatch: d1, d2, ...
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    under: Under,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: OsString,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Declines.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dispatch = input::dispatch(&self.id)?;
        let token = input::required(self.under.token()?)?;
        let reason = input::line("the reason", &self.reason)?;
        let store = ctx.store()?;
        let verb = Verb::Decline { dispatch, reason };
        let answer = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(Some(token)))?;
        let fields = [
            ("dispatch", dispatch.to_string()),
            ("state", "declined".to_owned()),
        ];
        done(ctx, &answer, &format!("{dispatch} is declined"), &fields)
    }
}
