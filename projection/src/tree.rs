//! A tree as the program that holds it sees it: claimed, adopted session by session, given back as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::generation::Epoch;
use tenure_core::id::{Name, Token};
use tenure_core::refusal::{Code, Refusal};

use crate::call::{Bearer, Call, Verb};
use crate::error::{Error, Failure};
use crate::session::{Loss, Session};
use crate::store::{Answer, Done, Store};

/// A tree that this process has claimed or reserved (`docs/trees.md`). Its writes carry the tree's epoch, and it
/// shares what is known of the loss of the tree with every [`Session`] that it gives.
///
/// When the last clone is dropped before anything was adopted or published under it, the claim is rolled back and
/// the reservation ended, as far as the log can still be written. A tree that was settled is left as it is:
/// dropping a handle gives nothing back.
#[derive(Clone, Debug)]
pub struct Tree(Arc<Held>);

#[derive(Debug)]
struct Held {
    store: Store,
    /// A session of the tree.
    name: Name,
    epoch: Epoch,
    /// The token of the root, of a tree that was reserved.
    reserved: Option<Token>,
    /// Whether something was adopted, published, rolled back or released: nothing is left to take back.
    settled: AtomicBool,
    loss: Loss,
}

impl Tree {
    /// Takes a tree over through any session of it, for this process, without adopting any yet: while nobody holds
    /// it, when its holder is provably dead, or by force, for a reason. Every token in it has lapsed.
    ///
    /// # Errors
    /// See [`Store::execute`]; `held` when its holder may be alive and nothing is forced.
    pub fn claim(store: &Store, name: &Name, force: Option<&str>) -> Result<Self, Failure> {
        let mut call = Call::new(Verb::Claim {
            name: name.clone(),
            bearer: Bearer::itself(),
        });
        call.force = force.map(str::to_owned);
        match store.execute(call)?.answer {
            Answer::Claimed { epoch, .. } => Ok(Self(Arc::new(Held {
                store: store.clone(),
                name: name.clone(),
                epoch,
                reserved: None,
                settled: AtomicBool::new(false),
                loss: Loss::default(),
            }))),
            _ => Err(Error::Described("a claim was answered without an epoch".into()).into()),
        }
    }

    /// Reserves a root: its name is taken, and nobody sees it before it is published. The session writes already,
    /// and others may be delegated from it.
    ///
    /// # Errors
    /// See [`Store::execute`]; `already-active`, or `held` when somebody else reserved the name.
    pub fn reserve(store: &Store, name: &Name) -> Result<(Self, Session), Failure> {
        let done = store.execute(Call::new(Verb::Reserve {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
            checkout: None,
        }))?;
        let loss = Loss::default();
        let session = Session::granted_in(store, done, loss.clone())?;
        let token = session.token();
        let epoch = store.view(|state| {
            let root = state.find(name.as_str().as_bytes())?;
            let record = state.session(root)?;
            // Somebody may have ended the reservation already.
            (record.generation == token.generation).then_some(record.epoch)
        })?;
        let Some(epoch) = epoch else {
            return Err(Error::Described("the reservation was ended as it was made".into()).into());
        };
        let held = Held {
            store: store.clone(),
            name: name.clone(),
            epoch,
            reserved: Some(token.clone()),
            settled: AtomicBool::new(false),
            loss,
        };
        Ok((Self(Arc::new(held)), session))
    }

    /// The epoch that its writes carry.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    /// The refusal by which it was learned that the tree is lost, or that says that it was given back.
    #[must_use]
    pub fn lost(&self) -> Option<Refusal> {
        self.0.loss.known().map(|refusal| *refusal)
    }

    /// Adopts one session of the tree for this process: it alone becomes writable. The first one settles the claim.
    ///
    /// # Errors
    /// See [`Store::execute`]; `already-active` when it is adopted already. Once the tree is lost every call is
    /// refused here, without asking the store.
    pub fn adopt(&self, name: &Name) -> Result<Session, Failure> {
        let done = self.call(Verb::AdoptClaimed {
            name: name.clone(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
            epoch: self.0.epoch,
        })?;
        self.0.settled.store(true, Ordering::Release);
        Session::granted_in(&self.0.store, done, self.0.loss.clone())
    }

    /// Writes something down about a session that is not adopted yet: what was found out about its last writes.
    ///
    /// # Errors
    /// See [`Tree::adopt`]; `not-pending` when the session is adopted.
    pub fn recover(&self, name: &Name, body: Vec<u8>) -> Result<Done, Failure> {
        self.call(Verb::Recover {
            name: name.clone(),
            epoch: self.0.epoch,
            body,
        })
    }

    /// Lets a reserved tree be seen.
    ///
    /// # Errors
    /// See [`Tree::adopt`]; `not-pending` when it was published already.
    pub fn publish(&self) -> Result<Done, Failure> {
        let done = self.call(Verb::Publish {
            name: self.0.name.clone(),
            epoch: Some(self.0.epoch),
        })?;
        self.0.settled.store(true, Ordering::Release);
        Ok(done)
    }

    /// Gives up a claim under which nothing was adopted: anybody may claim the tree at once.
    ///
    /// # Errors
    /// See [`Tree::adopt`]; `not-pending` once something was adopted.
    pub fn rollback(&self) -> Result<Done, Failure> {
        let done = self.call(Verb::Rollback {
            name: self.0.name.clone(),
            epoch: self.0.epoch,
        })?;
        self.given_back()?;
        Ok(done)
    }

    /// Gives the whole tree back: every handle of it is read-only at once.
    ///
    /// # Errors
    /// See [`Tree::adopt`]; `open-obligations` while nothing is adopted, or not published.
    pub fn release(&self, reason: Option<&str>) -> Result<Done, Failure> {
        let done = self.call(Verb::Release {
            name: self.0.name.clone(),
            epoch: Some(self.0.epoch),
            reason: reason.map(str::to_owned),
        })?;
        self.given_back()?;
        Ok(done)
    }

    fn given_back(&self) -> Result<(), Failure> {
        self.0.settled.store(true, Ordering::Release);
        let probe = Verb::Publish {
            name: self.0.name.clone(),
            epoch: Some(self.0.epoch),
        };
        if let Some(refusal) = self.0.store.refuses(Call::new(probe))? {
            self.0.loss.learn(&refusal);
        }
        Ok(())
    }

    fn call(&self, verb: Verb) -> Result<Done, Failure> {
        if let Some(refusal) = self.0.loss.known() {
            return Err(Failure::Refused(refusal));
        }
        let answer = self.0.store.execute(Call::new(verb));
        if let Err(Failure::Refused(refusal)) = &answer
            && matches!(refusal.code, Code::StaleGeneration | Code::NeverIssued)
        {
            self.0.loss.learn(refusal);
        }
        answer
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.settled.load(Ordering::Acquire) || self.loss.known().is_some() {
            return;
        }
        let name = self.name.clone();
        let call = match &self.reserved {
            Some(token) => Call::new(Verb::Retire {
                name,
                if_idle: false,
                reason: None,
            })
            .under(token),
            None => Call::new(Verb::Rollback {
                name,
                epoch: self.epoch,
            }),
        };
        // Nobody is left to be told. What cannot be taken back now is ended by whoever proves this process dead.
        drop(self.store.execute(call));
    }
}
