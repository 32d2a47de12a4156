//! Calls: what a host program asks of a store, in its own terms, before it becomes a request of the rules.

use std::path::PathBuf;

use tenure_core::command::{Outcome, Ref, Settlement};
use tenure_core::disclosure::Rule;
use tenure_core::generation::{Epoch, Generation};
use tenure_core::history::{ActivityKind, HistoryHash};
use tenure_core::id::{DispatchNo, EnvelopeNo, Name, Position, Time, Token};
use tenure_core::seal::Secret;
use tenure_log::journal::Deadline;

pub use crate::host::ProcessChoice;

mod role;

pub use role::{RoleAt, RoleFault, RoleScope};

/// An idempotency key: the same key with the same call is answered once and repeated ever after (DIS-17).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IdempotencyKey(pub String);

/// A call: a verb with who asks, under which token, and how long it may take.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked.
    pub verb: Verb,
    /// On whose behalf; `None`: the store's default, `user@host`.
    pub actor: Option<String>,
    /// The token presented.
    pub token: Option<Token>,
    /// Asked by force, as operator, for this reason.
    pub force: Option<String>,
    /// The idempotency key.
    pub key: Option<IdempotencyKey>,
    /// The role that the token's session must hold.
    pub require: Option<RoleAt>,
    /// The secret of the grant that is asked for, in a sealed store; `None`: one is drawn. A call that may be repeated
    /// under its key has to carry it again.
    pub secret: Option<Secret>,
    /// When to give up waiting for the append lock or the disk.
    pub deadline: Deadline,
}

impl Call {
    /// A call without token, force or key that may wait for ever.
    #[must_use]
    pub fn new(verb: Verb) -> Self {
        Self {
            verb,
            actor: None,
            token: None,
            force: None,
            key: None,
            require: None,
            secret: None,
            deadline: Deadline::NEVER,
        }
    }

    /// The same call under a token.
    #[must_use]
    pub fn under(mut self, token: &Token) -> Self {
        self.token = Some(token.clone());
        self
    }

    /// The same call by force, as operator.
    #[must_use]
    pub fn by_force(mut self, reason: impl Into<String>) -> Self {
        self.force = Some(reason.into());
        self
    }

    /// The same call with an idempotency key.
    #[must_use]
    pub fn keyed(mut self, key: impl Into<String>) -> Self {
        self.key = Some(IdempotencyKey(key.into()));
        self
    }

    /// The same call, carried out only if the token's session holds a role.
    #[must_use]
    pub fn requiring(mut self, role: RoleAt) -> Self {
        self.require = Some(role);
        self
    }

    /// The same call for a grant with that secret, in a sealed store.
    #[must_use]
    pub fn sealed_with(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// The same call on behalf of an actor.
    #[must_use]
    pub fn by(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// The same call, given up after `deadline`.
    #[must_use]
    pub fn until(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }
}

/// A label of a session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Something that one record opens and another closes, `run:ID`, `call:ID` or `approval:ID`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Activity {
    /// What it is.
    pub kind: ActivityKind,
    /// Its id within the session.
    pub id: Name,
}

impl std::fmt::Display for Activity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.id)
    }
}

/// Who will hold a grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bearer {
    /// The process.
    pub process: ProcessChoice,
    /// claude, codex, gemini, ...
    pub engine: Option<String>,
}

impl Bearer {
    /// This process, with no engine named: what a host program means by itself.
    #[must_use]
    pub fn itself() -> Self {
        Self {
            process: ProcessChoice::Itself,
            engine: None,
        }
    }
}

