//! `ack`: says that an envelope was read, or that somebody has seen to work that was reported blocked.

use std::ffi::OsString;

use tenure_projection::call::Verb;
use tenure_projection::core::id::DispatchNo;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};

use super::super::done;

/// Arguments of `ack`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The envelope: e1, e2, ...; or a dispatch that is blocked: d1, d2, ...
    #[arg(value_name = "ENVELOPE|dN")]
    id: String,
    #[command(flatten)]
    under: Under,
    /// What was done about blocked work
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Acknowledges it.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        if let Some(dispatch) = DispatchNo::parse(&self.id) {
            return self.attend(ctx, dispatch);
        }
        if self.reason.is_some() {
            return Err(Fault::usage("--reason is for a dispatch that is blocked").into());
        }
        let envelope = input::envelope(&self.id)?;
        let token = input::required(self.under.token()?)?;
        let store = ctx.store()?;
        let mutation =
            Mutation::new(Verb::Acknowledge { envelope }, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        let fields = [
            ("envelope", envelope.to_string()),
            ("state", "acknowledged".to_owned()),
        ];
        done(
            ctx,
            &answer,
            &format!("{envelope} is acknowledged"),
            &fields,
        )
    }

    /// An operator's word, or that of whoever presents a token.
    fn attend(&self, ctx: &mut Context, dispatch: DispatchNo) -> Result<Exit, Stop> {
        let reason = input::maybe_line("the reason", self.reason.as_deref())?;
        let token = self.under.token()?;
        let store = ctx.store()?;
        let verb = Verb::Attend { dispatch, reason };
        let answer = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(token))?;
        let fields = [("dispatch", dispatch.to_string())];
        let said = format!("{dispatch} needs nobody any more; its item can be given again");
        done(ctx, &answer, &said, &fields)
    }
}
