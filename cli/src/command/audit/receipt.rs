//! `receipt`: what proves later that a grant was in the log, and what the log's head was.

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Under};
use crate::output::{DIM, Object};

use super::super::find;
use super::super::unknown;

/// Arguments of `receipt`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    under: Under,
}

impl Args {
    /// Prints the receipt of the grant behind a token, and one of the newest position. To be kept outside the
    /// store: `verify --expected-head` proves by it that the log was rolled back or written anew.
    ///
    /// # Errors
    /// When no session has the name, or the generation was never granted.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let reader = ctx.reading()?;
        let granted = ctx.look(&reader, |lens| {
            Ok(find(lens.state, token.name.as_str()).map(|number| {
                let mut notes = lens.state.grants_of(number).into_iter();
                let note = notes.find(|note| note.generation == token.generation);
                note.map(|note| note.at.position)
            }))
        })??;
        let Some(position) = granted else {
            let message = format!("{token} was never granted");
            return Err(unknown(
                tenure_projection::core::refusal::Code::NeverIssued,
                &token.to_string(),
                message,
            ));
        };
        let fault = |error: tenure_projection::error::Error| ctx.fault(&error);
        let receipt = reader.receipt_at(position).map_err(fault)?;
        let head = reader
            .head()
            .and_then(|head| reader.receipt(head))
            .map_err(fault)?;
        if ctx.out.is_json() {
            let object = Object::new("receipt")
                .with("token", token.to_string())
                .with("receipt", receipt.to_string())
                .with("head", head.to_string());
            ctx.out.object(&object)?;
        } else if ctx.out.is_quiet() {
            ctx.out.essential(receipt)?;
        } else {
            ctx.out
                .say(format_args!("{token} was granted: {receipt}"))?;
            ctx.out.say(format_args!("the log's head is     {head}"))?;
            ctx.out.styled(
                DIM,
                "keep one outside the store; `tenure verify --expected-head RECEIPT` checks it",
            )?;
        }
        Ok(Exit::DONE)
    }
}
