//! `rename`: gives a session another name; the old one still leads to it.

use tenure_projection::call::Verb;
use tenure_projection::core::id::Token;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `rename`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    /// Its new name
    #[arg(value_name = "NEW")]
    new: String,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Renames.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let verb = Verb::Rename {
            name: input::name(&self.name)?,
            to: input::name(&self.new)?,
        };
        let store = ctx.store()?;
        let renamed = Token {
            name: input::name(&self.new)?,
            ..token.clone()
        };
        let mutation = Mutation::new(verb, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        let said = format!(
            "{} is called {} from here on; the old name still leads to it",
            self.name, self.new
        );
        let fields = [
            ("session", self.new),
            ("alias", self.name),
            ("token", renamed.to_string()),
        ];
        done(ctx, &answer, &said, &fields)
    }
}
