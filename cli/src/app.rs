//! The command line as a whole: global options, groups of commands, and the dispatch from arguments to commands.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::acp;
use crate::command::{
    audit, forensics, history, look, mail, operate, roles, sessions, trees, work,
};
use crate::context::Context;
use crate::exit::{self, Exit};
use crate::fault::Stop;
use crate::hook;

/// A ledger of authority for agent sessions: who may act now, and who could at any moment before.
#[derive(Debug, Parser)]
#[command(
    name = "tenure",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct App {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The command; without one, `status`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// The store's directory [default: $XDG_STATE_HOME/tenure, else ~/.local/state/tenure]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "TENURE_STORE",
        hide_env_values = true
    )]
    pub store: Option<PathBuf>,
    /// Print JSON: one object, or one object a line for lists and streams; errors too
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only what a script needs: a token, an id, names, or nothing; errors as ever
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = ["auto", "always", "never"], hide_possible_values = true)]
    pub color: String,
    /// On whose behalf, recorded in every event
    #[arg(
        help = "On whose behalf, recorded in every event [default: user@host]",
        long,
        global = true,
        value_name = "A",
        env = "TENURE_ACTOR",
        hide_env_values = true
    )]
    pub actor: Option<String>,
    /// Write on a file system of this kind although its locks or syncs may lie
    #[arg(long, global = true, value_name = "TYPE")]
    pub allow_fs: Vec<String>,
    /// How long to wait for others before giving up as `busy` (30s, 2m)
    #[arg(long, global = true, value_name = "AGE", default_value = "30s")]
    pub timeout: String,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The store and its health, who works where, and what needs a person
    Status(look::status::Args),
    /// The sessions with holder, verdict, last seen, and what is open
    Sessions(look::sessions::Args),
    /// One session, dispatch, envelope or refusal, whole
    Show(look::show::Args),
    /// Dispatches
    Work(look::work::Args),
    /// Who else works where you do
    Shared(look::shared::Args),
    /// Play the whole story with real processes in a temporary checkout, and check every step
    Demo(look::demo::Args),

    /// Create a store
    Init(sessions::init::Args),
    /// Make an absent or retired name active, and get its token
    Register(sessions::register::Args),
    /// Take over an active session: its work and mail follow, its former holder is fenced
    Adopt(sessions::adopt::Args),
    /// Give a session back
    Retire(sessions::retire::Args),
    /// Is this token current?
    Check(sessions::check::Args),
    /// Run a command that holds a session
    Exec(sessions::exec::Args),
    /// Run an agent of the Agent Client Protocol: each of its sessions is held, and fenced
    Acp(acp::Args),

    /// Give an item to a session
    Dispatch(work::dispatch::Args),
    /// Take a dispatch on, and learn who else works there
    Accept(work::accept::Args),
    /// Turn a dispatch down
    Decline(work::decline::Args),
    /// End an accepted dispatch: done, failed or blocked
    Report(work::report::Args),
    /// Withdraw a dispatch
    Cancel(work::cancel::Args),
    /// Say that an assignment failed after its session was connected
    Fail(work::fail::Args),
    /// Give a dispatch over to another session; its item stays blocked throughout
    Handoff(work::handoff::Args),
    /// What applies in a place where sessions meet
    Policy(work::policy::Args),
    /// Write something down
    Note(work::note::Args),
    /// Say what you are doing and where you wrote
    Observe(work::observe::Args),
    /// Did it happen? By idempotency key or receipt
    Outcome(work::outcome::Args),

    /// Send a message to a session
    Send(mail::send::Args),
    /// The envelopes of a session
    #[command(visible_alias = "outbox")]
    Inbox(mail::inbox::Args),
    /// Say that an envelope reached its session
    Deliver(mail::deliver::Args),
    /// Say that an envelope was read, or that somebody has seen to blocked work
    Ack(mail::ack::Args),
    /// Wait until a token is no longer current
    Wait(mail::wait::Args),

    /// Append to a session's history
    Record(history::record::Args),
    /// The records of a session, oldest first
    History(history::records::Args),
    /// Begin a session whose history begins as another's; the other is left alone
    Branch(history::branch::Args),
    /// Where a session comes from, and what was branched from it
    Lineage(history::lineage::Args),
    /// Hide what was recorded behind a point; nothing is removed
    Revert(history::revert::Args),
    /// Give a session another name; the old one still leads to it
    Rename(history::rename::Args),
    /// A history as JSON Lines
    Export(history::export::Args),
    /// A session from what export printed, here or elsewhere
    Import(history::import::Args),
    /// Histories are not merged
    #[command(hide = true)]
    Merge(history::merge::Args),

    /// A root and everything delegated from it: who holds it, and which sessions are writable
    Tree(trees::tree::Args),
    /// Give a whole tree back
    Release(trees::release::Args),
    /// Take, give back, check and clear exclusive rights, or run a command that holds one
    Role(roles::Args),

    /// Who holds it, now or then: a session, an item, a role, a tree, a path
    Who(audit::who::Args),
    /// Every stretch of authority, from where to where
    Timeline(audit::timeline::Args),
    /// What was asked at a position, what it was judged on, by which rule it stands, what it changed
    Why(audit::why::Args),
    /// Commands that were refused, with what they carried
    Refusals(audit::refusals::Args),
    /// The events of the log
    Log(audit::log::Args),
    /// Make every recorded decision again, and name those that a correct store would not have made
    Audit(audit::audit::Args),
    /// What changed between two places of the log
    Diff(audit::diff::Args),
    /// The sessions as they stood, made again from the log alone
    Replay(audit::replay::Args),
    /// What a generation brought about
    Impact(audit::impact::Args),
    /// The first position at which a command's answer about the state turns
    Bisect(audit::bisect::Args),
    /// What proves later that a grant was in the log
    Receipt(audit::receipt::Args),

    /// Look at every byte of a store and say what is wrong; changes nothing
    Verify(forensics::verify::Args),
    /// Show the frames of a store or a file as they stand; changes nothing
    Inspect(forensics::inspect::Args),
    /// What is in a transcript of claude, codex or gemini, and what is wrong with it; changes nothing
    Transcript(forensics::transcript::Args),
    /// Copy what is good of a damaged store into a new one and say what may be missing; the damaged one stays as it is
    Salvage(forensics::salvage::Args),
    /// The way out of each state in which a store refuses to write
    Store(forensics::store::Args),

    /// Who is still there, and what dead holders left; --fix releases what is provable
    Doctor(operate::doctor::Args),
    /// Hooks in a git repository that ask the ledger before a commit and before refs move
    Guard(operate::guard::Args),
    /// Put the hook into the settings of an agent host; whatever else stands there stays
    Install(operate::install::Args),
    /// What an agent host calls at its events: reads a payload, asks the ledger, answers the host
    Hook(hook::Args),
    /// Serve the tools of the Model Context Protocol to one agent, over standard input and output
    #[cfg(feature = "mcp")]
    Mcp(crate::mcp::Args),
    /// Keep the store open and answer others, who ask over a socket in its directory
    Serve(operate::serve::Args),
    /// Completions for a shell
    Completions(operate::completions::Args),
    /// Man pages
    Man(operate::man::Args),
}

