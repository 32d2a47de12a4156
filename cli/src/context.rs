//! What every command works with: the store it is pointed at, on whose behalf, and where answers go.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_projection::call::{Call, Verb};
use tenure_projection::core::id::Token;
use tenure_projection::core::seal::Secret;
use tenure_projection::error::{Error, Failure};
use tenure_projection::host::{Host, System, state_directory};
use tenure_projection::log::journal::Deadline;
use tenure_projection::reader::Reader;
use tenure_projection::store::{Done, OpenOptions, Store};
use tenure_projection::views::Lens;

use crate::app::Global;
use crate::clock;
use crate::exit::Cause;
use crate::fault::{Fault, Stop, of_failure, of_store, shell_word};
use crate::input::{self, Keyed};
use crate::output::{Output, replaying};
use crate::served;

/// What every command works with.
pub struct Context {
    global: Global,
    host: Arc<dyn Host>,
    /// The store that a server keeps open.
    served: Option<Store>,
    /// Where answers go.
    pub out: Output,
}

impl Context {
    /// From the options of every command.
    #[must_use]
    pub fn new(global: Global) -> Self {
        match global.color.as_str() {
            "always" => anstream::ColorChoice::Always,
            "never" => anstream::ColorChoice::Never,
            _ => anstream::ColorChoice::Auto,
        }
        .write_global();
        let out = Output::new(global.json, global.quiet);
        Self {
            global,
            host: Arc::new(System::of_this_user()),
            served: None,
            out,
        }
    }

    /// For a command that a server carries out on a store that it keeps open.
    #[must_use]
    pub fn serving(global: Global, store: Store, host: Arc<dyn Host>, out: Output) -> Self {
        Self {
            global,
            host,
            served: Some(store),
            out,
        }
    }

