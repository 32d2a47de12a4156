//! `refusals`: commands that were refused, with what they carried.

use crate::clock::{age, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::output::{DIM, human, json};

use super::super::find;

mod apply;

/// Arguments of `refusals`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Of one session: its name, or the beginning of it (at least 6 characters)
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Carry out what was refused, under a token that is current
    Apply(apply::Args),
}

impl Args {
    /// Whether it only lists.
    #[must_use]
    pub fn only_lists(&self) -> bool {
        self.what.is_none()
    }

    /// Lists the refusals, oldest first.
    ///
    /// # Errors
    /// When there is no such session, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        if let Some(What::Apply(args)) = self.what {
            return args.run(ctx);
        }
        let reader = ctx.reading()?;
        let session = match &self.name {
            Some(name) => Some(ctx.look(&reader, |lens| Ok(find(lens.state, name)))??),
            None => None,
        };
        let views = ctx.look(&reader, |lens| {
            let mut views = Vec::new();
            for id in lens.refusals(session) {
                views.extend(lens.refusal(id)?);
            }
            Ok(views)
        })?;
        if ctx.out.is_json() {
            views
                .iter()
                .try_for_each(|view| ctx.out.object(&json::refusal(view)))?;
            return Ok(Exit::DONE);
        }
        let now = now();
        for (view, stored) in views.iter().filter_map(|v| Some((v, v.stored.as_ref()?))) {
            if ctx.out.is_quiet() {
                ctx.out.essential(stored.id)?;
                continue;
            }
            let (id, count, last) = (stored.id, stored.count, age(stored.last.time, now));
            ctx.out
                .lines([(crate::output::HEAD, format!("{id}  {}", view.message))])?;
            let current = view.current.as_deref().unwrap_or("nothing");
            ctx.out.say(format_args!(
                "  {count} times, last {last}; {current} was current"
            ))?;
            for body in &stored.bodies {
                ctx.out.body(&String::from_utf8_lossy(body))?;
            }
            ctx.out.lines(human::next(&view.next))?;
        }
        if views.is_empty() {
            ctx.out.styled(DIM, "nothing was refused")?;
        }
        Ok(Exit::DONE)
    }
}
