//! `send`: sends a message to a session.

use std::ffi::OsString;

use tenure_projection::call::Verb;
use tenure_projection::store::Answer;

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};
use crate::output::json;

use super::super::stands;

/// Arguments of `send`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The text
    #[arg(value_name = "TEXT")]
    text: OsString,
    /// To which session
    #[arg(long, value_name = "NAME")]
    to: String,
    #[command(flatten)]
    under: Under,
    /// What it answers: e1, d1
    #[arg(long, value_name = "ID")]
    re: Option<String>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Sends, and prints the envelope.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let to = input::name(&self.to)?;
        let re = self.re.as_deref().map(input::reference).transpose()?;
        let token = self.under.token()?;
        let body = input::text(&self.text)?;
        let store = ctx.store()?;
        let mutation = Mutation::new(Verb::Send { to, body, re }, &self.keyed).under(token);
        let done = ctx.execute(&store, mutation)?;
        let Answer::Sent { envelope } = done.answer else {
            let message = format!("a send was answered with {:?}", done.answer);
            return Err(Fault::new(Cause::Fault, message).into());
        };
        let view = ctx.look(&store, |lens| lens.envelope(envelope))?;
        let Some(view) = view else {
            return Err(Fault::new(
                Cause::Fault,
                format!("{envelope} was sent and is not there"),
            )
            .into());
        };
        if ctx.out.is_json() {
            ctx.out
                .object(&json::envelope(&view).standing(&done.receipt))?;
        } else {
            ctx.out.essential(envelope)?;
            ctx.out.say(format_args!(
                "pending for {}@{}",
                view.session, view.generation
            ))?;
            stands(ctx, &done)?;
        }
        Ok(Exit::DONE)
    }
}
