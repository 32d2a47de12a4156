//! What the ledger says of the sessions that one agent process has: taken, fenced, given back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tenure_projection::agents::Footing;
use tenure_projection::call::{Bearer, ProcessChoice, Verb};
use tenure_projection::core::generation::Generation;
use tenure_projection::core::holder::Bearing;
use tenure_projection::core::id::{Name, Token};
use tenure_projection::core::limits::STATUS_BYTES_MAX;
use tenure_projection::store::{Answer, Done, Store};
use tenure_projection::views::Lens;

use crate::command::sessions::grant::granted;
use crate::context::{Context, Mutation};
use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::hook::{
    PARTED, Row, labels, parting, refusal_text, row, take_for, warning, who_may_live,
};
use crate::input::{self, Keyed};
use crate::kept;
use crate::output::json as shapes;

/// The code of every refusal: one of those that JSON-RPC leaves to servers, and that the protocol does not use.
pub const REFUSED: i32 = -32050;
/// The label `host` of the sessions that are held so.
const HOST: &str = "acp";

/// Asks the ledger for one agent process.
pub struct Desk<'a> {
    ctx: &'a Context,
    store: &'a Store,
    bearing: Bearing,
    bearer: Bearer,
    pid: u32,
    /// The sessions that were taken for it.
    taken: Mutex<BTreeSet<Name>>,
}

/// Why a message does not go on.
#[derive(Clone, PartialEq, Debug)]
pub struct Denial {
    /// For a person.
    pub message: String,
    /// The object that `--json` prints.
    pub data: Option<Value>,
}

/// What came of a question.
pub type Asked<T> = Result<T, Stop>;

impl<'a> Desk<'a> {
    /// For the agent that is process `pid`.
    ///
    /// # Errors
    /// When it cannot be seen.
    pub fn new(
        ctx: &'a Context,
        store: &'a Store,
        pid: u32,
        engine: Option<String>,
    ) -> Asked<Self> {
        let process = ProcessChoice::Pid(pid);
        let bearing = ctx.host().bearing(process);
        let bearing = bearing.map_err(|error| Fault::new(Cause::Io, error.to_string()))?;
        Ok(Self {
            ctx,
            store,
            bearing,
            bearer: Bearer { process, engine },
            pid,
            taken: Mutex::default(),
        })
    }

    /// Registers or adopts, without force.
    ///
    /// # Errors
    /// The refusal, or why nothing could be asked.
    pub fn take(&self, name: &Name, cwd: Option<PathBuf>) -> Asked<Token> {
        let token = take_for(self.ctx, self.store, name, &self.bearer, HOST, cwd)?;
        self.taken.lock().insert(name.clone());
        Ok(token)
    }

    /// Begins a session as a branch of another; one that the ledger does not know has no history to branch from.
    ///
    /// # Errors
    /// As [`Desk::take`].
    pub fn branch(&self, source: &Name, name: &Name, cwd: Option<PathBuf>) -> Asked<Token> {
        let known = self.ctx.look(self.store, |lens| {
            Ok(lens.state.find(source.as_str().as_bytes()).is_some())
        })?;
        if !known {
            return self.take(name, cwd);
        }
        let verb = Verb::Branch {
            source: source.clone(),
            name: name.clone(),
            at: None,
            bearer: self.bearer.clone(),
            labels: labels(HOST),
            checkout: cwd.filter(|cwd| cwd.is_absolute()),
            in_tree: false,
        };
        let done = self
            .ctx
            .execute(self.store, Mutation::new(verb, &Keyed::default()))?;
        self.taken.lock().insert(name.clone());
        let token = granted(&done)?.token.clone();
        kept::keep(self.ctx, &token)?;
        Ok(token)
    }

    /// The token of a session that goes on: the newest grant made to this process, or a new one where nobody is in the
    /// way and none was lost.
    ///
    /// # Errors
    /// As [`Desk::take`].
    pub fn fence(&self, name: &Name) -> Asked<Token> {
        match self.footing(name)? {
            Footing::Ours(generation) => Ok(self.token(name, generation)),
            // Asked again, so that the refusal is recorded and says everything.
            Footing::Lost(generation) => {
                let token = self.token(name, generation);
                self.ask(&token, Vec::new()).map(|_| token)
            }
            Footing::Parted(_) | Footing::Free | Footing::Held => self.take(name, None),
        }
    }

    /// The token to load a session with, and whether it was taken for that: a person's act, as any adopt is.
    ///
    /// # Errors
    /// As [`Desk::take`].
    pub fn load(&self, name: &Name, cwd: Option<PathBuf>) -> Asked<(Token, bool)> {
        match self.footing(name)? {
            Footing::Ours(generation) => Ok((self.token(name, generation), false)),
            _ => Ok((self.take(name, cwd)?, true)),
        }
    }

