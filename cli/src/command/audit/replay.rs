//! `replay`: the state as it was, made again from the log alone.

use tenure_projection::authority::Resolved;
use tenure_projection::core::codec;
use tenure_projection::views::Lens;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{DIM, Object, json, replaying};

use super::super::look::sessions;
use super::place::{resolve, say};

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Up to a position, an RFC 3339 time, or an age [default: the newest]
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
}

impl Args {
    /// Replays the log from its beginning and prints the sessions as they stood, and a digest of the whole state:
    /// two copies of one log that give the same digest give the same answers.
    ///
    /// # Errors
    /// When the place is not in the log, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let to = self.to.as_deref().map(input::when).transpose()?;
        let reader = ctx.reading()?;
        let head = reader.head().map_err(|error| ctx.fault(&error))?;
        let place = match to {
            Some(when) => resolve(ctx, &reader, when)?,
            None => Resolved {
                position: tenure_projection::core::id::Position(head.position.0),
                also: Vec::new(),
            },
        };
        say(ctx, &place)?;
        let state = replaying(ctx.out.is_quiet(), || reader.state_at(place.position))
            .map_err(|error| ctx.fault(&error))?;
        let lens = Lens {
            state: &state,
            host: reader.host(),
            shelf: &*reader,
        };
        let views: Vec<_> = lens.sessions().collect();
        let digest =
            codec::digest(&state).map_err(|error| Fault::new(Cause::Fault, error.to_string()))?;
        let digest = json::hex(&digest);
        if ctx.out.is_json() {
            views
                .iter()
                .try_for_each(|view| ctx.out.object(&json::session(view)))?;
            let object = Object::new("replay")
                .with("position", place.position.0)
                .with("also", place.also.iter().map(|p| p.0).collect::<Vec<_>>())
                .with("sessions", views.len())
                .with("state_digest", digest.as_str());
            ctx.out.object(&object)?;
            return Ok(Exit::DONE);
        }
        sessions::table(ctx, &views)?;
        ctx.out.styled(
            DIM,
            format_args!("position {}, state digest {digest}", place.position),
        )?;
        Ok(Exit::DONE)
    }
}
