//! `acp`: stands between a client of the Agent Client Protocol and its agent, so that every session of the protocol is one
//! of the ledger. `docs/acp.md` has the tables.

use std::ffi::OsString;
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_projection::store::Store;

use crate::command::sessions::exec::{OnLost, Watched, absolute, signals};
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::hook::{OnError, PROXY};

mod desk;
mod message;
mod relay;

use desk::Desk;
use relay::{Relay, write};

/// How long what an agent has said before it ended is waited for: a child of it may hold its end open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Arguments of `acp`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which agent it is: claude, codex, gemini, ...
    #[arg(long, value_name = "E")]
    engine: Option<String>,
    /// What follows when the ledger cannot be asked: the message goes on, or it does not
    #[arg(long, value_name = "WHAT", value_enum, default_value = "allow")]
    on_error: OnError,
    /// The agent, which speaks the protocol on its standard input and output
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<OsString>,
}

impl Args {
    /// Runs the agent until it ends.
    ///
    /// # Errors
    /// When the store cannot be opened, or the agent not be started.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let ctx = &*ctx;
        let store = ctx.lasting_store(ctx.host())?;
        // Before there is anything to hand signals to: one that comes in between must not be lost.
        let signals = signals()?;
        let mut agent = start(&self.command, &absolute(ctx)?)?;
        let pipes = (agent.stdin.take(), agent.stdout.take());
        let (Some(into), Some(from)) = pipes else {
            return Err(Fault::new(Cause::Fault, "the agent was started without pipes").into());
        };
        let desk = Desk::new(ctx, &store, agent.id(), self.engine)?;
        let relay = Relay::new(&desk, self.on_error);
        let into = Mutex::new(Some(into));
        let (answers, answered) = mpsc::channel::<String>();
        let (ended, all_said) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let client = std::io::stdin().lock();
                let out = |text: &str| write(&mut std::io::stdout().lock(), text.as_bytes());
                relay.hear_client(client, |line| tell(&into, line), out);
                // Whoever says nothing more is told so.
                into.lock().take();
            });
            scope.spawn(|| {
                let client = |line: &[u8]| write(&mut std::io::stdout().lock(), line);
                relay.hear_agent(BufReader::new(from), client, &answers);
                let _ = ended.send(());
            });
            // What an agent is answered must not stop what it says from being read.
            scope.spawn(|| {
                for answer in answered {
                    if tell(&into, answer.as_bytes()).is_err() {
                        break;
                    }
                }
            });
            let code = attend(&store, agent, signals);
            // What it said is said before this process ends.
            let _ = all_said.recv_timeout(LAST_WORDS);
            let code = code.and_then(|code| desk.part_all().map(|()| code));
            match code {
                // The client may be silent for ever, and nobody waits for what it says.
                Ok(code) => std::process::exit(code.into()),
                Err(stop) => {
                    let mut out = crate::output::Output::new(false, false);
                    out.stopped(&stop);
                    std::process::exit(stop.exit().number().into())
                }
            }
        })
    }
}

/// Starts the agent. The session that this process may be run under is not the agent's: each of its own has a grant.
fn start(command: &[OsString], store: &Path) -> Result<Child, Stop> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Fault::usage("no agent is named").into());
    };
    let started = Command::new(program)
        .args(arguments)
        .env("TENURE_STORE", store)
        .env(PROXY, std::process::id().to_string())
        .env_remove("TENURE_SESSION")
        .env_remove("TENURE_GENERATION")
        .env_remove("TENURE_TOKEN")
        .env_remove("TENURE_TOKEN_FILE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    started.map_err(|error| Fault::file("start", Path::new(program), error).into())
}

fn attend(
    store: &Store,
    agent: Child,
    signals: signal_hook::iterator::Signals,
) -> Result<u8, Stop> {
    // A loss is told by the next message, to whoever sent it.
    let watched = Watched {
        what: String::new(),
        on_lost: OnLost::Nothing,
    };
    watched.attend(store, agent, signals, |_| None)
}

/// Writes to the agent, unless its end was closed.
fn tell(into: &Mutex<Option<ChildStdin>>, line: &[u8]) -> std::io::Result<()> {
    match &mut *into.lock() {
        Some(into) => write(into, line),
        None => Ok(()),
    }
}
