//! `role`: exclusive rights within a scope.

use std::ffi::OsString;

use clap::Subcommand;
use tenure_projection::call::{RoleAt, Verb};
use tenure_projection::core::generation::Generation;
use tenure_projection::core::id::RoleNo;
use tenure_projection::log::journal::Deadline;
use tenure_projection::store::{Answer, Done};
use tenure_projection::views::RoleView;

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};
use crate::output::{human, json};

use super::{done, listed, looking, stands};

mod run;

/// Arguments of `role`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Take a role: from nobody, or from a holder that is provably dead
    Take(Take),
    /// Give a role back
    Release(Release),
    /// Does the token's session hold the role? A refusal is recorded
    Check(Check),
    /// Take a role away from whoever holds it, as operator
    Clear(Clear),
    /// Run a command that holds a role while it lives
    Run(run::Args),
    /// The roles there are
    List,
}

/// Which role.
#[derive(Clone, Debug, clap::Args)]
struct Which {
    /// The role
    #[arg(value_name = "ROLE")]
    role: String,
    /// Where it is exclusive: a name; or a path, which begins with / or has . or .. in it, as ./src has
    #[arg(long, value_name = "S")]
    scope: String,
}

impl Which {
    fn at(&self) -> Result<RoleAt, Stop> {
        input::role_at(&format!("{}@{}", input::name(&self.role)?, self.scope))
    }
}

/// Arguments of `role take`.
#[derive(Debug, clap::Args)]
struct Take {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    under: Under,
    /// Wait for it so long, if somebody else holds it (30s, 10m)
    #[arg(long, value_name = "DURATION")]
    wait: Option<String>,
    #[command(flatten)]
    keyed: Keyed,
}

/// Arguments of `role release`.
#[derive(Debug, clap::Args)]
struct Release {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    keyed: Keyed,
}

/// Arguments of `role check`.
#[derive(Debug, clap::Args)]
struct Check {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    under: Under,
    /// Only if the role is at this generation
    #[arg(long, value_name = "G")]
    role_generation: Option<String>,
}

/// Arguments of `role clear`.
#[derive(Debug, clap::Args)]
struct Clear {
    #[command(flatten)]
    which: Which,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: OsString,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Carries it out.
    ///
    /// # Errors
    /// A refusal, or what failed.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        match self.what {
            What::Take(args) => args.run(ctx),
            What::Release(args) => args.run(ctx),
            What::Check(args) => args.run(ctx),
            What::Clear(args) => args.run(ctx),
            What::Run(args) => args.run(ctx),
            What::List => list(ctx),
        }
    }
}

/// Until when to wait.
fn end(wait: Option<&str>) -> Result<Option<Deadline>, Stop> {
    let wait = wait
        .map(|text| input::duration("--wait", text))
        .transpose()?;
    Ok(wait.map(Deadline::after))
}

/// The role that an answer is about, as it was then.
fn answered(ctx: &Context, answer: &Done) -> Result<(RoleNo, RoleView), Stop> {
    let Answer::Role {
        role, generation, ..
    } = answer.answer
    else {
        let message = format!("a role was answered with {:?}", answer.answer);
        return Err(Fault::new(Cause::Fault, message).into());
    };
    let view = looking(ctx, |lens| Ok(lens.role(role)))?;
    let view = view.ok_or_else(|| Fault::new(Cause::Fault, "a role was taken and is not there"))?;
    Ok((
        role,
        RoleView {
            role_generation: generation,
            ..view
        },
    ))
}

impl Take {
    fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let at = self.which.at()?;
        let token = input::required(self.under.token()?)?;
        let end = end(self.wait.as_deref())?;
        let store = ctx.store()?;
        let verb = Verb::TakeRole { at, process: None };
        let mutation = Mutation::new(verb, &self.keyed).under(Some(token));
        let answer = ctx.execute_within(&store, mutation, end)?;
        print(ctx, &answer)
    }
}

fn print(ctx: &mut Context, answer: &Done) -> Result<Exit, Stop> {
    let (_, view) = answered(ctx, answer)?;
    if ctx.out.is_json() {
        let object = json::role(&view).standing(&answer.receipt);
        ctx.out.object(&object.with("repeated", answer.repeated))?;
        return Ok(Exit::DONE);
    }
    ctx.out.essential(view.role_generation)?;
    ctx.out.say(human::role(&view))?;
    stands(ctx, answer)?;
    Ok(Exit::DONE)
}

impl Release {
    fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let at = self.which.at()?;
        let token = input::required(self.under.token()?)?;
        let store = ctx.store()?;
        let mutation = Mutation::new(Verb::ReleaseRole { at }, &self.keyed).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        let (role, scope) = (self.which.role, self.which.scope);
        let said = format!("{role}@{scope} is given back");
        done(ctx, &answer, &said, &[("role", role), ("scope", scope)])
    }
}

impl Check {
    fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let at = self.which.at()?;
        let token = input::required(self.under.token()?)?;
        let generation = self.role_generation.as_deref().map(|text| {
            Generation::parse(text).ok_or_else(|| {
                Fault::usage(format!(
                    "{text:?} is no role generation, a whole number from 1"
                ))
            })
        });
        let generation = generation.transpose()?;
        let store = ctx.store()?;
        let verb = Verb::CheckRole { at, generation };
        let mutation = Mutation::new(verb, &Keyed::default()).under(Some(token));
        let answer = ctx.execute(&store, mutation)?;
        print(ctx, &answer)
    }
}

impl Clear {
    fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let at = self.which.at()?;
        let reason = input::line("the reason", &self.reason)?;
        let store = ctx.store()?;
        let mutation = Mutation::new(Verb::ClearRole { at, reason }, &self.keyed);
        let answer = ctx.execute(&store, mutation)?;
        let (role, scope) = (self.which.role, self.which.scope);
        let said = match answer.repeated {
            true => format!("nobody holds {role}@{scope}"),
            false => format!("{role}@{scope} is cleared; its holder finds a notice"),
        };
        done(ctx, &answer, &said, &[("role", role), ("scope", scope)])
    }
}

fn list(ctx: &mut Context) -> Result<Exit, Stop> {
    let roles: Vec<_> = looking(ctx, |lens| Ok(lens.roles().collect()))?;
    listed(ctx, &roles, json::role, human::role)
}
