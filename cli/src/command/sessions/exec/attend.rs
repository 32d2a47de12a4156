//! Looking after a command: signals are handed on, a loss is told, its end is waited for.

use std::io::{IsTerminal, Write};
use std::process::Child;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use clap::ValueEnum;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use tenure_projection::core::state::State;
use tenure_projection::host::Pinned;
use tenure_projection::log::journal::Deadline;
use tenure_projection::store::Store;

use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::output::escape;

use super::gate;

/// How long to sleep at most where nothing tells that the log went on.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What to do when what the command holds is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OnLost {
    /// Ring the bell of a terminal and set its title; say so when the command has ended.
    Notify,
    /// The same, and send SIGTERM.
    Term,
    /// Nothing.
    Nothing,
}

/// A command that is looked after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// What it holds, for people.
    pub what: String,
    /// What to do when that is lost.
    pub on_lost: OnLost,
}

/// What wakes the thread that looks after the command.
enum Woken {
    Signal(i32),
    Lost(String),
}

/// Begins to catch signals: before there is anything to hand them to, so that one that comes in between is not lost.
///
/// # Errors
/// When the system does not let us.
pub fn signals() -> Result<Signals, Stop> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD]).map_err(|error| {
        Fault::new(Cause::Io, format!("signals cannot be watched: {error}")).into()
    })
}

impl Watched {
    /// Hands on signals, tells of a loss, and waits for the end. One thread does all three, so that no signal goes
    /// to a process that was waited for already and whose number may be another's (LIV-18).
    ///
    /// # Errors
    /// When the command cannot be waited for.
    pub fn attend(
        &self,
        store: &Store,
        mut child: Child,
        mut signals: Signals,
        lost: impl Fn(&State) -> Option<String> + Clone + Send + 'static,
    ) -> Result<u8, Stop> {
        // Where the system has no such descriptors, the number does: it is this child's own until it is waited for,
        // which only this thread does.
        let pinned = Pinned::of(&child).ok();
        let (wake, woken) = mpsc::channel();
        if self.on_lost != OnLost::Nothing {
            watch(store.clone(), lost.clone(), wake.clone());
        }
        let handle = signals.handle();
        let catching = std::thread::spawn(move || {
            for signal in &mut signals {
                if wake.send(Woken::Signal(signal)).is_err() {
                    break;
                }
            }
        });
        let mut told = None;
        let ended = loop {
            // The command may have ended before its first signal was watched.
            if let Some(status) = child.try_wait().map_err(|error| lost_command(&error))? {
                break status;
            }
            match woken.recv() {
                Ok(Woken::Signal(SIGCHLD)) | Err(_) => {}
                Ok(Woken::Signal(signal)) => hand_on(&child, pinned.as_ref(), signal),
                Ok(Woken::Lost(how)) => {
                    self.ring();
                    told = Some(how);
                    if self.on_lost == OnLost::Term {
                        send(&child, pinned.as_ref(), SIGTERM);
                    }
                }
            }
        };
        handle.close();
        let _ = catching.join();
        if self.on_lost != OnLost::Nothing && told.is_none() {
            // It may have ended before anybody looked; a store that cannot be read tells of no loss.
            told = store.view(|state| lost(state)).ok().flatten();
        }
        if let Some(how) = told {
            let what = escape::line(&self.what);
            eprintln!("tenure: {what} is lost: {}", escape::line(&how));
        }
        Ok(gate::exit_code(ended))
    }

    /// Tells of a loss while the command has the screen: a line of ours would tear its picture, a bell and a title do
    /// not.
    fn ring(&self) {
        let mut err = std::io::stderr();
        if err.is_terminal() {
            let what = escape::line(&self.what);
            // Who does not hear it reads it when the command has ended.
            let _ = write!(err, "\x07\x1b]2;tenure: {what} is lost\x07").and_then(|()| err.flush());
        }
    }
}

fn lost_command(error: &std::io::Error) -> Stop {
    Fault::new(
        Cause::Io,
        format!("the command cannot be waited for: {error}"),
    )
    .into()
}

/// Tells when something is lost. Ends with the process.
fn watch(
    store: Store,
    lost: impl Fn(&State) -> Option<String> + Send + 'static,
    wake: Sender<Woken>,
) {
    std::thread::spawn(move || {
        loop {
            let Ok((how, position)) = store.view(|state| (lost(state), state.at.position)) else {
                return;
            };
            if let Some(how) = how {
                // Nobody listens any more when the command has ended.
                let _ = wake.send(Woken::Lost(how));
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
fn hand_on(child: &Child, pinned: Option<&Pinned>, signal: i32) {
    let typed = matches!(signal, SIGINT | SIGQUIT) && in_foreground();
    if !typed {
        send(child, pinned, signal);
    }
}

fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin())
        .is_ok_and(|group| group == rustix::process::getpgrp())
}

fn send(child: &Child, pinned: Option<&Pinned>, signal: i32) {
    if let Some(pinned) = pinned {
        // It has ended in this moment: nobody is left to be told.
        let _ = pinned.signal(signal);
        return;
    }
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let named = rustix::process::Signal::from_named_raw(signal);
    if let (Some(pid), Some(signal)) = (pid, named) {
        // It has ended in this moment: nobody is left to be told.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
