//! `check`: is this token current? And may its session change these paths now?

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;
use tenure_projection::call::Verb;
use tenure_projection::checkouts::CheckoutError;
use tenure_projection::core::id::{Position, Token};
use tenure_projection::core::refusal::{Code, Next, Relation};
use tenure_projection::core::state::{EnvelopeKind, EnvelopeState};
use tenure_projection::error::Error;
use tenure_projection::store::{Answer, Store};
use tenure_projection::views::{CheckView, EnvelopeView, Lens, RefusalView, SharedView};

use crate::clock::rfc3339;
use crate::context::{Context, Mutation};
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input::{self, Keyed};
use crate::output::{BAD, WARN, human, json};
use crate::served;

use super::super::{looking, unknown};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The token, or @FILE that holds it [default: $TENURE_TOKEN_FILE, else $TENURE_TOKEN]
    #[arg(value_name = "TOKEN")]
    token: Option<OsString>,
    /// May its session change this path now? Tells who else works there, and keeps that it was told
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
}

impl Args {
    /// Whether paths are asked about.
    #[must_use]
    pub fn is_of_paths(&self) -> bool {
        !self.write.is_empty()
    }

    /// Says whether a write under the token would pass.
    ///
    /// # Errors
    /// When no session has its name, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let token = input::required(input::token(self.token.as_deref())?)?;
        let (view, notices) = looking(ctx, |lens| {
            let view = lens.check(&token);
            let current = view.as_ref().is_some_and(CheckView::is_current);
            Ok((
                view,
                if current {
                    notices(lens, &token)?
                } else {
                    Vec::new()
                },
            ))
        })?;
        let Some(view) = view else {
            let name = token.name.as_str();
            return Err(unknown(
                Code::UnknownSession,
                name,
                format!("no session is called {name}"),
            ));
        };
        if view.is_current() && !self.write.is_empty() {
            return self.may_write(ctx, &view, token);
        }
        if ctx.out.is_json() {
            let notices: Vec<Value> = notices.iter().map(|n| json::envelope(n).into()).collect();
            ctx.out
                .object(&json::check(&view).with("notices", notices))?;
        } else if view.is_current() {
            let since = rfc3339(view.since.time);
            ctx.out
                .say(format_args!("{} is current, since {since}", view.token))?;
            for notice in &notices {
                let body = notice.body.as_deref().map(String::from_utf8_lossy);
                let said = body
                    .as_deref()
                    .and_then(|b| b.lines().next())
                    .unwrap_or_default();
                ctx.out
                    .styled(WARN, format_args!("notice {}: {said}", notice.id))?;
            }
        } else {
            let relation = view.relation().map_or("", |r| r.as_str());
            let current = format!("{}@{}", view.session, view.generation);
            ctx.out.styled(
                BAD,
                match view.lapsed {
                    true => format!("{} is not current: its tree changed hands", view.token),
                    false => format!("{} is not current ({relation}): {current} is", view.token),
                },
            )?;
            if let Some(holder) = &view.holder {
                ctx.out
                    .say(format_args!("held by {}", human::holder(holder)))?;
            }
            ctx.out.lines(human::lost(&view.lost))?;
        }
        Ok(if view.is_current() {
            Exit::DONE
        } else {
            Exit::NOT_CURRENT
        })
    }

    /// Asks the store, which records whom the session was shown. A path that cannot be looked at is said to be
    /// unknown and stops nobody (DSC-12).
    fn may_write(self, ctx: &mut Context, view: &CheckView, token: Token) -> Result<Exit, Stop> {
        let store = ctx.store()?;
        let (mut writes, mut unknown) = (Vec::new(), Vec::new());
        for path in self.write {
            match store.locate(&served::place(&path)) {
                Ok(_) => writes.push(path),
                Err(Error::Scope { source, .. }) if is_closed(&source) => {
                    unknown.push((path.to_string_lossy().into_owned(), source.to_string()));
                }
                Err(error) => return Err(ctx.fault(&error)),
            }
        }
        let mut met = Met {
            unknown,
            ..Met::default()
        };
        if !writes.is_empty() {
            let warned = met.ask(ctx, &store, writes, token)?;
            if let Some(refusal) = warned.map(|at| met.warning(view, at)) {
                return Err(Stop::Refused(Box::new(refusal)));
            }
        }
        met.print(ctx, view)
    }
}

