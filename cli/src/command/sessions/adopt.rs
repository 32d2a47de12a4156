//! `adopt`: takes over an active session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use tenure_projection::call::{ProcessChoice, Verb};
use tenure_projection::core::generation::Standing;
use tenure_projection::core::id::{Name, SessionNo, Token};
use tenure_projection::store::Store;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::{Fault, Stop};
use crate::input::{self, Chosen, Holding, Keyed};

use super::grant;

/// Arguments of `adopt`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The session's name
    #[arg(value_name = "NAME", required_unless_present = "all")]
    name: Option<String>,
    /// Claim the whole tree that it is in: every token of the tree lapses, and this session is adopted
    #[arg(long)]
    tree: bool,
    /// Every session that nobody holds since the incarnation was raised
    #[arg(long, conflicts_with_all = ["name", "tree", "token_file", "token", "idempotency_key"])]
    all: bool,
    /// Also while its holder lives or may live: it is fenced, not stopped
    #[arg(long)]
    force: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<OsString>,
    /// A current token of the session or its tree, or @FILE that holds it: who hands over needs no force
    #[arg(long = "as", value_name = "TOKEN")]
    token: Option<OsString>,
    #[command(flatten)]
    holding: Holding,
    #[command(flatten)]
    chosen: Chosen,
    /// Write the token there, for this user alone
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Whether one session is to be adopted, and not all.
    #[must_use]
    pub fn is_of_one(&self) -> bool {
        !self.all
    }

    /// The process that the grant is to be made to.
    ///
    /// # Errors
    /// When `--pid` names none.
    pub fn process(&self) -> Result<ProcessChoice, Stop> {
        self.chosen.process()
    }

    /// Adopts, and prints the grant.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        if self.all {
            return self.run_all(ctx);
        }
        if self.reason.is_some() && !self.force {
            return Err(
                Fault::usage("--reason says why an adopt is forced; it needs --force").into(),
            );
        }
        let name = input::name(self.name.as_deref().unwrap_or_default())?;
        let force = input::force(self.force, self.reason.as_deref())?;
        // The environment is not asked: a token of another session would be in the way.
        let token = self
            .token
            .as_deref()
            .map(|t| input::token(Some(t)))
            .transpose()?
            .flatten();
        let verb = self.verb(name)?;
        let store = ctx.store()?;
        let ready = grant::ready(ctx, &store, self.token_file.as_deref(), &self.keyed)?;
        let mutation = Mutation::new(verb, &self.keyed).under(token).forced(force);
        let done = ctx.execute(&store, mutation.sealed_with(ready.secret))?;
        grant::answer(ctx, &store, &done, ready)
    }

    fn verb(&self, name: Name) -> Result<Verb, Stop> {
        let bearer = self.holding.bearer(self.chosen.process()?);
        let labels = self.holding.labels()?;
        Ok(if self.tree {
            Verb::AdoptTree {
                name,
                bearer,
                labels,
            }
        } else {
            Verb::Adopt {
                name,
                bearer,
                labels,
            }
        })
    }

    fn run_all(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let Some(reason) = self.reason.as_deref() else {
            return Err(
                Fault::usage("adopt --all needs --reason TEXT: it is kept in the log").into(),
            );
        };
        let reason = input::line("the reason", reason)?;
        let store = ctx.store()?;
        // The first session of a tree claims it for all the others, which follow under its token.
        let mut claimed: BTreeMap<SessionNo, Token> = BTreeMap::new();
        for (name, root) in ungranted(ctx, &store)? {
            let verb = self.verb(input::name(&name)?)?;
            let token = claimed.get(&root).cloned();
            let force = Some(reason.clone()).filter(|_| token.is_none());
            let mutation = Mutation::new(verb, &self.keyed).under(token).forced(force);
            let done = ctx.execute(&store, mutation)?;
            let granted = grant::granted(&done)?.token.clone();
            claimed.entry(root).or_insert(granted);
            grant::answer(ctx, &store, &done, grant::Ready::default())?;
        }
        Ok(Exit::DONE)
    }
}

/// Every session that nobody has adopted since the raise, with the root of its tree.
fn ungranted(ctx: &Context, store: &Store) -> Result<Vec<(String, SessionNo)>, Stop> {
    ctx.look(store, |lens| {
        let left = |number: SessionNo| lens.state.standing(number) == Some(Standing::Ungranted);
        let root = |number| lens.state.session(number).map_or(number, |s| s.root);
        let sessions = lens.sessions().filter(|s| left(s.number));
        Ok(sessions.map(|s| (s.name, root(s.number))).collect())
    })
}
