//! The `tenure` command: arguments in, answers and exit codes out. Everything that is decided is decided in the
//! libraries.

use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

mod acp;
mod app;
mod clock;
mod command;
mod context;
mod demo;
mod exit;
mod fault;
mod hook;
mod input;
mod kept;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod private_file;
// The page has every command.
#[cfg(all(test, feature = "mcp"))]
mod reference;
mod served;
#[path = "../../core/src/zoo.rs"]
mod zoo;

use app::{App, Command, carry_out};
use context::Context;
use exit::Exit;
use fault::{Fault, Stop};
use output::Output;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(faulted));
    if let Some(code) = command::sessions::exec::gate() {
        return code;
    }
    if let Some(code) = demo::actor::serve_if_asked() {
        return code;
    }
    let app = match arguments() {
        Ok(app) => app,
        Err(refused) => return ExitCode::from(misused(&refused).number()),
    };
    let mut ctx = Context::new(app.global);
    let command = app
        .command
        .unwrap_or(Command::Status(command::look::status::Args::default()));
    let exit = match served::ask(&mut ctx, &command) {
        Ok(Some(exit)) => exit,
        Ok(None) => carry_out(command, &mut ctx),
        Err(stop) => {
            ctx.out.stopped(&stop);
            stop.exit()
        }
    };
    ExitCode::from(exit.number())
}

/// What the arguments say.
fn arguments() -> Result<App, clap::Error> {
    let mut command = App::command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let app = matches.and_then(|mut matches| {
        App::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    // Taking the tree of commands apart costs a fifth of a process that only parses, and this process ends soon.
    std::mem::forget(command);
    app
}

/// A fault of ours ends with 70: no shell, host or signal has a meaning of its own for that.
fn faulted(panic: &PanicHookInfo<'_>) {
    let text = panic.to_string();
    eprintln!(
        "fault: this program is wrong: {}",
        output::escape::line(&text)
    );
    std::process::exit(exit::Cause::Fault.exit().number().into());
}

/// Help and version are answers; everything else that clap says is a usage error, which is 64 and never 2.
fn misused(refused: &clap::Error) -> Exit {
    match refused.kind() {
        ErrorKind::DisplayHelp => {
            // The groups and the table cost time that only this needs.
            let shown = app::documented().try_get_matches().err();
            let _ = shown.as_ref().unwrap_or(refused).print();
            return Exit::DONE;
        }
        ErrorKind::DisplayVersion => {
            let _ = refused.print();
            return Exit::DONE;
        }
        _ => {}
    }
    let json = std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json");
    let message = refused.to_string();
    let mut lines = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let details: Vec<&str> = lines
        .filter(|line| !line.starts_with("For more information"))
        .collect();
    let text = if details.is_empty() {
        first
    } else {
        format!("{first} ({})", details.join("; "))
    };
    let stop = Stop::Failed(Fault::usage(text).then(
        "tenure --help",
        "lists the commands; `tenure COMMAND --help` one of them",
    ));
    Output::new(json, false).stopped(&stop);
    stop.exit()
}
