//! `branch`: a new session whose history begins as that of another.

use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::{ProcessChoice, Verb};

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
    /// Stay in the tree of the source; else it is the root of a tree of its own. Without --as, a branch of a
    /// session that was delegated claims its tree, if nobody holds it
    #[arg(long)]
    in_tree: bool,
    /// A current token of the source's tree, or @FILE that holds it; its session becomes the parent
    #[arg(long = "as", value_name = "TOKEN", requires = "in_tree")]
    token: Option<OsString>,
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
    /// The process that the grant is to be made to.
    ///
    /// # Errors
    /// When `--pid` names none.
    pub fn process(&self) -> Result<ProcessChoice, Stop> {
        self.chosen.process()
    }

    /// Branches, and prints the grant.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        // The environment is not asked: a branch needs no token, and one that stays in its tree says so.
        let token = self.token.as_deref();
        let token = token.map(|t| input::token(Some(t))).transpose()?.flatten();
        let verb = Verb::Branch {
            source: input::name(&self.source)?,
            name: input::name(&self.dest)?,
            at: self.at.as_deref().map(input::position).transpose()?,
            bearer: self.holding.bearer(self.chosen.process()?),
            labels: self.holding.labels()?,
            checkout: self.checkout,
            in_tree: self.in_tree,
        };
        let store = ctx.store()?;
        let ready = grant::ready(ctx, &store, self.token_file.as_deref(), &self.keyed)?;
        let mutation = Mutation::new(verb, &self.keyed).under(token);
        let done = ctx.execute(&store, mutation.sealed_with(ready.secret))?;
        grant::answer(ctx, &store, &done, ready)
    }
}
