//! What may be asked. A [`Request`] is a command with its texts and with the facts the host found; it goes
//! into the frame as the decision's *input*, so that every decision can be judged again.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::disclosure::Rule;
use crate::generation::{Epoch, Generation};
use crate::history::{Activity, FoundRecord, HistoryHash};
use crate::holder::{Bearing, Evidence, HostId};
use crate::id::{DispatchNo, EnvelopeNo, Position, RefusalNo, SessionNo, Time};
use crate::path::Scope;
use crate::role::{ProcessEvidence, Requirement, RoleScope};
use crate::seal::Seal;
use crate::text::{Bodies, BodyId, TextId, Texts};

mod subject;

pub use subject::Ref;

/// A token as presented; the secret itself is never kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Presented {
    /// The session's name.
    pub name: TextId,
    /// The generation named.
    pub generation: Generation,
    /// Whether a secret was presented and matched; `None` when none was presented.
    pub secret_matched: Option<bool>,
}

/// Who asks, and from where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Origin {
    /// The actor.
    pub actor: TextId,
    /// User id of the asking process.
    pub uid: u32,
    /// The asking process.
    pub pid: u32,
    /// Its host.
    pub host: HostId,
}

/// An idempotency key as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Key {
    /// Digest of the key.
    pub digest: [u8; 16],
    /// Digest of the command and everything it carries.
    pub payload: [u8; 16],
    /// Where the key was used before, for another payload: found by whoever keeps the keys, and given to the
    /// decision, which refuses. Such a use binds nothing.
    pub taken: Option<Position>,
}

/// The process that a grant is made to, with its texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Bearer {
    /// The record that can be judged later.
    pub bearing: Bearing,
    /// On whose behalf.
    pub actor: TextId,
    /// Name of the host, for people.
    pub host_name: TextId,
    /// claude, codex, gemini, ...
    pub engine: Option<TextId>,
}

/// A label of a session: key and value.
pub type Label = (TextId, TextId);

wire_enum! {
    /// How a report ends its dispatch.
    pub enum Outcome {
        /// The work is done.
        Done = 1 "done",
        /// It failed.
        Failed = 2 "failed",
        /// It cannot go on without somebody.
        Blocked = 3 "blocked",
    }
}

wire_enum! {
    /// What an operator says happened to a store that refuses to write.
    pub enum Settlement {
        /// The directory was moved: nothing else has its bytes.
        Moved = 1 "moved",
        /// The directory was copied: another store lives on from the same bytes.
        Copied = 2 "copied",
        /// An older copy was put back: events may be lost.
        Restored = 3 "restored",
        /// What could be read of a damaged store was copied into a new one: positions may be lost. Said by a salvage
        /// alone.
        Salvaged = 4 "salvaged",
    }
}

/// The name of a session whose registration was lost, as a frame behind the loss has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Regained {
    /// The session.
    pub session: SessionNo,
    /// What it was called there.
    pub name: TextId,
}

