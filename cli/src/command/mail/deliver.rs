//! `deliver`: says that an envelope reached its session.

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `deliver`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The envelope: e1, e2, ...
    #[arg(value_name = "ENVELOPE")]
    id: String,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Delivers it.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let envelope = input::envelope(&self.id)?;
        let token = input::required(self.under.token()?)?;
        let store = ctx.store()?;
        let mutation = Mutation::new(Verb::Deliver { envelope }, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        let fields = [
            ("envelope", envelope.to_string()),
            ("state", "delivered".to_owned()),
        ];
        done(ctx, &answer, &format!("{envelope} is delivered"), &fields)
    }
}
