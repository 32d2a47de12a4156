//! `completions`: completions for a shell.

use clap_complete::Shell;

use crate::app;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Args {
    /// Prints them.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut app::plain(), "tenure", &mut script);
        ctx.out.raw(&script)?;
        Ok(Exit::DONE)
    }
}