/// Carries a command out to its end: what stops it is told.
pub fn carry_out(command: Command, ctx: &mut Context) -> Exit {
    let result = command.run(ctx);
    match result.and_then(|exit| ctx.out.flush().map(|()| exit)) {
        Ok(exit) => exit,
        Err(stop) => {
            ctx.out.stopped(&stop);
            stop.exit()
        }
    }
}

/// The groups of `--help`, in order.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "Look",
        &["status", "sessions", "show", "work", "shared", "demo"],
    ),
    (
        "Sessions",
        &[
            "init", "register", "adopt", "retire", "check", "exec", "acp",
        ],
    ),
    (
        "Work",
        &[
            "dispatch", "accept", "decline", "report", "cancel", "fail", "handoff", "policy",
            "note", "observe", "outcome",
        ],
    ),
    ("Trees and roles", &["tree", "release", "role"]),
    ("Mail", &["send", "inbox", "deliver", "ack", "wait"]),
    (
        "History and branches",
        &[
            "record", "history", "branch", "lineage", "revert", "rename", "export", "import",
        ],
    ),
    (
        "Audit",
        &[
            "who", "timeline", "why", "refusals", "log", "audit", "diff", "replay", "impact",
            "bisect", "receipt",
        ],
    ),
    (
        "Forensics",
        &["verify", "inspect", "salvage", "transcript", "store"],
    ),
    (
        "Operate",
        &[
            "doctor",
            "guard",
            "install",
            "hook",
            #[cfg(feature = "mcp")]
            "mcp",
            "serve",
            "completions",
            "man",
        ],
    ),
];

