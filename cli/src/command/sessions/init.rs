//! `init`: creates a store.

use std::path::PathBuf;

use tenure_projection::call::Verb;
use tenure_projection::reader::Reader;
use tenure_projection::store::Store;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Stop, of_store};
use crate::input::Keyed;
use crate::output::Object;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where [default: the store that other commands would use]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seal it for ever: every grant in it is made with a secret, which its token has and the log has not
    #[arg(long)]
    sealed: bool,
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
        let failed = |error| of_store(&error, &dir);
        let store = Store::open(&options, ctx.host()).map_err(failed)?;
        if self.sealed {
            ctx.execute(&store, Mutation::new(Verb::SealStore, &Keyed::default()))?;
        }
        let sealed = ctx.look(&store, |lens| Ok(lens.state.sealed))?;
        let receipt = store.head().and_then(|head| store.receipt(head));
        let receipt = receipt.map_err(failed)?;
        if ctx.out.is_json() {
            let object = Object::new("done")
                .standing(&receipt)
                .with("store", receipt.store.to_string())
                .with("dir", dir.to_string_lossy())
                .with("created", !existed)
                .with("sealed", sealed);
            ctx.out.object(&object)?;
        } else {
            let what = if existed {
                "there already, at position"
            } else {
                "created, at position"
            };
            let (store, position) = (receipt.store, receipt.position);
            let kind = if sealed { "sealed store" } else { "store" };
            ctx.out.say(format_args!(
                "{kind} {store} in {}: {what} {position}",
                dir.display()
            ))?;
        }
        Ok(Exit::DONE)
    }
}
