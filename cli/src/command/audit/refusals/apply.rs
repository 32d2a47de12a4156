//! `refusals apply`: carries out what was refused, under a token that is current.

use tenure_projection::again::Kept;
use tenure_projection::call::IdempotencyKey;
use tenure_projection::core::id::RefusalNo;

use crate::context::{Context, Mutation};
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed, Under};

use crate::command::{done, unknown_refusal};

/// Arguments of `refusals apply`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The refusal: r1, r2, ...
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    under: Under,
    /// Which of several that are kept under it, by the position that keeps it
    #[arg(long, value_name = "POSITION")]
    at: Option<String>,
    #[command(flatten)]
    keyed: Keyed,
}

impl Args {
    /// Applies it: once, however often this is asked, since the refusal and its position make the idempotency key
    /// unless one is given.
    ///
    /// # Errors
    /// When nothing is kept, when it is not clear what is meant, and whatever the command itself is refused with.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let id = input::refusal(&self.id)?;
        let token = input::required(self.under.token()?)?;
        let at = self.at.as_deref().map(input::position).transpose()?;
        let store = ctx.store()?;
        let kept = ctx.look(&store, |lens| {
            lens.state
                .refusal(id)
                .is_some()
                .then(|| lens.kept(id))
                .transpose()
        })?;
        let kept = kept.ok_or_else(|| unknown_refusal(id))?;
        let meant: Vec<Kept> = kept
            .into_iter()
            .filter(|kept| at.is_none_or(|at| kept.position == at))
            .collect();
        let kept = only(id, meant)?;
        let Some(verb) = kept.verb else {
            let message = format!(
                "{id} keeps a {}, which means something only when it is asked; ask again by hand",
                kept.command
            );
            return Err(Fault::usage(message).into());
        };
        let mut mutation = Mutation::new(verb, &self.keyed).under(Some(token));
        mutation.key = mutation.key.or_else(|| {
            Some(IdempotencyKey(format!(
                "tenure refusals apply {id} {}",
                kept.position
            )))
        });
        let answer = ctx.execute(&store, mutation)?;
        let fields = [
            ("refusal", id.to_string()),
            ("command", kept.command.to_owned()),
        ];
        let said = format!("the {} that {id} kept is done", kept.command);
        done(ctx, &answer, &said, &fields)
    }
}

fn only(id: RefusalNo, mut meant: Vec<Kept>) -> Result<Kept, Stop> {
    match (meant.pop(), meant.len()) {
        (Some(kept), 0) => Ok(kept),
        (None, _) => {
            let message = format!("{id} keeps nothing there");
            Err(Fault::new(Cause::BadPosition, message)
                .then(format!("tenure show {id}"), "shows what it keeps")
                .into())
        }
        (Some(last), _) => {
            let mut positions: Vec<_> = meant.iter().map(|k| k.position.to_string()).collect();
            positions.push(last.position.to_string());
            let message = format!("{id} keeps several: at positions {}", positions.join(", "));
            Err(Fault::usage(message)
                .then(
                    format!(
                        "tenure refusals apply {id} --at {} --as TOKEN",
                        last.position
                    ),
                    "applies the newest",
                )
                .into())
        }
    }
}
