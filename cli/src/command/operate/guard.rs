//! `guard`: hooks in a git repository that ask the ledger before a commit and before refs move. `docs/guards.md` has
//! the tables.

use clap::{Subcommand, ValueEnum};
use tenure_projection::core::disclosure::Rule;

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;

mod ask;
mod block;
mod git;
mod hook;
mod hooks;
mod install;
mod removable;
mod shell;
pub mod status;
mod trial;
mod unlock;

pub use git::changed;
pub use status::is_guarded;

/// Arguments of `guard`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Put the hooks into a repository; hooks that are there keep working
    Install(install::Args),
    /// Take them out again
    Uninstall(install::Without),
    /// What is really enforced, for every worktree and hook; locks that git left
    Status(status::Args),
    /// Prove it with real git commands in a scratch repository
    Test(trial::Args),
    /// Remove a lock that git left, if nobody holds it and there is no doubt
    Unlock(unlock::Args),
    /// Which git commands in a shell line change something, and who else is at work there
    Shell(shell::Args),
    /// Whether a directory may be removed: who is at work there, what is not committed, which locks are held
    MayRemove(removable::Args),
    /// What the hooks call
    #[command(hide = true)]
    Hook(hook::Args),
}

/// What follows when a commit takes paths of others along.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, ValueEnum)]
pub enum Policy {
    /// It is said.
    #[default]
    Disclose,
    /// The first attempt stops, and its repeat goes on.
    WarnOnce,
    /// It is refused.
    Refuse,
}

impl Policy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Disclose => "disclose",
            Self::WarnOnce => "warn-once",
            Self::Refuse => "refuse",
        }
    }

    /// As the ledger has it.
    fn rule(self) -> Rule {
        match self {
            Self::Disclose => Rule::Disclose,
            Self::WarnOnce => Rule::WarnOnce,
            Self::Refuse => Rule::Refuse,
        }
    }
}

impl Args {
    /// Carries it out.
    ///
    /// # Errors
    /// What stopped it.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        match self.verb {
            Verb::Install(args) => args.run(ctx),
            Verb::Uninstall(args) => args.run(ctx),
            Verb::Status(args) => args.run(ctx),
            Verb::Test(args) => args.run(ctx),
            Verb::Unlock(args) => args.run(ctx),
            Verb::Shell(args) => args.run(ctx),
            Verb::MayRemove(args) => args.run(ctx),
            Verb::Hook(args) => args.run(ctx),
        }
    }
}
