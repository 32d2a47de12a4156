//! `handoff`: gives a dispatch over to another session.

use tenure_projection::call::Verb;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `handoff`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The dispatch: d1, d2, ...
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    under: Under,
    /// To which live session; with @GENERATION, only if that is current
    #[arg(long, value_name = "NAME[@GENERATION]")]
    to: String,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Hands it over, in the state that it has.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dispatch = input::dispatch(&self.id)?;
        let (to, to_generation) = input::address(&self.to)?;
        let token = input::required(self.under.token()?)?;
        let store = ctx.store()?;
        let session = to.to_string();
        let verb = Verb::HandOff {
            dispatch,
            to,
            to_generation,
        };
        let mutation = Mutation::new(verb, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        let fields = [
            ("dispatch", dispatch.to_string()),
            ("session", session.clone()),
        ];
        done(ctx, &answer, &format!("{dispatch} is {session}'s"), &fields)
    }
}
