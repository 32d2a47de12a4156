//! `who`: who holds it, now or then.

use std::path::PathBuf;

use tenure_projection::authority::{Authority, When as Place};
use tenure_projection::call::RoleAt;
use tenure_projection::core::event::Entry;
use tenure_projection::core::id::{Moment, RoleNo, SessionNo};
use tenure_projection::core::role::RoleScope;
use tenure_projection::core::state::State;
use tenure_projection::projector::Projector;
use tenure_projection::reader::Reader;
use tenure_projection::views::{Lens, WhoView};

use crate::clock::When;
use crate::context::Context;
use crate::exit::{Cause, Exit};
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::{human, json};

use super::super::find;

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
    /// One line for each holder; exit 1 when there is none.
    ///
    /// # Errors
    /// When there is no such session, the place is not in the log, or the store cannot be read.
    pub fn run(self, ctx: &mut Context) -> Result<Exit, Stop> {
        let subject = Subject::parse(&self.subject)?;
        let at = self.at.as_deref().map(input::when).transpose()?;
        let reader = ctx.reading()?;
        let views = match (&subject, at) {
            (Subject::Path(path), at) => self.path(ctx, &reader, path.clone(), at)?,
            (_, None) => vec![self.now(ctx, &reader, &subject)?],
            (_, Some(at)) => vec![self.then(ctx, &reader, &subject, at)?],
        };
        for view in &views {
            if ctx.out.is_json() {
                ctx.out.object(&json::who(view))?;
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

    /// From every stretch of authority that the log has.
    fn then(
        &self,
        ctx: &Context,
        reader: &Reader,
        subject: &Subject,
        at: When,
    ) -> Result<WhoView, Stop> {
        let replay = Replay::of(ctx, reader, at)?;
        let authority = &replay.authority;
        let lens = Lens {
            state: replay.projector.state(),
            host: reader.host(),
            shelf: reader,
        };
        let interval = match subject {
            Subject::Session(name) => {
                let number = find(lens.state, name)?;
                let name = lens.state.name(number);
                authority.session_at(name.as_bytes(), replay.place)
            }
            Subject::Item(item) => authority.item_at(item.as_bytes(), replay.place),
            Subject::Role(at) => located(ctx, reader, subject)?
                .and_then(|scope| number(lens.state, at, &scope))
                .and_then(|role| authority.role_at(role, replay.place)),
            Subject::Tree(name) => authority.tree_at(root(lens.state, name)?, replay.place),
            Subject::Path(_) => None,
        };
        Ok(match interval {
            Some(interval) => {
                lens.who_then(&self.subject, replay.moment, interval, authority.pool())
            }
            None => WhoView::nobody(&self.subject, replay.moment),
        })
    }

    /// Every session that was at work there.
    fn path(
        &self,
        ctx: &Context,
        reader: &Reader,
        path: PathBuf,
        at: Option<When>,
    ) -> Result<Vec<WhoView>, Stop> {
        let located = reader.locate(&path).map_err(|error| ctx.fault(&error))?;
        let mut state: State = match at {
            None => ctx.look(reader, |lens| Ok(lens.state.clone()))?,
            Some(at) => {
                let position = Replay::of(ctx, reader, at)?.moment.position;
                reader
                    .state_at(position)
                    .map_err(|error| ctx.fault(&error))?
            }
        };
        let scope = located.map(|path| state.pool.intern(path));
        let meetings = tenure_projection::core::disclosure::shared(&state, None, &[scope]);
        let mut there: Vec<SessionNo> = meetings.iter().map(|m| m.session).collect();
        there.dedup();
        let lens = Lens {
            state: &state,
            host: reader.host(),
            shelf: reader,
        };
        let views: Vec<WhoView> = there
            .iter()
            .map(|n| lens.who_session(&self.subject, *n))
            .collect();
        if views.is_empty() {
            return Ok(vec![WhoView::nobody(&self.subject, state.at)]);
        }
        Ok(views)
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

/// The log, replayed with every stretch of authority, and the place asked about in it.
struct Replay {
    projector: Projector,
    authority: Authority,
    place: Place,
    moment: Moment,
}

impl Replay {
    fn of(ctx: &Context, reader: &Reader, at: When) -> Result<Self, Stop> {
        let mut projector = Projector::new();
        let mut authority = Authority::new();
        let mut reached = Moment::default();
        let mut follow = |entry: &Entry, _: &State| {
            let passed = match at {
                When::At(position) => entry.at.position <= position,
                When::Time(time) => entry.at.time <= time,
            };
            if passed {
                reached = entry.at;
            }
        };
        projector
            .read(reader, None, &mut [&mut authority, &mut follow])
            .map_err(|error| ctx.fault(&error))?;
        let head = projector.position();
        match at {
            When::At(asked) if asked > head => {
                let message =
                    format!("the log ends at position {head}, and position {asked} was asked for");
                Err(Fault::new(Cause::BadPosition, message).into())
            }
            When::At(position) => {
                let moment = Moment {
                    position,
                    ..reached
                };
                Ok(Self {
                    projector,
                    authority,
                    place: Place::At(position),
                    moment,
                })
            }
            When::Time(time) => {
                let moment = Moment { time, ..reached };
                Ok(Self {
                    projector,
                    authority,
                    place: Place::Time(time),
                    moment,
                })
            }
        }
    }
}
