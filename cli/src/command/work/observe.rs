//! `observe`: says what a session is doing and where it wrote.

use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::Verb;
use tenure_projection::store::{Answer, Done};
use tenure_projection::views::SharedView;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};
use crate::output::{Object, human, json};

use super::super::{done, stands};

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
        if let Answer::Met {
            shared,
            instruction,
            ..
        } = &answer.answer
        {
            let list: Vec<_> = ctx.look(&store, |lens| {
                Ok(shared.iter().map(|s| lens.shared(s)).collect())
            })?;
            return met(ctx, &answer, session, &list, *instruction);
        }
        done(ctx, &answer, "observed", &[("session", session)])
    }
}

/// The answer to an observation that met somebody new.
fn met(
    ctx: &mut Context,
    answer: &Done,
    session: String,
    list: &[SharedView],
    instruction: Option<&str>,
) -> Result<Exit, Stop> {
    if ctx.out.is_json() {
        let object = Object::new("done")
            .standing(&answer.receipt)
            .with("repeated", answer.repeated)
            .with("session", session)
            .with("shared_checkout", json::shared_list(list))
            .with("instruction", instruction);
        ctx.out.object(&object)?;
        return Ok(Exit::DONE);
    }
    ctx.out.say("observed")?;
    ctx.out.lines(human::shared(list, instruction))?;
    stands(ctx, answer)?;
    Ok(Exit::DONE)
}
