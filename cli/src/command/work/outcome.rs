//! `outcome`: did it happen?

use tenure_projection::call::IdempotencyKey;
use tenure_projection::error::Trace;
use tenure_projection::reader::Known;

use crate::clock::rfc3339;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::Object;

/// Arguments of `outcome`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The idempotency key, or the receipt STORE:POSITION:CHAIN
    #[arg(value_name = "KEY|RECEIPT")]
    trace: String,
}

impl Args {
    /// Says whether it is in the log.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let trace = match self.trace.parse() {
            Ok(receipt) => Trace::Receipt(receipt),
            Err(_) => Trace::Key(IdempotencyKey(self.trace)),
        };
        let store = ctx.reading()?;
        let known = store.outcome(&trace).map_err(|error| ctx.fault(&error))?;
        let (object, said, exit) = match known {
            Known::Done { receipt, at } => (
                Object::new("outcome")
                    .with("outcome", "done")
                    .with("time", rfc3339(at.time))
                    .standing(&receipt),
                format!("done at position {} ({})", at.position, rfc3339(at.time)),
                Exit::DONE,
            ),
            Known::Absent { searched } => (
                Object::new("outcome")
                    .with("outcome", "absent")
                    .with("searched", searched.0),
                format!(
                    "absent: it is not in the log up to position {searched}, and was not acknowledged"
                ),
                Exit::NEGATIVE,
            ),
        };
        if ctx.out.is_json() {
            ctx.out.object(&object)?;
        } else {
            ctx.out.say(said)?;
        }
        Ok(exit)
    }
}
