//! `dispatch`: gives an item to a session.

use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::Verb;
use tenure_projection::store::Answer;

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};
use crate::output::json;

use super::super::stands;

/// Arguments of `dispatch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The item's id
    #[arg(value_name = "ITEM")]
    item: String,
    /// To which session; with @GENERATION, only if that is current
    #[arg(long, value_name = "NAME[@GENERATION]")]
    to: String,
    #[command(flatten)]
    under: Under,
    /// A line about it
    #[arg(long, value_name = "TEXT")]
    title: Option<OsString>,
    /// A path it will write: a file, or a directory with all that is in it
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// What to do
    #[arg(long, value_name = "TEXT")]
    body: Option<OsString>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Dispatches, and prints the dispatch.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let (to, to_generation) = input::address(&self.to)?;
        let verb = Verb::Dispatch {
            item: input::name(&self.item)?,
            to,
            to_generation,
            title: input::maybe_line("the title", self.title.as_deref())?,
            writes: self.write,
            body: input::maybe_text(self.body.as_deref())?,
        };
        let token = self.under.token()?;
        let store = ctx.store()?;
        let done = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(token))?;
        let Answer::Dispatched { dispatch, .. } = done.answer else {
            let message = format!("a dispatch was answered with {:?}", done.answer);
            return Err(Fault::new(Cause::Fault, message).into());
        };
        let view = ctx.look(&store, |lens| lens.dispatch(dispatch))?;
        let Some(view) = view else {
            return Err(Fault::new(
                Cause::Fault,
                format!("{dispatch} was given and is not there"),
            )
            .into());
        };
        if ctx.out.is_json() {
            ctx.out
                .object(&json::dispatch(&view).standing(&done.receipt))?;
        } else {
            ctx.out.essential(view.id)?;
            ctx.out.say(format_args!(
                "{} for {}@{}",
                view.item, view.session, view.generation
            ))?;
            stands(ctx, &done)?;
        }
        Ok(Exit::DONE)
    }
}
