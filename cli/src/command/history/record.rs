//! `record`: appends to a session's history.

use std::ffi::OsString;

use tenure_projection::call::Verb;
use tenure_projection::core::limits::RECORD_BYTES_MAX;
use tenure_projection::history::RecordView;
use tenure_projection::store::Answer;

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};
use crate::output::json;

use super::super::stands;

/// Arguments of `record`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The record, up to 16 MiB
    #[arg(value_name = "TEXT")]
    text: OsString,
    #[command(flatten)]
    under: Under,
    /// What kind of record it is: turn, call, result, ...
    #[arg(long, value_name = "K", default_value = "text")]
    kind: String,
    /// Only if the session's newest record stands at this position; 0 for none
    #[arg(long, value_name = "P")]
    expect: Option<String>,
    /// What begins with it: run:ID, call:ID or approval:ID
    #[arg(long, value_name = "KIND:ID")]
    opens: Option<String>,
    /// What ends with it
    #[arg(long, value_name = "KIND:ID")]
    closes: Option<String>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Records, and prints where.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(self.under.token()?)?;
        let expect = self.expect.as_deref().map(input::position).transpose()?;
        let opens = self.opens.as_deref().map(input::activity).transpose()?;
        let closes = self.closes.as_deref().map(input::activity).transpose()?;
        let body = input::text_up_to(&self.text, RECORD_BYTES_MAX)?;
        let store = ctx.store()?;
        let verb = Verb::Record {
            kind: self.kind.clone(),
            body: body.clone(),
            expect,
            opens: opens.clone(),
            closes: closes.clone(),
        };
        let generation = token.generation;
        let mutation = Mutation::new(verb, &self.keyed).under(Some(token));
        let done = ctx.execute(&store, mutation)?;
        let Answer::Recorded { session, index } = done.answer else {
            let message = format!("a record was answered with {:?}", done.answer);
            return Err(Fault::new(Cause::Fault, message).into());
        };
        let name = ctx.look(&store, |lens| Ok(lens.state.name(session)))?;
        if ctx.out.is_json() {
            let view = RecordView {
                at: done.at,
                index,
                origin: session,
                generation: Some(generation),
                actor: ctx.actor().unwrap_or_default(),
                kind: self.kind,
                body: Some(body),
                opens: opens.map(|a| a.to_string()),
                closes: closes.map(|a| a.to_string()),
                hidden: false,
            };
            let object = json::history::record(&view, &name, &name);
            ctx.out.object(
                &object
                    .standing(&done.receipt)
                    .with("repeated", done.repeated),
            )?;
        } else {
            ctx.out.essential(done.at.position)?;
            ctx.out.say(format_args!("record {index} of {name}"))?;
            stands(ctx, &done)?;
        }
        Ok(Exit::DONE)
    }
}