/// What the session was not told yet (NOT-7): notices that are pending, each until it is delivered.
fn notices(lens: Lens<'_>, token: &Token) -> Result<Vec<EnvelopeView>, Error> {
    let Some(number) = lens.state.find(token.name.as_str().as_bytes()) else {
        return Ok(Vec::new());
    };
    let mut notices = Vec::new();
    for id in lens.envelopes_of(number, true) {
        let pending = lens.state.envelope(id).is_some_and(|row| {
            row.kind == EnvelopeKind::Notice && row.state == EnvelopeState::Pending
        });
        if pending {
            notices.extend(lens.envelope(id)?);
        }
    }
    Ok(notices)
}

fn is_closed(error: &CheckoutError) -> bool {
    matches!(error, CheckoutError::Unreadable { .. })
}

/// Who else works there, and what could not be looked at.
#[derive(Default)]
struct Met {
    list: Vec<SharedView>,
    instruction: Option<&'static str>,
    unknown: Vec<(String, String)>,
}

impl Met {
    /// Asks; the position of the warning, if a policy wants one to be heard first.
    fn ask(
        &mut self,
        ctx: &Context,
        store: &Store,
        writes: Vec<PathBuf>,
        token: Token,
    ) -> Result<Option<Position>, Stop> {
        let verb = Verb::CheckWrite { writes };
        let mutation = Mutation::new(verb, &Keyed::default()).under(Some(token));
        let answer = ctx.execute(store, mutation)?;
        let Answer::Met {
            shared,
            instruction,
            warned,
        } = &answer.answer
        else {
            return Ok(None);
        };
        let views = |lens: Lens<'_>| Ok(shared.iter().map(|s| lens.shared(s)).collect());
        self.list = ctx.look(store, views)?;
        self.instruction = *instruction;
        Ok(warned.then_some(answer.at.position))
    }

    /// Not now: the same command again runs (DSC-11).
    fn warning(&self, view: &CheckView, at: Position) -> RefusalView {
        let who: Vec<&str> = self.list.iter().map(|s| s.session.as_str()).collect();
        RefusalView {
            code: Ok(Code::Held),
            message: format!(
                "the policy there is `warn-once`, and {} works there too; the same command again runs",
                who.join(", ")
            ),
            subject: view.session.clone(),
            presented: Some(view.token.clone()),
            current: None,
            holder: self.list.first().and_then(|s| s.holder.clone()),
            since: None,
            relation: Some(Relation::Foreign),
            evidence: Vec::new(),
            lost: Vec::new(),
            next: vec![Next {
                command: format!("tenure shared --as {}", view.token),
                effect: "shows who works there; the same command again runs",
            }],
            recorded_at: Some(at),
            stored: None,
        }
    }

    fn print(&self, ctx: &mut Context, view: &CheckView) -> Result<Exit, Stop> {
        if ctx.out.is_json() {
            let unknown: Value = self
                .unknown
                .iter()
                .map(|(path, why)| serde_json::json!({ "path": path, "why": why }))
                .collect();
            let object = json::check(view)
                .with("shared_checkout", json::shared_list(&self.list))
                .with("instruction", self.instruction)
                .with("unknown", unknown);
            ctx.out.object(&object)?;
            return Ok(Exit::DONE);
        }
        ctx.out
            .say(format_args!("{} may write there now", view.token))?;
        ctx.out.lines(human::shared(&self.list, self.instruction))?;
        for (path, why) in &self.unknown {
            let line = format_args!("who works at {path} is unknown: {why}");
            ctx.out.styled(WARN, line)?;
        }
        Ok(Exit::DONE)
    }
}