    /// The same for another command, which prints to `out`: on a store that is kept open, where there is one.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn again(&self, kept: Option<Store>, out: Output) -> Self {
        Self {
            global: self.global.clone(),
            host: Arc::clone(&self.host),
            served: kept,
            out,
        }
    }

    /// The store's directory.
    ///
    /// # Errors
    /// When none is named and there is no home to put one in, or another engine is named.
    pub fn dir(&self) -> Result<PathBuf, Stop> {
        if let Some(dir) = &self.global.store {
            let text = dir.to_string_lossy();
            if let Some((engine @ ("postgres" | "postgresql" | "etcd"), _)) = text.split_once(':') {
                let message =
                    format!("this program has no engine {engine}; it writes to directories");
                return Err(Fault::new(Cause::EngineUnavailable, message).into());
            }
            if dir.as_os_str().is_empty() {
                return Err(Fault::usage("--store (or TENURE_STORE) is empty").into());
            }
            return Ok(dir.clone());
        }
        state_directory().map(|s| s.join("tenure")).ok_or_else(|| {
            let message =
                "no store is named, and neither XDG_STATE_HOME nor HOME says where to keep one";
            Fault::new(Cause::Configuration, message)
                .then("tenure --store DIR ...", "names the store's directory")
                .into()
        })
    }

    /// The store, as a person has to name it; `None` where it is the one that everybody uses.
    #[must_use]
    pub fn store_word(&self) -> Option<String> {
        let dir = self.dir().ok()?;
        let usual = state_directory().map(|state| state.join("tenure"));
        (Some(&dir) != usual.as_ref()).then(|| shell_word(&dir))
    }

    /// When to give up.
    ///
    /// # Errors
    /// When `--timeout` is no length of time.
    pub fn deadline(&self) -> Result<Deadline, Stop> {
        let text = &self.global.timeout;
        let micros = clock::micros(text).and_then(|m| u64::try_from(m).ok());
        let micros = micros.ok_or_else(|| {
            Fault::usage(format!(
                "--timeout {text:?} is no length of time, as 30s or 2m are"
            ))
        })?;
        Ok(Deadline::after(Duration::from_micros(micros)))
    }

    /// The clock and process probe.
    #[must_use]
    pub fn host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.host)
    }

    /// On whose behalf: as named, else `user@host` with the name the environment gives the user. `None` leaves it
    /// to the store.
    #[must_use]
    pub fn actor(&self) -> Option<String> {
        let named = self.global.actor.clone().filter(|actor| !actor.is_empty());
        let user = || {
            ["USER", "LOGNAME"]
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|u| !u.is_empty()))
        };
        named.or_else(|| Some(format!("{}@{}", user()?, self.host.this().name)))
    }

    /// How the store in `dir` is opened.
    #[must_use]
    pub fn options(&self, dir: &Path) -> OpenOptions {
        let kinds = self.global.allow_fs.iter();
        kinds.fold(OpenOptions::new(dir), |options, kind| {
            options.allow_file_system(kind)
        })
    }

    /// The store, which has to be there.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn store(&self) -> Result<Store, Stop> {
        self.open(false)
    }

    /// The store, made where there is none.
    ///
    /// # Errors
    /// When it cannot be opened or made.
    pub fn store_or_new(&self) -> Result<Store, Stop> {
        self.open(true)
    }

    /// The same for a process that lives as long as an agent does: no call waits for a snapshot to be written.
    ///
    /// # Errors
    /// When it cannot be opened or made.
    pub fn lasting_store(&self, host: Arc<dyn Host>) -> Result<Store, Stop> {
        self.lasting(host, true)
    }

    /// As [`Context::lasting_store`], for a store that has to be there.
    ///
    /// # Errors
    /// When it cannot be opened.
    #[cfg(feature = "mcp")]
    pub fn kept_store(&self) -> Result<Store, Stop> {
        self.lasting(self.host(), false)
    }

    fn lasting(&self, host: Arc<dyn Host>, create: bool) -> Result<Store, Stop> {
        let dir = self.dir()?;
        let options = self.options(&dir).create(create).snapshots_aside(true);
        Store::open(&options, host).map_err(|error| of_store(&error, &dir).into())
    }

    fn open(&self, create: bool) -> Result<Store, Stop> {
        if let Some(store) = &self.served {
            return Ok(store.clone());
        }
        let dir = self.dir()?;
        let options = self.options(&dir).create(create);
        let host = self.host();
        replaying(self.out.is_quiet(), || Store::open(&options, host))
            .map_err(|error| of_store(&error, &dir).into())
    }

    /// The store for those who only look: no lock is taken and no byte changed.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reading(&self) -> Result<Reading, Stop> {
        if let Some(store) = &self.served {
            return Ok(Reading::Kept(store.clone()));
        }
        let dir = self.dir()?;
        let host = self.host();
        let reader = replaying(self.out.is_quiet(), || Reader::open(&dir, host));
        let reader = reader.map_err(|error| Stop::from(of_store(&error, &dir)))?;
        Ok(Reading::Opened(Box::new(reader)))
    }

    /// Looks at the head of a store.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn look<R>(
        &self,
        reader: &Reader,
        look: impl FnOnce(Lens<'_>) -> Result<R, Error>,
    ) -> Result<R, Stop> {
        let looked = reader.view(|state| {
            look(Lens {
                state,
                host: reader.host(),
                shelf: reader,
            })
        });
        looked
            .and_then(|inner| inner)
            .map_err(|error| self.fault(&error))
    }

    /// What a store's error means for the caller.
    #[must_use]
    pub fn fault(&self, error: &Error) -> Stop {
        let dir = self.dir().unwrap_or_default();
        of_store(error, &dir).into()
    }

    /// Executes a call.
    ///
    /// # Errors
    /// The refusal with all that is known about it, or what failed.
    pub fn execute(&self, store: &Store, mutation: Mutation) -> Result<Done, Stop> {
        self.execute_within(store, mutation, None)
    }

    /// Executes a call that takes a role, waiting for it until `wait`.
    ///
    /// # Errors
    /// As [`Context::execute`]; `role-held` when the wait was in vain.
    pub fn execute_within(
        &self,
        store: &Store,
        mutation: Mutation,
        wait: Option<Deadline>,
    ) -> Result<Done, Stop> {
        let Mutation {
            mut verb,
            token,
            force,
            key,
            require,
            secret,
        } = mutation;
        served::settle(&mut verb);
        let carried = carried(&verb);
        let mut call = Call::new(verb).until(self.deadline()?);
        call.token = token;
        call.force = force;
        call.actor = self.actor();
        call.key = key;
        call.secret = secret;
        call.require = require.as_deref().map(input::role_at).transpose()?;
        let answered = match wait {
            Some(end) => store.execute_when_free(call, end),
            None => store.execute(call),
        };
        answered.map_err(|failure| self.stop(store, failure, carried.as_deref()))
    }

    /// Executes calls in order, and waits for them together: they share writes and syncs.
    ///
    /// # Errors
    /// That of the first that was not done; the others were decided all the same.
    pub fn execute_all(&self, store: &Store, mutations: Vec<Mutation>) -> Result<Vec<Done>, Stop> {
        let mut tickets = Vec::with_capacity(mutations.len());
        for mutation in mutations {
            let mut call = Call::new(mutation.verb).until(self.deadline()?);
            (call.token, call.force) = (mutation.token, mutation.force);
            (call.actor, call.key) = (self.actor(), mutation.key);
            let ticket = store.submit(call);
            tickets.push(ticket.map_err(|failure| self.stop(store, failure, None))?);
        }
        let answers: Vec<_> = tickets.into_iter().map(|t| t.wait()).collect();
        let done = answers.into_iter();
        done.map(|answer| answer.map_err(|failure| self.stop(store, failure, None)))
            .collect()
    }

    fn stop(&self, store: &Store, failure: Failure, carried: Option<&[u8]>) -> Stop {
        let dir = self.dir().unwrap_or_else(|_| Path::new(".").to_owned());
        of_failure(failure, &dir, |refusal| {
            store.view(|state| {
                Lens {
                    state,
                    host: store.host(),
                    shelf: &**store,
                }
                .refused(refusal, carried)
            })
        })
    }
}

