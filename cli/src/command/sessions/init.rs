//! `init`: creates a store.

use std::path::PathBuf;

use tenure_projection::core::id::Position;
use tenure_projection::log::position::Receipt;
use tenure_projection::store::{OpenOptions, Store};

use crate::context::Context;
use crate::exit::Exit;
use crate::fault::{Stop, of_store};
use crate::output::Object;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where [default: the store that other commands would use]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Args {
    /// Creates the store; one that is there already is left as it is.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let dir = match self.dir {
            Some(dir) => dir,
            None => ctx.dir()?,
        };
        let existed = matches!(Store::open(&OpenOptions::new(&dir)), Ok(_));
        let options = ctx.options(&dir).create(true);
        let store = Store::open(&options).map_err(|error| of_store(&error, &dir))?;
        let head = store.head().map_err(|error| of_store(&error, &dir))?;
        let receipt = Receipt { store: store.id(), position: head.position, chain: head.chain };
        if ctx.out.is_json() {
            let object = Object::new("done")
                .standing(&receipt)
                .with("store", store.id().to_string())
                .with("dir", dir.to_string_lossy())
                .with("created", !existed);
            ctx.out.object(&object)?;
        } else {
            let position = Position(head.position.0);
            let what = if existed { "there already, at position" } else { "created, at position" };
            ctx.out.say(format_args!("store {} in {}: {what} {position}", store.id(), dir.display()))?;
        }
        Ok(Exit::DONE)
    }
}
