//! `guard install`, `guard uninstall`.

use std::path::PathBuf;

use tenure_projection::guards::GitRepository;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::output::{DIM, Object};

use super::Policy;
use super::ask::repository;
use super::block::Settings;
use super::hooks::Place;

/// Paths of others that a commit may delete before somebody has to confirm it.
pub const DELETIONS_MAX: u32 = 20;

/// Arguments of `guard install`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A checkout of the repository [default: where you are]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// What follows when a commit takes paths of others along, and when the store cannot be asked
    #[arg(long, value_name = "P", value_enum, default_value = "disclose")]
    policy: Policy,
    /// How many paths of others a commit may delete
    #[arg(long, value_name = "N", default_value_t = DELETIONS_MAX)]
    deletions_max: u32,
}

/// Arguments of `guard uninstall`.
#[derive(Debug, clap::Args)]
pub struct Without {
    /// A checkout of the repository [default: where you are]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

impl Args {
    /// Installs, and says where.
    ///
    /// # Errors
    /// When there is no repository, or a file cannot be written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let repository = repository(self.path.as_deref())?;
        let dir = ctx.dir()?;
        let store = std::path::absolute(&dir).map_err(|e| Fault::file("find", &dir, e))?;
        let program = std::env::current_exe().map_err(|error| {
            Fault::new(
                Cause::Io,
                format!("this program cannot find itself: {error}"),
            )
        })?;
        let settings = Settings {
            program,
            store,
            policy: self.policy,
            deletions_max: self.deletions_max,
        };
        let files = place(&repository)?.install(&settings)?;
        answer(ctx, "installed", &files)?;
        if !ctx.out.is_json() {
            ctx.out.styled(
                DIM,
                "it warns, and refuses what the policy says; git's own locks are what excludes",
            )?;
            ctx.out.styled(DIM, "tenure guard test  proves it")?;
        }
        Ok(Exit::DONE)
    }
}

impl Without {
    /// Uninstalls, and says what was changed.
    ///
    /// # Errors
    /// When there is no repository, or a file cannot be written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let repository = repository(self.path.as_deref())?;
        let files = place(&repository)?.uninstall()?;
        answer(ctx, "uninstalled", &files)?;
        if files.is_empty() && !ctx.out.is_json() {
            ctx.out.say("nothing of ours was there")?;
        }
        Ok(Exit::DONE)
    }
}

fn place(repository: &GitRepository) -> Result<Place, Stop> {
    Place::of(repository, &repository.top, &repository.git)
}

fn answer(ctx: &mut Context, what: &str, files: &[PathBuf]) -> Result<(), Stop> {
    let paths: Vec<String> = files
        .iter()
        .map(|p| p.to_string_lossy().into_owned())
        .collect();
    if ctx.out.is_json() {
        let files: serde_json::Value = paths.into();
        let object = Object::new("guard-files")
            .with("what", what)
            .with("files", files);
        return ctx.out.object(&object);
    }
    paths
        .iter()
        .try_for_each(|path| ctx.out.say(format_args!("{what}: {path}")))
}
