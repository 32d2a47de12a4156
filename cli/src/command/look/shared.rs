//! `shared`: who else works where you do.

use std::path::PathBuf;

use tenure_projection::core::refusal::Code;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input::Under;
use crate::output::{DIM, human, json};
use crate::served;

use super::super::unknown;

/// Arguments of `shared`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    under: Under,
    /// At this path, instead of where the token's session works
    #[arg(long, value_name = "PATH", conflicts_with = "token")]
    path: Option<PathBuf>,
}

impl Args {
    /// Lists who else is at work there.
    ///
    /// # Errors
    /// When the path cannot be located, there is no such session, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let reader = ctx.reading()?;
        let (views, instruction) = match self.path {
            Some(path) => {
                let list = reader
                    .shared_at(None, &[served::place(&path)])
                    .map_err(|error| ctx.fault(&error))?;
                let views = ctx.look(&reader, |lens| {
                    Ok(list.0.iter().map(|s| lens.shared(s)).collect())
                })?;
                (views, list.1)
            }
            None => {
                let Some(token) = self.under.token()? else {
                    return Err(
                        Fault::usage("name a token with --as, or a path with --path").into(),
                    );
                };
                let name = token.name.as_str();
                let found = ctx.look(&reader, |lens| {
                    Ok(lens
                        .state
                        .find(name.as_bytes())
                        .map(|number| lens.shared_with(number)))
                })?;
                let Some(found) = found else {
                    return Err(unknown(
                        Code::UnknownSession,
                        name,
                        format!("no session is called {name}"),
                    ));
                };
                found
            }
        };
        if ctx.out.is_json() {
            for view in &views {
                ctx.out
                    .object(&json::shared(view).with("instruction", instruction))?;
            }
            return Ok(Exit::DONE);
        }
        ctx.out.lines(human::shared(&views, instruction))?;
        if views.is_empty() {
            ctx.out.styled(DIM, "nobody else")?;
        }
        Ok(Exit::DONE)
    }
}