/// The definition of the command line, without the text that only `--help` needs.
#[must_use]
pub fn plain() -> clap::Command {
    App::command()
}

/// The definition with its commands in groups and the table of exit codes.
#[must_use]
pub fn documented() -> clap::Command {
    let command = plain();
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}:\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(|c| c.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<12} {about}\n"));
        }
        text.push('\n');
    }
    let codes = format!("Exit codes:\n{}\n2 is never used.", exit::help());
    command
        .help_template("{about}\n\nUsage: {usage}\n\n{before-help}{options}\n\n{after-help}")
        .before_help(text)
        .after_help(codes)
}

impl Command {
    /// Carries the command out.
    ///
    /// # Errors
    /// What stopped it.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        match self {
            Self::Status(args) => args.run(ctx),
            Self::Sessions(args) => args.run(ctx),
            Self::Show(args) => args.run(ctx),
            Self::Work(args) => args.run(ctx),
            Self::Shared(args) => args.run(ctx),
            Self::Demo(args) => args.run(ctx),
            Self::Init(args) => args.run(ctx),
            Self::Register(args) => args.run(ctx),
            Self::Adopt(args) => args.run(ctx),
            Self::Retire(args) => args.run(ctx),
            Self::Check(args) => args.run(ctx),
            Self::Exec(args) => args.run(ctx),
            Self::Acp(args) => args.run(ctx),
            Self::Dispatch(args) => args.run(ctx),
            Self::Accept(args) => args.run(ctx),
            Self::Decline(args) => args.run(ctx),
            Self::Report(args) => args.run(ctx),
            Self::Cancel(args) => args.run(ctx),
            Self::Fail(args) => args.run(ctx),
            Self::Handoff(args) => args.run(ctx),
            Self::Policy(args) => args.run(ctx),
            Self::Tree(args) => args.run(ctx),
            Self::Release(args) => args.run(ctx),
            Self::Role(args) => args.run(ctx),
            Self::Note(args) => args.run(ctx),
            Self::Observe(args) => args.run(ctx),
            Self::Outcome(args) => args.run(ctx),
            Self::Send(args) => args.run(ctx),
            Self::Inbox(args) => args.run(ctx),
            Self::Deliver(args) => args.run(ctx),
            Self::Ack(args) => args.run(ctx),
            Self::Wait(args) => args.run(ctx),
            Self::Record(args) => args.run(ctx),
            Self::History(args) => args.run(ctx),
            Self::Branch(args) => args.run(ctx),
            Self::Lineage(args) => args.run(ctx),
            Self::Revert(args) => args.run(ctx),
            Self::Rename(args) => args.run(ctx),
            Self::Export(args) => args.run(ctx),
            Self::Import(args) => args.run(ctx),
            Self::Merge(args) => args.run(ctx),
            Self::Who(args) => args.run(ctx),
            Self::Refusals(args) => args.run(ctx),
            Self::Log(args) => args.run(ctx),
            Self::Timeline(args) => args.run(ctx),
            Self::Why(args) => args.run(ctx),
            Self::Audit(args) => args.run(ctx),
            Self::Diff(args) => args.run(ctx),
            Self::Replay(args) => args.run(ctx),
            Self::Receipt(args) => args.run(ctx),
            Self::Impact(args) => args.run(ctx),
            Self::Bisect(args) => args.run(ctx),
            Self::Verify(args) => args.run(ctx),
            Self::Inspect(args) => args.run(ctx),
            Self::Transcript(args) => args.run(ctx),
            Self::Salvage(args) => args.run(ctx),
            Self::Store(args) => args.run(ctx),
            Self::Doctor(args) => args.run(ctx),
            Self::Guard(args) => args.run(ctx),
            Self::Install(args) => args.run(ctx),
            Self::Hook(args) => args.run(ctx),
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => args.run(ctx),
            Self::Serve(args) => args.run(ctx),
            Self::Completions(args) => args.run(ctx),
            Self::Man(args) => args.run(ctx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_and_every_command_is_in_one_group() {
        let command = plain();
        command.clone().debug_assert();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let mut defined: Vec<&str> = command
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        grouped.sort_unstable();
        defined.sort_unstable();
        assert_eq!(grouped, defined);
    }
}
