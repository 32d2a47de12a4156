//! `register`: makes an absent or retired name active.

use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::{ProcessChoice, Verb};

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Chosen, Holding, Keyed};

use super::grant;

/// Arguments of `register`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session's name: letters, digits and ._:+/-
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    holding: Holding,
    #[command(flatten)]
    chosen: Chosen,
    /// Join the tree of this token, or of the one in @FILE: its holder writes as this session too
    #[arg(long, value_name = "TOKEN")]
    parent: Option<OsString>,
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

    /// Registers, and prints the grant.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        // The environment is not asked: whoever means to be delegated says so.
        let parent = self.parent.as_deref();
        let parent = parent.map(|t| input::token(Some(t))).transpose()?.flatten();
        let name = input::name(&self.name)?;
        let bearer = self.holding.bearer(self.chosen.process()?);
        let (labels, checkout) = (self.holding.labels()?, self.checkout);
        let verb = match &parent {
            Some(_) => Verb::RegisterChild {
                name,
                bearer,
                labels,
                checkout,
            },
            None => Verb::Register {
                name,
                bearer,
                labels,
                checkout,
            },
        };
        let store = ctx.store_or_new()?;
        let ready = grant::ready(ctx, &store, self.token_file.as_deref(), &self.keyed)?;
        let mutation = Mutation::new(verb, &self.keyed).under(parent);
        let done = ctx.execute(&store, mutation.sealed_with(ready.secret))?;
        grant::answer(ctx, &store, &done, ready)
    }
}
