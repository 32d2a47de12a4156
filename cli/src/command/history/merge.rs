//! `merge`: what nobody is given (BRN-13). It has a command so that whoever looks for it is told, and with its own code.

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};

/// Arguments of `merge`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One session
    #[arg(value_name = "NAME")]
    one: String,
    /// Another
    #[arg(value_name = "OTHER")]
    other: String,
}

impl Args {
    /// Refuses.
    ///
    /// # Errors
    /// Always: `unsupported`.
    pub fn run(self, _ctx: &mut Context) -> Result<Exit, Stop> {
        let Self { one, other } = self;
        let message = format!(
            "the histories of {one} and {other} are not merged: no order of their records would be true"
        );
        Err(Fault::new(Cause::Unsupported, message)
            .then(
                format!("tenure history {other}"),
                "shows what the other recorded, to be recorded anew where it is wanted",
            )
            .into())
    }
}
