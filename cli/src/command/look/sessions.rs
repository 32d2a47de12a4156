//! `sessions`: the sessions with holder, verdict, last seen, and what is open.

use tenure_projection::views::SessionView;

use crate::clock;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{DIM, human, json};

use super::super::looking;

/// Arguments of `sessions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Retired ones too
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Lists the sessions, in the order of registration.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let all = self.all;
        let views: Vec<_> = looking(ctx, |lens| {
            Ok(lens.sessions().filter(|s| all || s.active).collect())
        })?;
        if ctx.out.is_json() {
            views
                .iter()
                .try_for_each(|view| ctx.out.object(&json::session(view)))?;
            return Ok(Exit::DONE);
        }
        if ctx.out.is_quiet() {
            views
                .iter()
                .try_for_each(|view| ctx.out.essential(&view.name))?;
            return Ok(Exit::DONE);
        }
        table(ctx, &views)?;
        if views.is_empty() {
            ctx.out
                .styled(DIM, "no sessions; `tenure register NAME` makes one")?;
        }
        Ok(Exit::DONE)
    }
}

/// Sessions for people, one a line.
///
/// # Errors
/// When nothing can be printed.
pub fn table(ctx: &mut Context, views: &[SessionView]) -> Result<(), Stop> {
    let now = clock::now();
    let rows: Vec<_> = views
        .iter()
        .map(|view| human::session_row(view, now))
        .collect();
    human::table(&rows)
        .iter()
        .try_for_each(|row| ctx.out.say(row))
}
