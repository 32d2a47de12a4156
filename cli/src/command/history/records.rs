//! `history`: the records of a session, oldest first.

use tenure_projection::error::Error;
use tenure_projection::history::{Passage, Span};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input;
use crate::output::{DIM, human, json};

use super::super::find;

/// Arguments of `history`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or the beginning of its name (at least 6 characters)
    #[arg(value_name = "NAME")]
    name: String,
    /// As it stood at this position
    #[arg(long, value_name = "P")]
    at: Option<String>,
    /// Also what reverts hide, and the reverts
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Prints the records.
    ///
    /// # Errors
    /// When there is no such session or position, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let at = self.at.as_deref().map(input::position).transpose()?;
        let reader = ctx.reading()?;
        let state = ctx.look(&reader, |lens| Ok(lens.state.clone()))?;
        let session = find(&state, &self.name)?;
        let head = state.at.position;
        if let Some(asked) = at.filter(|at| *at > head) {
            return Err(ctx.fault(&Error::BeyondHead { head, asked }));
        }
        let span = Span {
            session,
            until: at.unwrap_or(head),
            hidden: self.all,
        };
        let name = state.name(session);
        let (mut shown, mut stopped) = (0_u64, None);
        let walked = reader.history(&state, span, |passage| {
            shown += 1;
            let printed = match &passage {
                Passage::Record(record) => {
                    let origin = state.name(record.origin);
                    print_record(ctx, record, &name, &origin)
                }
                Passage::Revert { at, session, to } => {
                    let origin = state.name(*session);
                    if ctx.out.is_json() {
                        let object = json::history::revert(*at, &name, &origin, *to);
                        ctx.out.object(&object)
                    } else {
                        ctx.out.lines([human::history::revert(*at, &origin, *to)])
                    }
                }
            };
            stopped = printed.err();
            Ok(stopped.is_none())
        });
        if let Some(stop) = stopped {
            return Err(stop);
        }
        walked.map_err(|error| ctx.fault(&error))?;
        if shown == 0 && !ctx.out.is_json() {
            ctx.out.styled(DIM, "no records")?;
        }
        Ok(Exit::DONE)
    }
}

fn print_record(
    ctx: &mut Context,
    record: &tenure_projection::history::RecordView,
    name: &str,
    origin: &str,
) -> Result<(), Stop> {
    if ctx.out.is_json() {
        return ctx.out.object(&json::history::record(record, name, origin));
    }
    let elsewhere = (origin != name).then_some(origin);
    ctx.out.lines([human::history::record(record, elsewhere)])?;
    match &record.body {
        Some(body) => ctx.out.body(&String::from_utf8_lossy(body)),
        None => ctx.out.styled(DIM, "  (taken out of the log)"),
    }
}
