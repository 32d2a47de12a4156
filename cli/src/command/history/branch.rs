//! `branch`: a new session whose history begins as that of another.

use std::path::PathBuf;

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Chosen, Holding, Keyed};

use super::super::sessions::grant;

/// Arguments of `branch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session to branch; it needs no token, and may be running
    #[arg(value_name = "SOURCE")]
    source: String,
    /// The new session's name
    #[arg(value_name = "DEST")]
    dest: String,
    /// The last record that it takes over [default: the newest outside every call and approval]
    #[arg(long, value_name = "P")]
    at: Option<String>,
    #[command(flatten)]
    holding: Holding,
    #[command(flatten)]
    chosen: Chosen,
    /// The checkout it works in
    #[arg(long, value_name = "PATH")]
    checkout: Option<PathBuf>,
    /// Write the token there, for this user alone
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Branches, and prints the grant.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let verb = Verb::Branch {
            source: input::name(&self.source)?,
            name: input::name(&self.dest)?,
            at: self.at.as_deref().map(input::position).transpose()?,
            bearer: self.holding.bearer(self.chosen.process()?),
            labels: self.holding.labels()?,
            checkout: self.checkout,
        };
        let store = ctx.store()?;
        let file = grant::ready(self.token_file.as_deref())?;
        let done = ctx.execute(&store, Mutation::new(verb, &self.keyed))?;
        grant::answer(ctx, &store, &done, file)
    }
}
