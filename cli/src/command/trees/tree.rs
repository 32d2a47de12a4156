//! `tree`: a root and everything delegated from it.

use crate::clock;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{human, json};

use super::super::{find, looking};

/// Arguments of `tree`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Any session of the tree (or the beginning of its name, at least 6 characters)
    #[arg(value_name = "NAME")]
    name: String,
}

impl Args {
    /// Shows the tree: how it stands, who holds it, and which of its sessions somebody may write as.
    ///
    /// # Errors
    /// When there is no such session, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let view = looking(ctx, |lens| {
            Ok(find(lens.state, &self.name).map(|number| lens.tree(number)))
        })??;
        let Some(view) = view else {
            return Ok(Exit::NEGATIVE);
        };
        if ctx.out.is_json() {
            ctx.out.object(&json::tree(&view))?;
        } else if ctx.out.is_quiet() {
            let mut names = view.sessions.iter().map(|s| &s.name);
            names.try_for_each(|name| ctx.out.essential(name))?;
        } else {
            ctx.out.lines(human::tree(&view, clock::now()))?;
        }
        Ok(Exit::DONE)
    }
}
