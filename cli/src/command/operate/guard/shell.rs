//! `guard shell`: which git commands in a shell line change something, where, and who else is at work there.

use std::path::PathBuf;

use serde_json::Value;
use tenure_projection::core::id::SessionNo;
use tenure_projection::core::path::Level;
use tenure_projection::guards::{Change, GitCommand, GitRepository, changing};
use tenure_projection::reader::Reader;
use tenure_projection::views::SharedView;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::Under;
use crate::output::{DIM, HEAD, Object, human, json};

/// Arguments of `guard shell`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The line, as a shell would get it
    #[arg(value_name = "LINE")]
    line: String,
    #[command(flatten)]
    under: Under,
}

impl Args {
    /// Reads the line and says whom it meets.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let cwd = std::env::current_dir()
            .map_err(|error| Fault::new(Cause::Io, format!("no working directory: {error}")))?;
        let commands = changing(&self.line, &cwd);
        let reader = ctx.reading()?;
        let token = self.under.token()?;
        let asker = match &token {
            None => None,
            Some(token) => ctx.look(&reader, |lens| {
                Ok(lens.state.find(token.name.as_str().as_bytes()))
            })?,
        };
        let mut met = false;
        for command in &commands {
            let (others, said) = others(ctx, &reader, asker, command)?;
            met |= !others.is_empty();
            let name = command
                .verb
                .as_deref()
                .map_or("a command that cannot be read".to_owned(), |v| {
                    format!("git {v}")
                });
            let at = command
                .directory
                .as_ref()
                .map(|d| d.to_string_lossy().into_owned());
            if ctx.out.is_json() {
                let others: Vec<Value> = others.iter().map(|o| json::shared(o).into()).collect();
                let paths: Value = command.paths.clone().into();
                let object = Object::new("guard-shell")
                    .with("verb", command.verb.as_deref())
                    .with("changes", command.change.as_str())
                    .with("directory", at)
                    .with("paths", paths)
                    .with("sweeping", command.sweeping)
                    .with("others", others)
                    .with("instruction", said);
                ctx.out.object(&object)?;
                continue;
            }
            let sweeping = if command.sweeping {
                ", whatever is there"
            } else {
                ""
            };
            let place = at.unwrap_or_else(|| "a directory that cannot be read".to_owned());
            ctx.out.styled(
                HEAD,
                format_args!(
                    "{name} changes {}{sweeping} in {place}",
                    command.change.as_str()
                ),
            )?;
            ctx.out.lines(human::shared(&others, said))?;
        }
        if commands.is_empty() && !ctx.out.is_json() {
            ctx.out.styled(DIM, "nothing that changes a repository")?;
        }
        Ok(if met { Exit::NEGATIVE } else { Exit::DONE })
    }
}

/// Who else is at work where a command changes something. What only the repository shares is asked of every worktree;
/// of a command that cannot be read, everything is.
fn others(
    ctx: &Context,
    reader: &Reader,
    asker: Option<SessionNo>,
    command: &GitCommand,
) -> Result<(Vec<SharedView>, Option<&'static str>), Stop> {
    let Some(repository) = command
        .directory
        .as_ref()
        .and_then(|d| GitRepository::at(d).ok())
    else {
        return Ok((Vec::new(), None));
    };
    let at = command.directory.as_deref().unwrap_or(&repository.top);
    let whole = command.paths.is_empty() || command.change == Change::Refs;
    let paths: Vec<PathBuf> = match whole {
        true => vec![repository.top.clone()],
        false => command.paths.iter().map(|path| at.join(path)).collect(),
    };
    let (list, _) = reader
        .shared_at(asker, &paths)
        .map_err(|error| ctx.fault(&error))?;
    let all = matches!(command.change, Change::Refs | Change::Unknown)
        || command.verb.as_deref() == Some("stash");
    let list: Vec<_> = list
        .into_iter()
        .filter(|s| all || s.level == Level::Tree)
        .collect();
    let said = tenure_projection::core::disclosure::instruction(&list);
    let views = ctx.look(reader, |lens| {
        Ok(list.iter().map(|s| lens.shared(s)).collect())
    })?;
    Ok((views, said))
}
