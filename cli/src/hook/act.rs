//! Asks the ledger, and does what the tables say.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use tenure_projection::agents::{Footing, Meeting};
use tenure_projection::call::{Bearer, ProcessChoice, Verb};
use tenure_projection::checkouts::CheckoutError;
use tenure_projection::core::disclosure::Shared;
use tenure_projection::core::holder::Bearing;
use tenure_projection::core::id::{Name, Token};
use tenure_projection::error::Error;
use tenure_projection::guards::{changing, only_looks};
use tenure_projection::host::ancestors;
use tenure_projection::reader::Reader;
use tenure_projection::store::{Answer as Told, Done, Store};
use tenure_projection::views::SharedView;

use crate::context::{Context, Mutation, Reading};
use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::input::{self, Keyed};
use crate::kept;
use crate::private_file::{self, PrivateFile};
use crate::served;

use super::hold::{take_for, who_may_live};
use super::payload::{Answer, Event, Payload, Tool, Touch};
use super::step::{Row, Step, is_idle, row, step};
use super::{process, said};

mod news;
mod record;

pub use record::parting;

/// The reason with which a process gives its session back by itself.
pub const PARTED: &str = "the agent host ended the session";

/// One payload being answered.
pub struct Act<'a> {
    ctx: &'a Context,
    payload: &'a Payload,
    /// Opened to be looked at, once: what opening costs is most of what an answer costs.
    reader: OnceCell<Reading>,
    /// Opened when something is written.
    store: OnceCell<Store>,
}

/// Whose session it is.
struct Who {
    name: Name,
    /// The host process.
    pid: u32,
    bearing: Bearing,
    /// A token of that session in the environment.
    shown: Option<Token>,
    /// The token that was kept of it, in a sealed store.
    kept: Option<Token>,
}

impl Who {
    fn token(&self, generation: tenure_projection::core::generation::Generation) -> Token {
        let seen = self.shown.iter().chain(&self.kept);
        let secret = |token: &Token| token.secret.filter(|_| token.generation == generation);
        Token {
            name: self.name.clone(),
            generation,
            secret: seen.into_iter().find_map(secret),
        }
    }
}