wire_kinds! {
    /// A command: imperative, and nothing happens unless it is decided and appended.
    pub enum Command {
        /// Makes an absent or retired name active.
        1 "register" Register {
            /// The name.
            name: TextId,
            /// Who will hold it.
            bearer: Bearer,
            /// Labels.
            labels: Vec<Label>,
            /// The checkout it works in.
            checkout: Option<Scope<TextId>>,
        }
        /// Takes over an active session.
        2 "adopt" Adopt {
            /// The name.
            name: TextId,
            /// Who will hold it.
            bearer: Bearer,
            /// Labels to set.
            labels: Vec<Label>,
        }
        /// Gives a session back.
        3 "retire" Retire {
            /// The name.
            name: TextId,
            /// Only when nothing is open.
            if_idle: bool,
            /// Why.
            reason: Option<TextId>,
        }
        /// Gives an item to a session.
        4 "dispatch" Dispatch {
            /// The item.
            item: TextId,
            /// The session.
            to: TextId,
            /// The generation it must have.
            to_generation: Option<Generation>,
            /// A line about it.
            title: Option<TextId>,
            /// Declared write scopes.
            writes: Vec<Scope<TextId>>,
            /// What to do.
            body: Option<BodyId>,
        }
        /// Takes a dispatch on.
        5 "accept" Accept {
            /// Which.
            dispatch: DispatchNo,
        }
        /// Turns a dispatch down.
        6 "decline" Decline {
            /// Which.
            dispatch: DispatchNo,
            /// Why.
            reason: TextId,
        }
        /// Ends an accepted dispatch.
        7 "report" Report {
            /// Which.
            dispatch: DispatchNo,
            /// How it ended.
            outcome: Outcome,
            /// What there is to say.
            body: Option<BodyId>,
        }
        /// Withdraws a dispatch.
        8 "cancel" Cancel {
            /// Which.
            dispatch: DispatchNo,
            /// Why.
            reason: TextId,
        }
        /// Says that an assignment failed after its session was connected.
        9 "fail" Fail {
            /// Which.
            dispatch: DispatchNo,
            /// Why.
            reason: TextId,
        }
        /// Writes something down.
        10 "note" Note {
            /// The text.
            body: BodyId,
            /// What it is about.
            on: Option<Ref>,
        }
        /// Says what a session is doing and where it wrote.
        11 "observe" Observe {
            /// One line.
            status: TextId,
            /// Paths it was seen to write.
            wrote: Vec<Scope<TextId>>,
        }
        /// Sends a message.
        12 "send" Send {
            /// To whom.
            to: TextId,
            /// The text.
            body: BodyId,
            /// What it answers.
            re: Option<Ref>,
        }
        /// Says that an envelope reached its session.
        13 "deliver" Deliver {
            /// Which.
            envelope: EnvelopeNo,
        }
        /// Says that a session has read an envelope.
        14 "ack" Acknowledge {
            /// Which.
            envelope: EnvelopeNo,
        }
        /// Logs how often a recorded refusal was repeated.
        15 "count" Count {
            /// Which record.
            refusal: RefusalNo,
            /// How often in all.
            count: u64,
        }
        /// Says what happened to a store that refuses to write.
        16 "settle" Settle {
            /// What.
            how: Settlement,
            /// The incarnation from here on; the current one for a store that was only moved.
            incarnation: u64,
            /// Why the operator believes so.
            reason: TextId,
        }
        /// Acknowledges a finding that stops appends.
        17 "accept-finding" AcceptFinding {
            /// The frame.
            position: Position,
            /// Why.
            reason: TextId,
        }
        /// Makes an absent or retired name active in the tree of the token presented.
        18 "register-child" RegisterChild {
            /// The name.
            name: TextId,
            /// Who will act for it.
            bearer: Bearer,
            /// Labels.
            labels: Vec<Label>,
            /// The checkout it works in.
            checkout: Option<Scope<TextId>>,
        }
        /// Makes an absent or retired name the root of a tree that nobody sees before it is published.
        19 "reserve" Reserve {
            /// The name.
            name: TextId,
            /// Who will hold it.
            bearer: Bearer,
            /// Labels.
            labels: Vec<Label>,
            /// The checkout it works in.
            checkout: Option<Scope<TextId>>,
        }
        /// Lets a reserved root be seen.
        20 "publish" Publish {
            /// A session of the tree.
            name: TextId,
            /// The epoch presented, where no token is.
            epoch: Option<Epoch>,
        }
        /// Takes over a tree without adopting any session of it yet.
        21 "claim" Claim {
            /// A session of the tree.
            name: TextId,
            /// Who will hold it.
            bearer: Bearer,
        }
        /// Takes over a tree, so that every token in it lapses, and adopts one session of it.
        22 "adopt-tree" AdoptTree {
            /// The session.
            name: TextId,
            /// Who will hold the tree.
            bearer: Bearer,
            /// Labels to set.
            labels: Vec<Label>,
        }
        /// Adopts one session of a tree that the asker has claimed.
        23 "adopt-claimed" AdoptClaimed {
            /// The session.
            name: TextId,
            /// Who will act for it.
            bearer: Bearer,
            /// Labels to set.
            labels: Vec<Label>,
            /// The epoch of the claim.
            epoch: Epoch,
        }
        /// Gives up a claim under which nothing was adopted.
        24 "rollback" Rollback {
            /// A session of the tree.
            name: TextId,
            /// The epoch of the claim.
            epoch: Epoch,
        }
        /// Writes something down about a session that is not adopted yet.
        25 "recover" Recover {
            /// The session.
            name: TextId,
            /// The epoch of the claim.
            epoch: Epoch,
            /// The text.
            body: BodyId,
        }
        /// Gives a whole tree back.
        26 "release" Release {
            /// A session of the tree.
            name: TextId,
            /// The epoch presented, where no token is.
            epoch: Option<Epoch>,
            /// Why.
            reason: Option<TextId>,
        }
        /// Gives back the tree of a holder that is provably dead.
        27 "release-dead" ReleaseDead {
            /// A session of the tree.
            name: TextId,
        }
        /// Appends to the history of the session that the token names.
        30 "record" Record {
            /// What kind of record it is, in the words of the host program.
            kind: TextId,
            /// The record.
            body: BodyId,
            /// The position of the session's newest record, as the caller knows it; zero for none. `None`: append
            /// wherever the history stands.
            expect: Option<Position>,
            /// The activity that begins with it.
            opens: Option<Activity>,
            /// The activity that ends with it.
            closes: Option<Activity>,
        }
        /// Hides what the session that the token names recorded behind a point of its history.
        31 "revert" Revert {
            /// The record that stays the newest; zero for none.
            to: Position,
            /// That record, as the log has it.
            found: Option<FoundRecord>,
        }
        /// Begins a session whose history begins as that of another.
        32 "branch" Branch {
            /// The other.
            source: TextId,
            /// The new name.
            name: TextId,
            /// The last record that is taken over; `None`: as far as the source's history is whole.
            at: Option<Position>,
            /// That record, as the log has it.
            found: Option<FoundRecord>,
            /// Who will hold it.
            bearer: Bearer,
            /// Labels, which outrank those of the source.
            labels: Vec<Label>,
            /// The checkout it works in.
            checkout: Option<Scope<TextId>>,
        }
        /// Gives a session another name; the one it had stays an alias.
        33 "rename" Rename {
            /// The session.
            name: TextId,
            /// The new name.
            to: TextId,
        }
        /// Says that what a session recorded so far came from elsewhere.
        34 "import" Import {
            /// What it was called there.
            from: TextId,
            /// What it was branched or delegated from there; nothing of this store.
            parent: Option<TextId>,
            /// The digest of its history there.
            hash: HistoryHash,
        }
        /// Begins a session in the tree of another, whose history begins as that one's. Under a token of that tree;
        /// without one the tree is claimed, if nobody holds it and the other was delegated.
        35 "branch-in-tree" BranchInTree {
            /// The other.
            source: TextId,
            /// The new name.
            name: TextId,
            /// The last record that is taken over; `None`: as far as the source's history is whole.
            at: Option<Position>,
            /// That record, as the log has it.
            found: Option<FoundRecord>,
            /// Who will act for it.
            bearer: Bearer,
            /// Labels, which outrank those of the source.
            labels: Vec<Label>,
            /// The checkout it works in.
            checkout: Option<Scope<TextId>>,
        }
        /// Says that somebody passed a guard on purpose (GIT-13).
        50 "bypass-guard" BypassGuard {
            /// The hook in which the guard stood.
            hook: TextId,
            /// The top directory of the checkout.
            checkout: TextId,
            /// What the guard had said.
            said: TextId,
            /// Why it was passed.
            reason: TextId,
        }
        /// Records that the store cut off a torn tail of the log.
        60 "set-aside" SetAside {
            /// The first position in the name of the segment.
            first: Position,
            /// The writer epoch in it.
            epoch: u64,
            /// The offset at which the bytes stood.
            offset: u64,
            /// How many they were.
            bytes: u64,
            /// The file in `quarantine/` that holds them now.
            file: TextId,
        }
        /// Stands in place of a frame that a salvage could not read.
        61 "lose" Lose {
            /// The first position in the name of the segment that it stood in.
            first: Position,
            /// The writer epoch in it.
            epoch: u64,
            /// The offset at which something else stands; `None` when the file is not there or too short.
            offset: Option<u64>,
            /// What stands there.
            found: TextId,
            /// The incarnation that the same salvage begins behind everything it kept.
            life: u64,
            /// The name of a session that the frame may have introduced.
            regained: Option<Regained>,
        }
        /// Seals the store: from here on every grant is made with a secret. Said in the first frame or never.
        62 "seal-store" SealStore {}
        /// Says that a lock file that git had left was removed (GIT-5).
        51 "remove-lock" RemoveLock {
            /// Where it was.
            path: TextId,
            /// Whose it was.
            uid: u32,
            /// Its length.
            bytes: u64,
            /// When it was last written, by the clock of its file system.
            modified: Time,
            /// Why it was removed.
            reason: TextId,
        }
        /// Takes a role off a holder that is provably dead, for nobody (LIV-13).
        52 "lapse-role" LapseRole {
            /// Its name.
            role: TextId,
            /// Where.
            scope: RoleScope<TextId>,
            /// What was found about the process that it was recorded with.
            found: Option<ProcessEvidence>,
        }
        /// Takes a role.
        40 "role-take" TakeRole {
            /// Its name.
            role: TextId,
            /// Where.
            scope: RoleScope<TextId>,
            /// The process whose end ends it too.
            process: Option<Bearing>,
            /// What the host's probe found about the process that it was recorded with.
            found: Option<ProcessEvidence>,
        }
        /// Gives a role back.
        41 "role-release" ReleaseRole {
            /// Its name.
            role: TextId,
            /// Where.
            scope: RoleScope<TextId>,
        }
        /// Asks whether one holds a role.
        42 "role-check" CheckRole {
            /// Its name.
            role: TextId,
            /// Where.
            scope: RoleScope<TextId>,
            /// The role generation it has to have.
            generation: Option<Generation>,
        }
        /// Takes a role away from whoever holds it.
        43 "role-clear" ClearRole {
            /// Its name.
            role: TextId,
            /// Where.
            scope: RoleScope<TextId>,
            /// Why.
            reason: TextId,
        }
        /// Gives a dispatch over to another session.
        44 "handoff" HandOff {
            /// Which.
            dispatch: DispatchNo,
            /// To whom.
            to: TextId,
            /// The generation it must have.
            to_generation: Option<Generation>,
        }
        /// Says what applies where sessions meet in a place.
        45 "policy-set" SetPolicy {
            /// What.
            rule: Rule,
            /// Where: in it and below it.
            scope: Scope<TextId>,
            /// Whether the path is one place on every host.
            shared: bool,
        }
        /// Asks whether a session may change paths now.
        46 "check-write" CheckWrite {
            /// The paths.
            writes: Vec<Scope<TextId>>,
        }
        /// Says that somebody has seen to work that was reported blocked.
        47 "ack-blocked" Attend {
            /// The dispatch.
            dispatch: DispatchNo,
            /// What was done about it.
            reason: Option<TextId>,
        }
    }
}

