//! What has happened: past participles, numbers only. Kinds below 32768 may touch decisions: a program that
//! does not know one reads on but never appends.

use alloc::vec::Vec;

use crate::command::{Bearer, Label, Outcome, Ref, Settlement};
use crate::disclosure::{Peer, Rule};
use crate::generation::{Epoch, Generation};
use crate::history::{Activity, HistoryHash, Point};
use crate::holder::{Bearing, Evidence};
use crate::id::{DispatchNo, EnvelopeNo, Position, RefusalNo, RoleNo, SessionNo, Time};
use crate::path::Scope;
use crate::role::{ProcessEvidence, RoleScope};
use crate::seal::Seal;
use crate::text::{BodyId, TextId};

mod entry;
mod fence;

pub use entry::Entry;
pub use fence::{Fence, FenceKind, TreeFence};

/// The first kind number that touches no decision.
pub const OPAQUE_KIND_MIN: u16 = 32768;

wire_kinds! {
    /// An event.
    pub enum Event {
        /// A name became active: new, or again after it was retired.
        1 "registered" Registered {
            /// The session; new when its number has not been seen.
            session: SessionNo,
            /// Its name.
            name: TextId,
            /// The generation granted.
            generation: Generation,
            /// To whom.
            bearer: Bearer,
            /// Labels.
            labels: Vec<Label>,
            /// The checkout it works in.
            checkout: Option<Scope<TextId>>,
        }
        /// An active session was taken over.
        2 "adopted" Adopted {
            /// The session.
            session: SessionNo,
            /// The generation granted.
            generation: Generation,
            /// To whom.
            bearer: Bearer,
            /// Labels set.
            labels: Vec<Label>,
            /// Why it was forced, if it was.
            forced: Option<TextId>,
            /// Whether the former holder was not proven dead and may still be writing files.
            former: bool,
        }
        /// Everything unfinished of the session moved to the new generation: envelopes not acknowledged
        /// (delivered ones are pending again), live dispatches, bindings.
        3 "carried" Carried {
            /// The session.
            session: SessionNo,
            /// The generation carried to.
            generation: Generation,
        }
        /// Everything unfinished of older generations ended: envelopes are cancelled, dispatches and
        /// bindings fenced; each unread reply got a review, numbered from `first_review`.
        4 "fenced" Fenced {
            /// The session.
            session: SessionNo,
            /// Generations below this one are over.
            below: Generation,
            /// Number of the first review.
            first_review: EnvelopeNo,
        }
        /// A session was given back: open dispatches and bindings are cancelled, pending notices too.
        5 "retired" Retired {
            /// The session.
            session: SessionNo,
            /// Its generation.
            generation: Generation,
            /// Why.
            reason: Option<TextId>,
            /// Whether an operator did it without the token.
            forced: bool,
        }
        /// An item was given to a session.
        6 "dispatched" Dispatched {
            /// The dispatch.
            dispatch: DispatchNo,
            /// To whom.
            session: SessionNo,
            /// At which generation.
            generation: Generation,
            /// By which session; `None`: by an operator.
            from: Option<SessionNo>,
            /// The item.
            item: TextId,
            /// A line about it.
            title: Option<TextId>,
            /// Declared write scopes.
            writes: Vec<Scope<TextId>>,
            /// The `work` envelope.
            envelope: EnvelopeNo,
            /// What to do.
            body: Option<BodyId>,
        }
        /// A dispatch was taken on: the binding is active.
        7 "accepted" Accepted {
            /// The dispatch.
            dispatch: DispatchNo,
            /// By whom.
            session: SessionNo,
            /// At which generation.
            generation: Generation,
        }
        /// The accepting session was shown every other session at work where it will write, and each of
        /// them got a notice, numbered from `first_notice` in the order of session numbers.
        8 "joined" Joined {
            /// The dispatch accepted.
            dispatch: DispatchNo,
            /// Number of the first notice.
            first_notice: EnvelopeNo,
        }
        /// A dispatch was turned down.
        9 "declined" Declined {
            /// The dispatch.
            dispatch: DispatchNo,
            /// Why.
            reason: TextId,
        }
        /// An accepted dispatch ended.
        10 "reported" Reported {
            /// The dispatch.
            dispatch: DispatchNo,
            /// How.
            outcome: Outcome,
            /// What was said.
            body: Option<BodyId>,
        }
        /// A dispatch was withdrawn.
        11 "cancelled" Cancelled {
            /// The dispatch.
            dispatch: DispatchNo,
            /// Why.
            reason: TextId,
            /// Whether an operator did it by force.
            forced: bool,
        }
        /// An assignment failed after its session was connected; nothing was claimed.
        12 "assignment-failed" AssignmentFailed {
            /// The dispatch.
            dispatch: DispatchNo,
            /// Why.
            reason: TextId,
            /// The notice.
            notice: EnvelopeNo,
            /// Whether an operator did it by force.
            forced: bool,
        }
        /// Something was written down.
        13 "noted" Noted {
            /// By whom.
            session: SessionNo,
            /// The text.
            body: BodyId,
            /// What it is about.
            on: Option<Ref>,
        }
        /// A session said what it is doing.
        14 "observed" Observed {
            /// Which.
            session: SessionNo,
            /// The line.
            status: TextId,
            /// Paths it was seen to write.
            wrote: Vec<Scope<TextId>>,
        }
        /// A message was sent.
        15 "sent" Sent {
            /// The envelope.
            envelope: EnvelopeNo,
            /// To whom.
            session: SessionNo,
            /// At which generation.
            generation: Generation,
            /// By which session; `None`: by an operator.
            from: Option<SessionNo>,
            /// What it answers.
            re: Option<Ref>,
            /// The text.
            body: BodyId,
        }
        /// An envelope reached its session.
        16 "delivered" Delivered {
            /// Which.
            envelope: EnvelopeNo,
        }
        /// An envelope was read.
        17 "acknowledged" Acknowledged {
            /// Which.
            envelope: EnvelopeNo,
        }
        /// A command was refused and kept: the first of its kind, or one with a body not seen before.
        18 "refused" Refused {
            /// The record.
            refusal: RefusalNo,
            /// Code number (see `refusal::Code`).
            code: u16,
            /// The session concerned; `None` for the shared record.
            session: Option<SessionNo>,
            /// The generation that was presented.
            presented: Option<Generation>,
            /// Kind number of the command.
            command: u16,
            /// The generation that was current.
            current: Option<Generation>,
            /// What the command was about, for people.
            subject: TextId,
            /// Digest of the body that the refused command carried.
            body: Option<[u8; 16]>,
            /// Bytes of that body.
            body_bytes: u64,
        }
        /// A refusal was repeated so often.
        19 "refusals-counted" RefusalsCounted {
            /// The record.
            refusal: RefusalNo,
            /// How often in all.
            count: u64,
        }
        /// The log began a new life; every session is left without a holder.
        20 "incarnation-raised" IncarnationRaised {
            /// The incarnation from here on.
            incarnation: u64,
            /// What had happened.
            how: Settlement,
            /// Why the operator believes so.
            reason: TextId,
        }
        /// The store's directory is known at a new place.
        21 "home-accepted" HomeAccepted {
            /// Why.
            reason: TextId,
        }
        /// A finding no longer stops appends.
        22 "finding-accepted" FindingAccepted {
            /// The frame.
            position: Position,
            /// Why.
            reason: TextId,
        }
        /// The session just registered joined the tree of another.
        30 "delegated" Delegated {
            /// The session.
            session: SessionNo,
            /// The root of the tree.
            root: SessionNo,
            /// The session that delegated it.
            parent: SessionNo,
        }
        /// The root just registered is not to be seen before it is published.
        31 "reserved" Reserved {
            /// The root.
            root: SessionNo,
        }
        /// A reserved root can be seen.
        32 "published" Published {
            /// The root.
            root: SessionNo,
        }
        /// A tree was taken over: every token in it has lapsed.
        33 "claimed" Claimed {
            /// The root.
            root: SessionNo,
            /// The epoch from here on.
            epoch: Epoch,
            /// By whom.
            bearer: Bearer,
            /// Why it was forced, if it was.
            forced: Option<TextId>,
        }
        /// A claim under which nothing was adopted was given up.
        34 "rolled-back" RolledBack {
            /// The root.
            root: SessionNo,
            /// The epoch from here on.
            epoch: Epoch,
        }
        /// Something was written down under a claim about a session that is not adopted yet.
        35 "recovered" Recovered {
            /// The session.
            session: SessionNo,
            /// The text.
            body: BodyId,
        }
        /// A tree was given back: every token in it has lapsed, and what its sessions had running is
        /// cancelled.
        36 "released" Released {
            /// The root.
            root: SessionNo,
            /// The epoch from here on.
            epoch: Epoch,
            /// How it came to it.
            how: ReleaseCause,
            /// Why.
            reason: Option<TextId>,
        }
        /// A reservation ended unpublished: its root's name is free, and every name delegated under it.
        37 "unreserved" Unreserved {
            /// The root.
            root: SessionNo,
            /// The epoch from here on.
            epoch: Epoch,
        }
        /// What a session's former holder left running has ended.
        38 "reconciled" Reconciled {
            /// The session.
            session: SessionNo,
            /// How.
            how: Reconciliation,
        }
        /// A record joined the history of a session.
        40 "recorded" Recorded {
            /// Whose history.
            session: SessionNo,
            /// Its index there, from 1.
            index: u64,
            /// The record before it, in the same history or in the one it branched from.
            previous: Option<Position>,
            /// The digest of the history before it.
            before: HistoryHash,
            /// How many calls and approvals are open behind it.
            depth: u32,
            /// What kind of record it is.
            kind: TextId,
            /// The record.
            body: BodyId,
            /// The activity that began with it.
            opens: Option<Activity>,
            /// The activity that ended with it.
            closes: Option<Activity>,
        }
        /// What a session recorded behind a point is hidden; nothing is removed.
        41 "reverted" Reverted {
            /// Whose history.
            session: SessionNo,
            /// The point that the next record continues; `None`: the beginning.
            to: Option<Point>,
        }
        /// A session begins with the history of another, up to a point. Labels that it was not given, the read
        /// cursor, and messages that were delivered and not acknowledged are copied from the source, which is told
        /// by a notice where it is active: first the notice, then the messages, numbered from `first_envelope`.
        42 "branched" Branched {
            /// The session, granted in the same frame.
            session: SessionNo,
            /// Whose history it begins with.
            source: SessionNo,
            /// Up to which point; `None`: it begins empty.
            at: Option<Point>,
            /// Number of the first envelope.
            first_envelope: EnvelopeNo,
        }
        /// A session got another name; every one that it had stays an alias.
        43 "renamed" Renamed {
            /// The session.
            session: SessionNo,
            /// Its name from here on.
            name: TextId,
        }
        /// What a session recorded so far came from elsewhere. Whatever it had open there was interrupted, and
        /// what it was branched or delegated from there is named and not attached.
        44 "imported" Imported {
            /// The session.
            session: SessionNo,
            /// What it was called there.
            from: TextId,
            /// What it was branched or delegated from there.
            parent: Option<TextId>,
            /// The digest of its history there.
            hash: HistoryHash,
        }
        /// Somebody passed a guard on purpose. It stands on no token: whoever does it answers for it as an
        /// operator, and the token that was presented is named as evidence.
        60 "guard-bypassed" GuardBypassed {
            /// The hook in which the guard stood.
            hook: TextId,
            /// The session of the token that was presented, if there is one.
            session: Option<SessionNo>,
            /// The generation that was presented.
            presented: Option<Generation>,
            /// The top directory of the checkout.
            checkout: TextId,
            /// What the guard had said.
            said: TextId,
            /// Why it was passed.
            reason: TextId,
        }
        /// The store cut off a torn tail of the log: bytes that nobody knew to be durable, kept in quarantine.
        70 "tail-set-aside" TailSetAside {
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
        /// The frame that stood here is lost. From here to the incarnation that the salvage began, no fence can be
        /// proven: what lost frames granted or ended is not known.
        71 "position-lost" PositionLost {
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
        }
        /// A session that a lost frame introduced, by the name that a later frame has for it.
        72 "session-regained" SessionRegained {
            /// The session.
            session: SessionNo,
            /// Its name.
            name: TextId,
        }
        /// The store is sealed: every grant from here on is.
        73 "store-sealed" StoreSealed {}
        /// The grant that the same frame makes is sealed. It stands behind the other events of the frame.
        74 "grant-sealed" GrantSealed {
            /// The session granted.
            session: SessionNo,
            /// The generation granted.
            generation: Generation,
            /// The digest of the secret.
            seal: Seal,
        }
        /// A lock file that git had left was removed.
        61 "lock-removed" LockRemoved {
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
        /// A session holds a role from here on.
        50 "role-taken" RoleTaken {
            /// The role; new when its number has not been seen.
            role: RoleNo,
            /// Its name.
            name: TextId,
            /// Where it is exclusive.
            scope: RoleScope<TextId>,
            /// Its generation from here on.
            generation: Generation,
            /// Who holds it.
            session: SessionNo,
            /// The generation of that session.
            under: Generation,
            /// The process whose end ends it too.
            process: Option<Bearing>,
        }
        /// A role was taken off a holder that is provably dead, or whose session nobody holds.
        51 "role-lapsed" RoleLapsed {
            /// The role.
            role: RoleNo,
            /// Its generation from here on.
            generation: Generation,
            /// Who held it.
            session: SessionNo,
            /// What was found about the session's holder.
            evidence: Option<Evidence>,
            /// What was found about the process that the role was recorded with.
            process: Option<ProcessEvidence>,
            /// The notice to that session.
            notice: EnvelopeNo,
        }
        /// A role was given back by its holder.
        52 "role-released" RoleReleased {
            /// The role.
            role: RoleNo,
            /// Who held it.
            session: SessionNo,
        }
        /// An operator took a role away.
        53 "role-cleared" RoleCleared {
            /// The role.
            role: RoleNo,
            /// Its generation from here on.
            generation: Generation,
            /// Who held it.
            session: SessionNo,
            /// Why.
            reason: TextId,
            /// The notice to that session.
            notice: EnvelopeNo,
        }
        /// A dispatch went over to another session, in the state that it has.
        54 "handed-over" HandedOver {
            /// The dispatch.
            dispatch: DispatchNo,
            /// Who had it.
            from: SessionNo,
            /// Who has it.
            session: SessionNo,
            /// At which generation.
            generation: Generation,
            /// The `work` envelope to the new owner.
            envelope: EnvelopeNo,
        }
        /// A place has a rule for sessions that meet there.
        55 "policy-set" PolicySet {
            /// What applies.
            rule: Rule,
            /// Where: in it and below it.
            scope: Scope<TextId>,
            /// Whether the path is one place on every host.
            shared: bool,
        }
        /// A session was shown others at work where it writes, whom its holder had not been shown before. Each of
        /// them that was not shown this session gets a notice, numbered from `first_notice` in this order.
        56 "shown" Shown {
            /// Who was shown.
            session: SessionNo,
            /// The paths it writes.
            writes: Vec<Scope<TextId>>,
            /// Whom it was shown.
            peers: Vec<Peer>,
            /// Number of the first notice.
            first_notice: EnvelopeNo,
        }
        /// As `shown`, and told not to write yet: a policy wants it to be said once before.
        57 "warned" Warned {
            /// Who was warned.
            session: SessionNo,
            /// The paths it wants to write.
            writes: Vec<Scope<TextId>>,
            /// Of whom.
            peers: Vec<Peer>,
            /// Number of the first notice.
            first_notice: EnvelopeNo,
        }
        /// Somebody has seen to work that was reported blocked.
        58 "attended" Attended {
            /// The dispatch.
            dispatch: DispatchNo,
            /// What was done about it.
            reason: Option<TextId>,
        }
    }
}

wire_enum! {
    /// How a tree came to be released.
    pub enum ReleaseCause {
        /// By who held it.
        Given = 1 "given",
        /// Its holder was proven dead.
        Proven = 2 "proven",
        /// Its root was retired.
        RootRetired = 3 "root-retired",
    }
}

wire_enum! {
    /// How what was left running ended.
    pub enum Reconciliation {
        /// Nobody knows how far it came (DIS-10).
        Interrupted = 1 "interrupted",
        /// The session that delegated it was retired: live dispatches are cancelled too (DIS-11).
        ParentCancelled = 2 "parent-cancelled",
    }
}
