//! `serve`: answers others, over a socket in the store's directory.

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::served::{self, Web};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    web: Web,
}

impl Args {
    /// Serves until a signal ends it.
    ///
    /// # Errors
    /// When the store cannot be opened, another server is there, or the socket cannot be made.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        served::serve(ctx, self.web)
    }
}
