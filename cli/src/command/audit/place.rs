//! Where in the log a position or a time is.

use tenure_projection::core::id::Position;
use tenure_projection::reader::Reader;

use crate::clock::When;
use crate::context::Context;
use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::output::WARN;

/// A place in the log.
pub struct Resolved {
    /// The newest position whose frame was there by then.
    pub position: Position,
    /// Where else the clock passed the time asked for, because it was set back: the last position before each.
    pub also: Vec<Position>,
}

impl Resolved {
    /// Finds it.
    ///
    /// # Errors
    /// When the position is beyond the end, or the log cannot be read.
    pub fn of(ctx: &Context, reader: &Reader, when: When) -> Result<Self, Stop> {
        let head = reader.head().map_err(|error| ctx.fault(&error))?;
        let head = Position(head.position.0);
        let time = match when {
            When::At(position) if position > head => return Err(beyond(head, position)),
            When::At(position) => {
                return Ok(Self {
                    position,
                    also: Vec::new(),
                });
            }
            When::Time(time) => time,
        };
        let resolved = reader.resolve(time).map_err(|error| ctx.fault(&error))?;
        Ok(Self {
            position: resolved.position,
            also: resolved.also,
        })
    }

    /// Says where else it could be.
    ///
    /// # Errors
    /// When nothing can be printed.
    pub fn say(&self, ctx: &mut Context) -> Result<(), Stop> {
        if self.also.is_empty() || ctx.out.is_json() {
            return Ok(());
        }
        let also: Vec<_> = self.also.iter().map(ToString::to_string).collect();
        ctx.out.styled(
            WARN,
            format_args!(
                "the clock of the log passed that time more than once: position {} is taken, {} would do as well",
                self.position,
                also.join(", ")
            ),
        )
    }
}

/// A position that the log does not have.
pub fn beyond(head: Position, asked: Position) -> Stop {
    let message = format!("the log ends at position {head}, and position {asked} was asked for");
    Fault::new(Cause::BadPosition, message).into()
}