/// A store to look at: opened for that, or the one that a server keeps open.
#[derive(Debug)]
pub enum Reading {
    /// Opened, from its files.
    Opened(Box<Reader>),
    /// Kept open.
    Kept(Store),
}

impl Deref for Reading {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        match self {
            Self::Opened(reader) => reader,
            Self::Kept(store) => store,
        }
    }
}

/// A change asked for.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// What is asked.
    pub verb: Verb,
    /// Under which token.
    pub token: Option<Token>,
    /// By force, for this reason.
    pub force: Option<String>,
    /// With which idempotency key.
    pub key: Option<tenure_projection::call::IdempotencyKey>,
    /// Only under a role, `ROLE@SCOPE`.
    pub require: Option<String>,
    /// The secret of the grant that is asked for, where it was chosen before.
    pub secret: Option<Secret>,
}

impl Mutation {
    /// A change without token and force.
    #[must_use]
    pub fn new(verb: Verb, keyed: &Keyed) -> Self {
        Self {
            verb,
            token: None,
            force: None,
            key: keyed.key(),
            require: keyed.required_role(),
            secret: None,
        }
    }

    /// The same change under a token.
    #[must_use]
    pub fn under(mut self, token: Option<Token>) -> Self {
        self.token = token;
        self
    }

    /// The same change for a grant with that secret, if one was chosen.
    #[must_use]
    pub fn sealed_with(mut self, secret: Option<Secret>) -> Self {
        self.secret = secret;
        self
    }

    /// The same change by force, if there is a reason.
    #[must_use]
    pub fn forced(mut self, reason: Option<String>) -> Self {
        self.force = reason;
        self
    }
}

/// The body that a call carries: what is kept if it is refused.
fn carried(verb: &Verb) -> Option<Vec<u8>> {
    match verb {
        Verb::Dispatch { body, .. } | Verb::Report { body, .. } => body.clone(),
        Verb::Note { body, .. } | Verb::Send { body, .. } | Verb::Record { body, .. } => {
            Some(body.clone())
        }
        _ => None,
    }
}
