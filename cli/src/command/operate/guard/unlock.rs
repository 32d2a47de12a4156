//! `guard unlock`: removes a lock file that git left.

use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::Verb;
use tenure_projection::guards::{Kept, LockVerdict, unlock};

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed};

use super::super::super::done;
use super::ask::{of_guard, repository};

/// Arguments of `guard unlock`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The lock file
    #[arg(value_name = "LOCK")]
    lock: PathBuf,
    /// A checkout of its repository [default: where you are]
    #[arg(long, value_name = "PATH")]
    repository: Option<PathBuf>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: OsString,
}

impl Args {
    /// Removes it, and records that.
    ///
    /// # Errors
    /// When it is held or that cannot be said, or is no lock of this repository.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let reason = input::line("the reason", &self.reason)?;
        if reason.trim().is_empty() {
            return Err(Fault::usage("--reason is empty: it is kept in the log").into());
        }
        let repository = repository(self.repository.as_deref())?;
        // What cannot be recorded is not done.
        let store = ctx.store_or_new()?;
        let host = ctx.host();
        let answer = unlock(&*host, &repository, &self.lock).map_err(|error| of_guard(&error))?;
        let removed = match answer {
            Ok(removed) => removed.0,
            Err(kept) => return Err(why_kept(&kept, &self.lock)),
        };
        let path = removed.path.to_string_lossy().into_owned();
        let verb = Verb::RemoveLock {
            path: removed.path,
            uid: removed.uid,
            bytes: removed.bytes,
            modified: removed.modified,
            reason,
        };
        let recorded = ctx.execute(&store, Mutation::new(verb, &Keyed::default()))?;
        done(
            ctx,
            &recorded,
            &format!("removed: {path}"),
            &[("path", path.clone())],
        )
    }
}

fn why_kept(kept: &Kept, asked: &std::path::Path) -> Stop {
    let path = asked.display();
    let (cause, message) = match kept {
        Kept::NoLock => (
            Cause::Usage,
            format!("{path} is no lock file of this repository, or gone"),
        ),
        Kept::Judged(lock) => (
            Cause::Busy,
            match &lock.verdict {
                LockVerdict::Held(by) => {
                    let pids: Vec<String> = by
                        .iter()
                        .map(|o| format!("pid {} ({})", o.pid, o.name))
                        .collect();
                    format!("{path} is held: {}", pids.join(", "))
                }
                LockVerdict::Unsure(doubt) => format!("{path} may be held: {doubt}"),
                LockVerdict::Left => format!("{path} was left"),
            },
        ),
        Kept::Changed => (
            Cause::Busy,
            format!("{path} was made anew while it was judged"),
        ),
        Kept::Busy => (Cause::Busy, "somebody else removes a lock here".to_owned()),
    };
    Fault::new(cause, message)
        .then("tenure guard status", "shows every lock and who has it")
        .into()
}
