//! `impact`: what a generation brought about.

use tenure_projection::impact::impact;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{DIM, Object, human, json};

use super::super::find;

/// Arguments of `impact`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session and the generation
    #[arg(value_name = "NAME@G")]
    token: String,
}

impl Args {
    /// Lists everything that was done under the token, and what that led to: work that was given and what became of
    /// it, messages and their answers, branches of what was recorded, grants to whoever presented it.
    ///
    /// # Errors
    /// When there is no such session, or the log cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let (name, generation) = input::address(&self.token)?;
        let generation = generation.ok_or_else(|| {
            Fault::usage(format!(
                "{:?} names no generation, as api@3 does",
                self.token
            ))
        })?;
        let reader = ctx.reading()?;
        let session = ctx.look(&reader, |lens| Ok(find(lens.state, name.as_str())))??;
        let effects = impact(&reader, session, generation).map_err(|error| ctx.fault(&error))?;
        for effect in &effects {
            if ctx.out.is_json() {
                let object = Object::new("impact")
                    .with("because", effect.because.as_str())
                    .with("event", json::event(&effect.event));
                ctx.out.object(&object)?;
            } else {
                ctx.out.say(human::event(&effect.event))?;
                ctx.out
                    .styled(DIM, format_args!("        {}", effect.because))?;
            }
        }
        if effects.is_empty() && !ctx.out.is_json() {
            ctx.out.styled(DIM, "nothing was done under it")?;
        }
        Ok(Exit::DONE)
    }
}
