//! Where in the log a position or a time is.

use tenure_projection::authority::Resolved;
use tenure_projection::core::id::Position;
use tenure_projection::error::Error;
use tenure_projection::reader::Reader;

use crate::clock::When;
use crate::context::Context;
use crate::fault::Stop;
use crate::output::WARN;

/// Finds it.
///
/// # Errors
/// When the position is beyond the end, or the log cannot be read.
pub fn resolve(ctx: &Context, reader: &Reader, when: When) -> Result<Resolved, Stop> {
    let asked = match when {
        When::At(position) => position,
        When::Time(time) => return reader.resolve(time).map_err(|error| ctx.fault(&error)),
    };
    let head = reader.head().map_err(|error| ctx.fault(&error))?;
    let head = Position(head.position.0);
    if asked > head {
        return Err(ctx.fault(&Error::BeyondHead { head, asked }));
    }
    Ok(Resolved {
        position: asked,
        also: Vec::new(),
    })
}

/// Says where else it could be, to people.
///
/// # Errors
/// When nothing can be printed.
pub fn say(ctx: &mut Context, resolved: &Resolved) -> Result<(), Stop> {
    if resolved.also.is_empty() || ctx.out.is_json() {
        return Ok(());
    }
    let also: Vec<_> = resolved.also.iter().map(ToString::to_string).collect();
    ctx.out.styled(
        WARN,
        format_args!(
            "the clock of the log passed that time more than once: position {} is taken, {} would do as well",
            resolved.position,
            also.join(", ")
        ),
    )
}
