//! `man`: man pages, one for the program and one for each command.

use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::app;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Fault, Stop};

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Of one command [default: of the program]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write every page into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

impl Args {
    /// Prints one page, or writes all of them.
    ///
    /// # Errors
    /// When there is no such command, or a page cannot be written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        // Names of pages and synopses are filled in by this.
        let mut root = app::documented();
        root.build();
        if let Some(dir) = &self.dir {
            write_all(&root, dir)?;
            return Ok(Exit::DONE);
        }
        let page = match &self.command {
            None => render(&root)?,
            Some(name) => match root.find_subcommand(name) {
                Some(command) => render(command)?,
                None => {
                    let fault = Fault::usage(format!("there is no command {name:?}"));
                    return Err(fault.then("tenure --help", "lists the commands").into());
                }
            },
        };
        ctx.out.raw(&page)?;
        Ok(Exit::DONE)
    }
}

fn render(command: &clap::Command) -> Result<Vec<u8>, Stop> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

fn write_all(root: &clap::Command, dir: &Path) -> Result<(), Stop> {
    let write = |name: &str, page: Vec<u8>| {
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page).map_err(|error| Stop::from(Fault::file("create", &path, error)))
    };
    std::fs::create_dir_all(dir).map_err(|error| Fault::file("create", dir, error))?;
    write("tenure", render(root)?)?;
    for command in root.get_subcommands() {
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name());
        write(name, render(command)?)?;
    }
    Ok(())
}
