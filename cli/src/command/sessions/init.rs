//! `init`: creates a store.

use std::path::PathBuf;

use tenure_projection::reader::Reader;
use tenure_projection::store::Store;

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
        let existed = Reader::open(&dir, ctx.host()).is_ok();
        let options = ctx.options(&dir).create(true);
        let opened = Store::open(&options, ctx.host());
        let receipt = opened.and_then(|store| store.receipt(store.head()?));
        let receipt = receipt.map_err(|error| of_store(&error, &dir))?;
        if ctx.out.is_json() {
            let object = Object::new("done")
                .standing(&receipt)
                .with("store", receipt.store.to_string())
                .with("dir", dir.to_string_lossy())
                .with("created", !existed);
            ctx.out.object(&object)?;
        } else {
            let what = if existed {
                "there already, at position"
            } else {
                "created, at position"
            };
            let (store, position) = (receipt.store, receipt.position);
            ctx.out.say(format_args!(
                "store {store} in {}: {what} {position}",
                dir.display()
            ))?;
        }
        Ok(Exit::DONE)
    }
}
