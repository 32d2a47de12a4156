//! `policy`: what applies in a place where sessions meet.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use tenure_projection::call::Verb;
use tenure_projection::core::disclosure::Rule;

use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{Keyed, Under};
use crate::output::{human, json};

use super::super::{done, listed, looking};

/// Arguments of `policy`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Set the rule for a path and everything below it; the longest path that has one decides
    Set(Set),
    /// The rules there are
    List,
}

/// Arguments of `policy set`.
#[derive(Debug, clap::Args)]
struct Set {
    /// Tell both sides; or stop the first attempt once; or let one session write there
    #[arg(value_name = "RULE", value_enum)]
    rule: Word,
    /// The path
    #[arg(long, value_name = "PATH")]
    scope: PathBuf,
    /// The path is one place on every host, as a network mount is
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    keyed: Keyed,
}

/// A rule as typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Word {
    /// Both are told of each other, and both go on.
    Disclose,
    /// The first attempt after somebody is met waits for an identical second one.
    WarnOnce,
    /// One session writes there; others are refused.
    Refuse,
}

impl From<Word> for Rule {
    fn from(word: Word) -> Self {
        match word {
            Word::Disclose => Self::Disclose,
            Word::WarnOnce => Self::WarnOnce,
            Word::Refuse => Self::Refuse,
        }
    }
}

impl Args {
    /// Sets or lists.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        match self.what {
            What::Set(set) => set.run(ctx),
            What::List => list(ctx),
        }
    }
}

impl Set {
    fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let rule = Rule::from(self.rule);
        let token = self.under.token()?;
        let store = ctx.store_or_new()?;
        let path = store.locate(&self.scope).map_err(|e| ctx.fault(&e))?.path;
        let path = String::from_utf8_lossy(&path).into_owned();
        let verb = Verb::SetPolicy {
            rule,
            scope: self.scope,
            shared: self.shared,
        };
        let answer = ctx.execute(&store, Mutation::new(verb, &self.keyed).under(token))?;
        let fields = [("rule", rule.as_str().to_owned()), ("scope", path.clone())];
        let said = format!("in {path} and below it: {}", rule.as_str());
        done(ctx, &answer, &said, &fields)
    }
}

fn list(ctx: &mut Context) -> Result<Exit, Stop> {
    let policies: Vec<_> = looking(ctx, |lens| Ok(lens.policies().collect()))?;
    listed(ctx, &policies, json::policy, human::policy)
}