impl<'a> Act<'a> {
    /// Answers this payload.
    pub fn new(ctx: &'a Context, payload: &'a Payload) -> Self {
        Self {
            ctx,
            payload,
            reader: OnceCell::new(),
            store: OnceCell::new(),
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// Why the ledger could not be asked.
    pub fn answer(&self) -> Result<Answer, Stop> {
        if is_idle(&self.payload.event) {
            return Ok(Answer::Silence);
        }
        let who = self.who()?;
        let presented = who.shown.as_ref().map(|shown| shown.generation);
        let footing = match self.reader()? {
            None => Footing::Free,
            Some(reader) => reader
                .footing(&who.name, &who.bearing, presented, PARTED)
                .map_err(|error| self.ctx.fault(&error))?,
        };
        if let Footing::Ours(generation) = footing {
            tell_adapter(&who, &who.token(generation))?;
        }
        let step = step(&self.payload.event, footing);
        match (step, footing) {
            (Step::Nothing, _) => Ok(Answer::Silence),
            (Step::TakeAndGreet, _) => match self.take(&who) {
                Ok(token) => self.greet(&who, &token),
                Err(Stop::Refused(view)) => Ok(Answer::Context(self.refused(&view, &who))),
                Err(stop) => Err(stop),
            },
            (Step::TakeAndCheck, _) => match self.take(&who) {
                Ok(token) => self.check(&who, &token),
                Err(Stop::Refused(view)) => Ok(Answer::Deny(self.refused(&view, &who))),
                Err(stop) => Err(stop),
            },
            (step, Footing::Ours(at) | Footing::Lost(at)) => self.under(step, &who, &who.token(at)),
            // A session that was never granted to this process is asked for before anything else is done with it.
            (_, _) => Ok(Answer::Silence),
        }
    }

    /// What is done under a token that was granted to this process.
    fn under(&self, step: Step, who: &Who, token: &Token) -> Result<Answer, Stop> {
        match (step, &self.payload.event) {
            (Step::Greet, _) => self.greet(who, token),
            (Step::News, _) => self.news_answer(who, token),
            (Step::Check, _) => self.check(who, token),
            // Asked again, so that the refusal is recorded and says everything.
            (Step::Refuse, _) => match self.ask(token, Vec::new()) {
                Ok(_) => self.check(who, token),
                Err(Stop::Refused(view)) => Ok(Answer::Deny(self.refused(&view, who))),
                Err(stop) => Err(stop),
            },
            (Step::Tell, _) => self.tell(who, token),
            (Step::Observe, Event::After(tool)) => self.observe(token, tool),
            (Step::Child, Event::ChildStart { id, role }) => self.begin_child(who, token, id, role),
            (Step::Child, Event::ChildStop { id }) => self.end_child(who, id),
            (Step::Part, _) => self.part(who, token),
            _ => Ok(Answer::Silence),
        }
    }

    /// Whose session it is: by the environment, else by the host's id of it.
    fn who(&self) -> Result<Who, Stop> {
        let told = served::variable("TENURE_SESSION").and_then(|name| name.into_string().ok());
        let told = told.filter(|name| !name.is_empty());
        let Some(name) = told.or_else(|| self.payload.session.clone()) else {
            let message = "the payload has no session_id, and TENURE_SESSION is not set";
            return Err(Fault::usage(message).into());
        };
        let name = input::name(&name)?;
        let bearing = match served::host_process() {
            Some(bearing) => bearing,
            None => hosting(self.ctx, self.payload.host)?,
        };
        let process = bearing.process.ok_or_else(unseen)?;
        // A token that cannot be read is as good as none: the grant to this process counts.
        let shown = input::token(None).ok().flatten();
        Ok(Who {
            shown: shown.filter(|token| token.name == name),
            kept: kept::token_of(self.ctx, &name),
            name,
            pid: process.pid,
            bearing,
        })
    }

    /// The store, to be looked at; `None` where there is none yet.
    fn reader(&self) -> Result<Option<&Reader>, Stop> {
        if let Some(reader) = self.reader.get() {
            return Ok(Some(reader));
        }
        match self.ctx.reading() {
            Ok(reader) => Ok(Some(self.reader.get_or_init(|| reader))),
            Err(Stop::Failed(fault)) if fault.cause == Cause::UnknownStore => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// The store, to be written to.
    fn store(&self) -> Result<&Store, Stop> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let store = self.ctx.store_or_new()?;
        Ok(self.store.get_or_init(|| store))
    }

    fn execute(&self, verb: Verb, token: Option<&Token>) -> Result<Done, Stop> {
        let mutation = Mutation::new(verb, &Keyed::default()).under(token.cloned());
        self.ctx.execute(self.store()?, mutation)
    }

    /// Registers or adopts for the host process, without force.
    fn take(&self, who: &Who) -> Result<Token, Stop> {
        let bearer = Bearer {
            process: ProcessChoice::Pid(who.pid),
            engine: Some(self.payload.host.as_str().to_owned()),
        };
        let cwd = self.payload.cwd.clone();
        let host = self.payload.host.as_str();
        let token = take_for(self.ctx, self.store()?, &who.name, &bearer, host, cwd)?;
        tell_adapter(who, &token)?;
        Ok(token)
    }

    /// Whether the tool may go where it goes.
    fn check(&self, who: &Who, token: &Token) -> Result<Answer, Stop> {
        let Event::Before(tool) = &self.payload.event else {
            return Ok(Answer::Silence);
        };
        let paths = self.located(self.targets(tool))?;
        if paths.is_empty() {
            return Ok(Answer::Silence);
        }
        let meeting = self.meeting(who, &paths)?;
        match row(&meeting) {
            Row::Allow => Ok(Answer::Silence),
            Row::Say => {
                let mut lines = said::gone(&self.views(&meeting.stale)?);
                lines.extend(said::meeting(
                    &self.views(&meeting.living)?,
                    meeting.instruction,
                ));
                Ok(Answer::Context(said::text(lines)))
            }
            Row::Ask => match self.ask(token, paths) {
                Ok(done) => self.met(&done),
                Err(Stop::Refused(view)) => Ok(Answer::Deny(self.refused(&view, who))),
                Err(stop) => Err(stop),
            },
        }
    }

    /// The question of `check --write`.
    fn ask(&self, token: &Token, writes: Vec<PathBuf>) -> Result<Done, Stop> {
        self.execute(Verb::CheckWrite { writes }, Some(token))
    }

    /// Whom an answer named.
    fn met(&self, done: &Done) -> Result<Answer, Stop> {
        let Told::Met {
            shared,
            instruction,
            warned,
        } = &done.answer
        else {
            return Ok(Answer::Silence);
        };
        let views = who_may_live(self.views(shared)?);
        Ok(match (warned, views.is_empty()) {
            (_, true) => Answer::Silence,
            (true, _) => Answer::Deny(said::warning(&views, *instruction)),
            (false, _) => Answer::Context(said::text(said::meeting(&views, *instruction))),
        })
    }

    fn meeting(&self, who: &Who, paths: &[PathBuf]) -> Result<Meeting, Stop> {
        let met = |reader: &Reader| reader.meeting(&who.name, paths);
        self.looking(met)
    }

    fn views(&self, list: &[Shared]) -> Result<Vec<SharedView>, Stop> {
        if list.is_empty() {
            return Ok(Vec::new());
        }
        self.looking(|reader| {
            reader.view(|state| {
                let lens = tenure_projection::views::Lens {
                    state,
                    host: reader.host(),
                    shelf: reader,
                };
                list.iter().map(|shared| lens.shared(shared)).collect()
            })
        })
    }

    /// Looks at the store that is open, or opens it to look.
    fn looking<R>(&self, look: impl FnOnce(&Reader) -> Result<R, Error>) -> Result<R, Stop> {
        let looked = match self.store.get() {
            Some(store) => look(store),
            None => match self.reader()? {
                Some(reader) => look(reader),
                // There was none when the session's standing was asked, and one was made for it.
                None => look(self.store()?),
            },
        };
        looked.map_err(|error| self.ctx.fault(&error))
    }

    /// Where a tool goes.
    fn targets(&self, tool: &Tool) -> Vec<PathBuf> {
        let cwd = self.payload.cwd.clone().unwrap_or_default();
        match &tool.touch {
            Touch::Nothing | Touch::Unknown => Vec::new(),
            Touch::Files(files) => files.iter().map(|file| cwd.join(file)).collect(),
            Touch::Line { line, .. } if only_looks(line) => Vec::new(),
            Touch::Line { line, directory } => {
                let at = directory
                    .as_ref()
                    .map_or_else(|| cwd.clone(), |d| cwd.join(d));
                let mut paths = vec![at.clone()];
                for command in changing(line, &at) {
                    let Some(directory) = command.directory else {
                        continue;
                    };
                    match command.paths.is_empty() {
                        true => paths.push(directory),
                        false => paths.extend(command.paths.iter().map(|p| directory.join(p))),
                    }
                }
                paths.sort();
                paths.dedup();
                paths
            }
        }
    }

    /// The paths that can be looked at: of any other it is unknown who works there, which stops nobody (DSC-12).
    fn located(&self, paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, Stop> {
        let mut open = Vec::new();
        for path in paths.into_iter().filter(|path| path.is_absolute()) {
            let located =
                tenure_projection::checkouts::locate(&*self.ctx.host(), Path::new("/"), &path);
            match located {
                Ok(_) => open.push(path),
                Err(CheckoutError::Unreadable { .. }) => {}
                Err(source) => {
                    let message = format!("{}: {source}", path.display());
                    return Err(Fault::usage(message).into());
                }
            }
        }
        open.truncate(tenure_projection::core::limits::SCOPES_MAX);
        Ok(open)
    }

    fn refused(&self, view: &tenure_projection::views::RefusalView, who: &Who) -> String {
        said::refusal(view, self.ctx.store_word().as_deref(), who.pid)
    }
}

/// The agent host that called this process.
///
/// # Errors
/// When no process above this one can be seen, or nothing can be found out about it.
pub fn hosting(ctx: &Context, host: super::Host) -> Result<Bearing, Stop> {
    let own: Vec<String> = std::env::args().collect();
    let pid = process::proxied(ancestors())
        .or_else(|| process::hosting(host, &own, ancestors()))
        .ok_or_else(unseen)?;
    let bearing = ctx.host().bearing(ProcessChoice::Pid(pid));
    Ok(bearing.map_err(|error| Fault::new(Cause::Io, error.to_string()))?)
}

fn unseen() -> Fault {
    Fault::new(Cause::Io, "no process above this one can be seen")
}

/// Replaces the token in the file that the environment names, if it is an older one of the same session (REG-15).
fn tell_adapter(who: &Who, token: &Token) -> Result<(), Stop> {
    let Some(path) = served::variable("TENURE_TOKEN_FILE").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = served::place(Path::new(&path));
    match private_file::read_token(&path) {
        Ok(old) if old.name == who.name && old.generation < token.generation => {
            PrivateFile::prepare(&path)?.commit(&token.reveal())
        }
        _ => Ok(()),
    }
}
