//! `who`: who holds it, now or then.

use std::path::{Path, PathBuf};

use tenure_projection::authority::{About, Resolved, When as Place};
use tenure_projection::call::RoleAt;
use tenure_projection::core::id::{Moment, Position, RoleNo, SessionNo};
use tenure_projection::core::role::RoleScope;
use tenure_projection::core::state::State;
use tenure_projection::reader::Reader;
use tenure_projection::views::WhoView;

use crate::clock::When;
use crate::context::Context;
use crate::exit::Exit;
use crate::fault::Stop;
use crate::input;
use crate::output::{WARN, human, json};
use crate::served;

use super::super::find;
use super::place::{resolve, say};

/// What is said of answers about a place behind a loss.
const UNPROVEN: &str =
    "unproven: frames before this place are lost, so that a later grant or end may be missing";

/// Arguments of `who`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// NAME or session:NAME, item:ID, role:ROLE@SCOPE, tree:NAME, path:P; a path where it begins with /, ./ or ../
    #[arg(value_name = "SUBJECT")]
    subject: String,
    /// A position, an RFC 3339 time, or an age (10m, 2h) [default: now]
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
}

/// What is asked about.
enum Subject {
    Session(String),
    Item(String),
    Role(RoleAt),
    Tree(String),
    Path(PathBuf),
}

impl Subject {
    fn parse(text: &str) -> Result<Self, Stop> {
        if ["/", "./", "../"]
            .iter()
            .any(|start| text.starts_with(start))
        {
            return Ok(Self::Path(text.into()));
        }
        match text.split_once(':') {
            Some(("session", name)) => Ok(Self::Session(name.to_owned())),
            Some(("item", item)) => Ok(Self::Item(item.to_owned())),
            Some(("path", path)) => Ok(Self::Path(path.into())),
            Some(("role", role)) => input::role_at(role).map(Self::Role),
            Some(("tree", name)) => Ok(Self::Tree(name.to_owned())),
            // A session's name may have a colon in it.
            _ => Ok(Self::Session(text.to_owned())),
        }
    }
}

impl Args {
    /// Whether it is about a path.
    #[must_use]
    pub fn is_of_path(&self) -> bool {
        matches!(Subject::parse(&self.subject), Ok(Subject::Path(_)))
    }

