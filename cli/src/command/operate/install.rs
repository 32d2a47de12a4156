//! `install`: the hook in the settings of an agent host. Whatever else stands there stays as it is. `docs/agents.md` has
//! the tables.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tenure_projection::guards::GitRepository;
use tenure_projection::host::state_directory;

use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::hook::{Host, OnError};
use crate::output::{BAD, DIM, HEAD, Object, PLAIN};

mod diff;
mod handler;
mod json;
mod toml;

pub use handler::Installed;

use handler::Wanted;

/// Arguments of `install`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent host
    #[arg(value_name = "HOST", value_enum)]
    host: Host,
    /// In the settings of this user; the default
    #[arg(long, conflicts_with_all = ["project", "settings"])]
    user: bool,
    /// In the settings of the checkout that you are in
    #[arg(long, conflicts_with = "settings")]
    project: bool,
    /// In this file
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// What follows when the ledger cannot be asked: the tool runs, or it does not
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value = "allow",
        conflicts_with = "uninstall"
    )]
    on_error: OnError,
    /// Take the hook out again
    #[arg(long)]
    uninstall: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    /// Installs or uninstalls, and shows what changed.
    ///
    /// # Errors
    /// When there is no home to look in, or the file cannot be read as its format, or not be written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let file = match (&self.settings, self.project) {
            (Some(file), _) => file.clone(),
            (None, true) => of_project(self.host, &here()?),
            (None, false) => of_user(self.host)?,
        };
        let before = read(&file)?;
        let wanted = match self.uninstall {
            true => Vec::new(),
            false => handler::wanted(
                self.host,
                &command(ctx, self.host, self.on_error)?,
                self.on_error,
            ),
        };
        let after = edit(self.host, &file, before.as_deref(), &wanted)?;
        let changed = before != after;
        if changed && !self.dry_run {
            write(&file, after.as_deref())?;
        }
        let lines = diff::lines(
            before.as_deref().unwrap_or_default(),
            after.as_deref().unwrap_or_default(),
        );
        self.print(ctx, &file, changed, &lines)?;
        Ok(Exit::DONE)
    }

    fn print(
        &self,
        ctx: &mut Context,
        file: &Path,
        changed: bool,
        lines: &[String],
    ) -> Result<(), Stop> {
        let what = match (self.uninstall, self.dry_run) {
            (false, false) => "installed",
            (true, false) => "uninstalled",
            (false, true) => "would be installed",
            (true, true) => "would be uninstalled",
        };
        if ctx.out.is_json() {
            return ctx.out.object(
                &Object::new("install")
                    .with("host", self.host.as_str())
                    .with("what", what)
                    .with("file", file.to_string_lossy())
                    .with("changed", changed)
                    .with("diff", lines.to_vec()),
            );
        }
        let shown = file.display();
        if !changed {
            return ctx.out.say(format_args!("{shown}: nothing to change"));
        }
        ctx.out.styled(HEAD, format_args!("{what}: {shown}"))?;
        for line in lines {
            let style = match line.as_bytes().first() {
                Some(b'-') => BAD,
                Some(b'+') => PLAIN,
                _ => DIM,
            };
            ctx.out.styled(style, line)?;
        }
        if self.host == Host::Codex && !self.uninstall {
            ctx.out.styled(
                DIM,
                "Codex passes over a hook until it is trusted: type /hooks there",
            )?;
        }
        Ok(())
    }
}

fn here() -> Result<PathBuf, Stop> {
    let here = std::env::current_dir().map_err(|e| Fault::file("find", Path::new("."), e))?;
    Ok(GitRepository::at(&here).map_or(here, |repository| repository.top))
}

/// A directory that the environment names, else one in the home directory.
fn home(variable: &str, name: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = set(variable).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(set("HOME")?).join(name)))
}

fn of_user(host: Host) -> Result<PathBuf, Stop> {
    let dir = match host {
        Host::Claude => home("CLAUDE_CONFIG_DIR", ".claude"),
        Host::Codex => home("CODEX_HOME", ".codex"),
        // Gemini's variable names the directory in which `.gemini` is.
        Host::Gemini => home("GEMINI_CLI_HOME", "").map(|home| home.join(".gemini")),
    };
    dir.map(|dir| settings(host, &dir)).ok_or_else(|| {
        let message = "HOME does not say where the settings of this user are";
        Fault::new(Cause::Configuration, message)
            .then("tenure install HOST --settings FILE", "names the file")
            .into()
    })
}