    /// Whether a session may write a file, by what applies there. The warning where it is to be heard first.
    ///
    /// # Errors
    /// As [`Desk::fence`].
    pub fn write(&self, token: &Token, path: &Path) -> Asked<Option<String>> {
        if !path.is_absolute() {
            return Ok(None);
        }
        let paths = [path.to_owned()];
        let met = self.store.meeting(&token.name, &paths);
        let met = met.map_err(|error| self.ctx.fault(&error))?;
        if row(&met) != Row::Ask {
            return Ok(None);
        }
        let done = self.ask(token, paths.to_vec())?;
        let Answer::Met {
            shared,
            instruction,
            warned: true,
        } = &done.answer
        else {
            return Ok(None);
        };
        let views = who_may_live(self.ctx.look(self.store, |lens: Lens<'_>| {
            Ok(shared.iter().map(|shared| lens.shared(shared)).collect())
        })?);
        Ok((!views.is_empty()).then(|| warning(&views, *instruction)))
    }

    /// Records that a session wrote a file.
    ///
    /// # Errors
    /// Why it could not be recorded; a refusal is none.
    pub fn wrote(&self, token: &Token, path: PathBuf) -> Asked<()> {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let mut status = format!("write {file}");
        status.truncate(status.floor_char_boundary(STATUS_BYTES_MAX));
        let verb = Verb::Observe {
            status,
            wrote: vec![path],
        };
        self.note(verb, token)
    }

    /// Gives a session back that the process holds.
    ///
    /// # Errors
    /// Why it could not be recorded; a refusal is none.
    pub fn part(&self, name: &Name) -> Asked<()> {
        self.taken.lock().remove(name);
        let Footing::Ours(generation) = self.footing(name)? else {
            return Ok(());
        };
        let verb = parting(self.store, name).map_err(|error| self.ctx.fault(&error))?;
        self.note(verb, &self.token(name, generation))
    }

    /// Retires a session that the agent has deleted.
    ///
    /// # Errors
    /// As [`Desk::part`].
    pub fn retire(&self, name: &Name) -> Asked<()> {
        self.taken.lock().remove(name);
        let Footing::Ours(generation) = self.footing(name)? else {
            return Ok(());
        };
        let verb = Verb::Retire {
            name: name.clone(),
            if_idle: false,
            reason: Some("the agent deleted the session".to_owned()),
        };
        self.note(verb, &self.token(name, generation))
    }

    /// Gives everything back that was taken for the process.
    ///
    /// # Errors
    /// As [`Desk::part`].
    pub fn part_all(&self) -> Asked<()> {
        let names = std::mem::take(&mut *self.taken.lock());
        names.iter().try_for_each(|name| self.part(name))
    }

    /// What a message carries of a grant.
    #[must_use]
    pub fn meta(token: &Token) -> Value {
        json!({
            "session": token.name.as_str(),
            "generation": token.generation.number,
            "incarnation": token.generation.incarnation,
            "token": token.to_string(),
        })
    }

    /// A refusal, as the other side is told; `None` where nothing could be asked.
    #[must_use]
    pub fn denial(&self, stop: &Stop) -> Option<Denial> {
        let Stop::Refused(view) = stop else {
            return None;
        };
        let store = self.ctx.store_word();
        Some(Denial {
            message: refusal_text(view, store.as_deref(), self.pid),
            data: Some(shapes::refusal(view).into_value()),
        })
    }

    fn token(&self, name: &Name, generation: Generation) -> Token {
        kept::token_at(self.ctx, name, generation)
    }

    fn footing(&self, name: &Name) -> Asked<Footing> {
        let footing = self.store.footing(name, &self.bearing, None, PARTED);
        footing.map_err(|error| self.ctx.fault(&error))
    }

    fn ask(&self, token: &Token, writes: Vec<PathBuf>) -> Asked<Done> {
        self.execute(Verb::CheckWrite { writes }, token)
    }

    fn execute(&self, verb: Verb, token: &Token) -> Asked<Done> {
        let mutation = Mutation::new(verb, &Keyed::default()).under(Some(token.clone()));
        self.ctx.execute(self.store, mutation)
    }

    /// What is recorded if it can be: nobody waits for it, and a refusal of it stops nothing.
    fn note(&self, verb: Verb, token: &Token) -> Asked<()> {
        match self.execute(verb, token) {
            Ok(_) | Err(Stop::Refused(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }
}

/// A session by the protocol's id.
///
/// # Errors
/// When it makes no name.
pub fn name(id: &str) -> Asked<Name> {
    input::name(id)
}
