//! `accept`: takes a dispatch on, and tells who else works there.

use tenure_projection::call::Verb;
use tenure_projection::store::Answer;

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};
use crate::output::{human, json};

use super::super::stands;

/// Arguments of `accept`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The dispatch: d1, d2, ...
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Accepts, and prints the binding with the shared checkouts.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dispatch = input::dispatch(&self.id)?;
        let token = input::required(self.under.token()?)?;
        let store = ctx.store()?;
        let mutation = Mutation::new(Verb::Accept { dispatch }, &self.keyed).under(Some(token));
        let done = ctx.execute(&store, mutation)?;
        let Answer::Accepted {
            shared,
            instruction,
            generation,
            ..
        } = &done.answer
        else {
            let message = format!("an accept was answered with {:?}", done.answer);
            return Err(Fault::new(Cause::Fault, message).into());
        };
        let view = ctx.look(&store, |lens| {
            let list: Vec<_> = shared.iter().map(|s| lens.shared(s)).collect();
            Ok(lens.dispatch(dispatch)?.map(|view| (view, list)))
        })?;
        let Some((mut view, list)) = view else {
            return Err(Fault::new(
                Cause::Fault,
                format!("{dispatch} was accepted and is not there"),
            )
            .into());
        };
        view.generation = *generation;
        if ctx.out.is_json() {
            let object = json::accepted(&view, &list, *instruction, &done.receipt);
            ctx.out.object(&object)?;
            return Ok(Exit::DONE);
        }
        let token = format!("{}@{}", view.session, view.generation);
        ctx.out.say(format_args!(
            "{dispatch} ({}) is accepted by {token}",
            view.item
        ))?;
        ctx.out.lines(human::shared(&list, *instruction))?;
        if let Some(body) = &view.body {
            ctx.out.body(&String::from_utf8_lossy(body))?;
        }
        stands(ctx, &done)?;
        Ok(Exit::DONE)
    }
}
