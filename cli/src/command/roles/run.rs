//! `role run`: a command that holds a role while it lives. The command's own process is recorded with the role, so
//! that its death is provable whoever is left to give the role back.

use std::ffi::OsString;

use tenure_projection::call::{ProcessChoice, Verb};
use tenure_projection::core::generation::Generation;
use tenure_projection::core::id::{RoleNo, Token};
use tenure_projection::core::state::State;
use tenure_projection::store::Store;

use crate::command::sessions::exec::{
    Gate, Home, OnLost, Passport, Watched, absolute, signals, superseded,
};
use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed, Under};
use crate::output::escape;

use super::{Which, answered, end};

/// Arguments of `role run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    under: Under,
    /// Wait for it so long, if somebody else holds it (30s, 10m)
    #[arg(long, value_name = "DURATION")]
    wait: Option<String>,
    /// When the role is lost while the command runs: say so, end the command, or do nothing
    #[arg(long, value_name = "WHAT", default_value = "notify", value_enum)]
    on_lost: OnLost,
    /// The command, which finds TENURE_STORE, TENURE_SESSION, TENURE_GENERATION and TENURE_TOKEN_FILE set
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<OsString>,
}

impl Args {
    /// Takes the role, runs the command, gives the role back.
    ///
    /// # Errors
    /// A refusal (the role is held), or what failed before the command ran.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let at = self.which.at()?;
        let token = input::required(self.under.token()?)?;
        let end = end(self.wait.as_deref())?;
        let store = ctx.store()?;
        let mut home = Home::make()?;
        home.keep(&token)?;
        let passport = Passport {
            store: absolute(ctx)?,
            session: token.name.to_string(),
            generation: token.generation.to_string(),
            token_file: home.token_file(),
        };
        let signals = signals()?;
        let gate = Gate::start(&self.command)?;
        let verb = Verb::TakeRole {
            at: at.clone(),
            process: Some(ProcessChoice::Pid(gate.pid())),
        };
        let mutation = Mutation::new(verb, &Keyed::default()).under(Some(token.clone()));
        let taken = ctx
            .execute_within(&store, mutation, end)
            .and_then(|answer| Ok((answered(ctx, &answer)?, answer.repeated)));
        let ((number, view), repeated) = match taken {
            Ok(taken) => taken,
            Err(stop) => {
                gate.close();
                return Err(stop);
            }
        };
        let (child, pipe) = gate.open(&passport)?;
        let watched = Watched {
            what: format!("{}@{}", view.role, view.scope),
            on_lost: self.on_lost,
        };
        let holding = (number, view.role_generation, token.clone());
        let whether = holding.clone();
        let gone = move |state: &State| lost(state, &whether);
        let code = watched.attend(&store, child, signals, gone)?;
        drop(pipe);
        let held = ctx.look(&store, |lens| Ok(lost(lens.state, &holding).is_none()))?;
        // What the session held before, or lost meanwhile, is not this command's to give back.
        if held && !repeated {
            give_back(ctx, &store, Verb::ReleaseRole { at }, token)?;
        }
        Ok(Exit::of_command(code))
    }
}

/// How a role was lost; `None` while it is held.
fn lost(
    state: &State,
    (number, generation, token): &(RoleNo, Generation, Token),
) -> Option<String> {
    if let Some(how) = superseded(state, token) {
        return Some(how);
    }
    let role = state.role(*number)?;
    if role.generation == *generation && role.holding.is_some() {
        return None;
    }
    Some(match &role.holding {
        Some(holding) => format!("{} holds it", state.name(holding.session)),
        None => "nobody holds it".to_owned(),
    })
}

/// Whoever loses the role in this moment has nothing to give back: the command's own code says more than that.
fn give_back(ctx: &Context, store: &Store, verb: Verb, token: Token) -> Result<(), Stop> {
    let mutation = Mutation::new(verb, &Keyed::default()).under(Some(token));
    match ctx.execute(store, mutation) {
        Err(Stop::Refused(refusal)) => {
            eprintln!("tenure: {}", escape::line(&refusal.message));
            Ok(())
        }
        other => other.map(|_| ()),
    }
}
