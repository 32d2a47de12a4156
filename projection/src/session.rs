//! A session as the program that holds it sees it: every write carries its token, and once it is lost it stays
//! lost, alone or with its tree.

use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::id::{Name, Token};
use tenure_core::refusal::{Code, Refusal};

use crate::call::{Bearer, Call, Verb};
use crate::error::{Error, Failure};
use crate::store::{Answer, Done, Store, Ticket};

/// A held session. Clones share what is known of its loss. Dropping it writes nothing and gives nothing back.
#[derive(Clone, Debug)]
pub struct Session {
    store: Store,
    token: Token,
    lost: Loss,
    /// Of the whole tree, shared with every handle that this one led to or came from.
    tree: Loss,
}

/// What is known of the loss of something, shared by the handles of it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Loss(Arc<Mutex<Option<Box<Refusal>>>>);

impl Loss {
    pub fn known(&self) -> Option<Box<Refusal>> {
        self.0.lock().clone()
    }

    pub fn learn(&self, refusal: &Refusal) {
        self.0
            .lock()
            .get_or_insert_with(|| Box::new(refusal.clone()));
    }
}

/// A write on its way.
#[must_use = "a write that nobody waits for may have been refused"]
#[derive(Debug)]
pub struct Pending {
    session: Session,
    ticket: Ticket,
}

impl Session {
    /// Registers a name for this process and holds it.
    ///
    /// # Errors
    /// See [`Store::execute`]; `already-active` when somebody holds it.
    pub fn register(store: &Store, name: &Name) -> Result<Self, Failure> {
        let verb = Verb::Register {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
            checkout: None,
        };
        Self::granted(store, store.execute(Call::new(verb))?)
    }

    /// Takes an active session over for this process: when its holder is provably dead, or by force, for a
    /// reason.
    ///
    /// # Errors
    /// See [`Store::execute`]; `held` when its holder may be alive and nothing is forced.
    pub fn adopt(store: &Store, name: &Name, force: Option<&str>) -> Result<Self, Failure> {
        let verb = Verb::Adopt {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
        };
        let mut call = Call::new(verb);
        call.force = force.map(str::to_owned);
        Self::granted(store, store.execute(call)?)
    }

    /// Holds what a token from elsewhere says, whether or not it is still current.
    #[must_use]
    pub fn of(store: &Store, token: Token) -> Self {
        Self::in_tree(store, token, Loss::default())
    }

    fn in_tree(store: &Store, token: Token, tree: Loss) -> Self {
        Self {
            store: store.clone(),
            token,
            lost: Loss::default(),
            tree,
        }
    }

    fn granted(store: &Store, done: Done) -> Result<Self, Failure> {
        Self::granted_in(store, done, Loss::default())
    }

    /// The handle of what a grant gave, in a tree whose loss is shared.
    pub(crate) fn granted_in(store: &Store, done: Done, tree: Loss) -> Result<Self, Failure> {
        match done.answer {
            Answer::Granted(grant) => Ok(Self::in_tree(store, grant.token, tree)),
            _ => Err(Error::Described("a grant was answered without a token".into()).into()),
        }
    }

    /// Registers a name in the tree of this session, for this process.
    ///
    /// # Errors
    /// See [`Session::call`]; `already-active` when somebody holds the name.
    pub fn delegate(&self, name: &Name) -> Result<Self, Failure> {
        let done = self.call(Verb::RegisterChild {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
            checkout: None,
        })?;
        Self::granted_in(&self.store, done, self.tree.clone())
    }

    /// Adopts another session of this session's tree, for this process.
    ///
    /// # Errors
    /// See [`Session::call`].
    pub fn adopt_in_tree(&self, name: &Name) -> Result<Self, Failure> {
        let done = self.call(Verb::Adopt {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
        })?;
        Self::granted_in(&self.store, done, self.tree.clone())
    }

    /// Gives the whole tree back. It waits for whatever is in the log's order already; then every handle that came
    /// from this one, or that this one came from, is read-only at once.
    ///
    /// # Errors
    /// See [`Session::call`].
    pub fn release(&self, reason: Option<&str>) -> Result<Done, Failure> {
        let name = self.token.name.clone();
        let done = self.call(Verb::Release {
            name: name.clone(),
            epoch: None,
            reason: reason.map(str::to_owned),
        })?;
        let probe = Verb::Publish { name, epoch: None };
        if let Some(refusal) = self.store.refuses(Call::new(probe).under(&self.token))? {
            self.tree.learn(&refusal);
        }
        Ok(done)
    }

    /// The token that its writes carry.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The refusal by which it was learned that the session is lost: superseded, retired, or never granted.
    #[must_use]
    pub fn lost(&self) -> Option<Refusal> {
        let known = self.lost.known().or_else(|| self.tree.known());
        known.map(|refusal| *refusal)
    }

    /// Whether the token is current, asked of the store unless the session is known to be lost.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn is_current(&self) -> Result<bool, Error> {
        if self.lost().is_some() {
            return Ok(false);
        }
        self.store.view(|state| {
            let session = state.find(self.token.name.as_str().as_bytes());
            session.is_some_and(|s| state.check(s, self.token.generation).is_ok())
        })
    }

    /// Executes a verb under the token.
    ///
    /// # Errors
    /// See [`Store::execute`]. Once the session is lost every further call is refused here, without asking the
    /// store (E08).
    pub fn call(&self, verb: Verb) -> Result<Done, Failure> {
        self.submit(verb)?.wait()
    }

    /// As [`Session::call`], without waiting.
    ///
    /// # Errors
    /// As [`Store::submit`], and as [`Session::call`] once the session is lost.
    pub fn submit(&self, verb: Verb) -> Result<Pending, Failure> {
        if let Some(refusal) = self.lost() {
            return Err(Failure::Refused(Box::new(refusal)));
        }
        let ticket = self.store.submit(Call::new(verb).under(&self.token))?;
        Ok(Pending {
            session: self.clone(),
            ticket,
        })
    }

    /// Gives the session back.
    ///
    /// # Errors
    /// See [`Store::execute`].
    pub fn retire(self) -> Result<Done, Failure> {
        let name = self.token.name.clone();
        self.call(Verb::Retire {
            name,
            if_idle: false,
            reason: None,
        })
    }
}

impl Pending {
    /// Waits for the answer.
    ///
    /// # Errors
    /// See [`Session::call`].
    pub fn wait(self) -> Result<Done, Failure> {
        let answer = self.ticket.wait();
        if let Err(Failure::Refused(refusal)) = &answer
            && matches!(
                refusal.code,
                Code::StaleGeneration | Code::NeverIssued | Code::Retired
            )
            && refusal.presented.as_deref() == Some(&*self.session.token.to_string())
        {
            self.session.lost.learn(refusal);
        }
        answer
    }
}
