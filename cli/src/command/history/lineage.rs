//! `lineage`: where a session comes from, and what was branched from it.

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{human, json};

use super::super::{find, looking};

/// Arguments of `lineage`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session, or the beginning of its name (at least 6 characters)
    #[arg(value_name = "NAME")]
    name: String,
}

impl Args {
    /// Prints the ancestors, the session, and its branches.
    ///
    /// # Errors
    /// When there is no such session, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let views = looking(ctx, |lens| {
            Ok(find(lens.state, &self.name).map(|number| lens.lineage(number)))
        })??;
        for view in &views {
            if ctx.out.is_json() {
                ctx.out.object(&json::history::lineage(view))?;
            } else {
                ctx.out.lines([human::history::lineage(view)])?;
            }
        }
        Ok(Exit::DONE)
    }
}
