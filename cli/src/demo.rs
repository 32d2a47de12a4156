//! `demo`: the story this program exists for, played by real processes in a real checkout, and checked step by
//! step.
//!
//! Two agents work in one checkout and both are told. One is stopped in mid-task and taken over; its work and
//! mail follow. It wakes and reports: refused, and its report kept. The new holder reports. The session retires
//! and is registered again: old mail is cancelled, the unread reply is reviewed. Then the log alone answers who
//! held authority at each moment, and replays to the same state.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

pub mod actor;
mod stage;
mod story;

use stage::Stage;

/// Why the demo ended early.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A step of the story did not hold.
    #[error("this did not hold: {0}")]
    Step(String),
    /// What the demo needs could not be had.
    #[error("{what}: {source}")]
    Setting {
        /// What was tried.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] tenure_projection::error::Error),
    /// The narration could not be printed.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

impl Broken {
    fn setting(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Setting { what, source }
    }
}

/// The narration: numbered acts, and a line for each step that held.
pub struct Teller<'o> {
    out: &'o mut dyn Write,
    acts: u32,
    held: u32,
}

impl Teller<'_> {
    /// A new act.
    fn act(&mut self, title: &str) -> Result<(), Broken> {
        self.acts += 1;
        Ok(writeln!(self.out, "\n{}. {title}", self.acts)?)
    }

    /// Something that somebody did, and what came of it.
    fn line(&mut self, who: &str, text: impl Display) -> Result<(), Broken> {
        Ok(writeln!(self.out, "   {who:<7} {text}")?)
    }

    /// A step that must hold.
    fn check(&mut self, holds: bool, text: impl Display) -> Result<(), Broken> {
        if !holds {
            return Err(Broken::Step(text.to_string()));
        }
        self.held += 1;
        Ok(writeln!(self.out, "           ok: {text}")?)
    }
}

/// Plays the story in a temporary directory, or in `keep`, and says how many steps held.
///
/// # Errors
/// [`Broken`] at the first step that does not hold.
pub fn play(out: &mut dyn Write, keep: Option<&Path>) -> Result<u32, Broken> {
    let mut stage = Stage::set(keep)?;
    let mut teller = Teller {
        out,
        acts: 0,
        held: 0,
    };
    story::tell(&mut stage, &mut teller)?;
    let held = teller.held;
    writeln!(out, "\nEvery step held ({held} checks).")?;
    if let Some(kept) = keep {
        writeln!(out, "Store and checkout are kept in {}.", kept.display())?;
    }
    Ok(held)
}
