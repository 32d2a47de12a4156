//! `export`: a history as JSON Lines, to be read or imported elsewhere; or the store as a bundle.

use std::path::PathBuf;

use tenure_projection::core::redaction::Classes;
use tenure_projection::history::{Passage, Span};

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::json;

use super::super::find;
use super::bundle;

mod transcript;

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session whose history is printed, or the beginning of its name (at least 6 characters)
    #[arg(value_name = "NAME", required_unless_present = "redact")]
    name: Option<String>,
    /// Not a history but the whole store, as a bundle without these: bodies (free text), paths, labels
    #[arg(
        long,
        value_name = "CLASS",
        value_delimiter = ',',
        value_parser = bundle::class,
        requires = "output",
        conflicts_with = "name"
    )]
    redact: Vec<Classes>,
    /// The bundle's file, which is made
    #[arg(long, value_name = "FILE", requires = "redact")]
    output: Option<PathBuf>,
    /// Only up to this position, time or age [default: the newest]
    #[arg(long, value_name = "WHEN", requires = "redact")]
    to: Option<String>,
    /// The history as the transcript of its host that it was imported from: its records, one a line
    #[arg(long, conflicts_with = "redact")]
    transcript: bool,
}

impl Args {
    /// Prints a head, the visible records, and an end that says that nothing is missing; or writes a bundle.
    ///
    /// # Errors
    /// When there is no such session, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let all = self.redact.iter().fold(0, |all, class| all | class.bits());
        if let (Some(file), None) = (&self.output, &self.name) {
            let to = self.to.as_deref().map(input::when).transpose()?;
            return bundle::export(ctx, Classes::from_bits(all), to, file);
        }
        if self.output.is_some() || self.to.is_some() {
            let message =
                "--output and --to belong to --redact: a history is printed, as it stands now";
            return Err(Fault::usage(message.to_owned()).into());
        }
        let name = self.name.unwrap_or_default();
        let reader = ctx.reading()?;
        if reader.redacted().bodies {
            let what = "bodies were taken out of this copy: a history of it would be none";
            return Err(Fault::new(Cause::Unsupported, what.to_owned()).into());
        }
        let store = reader.id().map_err(|error| ctx.fault(&error))?;
        let found = ctx.look(&reader, |lens| {
            Ok(find(lens.state, &name).map(|n| (lens.state.clone(), n, lens.session(n))))
        })??;
        let (state, session, Some(view)) = found else {
            return Ok(Exit::NEGATIVE);
        };
        if self.transcript {
            return transcript::run(ctx, &reader, &state, session);
        }
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
