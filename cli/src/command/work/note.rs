//! `note`: writes something down.

use std::ffi::OsString;

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `note`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The text
    #[arg(value_name = "TEXT")]
    text: OsString,
    #[command(flatten)]
    under: Under,
    /// What it is about: d1, e1
    #[arg(long, value_name = "ID")]
    on: Option<String>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Notes.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let on = self.on.as_deref().map(input::reference).transpose()?;
        let body = input::text(&self.text)?;
        let store = ctx.store()?;
        let session = token.name.to_string();
        let mutation = Mutation::new(Verb::Note { body, on }, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        done(ctx, &answer, "noted", &[("session", session)])
    }
}
