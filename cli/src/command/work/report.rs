//! `report`: ends an accepted dispatch.

use std::ffi::OsString;

use tenure_projection::call::Verb;
use tenure_projection::core::command::Outcome;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The dispatch: d1, d2, ...
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    under: Under,
    /// How it ended
    #[arg(long, value_name = "done|failed|blocked")]
    outcome: String,
    /// What there is to say; kept also when the report is refused
    #[arg(long, value_name = "TEXT")]
    body: Option<OsString>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Reports.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dispatch = input::dispatch(&self.id)?;
        let outcome = Outcome::from_word(&self.outcome).ok_or_else(|| {
            Fault::usage(format!(
                "--outcome {:?} is neither done, failed nor blocked",
                self.outcome
            ))
        })?;
        let token = input::required(self.under.token()?)?;
        let body = input::maybe_text(self.body.as_deref())?;
        let store = ctx.store()?;
        let verb = Verb::Report {
            dispatch,
            outcome,
            body,
        };
        let answer = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(Some(token)))?;
        let state = outcome.as_str();
        let fields = [
            ("dispatch", dispatch.to_string()),
            ("state", state.to_owned()),
        ];
        done(
            ctx,
            &answer,
            &format!("{dispatch} is reported {state}"),
            &fields,
        )
    }
}
