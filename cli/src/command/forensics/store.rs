//! `store`: the way out of each state in which a store refuses to write.

use std::ffi::OsString;

use clap::Subcommand;
use tenure_projection::call::Verb;
use tenure_projection::core::command::Settlement;
use tenure_projection::core::id::Position;
use tenure_projection::store::settle;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Fault, Stop, of_failure, of_store};
use crate::input::{self, Keyed};

use super::super::done;

/// Arguments of `store`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// What is done to the store.
#[derive(Debug, Subcommand)]
enum What {
    /// Say what happened to it: it was moved, copied, restored from an older copy, or a finding was looked at
    Accept {
        /// moved: nothing else has these bytes; copied: another store lives on from them; restored: an older copy
        /// was put back; finding:P: the frame at position P was looked at
        #[arg(value_name = "moved|copied|restored|finding:P")]
        how: String,
        /// Why you believe so; kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: OsString,
    },
}

impl Args {
    /// Accepts.
    ///
    /// # Errors
    /// When the store cannot be opened or written.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let What::Accept { how, reason } = self.what;
        let reason = input::line("the reason", &reason)?;
        if let Some(position) = how.strip_prefix("finding:") {
            return finding(ctx, position, reason);
        }
        let said = Settlement::from_word(&how).filter(|how| *how != Settlement::Salvaged);
        let how = said.ok_or_else(|| {
            Fault::usage(format!(
                "{how:?} is neither moved, copied, restored nor finding:POSITION"
            ))
        })?;
        let dir = ctx.dir()?;
        let settled = settle(&ctx.options(&dir), ctx.host(), ctx.actor(), how, reason);
        let answer = settled.map_err(|failure| {
            of_failure(failure, &dir, |refusal| {
                // The store cannot be looked at by whoever was refused before it was opened.
                Err(tenure_projection::error::Error::Described(
                    refusal.message.clone(),
                ))
            })
        })?;
        let said = match how {
            Settlement::Moved => "accepted: every token stays as it was",
            _ => {
                "accepted: a new incarnation has begun, and no older token is current; `tenure adopt --all --reason TEXT`"
            }
        };
        done(ctx, &answer, said, &[("accepted", how.as_str().to_owned())])
    }
}

fn finding(ctx: &mut Context, position: &str, reason: String) -> Result<Exit, Stop> {
    let number = position
        .parse()
        .map_err(|_| Fault::usage(format!("{position:?} is no position")))?;
    let position = Position(number);
    let dir = ctx.dir()?;
    let store = ctx.store()?;
    let known = store.view(|state| state.findings.contains(&position));
    if !known.map_err(|error| of_store(&error, &dir))? {
        let fault = Fault::new(
            crate::exit::Cause::BadPosition,
            format!("there is no finding at position {position}"),
        );
        return Err(fault
            .then("tenure status", "lists the findings there are")
            .into());
    }
    let mutation = Mutation::new(Verb::AcceptFinding { position, reason }, &Keyed::default());
    let answer = ctx.execute(&store, mutation)?;
    done(
        ctx,
        &answer,
        "accepted",
        &[("accepted", format!("finding:{position}"))],
    )
}