    /// One line for each holder; exit 1 when there is none.
    ///
    /// # Errors
    /// When there is no such session, the place is not in the log, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let subject = Subject::parse(&self.subject)?;
        let at = self.at.as_deref().map(input::when).transpose()?;
        let reader = ctx.reading()?;
        let then = at.map(|at| Then::of(ctx, &reader, at)).transpose()?;
        let views = match (&subject, &then) {
            (Subject::Path(path), then) => self.path(ctx, &reader, path, then.as_ref())?,
            (_, None) => vec![self.now(ctx, &reader, &subject)?],
            (_, Some(then)) => vec![self.then(ctx, &reader, &subject, then)?],
        };
        if let Some(then) = &then {
            say(ctx, &then.resolved)?;
        }
        let also: Vec<u64> = then
            .iter()
            .flat_map(|t| t.resolved.also.iter().map(|p| p.0))
            .collect();
        let asked = views.first().map_or(Position(0), |view| view.at.position);
        let proven = ctx.look(&reader, |lens| Ok(lens.state.is_proven_at(asked)))?;
        if !proven && !ctx.out.is_json() {
            ctx.out.styled(WARN, UNPROVEN)?;
        }
        for view in &views {
            if ctx.out.is_json() {
                ctx.out.object(
                    &json::who(view)
                        .with("also", also.clone())
                        .with("unproven", !proven),
                )?;
            } else if let (Some(session), true) = (&view.session, ctx.out.is_quiet()) {
                ctx.out.essential(session)?;
            } else {
                ctx.out.say(human::who(view))?;
            }
        }
        let held = views.iter().any(|view| view.holder.is_some());
        Ok(if held { Exit::DONE } else { Exit::NEGATIVE })
    }

    /// From the state at the head: nothing is replayed.
    fn now(&self, ctx: &Context, reader: &Reader, subject: &Subject) -> Result<WhoView, Stop> {
        let role = located(ctx, reader, subject)?;
        ctx.look(reader, |lens| {
            Ok(match subject {
                Subject::Item(item) => Ok(lens.who_item(&self.subject, item.as_bytes())),
                Subject::Session(name) => {
                    find(lens.state, name).map(|number| lens.who_session(&self.subject, number))
                }
                Subject::Role(at) => {
                    let number = role
                        .as_ref()
                        .and_then(|scope| number(lens.state, at, scope));
                    Ok(lens.who_role(&self.subject, number))
                }
                Subject::Tree(name) => {
                    root(lens.state, name).map(|root| lens.who_tree(&self.subject, root))
                }
                Subject::Path(_) => Ok(WhoView::nobody(&self.subject, lens.state.at)),
            })
        })?
    }

    /// From what is kept of every stretch of authority, and the log behind that.
    fn then(
        &self,
        ctx: &Context,
        reader: &Reader,
        subject: &Subject,
        then: &Then,
    ) -> Result<WhoView, Stop> {
        let role = located(ctx, reader, subject)?;
        let about = ctx.look(reader, |lens| {
            Ok(match subject {
                Subject::Session(name) => find(lens.state, name).map(|n| Some(About::Session(n))),
                Subject::Tree(name) => root(lens.state, name).map(|n| Some(About::Tree(n))),
                Subject::Item(item) => Ok(Some(About::Item(item.clone().into_bytes()))),
                Subject::Role(at) => Ok(role
                    .as_ref()
                    .and_then(|scope| number(lens.state, at, scope))
                    .map(About::Role)),
                Subject::Path(_) => Ok(None),
            })
        })??;
        let Some(about) = about else {
            return Ok(WhoView::nobody(&self.subject, then.moment));
        };
        let held = reader.held_at(&about, then.place);
        let held = held.map_err(|error| ctx.fault(&error))?;
        ctx.look(reader, |lens| {
            Ok(match &held {
                Some((stretch, pool)) => lens.who_then(&self.subject, then.moment, stretch, pool),
                None => WhoView::nobody(&self.subject, then.moment),
            })
        })
    }

    /// Every session with declared work there: from the state at the head, or from what is kept of every binding.
    fn path(
        &self,
        ctx: &Context,
        reader: &Reader,
        path: &Path,
        then: Option<&Then>,
    ) -> Result<Vec<WhoView>, Stop> {
        let located = reader
            .locate(&served::place(path))
            .map_err(|error| ctx.fault(&error))?;
        let Some(then) = then else {
            let scope = located.map(|path| path.as_slice());
            return ctx.look(reader, |lens| Ok(lens.who_path(&self.subject, &scope)));
        };
        let at = then.moment.position;
        let over = reader.held_over(&located, at);
        let mut over = over.map_err(|error| ctx.fault(&error))?;
        over.stretches.dedup_by_key(|stretch| stretch.session);
        ctx.look(reader, |lens| {
            let told = |stretch| lens.who_then(&self.subject, then.moment, stretch, &over.pool);
            let views: Vec<WhoView> = over.stretches.iter().map(told).collect();
            Ok(if views.is_empty() {
                vec![WhoView::nobody(&self.subject, then.moment)]
            } else {
                views
            })
        })
    }
}

/// The root of the tree that the session of that name is in.
fn root(state: &State, name: &str) -> Result<SessionNo, Stop> {
    let number = find(state, name)?;
    Ok(state.session(number).map_or(number, |s| s.root))
}

/// Where a role is exclusive, for a subject that is one.
fn located(
    ctx: &Context,
    reader: &Reader,
    subject: &Subject,
) -> Result<Option<RoleScope<Vec<u8>>>, Stop> {
    let Subject::Role(at) = subject else {
        return Ok(None);
    };
    let located = reader.locate_role(at);
    located.map(Some).map_err(|error| ctx.fault(&error))
}

/// The role's number, if it was ever taken.
fn number(state: &State, at: &RoleAt, scope: &RoleScope<Vec<u8>>) -> Option<RoleNo> {
    let scope = scope.map(|text| text.as_slice());
    state.find_role(at.role.as_str().as_bytes(), &scope)
}

/// The place asked about.
struct Then {
    place: Place,
    /// Where that is: the newest position that was written by then.
    moment: Moment,
    resolved: Resolved,
}

impl Then {
    fn of(ctx: &Context, reader: &Reader, when: When) -> Result<Self, Stop> {
        let resolved = resolve(ctx, reader, when)?;
        let position = resolved.position;
        let (place, time) = match when {
            When::Time(time) => (Place::Time(time), time),
            When::At(_) => {
                let written = reader.written_at(position);
                let time = written.map_err(|error| ctx.fault(&error))?;
                (Place::At(position), time)
            }
        };
        Ok(Self {
            place,
            moment: Moment { position, time },
            resolved,
        })
    }
}