/// What is asked. Names are parsed already; paths are as the caller spelled them, relative to its working
/// directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verb {
    /// Makes an absent or retired name active.
    Register {
        /// The name.
        name: Name,
        /// Who will hold it.
        bearer: Bearer,
        /// Labels.
        labels: Vec<Label>,
        /// The checkout it works in.
        checkout: Option<PathBuf>,
    },
    /// Takes over an active session.
    Adopt {
        /// The name.
        name: Name,
        /// Who will hold it.
        bearer: Bearer,
        /// Labels to set.
        labels: Vec<Label>,
    },
    /// Gives a session back.
    Retire {
        /// The name.
        name: Name,
        /// Only when nothing is open.
        if_idle: bool,
        /// Why.
        reason: Option<String>,
    },
    /// Gives an item to a session.
    Dispatch {
        /// The item.
        item: Name,
        /// The session.
        to: Name,
        /// The generation it must have.
        to_generation: Option<Generation>,
        /// A line about it.
        title: Option<String>,
        /// Declared write scopes.
        writes: Vec<PathBuf>,
        /// What to do.
        body: Option<Vec<u8>>,
    },
    /// Takes a dispatch on.
    Accept {
        /// Which.
        dispatch: DispatchNo,
    },
    /// Turns a dispatch down.
    Decline {
        /// Which.
        dispatch: DispatchNo,
        /// Why.
        reason: String,
    },
    /// Ends an accepted dispatch.
    Report {
        /// Which.
        dispatch: DispatchNo,
        /// How it ended.
        outcome: Outcome,
        /// What there is to say.
        body: Option<Vec<u8>>,
    },
    /// Withdraws a dispatch.
    Cancel {
        /// Which.
        dispatch: DispatchNo,
        /// Why.
        reason: String,
    },
    /// Says that an assignment failed after its session was connected.
    Fail {
        /// Which.
        dispatch: DispatchNo,
        /// Why.
        reason: String,
    },
    /// Writes something down.
    Note {
        /// The text.
        body: Vec<u8>,
        /// What it is about.
        on: Option<Ref>,
    },
    /// Says what a session is doing and where it wrote.
    Observe {
        /// One line.
        status: String,
        /// Paths it was seen to write.
        wrote: Vec<PathBuf>,
    },
    /// Sends a message.
    Send {
        /// To whom.
        to: Name,
        /// The text.
        body: Vec<u8>,
        /// What it answers.
        re: Option<Ref>,
    },
    /// Says that an envelope reached its session.
    Deliver {
        /// Which.
        envelope: EnvelopeNo,
    },
    /// Says that a session has read an envelope.
    Acknowledge {
        /// Which.
        envelope: EnvelopeNo,
    },
    /// Appends to the history of the session that the token names.
    Record {
        /// What kind of record it is, in the words of the host program.
        kind: String,
        /// The record.
        body: Vec<u8>,
        /// The position of the newest record, as the caller knows it; zero for none. `None`: wherever the history
        /// stands.
        expect: Option<Position>,
        /// The activity that begins with it.
        opens: Option<Activity>,
        /// The activity that ends with it.
        closes: Option<Activity>,
    },
    /// Hides what the session that the token names recorded behind a point of its history.
    Revert {
        /// The record that stays the newest; zero for none.
        to: Position,
    },
    /// Begins a session whose history begins as that of another.
    Branch {
        /// The other.
        source: Name,
        /// The new name.
        name: Name,
        /// The last record that is taken over; `None`: as far as the source's history is whole.
        at: Option<Position>,
        /// Who will hold it.
        bearer: Bearer,
        /// Labels, which outrank those of the source.
        labels: Vec<Label>,
        /// The checkout it works in.
        checkout: Option<PathBuf>,
        /// Whether it stays in the source's tree, under the token presented, which has to be of that tree; without
        /// a token it claims the tree of a source that was delegated, if nobody holds it (TRE-9). Else it is the
        /// root of a tree of its own, and needs no token.
        in_tree: bool,
    },
    /// Says that what the session that the token names recorded so far came from elsewhere.
    Import {
        /// What it was called there.
        from: String,
        /// What it was branched or delegated from there.
        parent: Option<String>,
        /// The digest of its history there.
        hash: HistoryHash,
    },
    /// Gives a session another name; the one it had stays an alias.
    Rename {
        /// The session.
        name: Name,
        /// The new name.
        to: Name,
    },
    /// Says what happened to a store that refuses to write.
    Settle {
        /// What.
        how: Settlement,
        /// Why the operator believes so.
        reason: String,
    },
    /// Acknowledges a finding that stops appends.
    AcceptFinding {
        /// The frame.
        position: Position,
        /// Why.
        reason: String,
    },
    /// Takes a role.
    TakeRole {
        /// Which.
        at: RoleAt,
        /// The process whose end ends it too.
        process: Option<ProcessChoice>,
    },
    /// Gives a role back.
    ReleaseRole {
        /// Which.
        at: RoleAt,
    },
    /// Asks whether the token's session holds a role; a refusal is recorded.
    CheckRole {
        /// Which.
        at: RoleAt,
        /// The role generation it has to have.
        generation: Option<Generation>,
    },
    /// Takes a role away from whoever holds it.
    ClearRole {
        /// Which.
        at: RoleAt,
        /// Why.
        reason: String,
    },
    /// Gives a dispatch over to another session.
    HandOff {
        /// Which.
        dispatch: DispatchNo,
        /// To whom.
        to: Name,
        /// The generation it must have.
        to_generation: Option<Generation>,
    },
    /// Says what applies where sessions meet in a place.
    SetPolicy {
        /// What.
        rule: Rule,
        /// Where: in it and below it.
        scope: PathBuf,
        /// Whether the path is one place on every host.
        shared: bool,
    },
    /// Asks whether the token's session may change paths now, and records whom it was shown.
    CheckWrite {
        /// The paths.
        writes: Vec<PathBuf>,
    },
    /// Says that somebody has seen to work that was reported blocked.
    Attend {
        /// The dispatch.
        dispatch: DispatchNo,
        /// What was done about it.
        reason: Option<String>,
    },
    /// Says that somebody passed a guard on purpose. A token that is presented is recorded, and need not be current.
    BypassGuard {
        /// The hook in which the guard stood.
        hook: String,
        /// The top directory of the checkout.
        checkout: PathBuf,
        /// What the guard had said.
        said: String,
        /// Why it was passed.
        reason: String,
    },
    /// Takes a role off a holder that is provably dead, for nobody.
    LapseRole {
        /// Which.
        at: RoleAt,
    },
    /// Says that a lock file that git had left was removed.
    RemoveLock {
        /// Where it was.
        path: PathBuf,
        /// Whose it was.
        uid: u32,
        /// Its length.
        bytes: u64,
        /// When it was last written, by the clock of its file system.
        modified: Time,
        /// Why it was removed.
        reason: String,
    },
    /// Makes an absent or retired name active in the tree of the token presented.
    RegisterChild {
        /// The name.
        name: Name,
        /// Who will act for it.
        bearer: Bearer,
        /// Labels.
        labels: Vec<Label>,
        /// The checkout it works in.
        checkout: Option<PathBuf>,
    },
    /// Makes an absent or retired name the root of a tree that nobody sees before it is published.
    Reserve {
        /// The name.
        name: Name,
        /// Who will hold it.
        bearer: Bearer,
        /// Labels.
        labels: Vec<Label>,
        /// The checkout it works in.
        checkout: Option<PathBuf>,
    },
    /// Lets a reserved root be seen, under a token of its tree or its epoch.
    Publish {
        /// A session of the tree.
        name: Name,
        /// The epoch presented, where no token is.
        epoch: Option<Epoch>,
    },
    /// Takes over a tree without adopting any session of it yet.
    Claim {
        /// A session of the tree.
        name: Name,
        /// Who will hold it.
        bearer: Bearer,
    },
    /// Takes over a tree, so that every token in it lapses, and adopts one session of it.
    AdoptTree {
        /// The session.
        name: Name,
        /// Who will hold the tree.
        bearer: Bearer,
        /// Labels to set.
        labels: Vec<Label>,
    },
    /// Adopts one session of a tree that the asker has claimed.
    AdoptClaimed {
        /// The session.
        name: Name,
        /// Who will act for it.
        bearer: Bearer,
        /// Labels to set.
        labels: Vec<Label>,
        /// The epoch of the claim.
        epoch: Epoch,
    },
    /// Gives up a claim under which nothing was adopted.
    Rollback {
        /// A session of the tree.
        name: Name,
        /// The epoch of the claim.
        epoch: Epoch,
    },
    /// Writes something down about a session that is not adopted yet.
    Recover {
        /// The session.
        name: Name,
        /// The epoch of the claim.
        epoch: Epoch,
        /// The text.
        body: Vec<u8>,
    },
    /// Gives a whole tree back, under a token of it or its epoch.
    Release {
        /// A session of the tree.
        name: Name,
        /// The epoch presented, where no token is.
        epoch: Option<Epoch>,
        /// Why.
        reason: Option<String>,
    },
    /// Seals a store that nothing was written to: every grant in it is made with a secret.
    SealStore,
    /// Gives back the tree of a holder that is provably dead.
    ReleaseDead {
        /// A session of the tree.
        name: Name,
    },
}

impl Verb {
    /// Whether it asks for a grant.
    pub(crate) fn asks_for_a_grant(&self) -> bool {
        self.records_a_holder() && !matches!(self, Self::Claim { .. })
    }

    /// Whether it records a process that may be judged in a later boot.
    pub(crate) fn records_a_holder(&self) -> bool {
        matches!(
            self,
            Self::Register { .. }
                | Self::Adopt { .. }
                | Self::RegisterChild { .. }
                | Self::Reserve { .. }
                | Self::Claim { .. }
                | Self::AdoptTree { .. }
                | Self::AdoptClaimed { .. }
                | Self::Branch { .. }
        )
    }
}
