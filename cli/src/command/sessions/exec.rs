//! `exec`: runs a command that holds a session. The command's own process is the holder, so that its death is
//! provable; its exit code is returned, and signals are handed on to it.
//!
//! The holder has to be recorded before the command runs, and has to be the command: so this program starts
//! itself, that process waits at a [gate](mod@gate), the grant is made to it, and it becomes the command.

use std::ffi::OsString;
use std::process::Child;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use clap::ValueEnum;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tenure_projection::call::{ProcessChoice, Verb};
use tenure_projection::core::id::{Name, Token};
use tenure_projection::core::refusal::Code;
use tenure_projection::log::journal::Deadline;
use tenure_projection::store::{Done, Store};

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Holding, Keyed};
use crate::output::escape;

use super::grant;

mod gate;

pub use gate::pass as gate;
use gate::{Gate, Passport};

/// How long to sleep at most where nothing tells that the log went on.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Arguments of `exec`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session: registered when absent or retired, adopted when its holder is provably dead
    #[arg(long, value_name = "NAME")]
    session: String,
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

/// What to do when the session is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum OnLost {
    /// Say so on standard error.
    Notify,
    /// Say so, and send SIGTERM.
    Term,
    /// Nothing.
    Nothing,
}

/// What wakes the thread that looks after the command.
enum Woken {
    Signal(i32),
    Lost(String),
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// A refusal (the session is held), or what failed before the command ran.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let name = input::name(&self.session)?;
        let force = input::force(self.force, self.reason.as_deref())?;
        let labels = self.holding.labels()?;
        let store = ctx.store_or_new()?;
        let mut home = gate::Home::make()?;
        // Before there is anything to hand signals to: one that comes in between must not be lost.
        let signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD])
            .map_err(|error| {
            Fault::new(Cause::Io, format!("signals cannot be watched: {error}"))
        })?;
        let gate = Gate::start(&self.command)?;
        let holding = |adopt: bool| {
            let bearer = self.holding.bearer(ProcessChoice::Pid(gate.pid()));
            let (name, labels) = (name.clone(), labels.clone());
            match adopt {
                true => Verb::Adopt {
                    name,
                    bearer,
                    labels,
                },
                false => Verb::Register {
                    name,
                    bearer,
                    labels,
                    checkout: std::env::current_dir().ok(),
                },
            }
        };
        let done = match take(ctx, &store, &name, force, &holding) {
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
        let code = self.attend(&store, &token, child, signals)?;
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

    /// Hands on signals, tells of a loss, and waits for the end. One thread does all three, so that no signal goes
    /// to a process that was waited for already and whose number may be another's (LIV-18).
    fn attend(
        &self,
        store: &Store,
        token: &Token,
        mut child: Child,
        mut signals: Signals,
    ) -> Result<u8, Stop> {
        let (wake, woken) = mpsc::channel();
        if self.on_lost != OnLost::Nothing {
            watch(store.clone(), token.clone(), wake.clone());
        }
        let handle = signals.handle();
        let catching = std::thread::spawn(move || {
            for signal in &mut signals {
                if wake.send(Woken::Signal(signal)).is_err() {
                    break;
                }
            }
        });
        let ended = loop {
            // The command may have ended before its first signal was watched.
            if let Some(status) = child.try_wait().map_err(|error| lost_command(&error))? {
                break status;
            }
            match woken.recv() {
                Ok(Woken::Signal(SIGCHLD)) | Err(_) => {}
                Ok(Woken::Signal(signal)) => hand_on(&child, signal),
                Ok(Woken::Lost(how)) => {
                    eprintln!("tenure: {} is lost: {}", token, escape::line(&how));
                    if self.on_lost == OnLost::Term {
                        send(&child, SIGTERM);
                    }
                }
            }
        };
        handle.close();
        let _ = catching.join();
        Ok(gate::exit_code(ended))
    }
}

/// The command may change its directory.
fn absolute(ctx: &Context) -> Result<std::path::PathBuf, Stop> {
    let dir = ctx.dir()?;
    std::path::absolute(&dir).map_err(|error| Fault::file("find", &dir, error).into())
}

fn lost_command(error: &std::io::Error) -> Stop {
    Fault::new(
        Cause::Io,
        format!("the command cannot be waited for: {error}"),
    )
    .into()
}

/// Registers or adopts, whichever the session needs; where it changes in between, the other.
fn take(
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

/// Tells when the token is no longer current. Ends with the process.
fn watch(store: Store, token: Token, wake: Sender<Woken>) {
    std::thread::spawn(move || {
        loop {
            let seen = store.view(|state| {
                let number = state.find(token.name.as_str().as_bytes());
                let lapse = number.map(|n| state.check(n, token.generation).is_err());
                let current =
                    number.and_then(|n| tenure_projection::core::decide::describe(state, n));
                (
                    lapse.unwrap_or(true),
                    current.unwrap_or_default(),
                    state.at.position,
                )
            });
            let Ok((lost, current, position)) = seen else {
                return;
            };
            if lost {
                // Nobody listens any more when the command has ended.
                let _ = wake.send(Woken::Lost(format!("{current} is current")));
                return;
            }
            if store
                .wait_beyond(position, Deadline::after(LOOK_AGAIN))
                .is_err()
            {
                return;
            }
        }
    });
}

/// The kernel sends what is typed at a terminal to the whole foreground group, the command included; it is not sent
/// a second time.
fn hand_on(child: &Child, signal: i32) {
    let typed = matches!(signal, SIGINT | SIGQUIT) && in_foreground();
    if !typed {
        send(child, signal);
    }
}

fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin())
        .is_ok_and(|group| group == rustix::process::getpgrp())
}

fn send(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let named = rustix::process::Signal::from_named_raw(signal);
    if let (Some(pid), Some(signal)) = (pid, named) {
        // It has ended in this moment: nobody is left to be told.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
