//! `export`: a history as JSON Lines, to be read or imported elsewhere.

use tenure_projection::history::{Passage, Span};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::json;

use super::super::find;

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or the beginning of its name (at least 6 characters)
    #[arg(value_name = "NAME")]
    name: String,
}

impl Args {
    /// Prints a head, the visible records, and an end that says that nothing is missing.
    ///
    /// # Errors
    /// When there is no such session, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let reader = ctx.reading()?;
        let store = reader.id().map_err(|error| ctx.fault(&error))?;
        let found = ctx.look(&reader, |lens| {
            Ok(find(lens.state, &self.name).map(|n| (lens.state.clone(), n, lens.session(n))))
        })??;
        let (state, session, Some(view)) = found else {
            return Ok(Exit::NEGATIVE);
        };
        let hash = state
            .session(session)
            .map(|s| s.history.hash())
            .unwrap_or_default();
        let head = json::history::export(&view, hash, &store.to_string());
        ctx.out.object(&head)?;
        let span = Span {
            session,
            until: state.at.position,
            hidden: false,
        };
        let (mut records, mut stopped) = (0_u64, None);
        let walked = reader.history(&state, span, |passage| {
            if let Passage::Record(record) = passage {
                records += 1;
                let origin = state.name(record.origin);
                let object = json::history::record(&record, &view.name, &origin);
                stopped = ctx.out.object(&object).err();
            }
            Ok(stopped.is_none())
        });
        if let Some(stop) = stopped {
            return Err(stop);
        }
        walked.map_err(|error| ctx.fault(&error))?;
        ctx.out.object(&json::history::export_end(records))?;
        Ok(Exit::DONE)
    }
}
