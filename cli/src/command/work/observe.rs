//! `observe`: says what a session is doing and where it wrote.

use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `observe`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it is doing, in a line
    #[arg(value_name = "STATUS")]
    status: OsString,
    #[command(flatten)]
    under: Under,
    /// A path it was seen to write
    #[arg(long, value_name = "PATH")]
    wrote: Vec<PathBuf>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Observes.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let status = input::line("the status", &self.status)?;
        let store = ctx.store()?;
        let session = token.name.to_string();
        let verb = Verb::Observe {
            status,
            wrote: self.wrote,
        };
        let answer = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(Some(token)))?;
        done(ctx, &answer, "observed", &[("session", session)])
    }
}
