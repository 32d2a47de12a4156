//! `work`: dispatches.

use tenure_projection::core::id::DispatchNo;
use tenure_projection::views::{DispatchView, Lens};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{DIM, human, json};

use super::super::find;

/// Arguments of `work`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Of one session: its name, or the beginning of it (at least 6 characters)
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Of one item
    #[arg(long, value_name = "ITEM")]
    item: Option<String>,
    /// Those that have ended too
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Lists the dispatches, oldest first.
    ///
    /// # Errors
    /// When there is no such session, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let store = ctx.reading()?;
        let session = match &self.name {
            Some(name) => Some(ctx.look(&store, |lens| Ok(find(lens.state, name)))??),
            None => None,
        };
        let views = ctx.look(&store, |lens| {
            let mut views: Vec<DispatchView> = Vec::new();
            for id in self.candidates(lens) {
                let row = lens.state.dispatch(id);
                if session.is_none() || row.map(|r| r.session) == session {
                    views.extend(lens.dispatch(id)?);
                }
            }
            Ok(views)
        })?;
        let views: Vec<_> = views
            .into_iter()
            .filter(|v| self.item.as_ref().is_none_or(|item| v.item == *item))
            .collect();
        if ctx.out.is_json() {
            views
                .iter()
                .try_for_each(|view| ctx.out.object(&json::dispatch(view)))?;
            return Ok(Exit::DONE);
        }
        if ctx.out.is_quiet() {
            views
                .iter()
                .try_for_each(|view| ctx.out.essential(view.id))?;
            return Ok(Exit::DONE);
        }
        let rows: Vec<_> = views.iter().map(human::dispatch_row).collect();
        human::table(&rows)
            .iter()
            .try_for_each(|row| ctx.out.say(row))?;
        if views.is_empty() {
            ctx.out.styled(DIM, "no dispatches")?;
        }
        Ok(Exit::DONE)
    }

    /// What could be meant. Ended dispatches cost a look into the log each, live ones none.
    fn candidates(&self, lens: Lens<'_>) -> Vec<DispatchNo> {
        match &self.item {
            _ if self.all => lens.dispatches().collect(),
            Some(item) => lens.live_dispatch_of(item.as_bytes()).into_iter().collect(),
            None => lens.state.live.keys().collect(),
        }
    }
}
