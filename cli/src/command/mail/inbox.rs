//! `inbox`: the envelopes of a session.

use tenure_projection::core::state::EnvelopeState;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{DIM, human, json};

use super::super::find;

/// Arguments of `inbox`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or the beginning of its name (at least 6 characters)
    #[arg(value_name = "NAME")]
    name: String,
    /// Only what waits to be delivered
    #[arg(long)]
    pending: bool,
}

impl Args {
    /// Lists the envelopes, oldest first.
    ///
    /// # Errors
    /// When there is no such session, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let store = ctx.reading()?;
        let number = ctx.look(&store, |lens| Ok(find(lens.state, &self.name)))??;
        let views = ctx.look(&store, |lens| {
            let mut views = Vec::new();
            for id in lens.envelopes_of(number, self.pending) {
                views.extend(lens.envelope(id)?);
            }
            Ok(views)
        })?;
        let mut shown = 0;
        for view in views
            .iter()
            .filter(|v| !self.pending || v.state == EnvelopeState::Pending)
        {
            shown += 1;
            if ctx.out.is_json() {
                ctx.out.object(&json::envelope(view))?;
                continue;
            }
            ctx.out.lines([human::envelope(view)])?;
            if let Some(body) = &view.body {
                ctx.out.body(&String::from_utf8_lossy(body))?;
            }
        }
        if shown == 0 && !ctx.out.is_json() {
            ctx.out.styled(DIM, "no envelopes")?;
        }
        Ok(Exit::DONE)
    }
}
