//! `exec`: runs a command that holds a session. The command's own process is the holder, so that its death is
//! provable; its exit code is returned, and signals are handed on to it.
//!
//! The holder has to be recorded before the command runs, and has to be the command: so this program starts
//! itself, that process waits at a [gate](mod@gate), the grant is made to it, and it becomes the command.

use std::ffi::OsString;

use tenure_projection::call::{Bearer, Label, ProcessChoice, Verb};
use tenure_projection::core::decide::describe;
use tenure_projection::core::id::{Name, Token};
use tenure_projection::core::refusal::Code;
use tenure_projection::core::state::State;
use tenure_projection::store::{Done, Store};

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input::{self, Holding, Keyed};

use super::grant;

mod attend;
mod gate;

pub use attend::{OnLost, Watched, signals};
pub use gate::pass as gate;
pub use gate::{Gate, Home, Passport};

/// Arguments of `exec`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session: registered when absent or retired, adopted when its holder is provably dead
    #[arg(long, value_name = "NAME")]
    session: String,
    /// Begin it as a branch of this session; its name must be free
    #[arg(long, value_name = "SOURCE", conflicts_with = "force")]
    branch: Option<String>,
    /// Adopt it also while its holder lives or may live
    #[arg(long)]
    force: bool,
    /// Why it is forced
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
    /// Retire the session when the command ends
    #[arg(long)]
    retire: bool,
    /// When the session is lost while the command runs: say so, end the command, or do nothing
    #[arg(long, value_name = "WHAT", default_value = "notify", value_enum)]
    on_lost: OnLost,
    #[command(flatten)]
    holding: Holding,
    /// The command, which finds TENURE_STORE, TENURE_SESSION, TENURE_GENERATION and TENURE_TOKEN_FILE set
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<OsString>,
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// A refusal (the session is held), or what failed before the command ran.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let name = input::name(&self.session)?;
        let force = input::force(self.force, self.reason.as_deref())?;
        let source = self.branch.as_deref().map(input::name).transpose()?;
        let labels = self.holding.labels()?;
        let store = ctx.store_or_new()?;
        let mut home = Home::make()?;
        // Before there is anything to hand signals to: one that comes in between must not be lost.
        let signals = signals()?;
        let gate = Gate::start(&self.command)?;
        let bearer = self.holding.bearer(ProcessChoice::Pid(gate.pid()));
        let taken = match source {
            None => take(ctx, &store, &name, force, &|adopt| {
                grant_of(adopt, name.clone(), bearer.clone(), labels.clone())
            }),
            Some(source) => {
                let verb = Verb::Branch {
                    source,
                    name: name.clone(),
                    at: None,
                    bearer,
                    labels,
                    checkout: std::env::current_dir().ok(),
                    in_tree: false,
                };
                ctx.execute(&store, Mutation::new(verb, &Keyed::default()))
            }
        };
        let done = match taken {
            Ok(done) => done,
            Err(stop) => {
                gate.close();
                return Err(stop);
            }
        };
        let token = grant::granted(&done)?.token.clone();
        home.keep(&token)?;
        let passport = Passport {
            store: absolute(ctx)?,
            session: token.name.to_string(),
            generation: token.generation.to_string(),
            token_file: home.token_file(),
        };
        let (child, pipe) = gate.open(&passport)?;
        let whether = token.clone();
        let lost = move |state: &State| superseded(state, &whether);
        let watched = Watched {
            what: token.to_string(),
            on_lost: self.on_lost,
        };
        let code = watched.attend(&store, child, signals, lost)?;
        drop(pipe);
        if self.retire {
            let verb = Verb::Retire {
                name,
                if_idle: false,
                reason: Some("its command ended".to_owned()),
            };
            let mutation = Mutation::new(verb, &Keyed::default()).under(Some(token));
            ctx.execute(&store, mutation)?;
        }
        Ok(Exit::of_command(code))
    }
}

/// The call that grants the session to the command.
fn grant_of(adopt: bool, name: Name, bearer: Bearer, labels: Vec<Label>) -> Verb {
    if adopt {
        return Verb::Adopt {
            name,
            bearer,
            labels,
        };
    }
    Verb::Register {
        name,
        bearer,
        labels,
        checkout: std::env::current_dir().ok(),
    }
}

/// The command may change its directory.
pub fn absolute(ctx: &Context) -> Result<std::path::PathBuf, Stop> {
    let dir = ctx.dir()?;
    std::path::absolute(&dir).map_err(|error| Fault::file("find", &dir, error).into())
}

/// Registers or adopts, whichever the session needs; where it changes in between, the other.
///
/// # Errors
/// As [`Context::execute`].
pub fn take(
    ctx: &Context,
    store: &Store,
    name: &Name,
    force: Option<String>,
    holding: &dyn Fn(bool) -> Verb,
) -> Result<Done, Stop> {
    let active = ctx.look(store, |lens| {
        let number = lens.state.find(name.as_str().as_bytes());
        Ok(number.is_some_and(|n| lens.state.is_active(n)))
    })?;
    let ask = |adopt: bool| {
        let force = force.clone().filter(|_| adopt);
        ctx.execute(
            store,
            Mutation::new(holding(adopt), &Keyed::default()).forced(force),
        )
    };
    match ask(active) {
        Err(Stop::Refused(refusal)) if !active && refusal.code == Ok(Code::AlreadyActive) => {
            ask(true)
        }
        Err(Stop::Refused(refusal)) if active && refusal.code == Ok(Code::Retired) => ask(false),
        other => other,
    }
}

/// What is current instead of a token; `None` while it is current.
pub fn superseded(state: &State, token: &Token) -> Option<String> {
    let number = state.find(token.name.as_str().as_bytes())?;
    state.check(number, token.generation).err()?;
    let current = describe(state, number).unwrap_or_default();
    Some(format!("{current} is current"))
}