fn of_project(host: Host, top: &Path) -> PathBuf {
    settings(host, &top.join(format!(".{}", host.as_str())))
}

/// The file in a host's directory.
fn settings(host: Host, dir: &Path) -> PathBuf {
    if host != Host::Codex {
        return dir.join("settings.json");
    }
    let (hooks, config) = (dir.join("hooks.json"), dir.join("config.toml"));
    let in_config = || fs::read_to_string(&config).is_ok_and(|text| toml::has_hooks(&text));
    if !hooks.exists() && in_config() {
        return config;
    }
    hooks
}

/// The command that the host runs.
fn command(ctx: &Context, host: Host, on_error: OnError) -> Result<String, Stop> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("this program cannot find itself: {error}");
        Fault::new(Cause::Io, message)
    })?;
    let dir = ctx.dir()?;
    let usual = state_directory().map(|state| state.join("tenure"));
    let store = match Some(&dir) == usual.as_ref() {
        true => None,
        false => Some(std::path::absolute(&dir).map_err(|e| Fault::file("find", &dir, e))?),
    };
    Ok(handler::command(&program, store.as_deref(), host, on_error))
}

fn read(file: &Path) -> Result<Option<String>, Stop> {
    match fs::read(file) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|error| {
            let message = format!(
                "{} is not UTF-8 ({error}); it was not touched",
                file.display()
            );
            Fault::new(Cause::Configuration, message).into()
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::file("read", file, error).into()),
    }
}

/// The text with the handlers that are wanted, and no others of ours; `None` where nothing is left.
fn edit(
    host: Host,
    file: &Path,
    before: Option<&str>,
    wanted: &[Wanted],
) -> Result<Option<String>, Stop> {
    let is_toml = file
        .extension()
        .is_some_and(|extension| extension == "toml");
    let text = before.filter(|text| !text.trim().is_empty());
    let edited = match (text, wanted.is_empty(), is_toml) {
        (None, true, _) => return Ok(before.map(ToOwned::to_owned)),
        (text, _, true) => toml::edit(text.unwrap_or_default(), wanted),
        (text, _, false) => json::edit(text.unwrap_or("{}"), host == Host::Gemini, wanted),
    };
    let edited = edited.map_err(|why| {
        let message = format!("{}: {why}; it was not touched", file.display());
        Stop::from(Fault::new(Cause::Configuration, message))
    })?;
    let whole = match before {
        // A file of ours ends as lines do.
        None if !edited.ends_with('\n') => format!("{edited}\n"),
        _ => edited,
    };
    let empty =
        matches!(whole.trim(), "" | "{}") && before.is_some_and(|b| b.trim() != whole.trim());
    Ok(Some(whole).filter(|_| !empty))
}

/// Puts the text in the place of the file, as a whole; through a link, in the place of what it leads to.
fn write(file: &Path, text: Option<&str>) -> Result<(), Stop> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let failed = |op: &'static str| {
        let file = file.clone();
        move |error| Stop::from(Fault::file(op, &file, error))
    };
    let Some(text) = text else {
        return fs::remove_file(&file).map_err(failed("remove"));
    };
    let parent = file
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed("create"))?;
    let mut new = tempfile::NamedTempFile::new_in(parent).map_err(failed("create"))?;
    if let Ok(old) = fs::metadata(&file) {
        new.as_file()
            .set_permissions(old.permissions())
            .map_err(failed("replace"))?;
    }
    let written = new
        .write_all(text.as_bytes())
        .and_then(|()| new.as_file().sync_all());
    written.map_err(failed("replace"))?;
    new.persist(&file)
        .map(drop)
        .map_err(|error| failed("replace")(error.error))
}

/// What the settings of a host say of our hook before a tool, as far as they can be read: those of the user, and of a
/// checkout.
#[must_use]
pub fn installed(host: Host, checkout: Option<&Path>) -> Option<Installed> {
    let files = checkout
        .map(|top| of_project(host, top))
        .into_iter()
        .chain(of_user(host).ok());
    files.into_iter().find_map(|file| {
        let text = read(&file).ok()??;
        let commands = match file
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            true => toml::commands(&text, host.before()),
            false => json::commands(&text, host.before()),
        };
        commands
            .iter()
            .find_map(|command| handler::parse(command, &file))
    })
}