/// A command with everything a decision may know: what goes into the frame as its input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// What is asked.
    pub command: Command,
    /// Who asks.
    pub origin: Origin,
    /// The token presented.
    pub presented: Option<Presented>,
    /// Asked as operator, by force, with this reason.
    pub force: Option<TextId>,
    /// What the host's probe found about the current holder.
    pub evidence: Option<Evidence>,
    /// The idempotency key.
    pub key: Option<Key>,
    /// The role that whoever asks must hold.
    pub require: Option<Requirement<TextId>>,
    /// The digest of the secret that a grant is to be made with; given in a sealed store alone.
    pub seal: Option<Seal>,
}

/// An input with its texts, bodies and time: what [`decide`](crate::decide::decide) judges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The input.
    pub input: Input,
    /// The texts it names.
    pub texts: Texts,
    /// The bodies it names.
    pub bodies: Bodies,
    /// The clock when it was asked.
    pub time: Time,
}

impl Request {
    /// What the store asks of itself: under nobody's token, by nobody's force, of no holder, with no key, and with no
    /// bodies. `origin.actor` is one of `texts`.
    #[must_use]
    pub fn of_the_store(command: Command, origin: Origin, texts: Texts, time: Time) -> Self {
        Self {
            input: Input {
                command,
                origin,
                presented: None,
                force: None,
                evidence: None,
                key: None,
                require: None,
                seal: None,
            },
            texts,
            bodies: Bodies::default(),
            time,
        }
    }
}
