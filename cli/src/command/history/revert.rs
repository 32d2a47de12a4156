//! `revert`: hides what stands behind a record.

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `revert`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    under: Under,
    /// The record that stays the newest; 0 hides everything
    #[arg(long, value_name = "P")]
    to: String,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Reverts.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let to = input::position(&self.to)?;
        let store = ctx.store()?;
        let session = token.name.to_string();
        let mutation = Mutation::new(Verb::Revert { to }, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        let said = match to.0 {
            0 => format!("the history of {session} is empty from here on; nothing was removed"),
            _ => format!("{session} goes on behind position {to}; nothing was removed"),
        };
        let fields = [("session", session), ("to", to.to_string())];
        done(ctx, &answer, &said, &fields)
    }
}
