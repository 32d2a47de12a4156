//! `release`: gives a whole tree back.

use std::ffi::OsString;

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

/// Arguments of `release`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    under: Under,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Releases the tree of the token's session: every token in it lapses, and its sessions stay without a holder.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let name = token.name.clone();
        let verb = Verb::Release {
            name: name.clone(),
            epoch: None,
            reason: input::maybe_line("the reason", self.reason.as_deref())?,
        };
        let store = ctx.store()?;
        let done = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(Some(token)))?;
        let said = format!("the tree of {name} is released; nobody holds it");
        super::super::done(ctx, &done, &said, &[("session", name.to_string())])
    }
}
