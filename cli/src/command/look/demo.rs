//! `demo`: plays the story that this program exists for, with real processes, and checks every step.

use std::path::PathBuf;

use crate::context::Context;
use crate::demo::{Broken, play};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::{BAD, Object};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keep the store and the checkout in this directory, which must not have a store yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Args {
    /// Plays it.
    ///
    /// # Errors
    /// What kept the demo from being played. A step that did not hold is a negative answer.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let mut story = Vec::new();
        let json = ctx.out.is_json();
        let played = if json {
            play(&mut story, self.keep.as_deref())
        } else {
            play(&mut std::io::stdout().lock(), self.keep.as_deref())
        };
        let (held, broken) = match played {
            Ok(held) => (Some(held), None),
            Err(Broken::Step(step)) => (None, Some(step)),
            Err(other) => return Err(Fault::new(Cause::Io, other.to_string()).into()),
        };
        let exit = if broken.is_none() {
            Exit::DONE
        } else {
            Exit::NEGATIVE
        };
        if json {
            let story = String::from_utf8_lossy(&story).into_owned();
            let object = Object::new("demo")
                .with("held", held)
                .with("broken", broken)
                .with("story", story);
            ctx.out.object(&object)?;
        } else if let Some(step) = broken {
            ctx.out.gap()?;
            ctx.out
                .styled(BAD, format_args!("This did not hold: {step}"))?;
        }
        Ok(exit)
    }
}
