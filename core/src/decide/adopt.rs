//! Taking over: a session, a tree, or one session of a tree that the asker holds.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Adopt, AdoptClaimed, AdoptTree, Bearer, Claim, Label};
use crate::event::{
    Adopted, Carried, Claimed, Event, Fence, FenceKind, Reconciled, Reconciliation, TreeFence,
};
use crate::generation::{Epoch, Standing};
use crate::holder::{Proof, Verdict};
use crate::id::SessionNo;
use crate::refusal::{Code, Refusal, Relation};
use crate::state::{Session, Tree, TreeStanding};
use crate::text::TextId;
use crate::zoo::planted;

use super::guard::Ask;
use super::session::{already_active, following, grant, is_retired};
use super::{Decision, seal};

/// An adopt, as one of several commands has it.
#[derive(Clone, Copy)]
struct Taking<'a> {
    name: TextId,
    bearer: Bearer,
    labels: &'a [Label],
    way: Way,
}

/// By what right, and how much of the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The session and, where nobody of the tree asks and it is more than a lone root, the tree.
    Session,
    /// The tree in any case.
    Tree,
    /// The session, under a claim that stands.
    Claim(Epoch),
}

/// A session in its tree.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub number: SessionNo,
    pub session: &'a Session,
    pub root: SessionNo,
    pub tree: &'a Tree,
}

impl<'a> Target<'a> {
    /// The session of that name in its tree.
    pub fn named(ask: Ask<'a>, name: TextId) -> Result<Self, Refusal> {
        let (number, session) = ask.session(name)?;
        let root = &ask.state.sessions[session.root.index()];
        Ok(Self {
            number,
            session,
            root: session.root,
            tree: &root.tree,
        })
    }

    /// The tree at the epoch after this one.
    pub fn next_epoch(self, ask: Ask<'_>) -> Result<TreeFence, Refusal> {
        let epoch = ask.found(self.tree.epoch.next(), || {
            let name = ask.state.name(self.root);
            ask.refusal(Code::Held, Some(self.root), &name)
                .say(format!("the tree of {name} has used up its epochs"))
        })?;
        Ok(TreeFence {
            root: self.root,
            epoch,
        })
    }

    /// The tree as it stands.
    pub fn this_epoch(self) -> TreeFence {
        TreeFence {
            root: self.root,
            epoch: self.tree.epoch,
        }
    }

    /// Whether the asker presents a current token of the tree.
    ///
    /// A token that is presented and not current is refused, whatever else would be allowed.
    pub fn is_owned_by(self, ask: Ask<'_>) -> Result<bool, Refusal> {
        if ask.request.input.presented.is_none() {
            return Ok(false);
        }
        let author = ask.author()?;
        let theirs = ask.state.session(author.session).map(|s| s.root);
        Ok(theirs == Some(self.root))
    }

    /// Whether `epoch` is the claim that the tree stands under.
    pub fn is_claimed_at(self, ask: Ask<'_>, epoch: Epoch) -> Result<(), Refusal> {
        seal::no_epochs(ask, self.number)?;
        let current = self.tree.epoch;
        let stale = epoch < current;
        if epoch == current && self.tree.standing != TreeStanding::Unowned {
            return Ok(());
        }
        let name = ask.state.name(self.root);
        let (code, relation) = if stale {
            (Code::StaleGeneration, Relation::Superseded)
        } else {
            (Code::NeverIssued, Relation::NeverIssued)
        };
        let mut refusal = ask
            .refusal(code, Some(self.number), &ask.state.name(self.number))
            .holder(ask.state)
            .relation(relation)
            .next(
                format!("tenure tree {name}"),
                "shows the tree, who holds it and which of its sessions are adopted",
            );
        refusal.presented = Some(format!("tree:{name} epoch {epoch}"));
        refusal.current = Some(format!("tree:{name} epoch {current}"));
        let message = if stale {
            format!("epoch {epoch} of the tree of {name} has passed; {current} is current")
        } else {
            format!("epoch {epoch} of the tree of {name} was never given to anybody")
        };
        ask.refuse(refusal.say(message))
    }
}

/// Takes over an active session: g -> g+1. What is unfinished belongs to the same conversation and is carried
/// (ADO-1, BND-3). A holder that may live is in the way unless the adopt is forced, or made by whoever presents
/// a current token (ADO-11). A session of a larger tree is adopted with its tree, or under a token of it.
pub(super) fn adopt(ask: Ask<'_>, c: &Adopt) -> Result<Decision, Refusal> {
    let taking = Taking {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        way: Way::Session,
    };
    take(ask, taking)
}

/// Takes over a tree and adopts one session of it.
pub(super) fn adopt_tree(ask: Ask<'_>, c: &AdoptTree) -> Result<Decision, Refusal> {
    let taking = Taking {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        way: Way::Tree,
    };
    take(ask, taking)
}

/// Adopts one session of a tree that the asker has claimed (ADO-4, TRE-5).
pub(super) fn adopt_claimed(ask: Ask<'_>, c: &AdoptClaimed) -> Result<Decision, Refusal> {
    let taking = Taking {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        way: Way::Claim(c.epoch),
    };
    take(ask, taking)
}

fn take(ask: Ask<'_>, taking: Taking<'_>) -> Result<Decision, Refusal> {
    let at = Target::named(ask, taking.name)?;
    let (number, session) = (at.number, at.session);
    if session.retired {
        ask.refuse(is_retired(ask, number, session))?;
    }
    let current = ask.state.standing(number) == Some(Standing::Granted);
    let owned = match taking.way {
        Way::Claim(epoch) => {
            at.is_claimed_at(ask, epoch)?;
            if current {
                ask.refuse(already_active(ask, number))?;
            }
            true
        }
        Way::Session | Way::Tree => at.is_owned_by(ask)?,
    };
    let claims = match taking.way {
        Way::Tree => true,
        Way::Session => at.tree.grown && !owned,
        Way::Claim(_) => false,
    };
    let taken = takeover(ask, at, owned, claims)?;
    let mut next = following(ask, number, session)?;
    if planted("adopt-bumps-twice") {
        next = next.next(ask.state.incarnation).unwrap_or(next);
    }
    let tree = if claims {
        Some(at.next_epoch(ask)?)
    } else if at.tree.grown || matches!(taking.way, Way::Claim(_)) {
        Some(at.this_epoch())
    } else {
        None
    };
    let mut events: Vec<Event> = Vec::with_capacity(4);
    if let Some(tree) = tree.filter(|_| claims) {
        events.push(claimed(tree, taking.bearer, taken).into());
    }
    let adopted = Adopted {
        session: number,
        generation: next,
        bearer: taking.bearer,
        labels: taking.labels.to_vec(),
        forced: taken.forced,
        former: taken.former && current,
    };
    events.push(adopted.into());
    events.push(
        Carried {
            session: number,
            generation: next,
        }
        .into(),
    );
    // Whoever hands a session over goes on with it; whatever else takes it finds what was left.
    if !(owned && current && !claims) {
        events.extend(reconciled(ask, at));
    }
    Ok(grant(number, Some(session.generation), next, tree, events))
}

pub(super) fn claimed(tree: TreeFence, bearer: Bearer, taken: Taken) -> Claimed {
    Claimed {
        root: tree.root,
        epoch: tree.epoch,
        bearer,
        forced: taken.forced,
    }
}

/// What a former holder left running ends once, when its session is adopted (DIS-10, DIS-11).
fn reconciled(ask: Ask<'_>, at: Target<'_>) -> Option<Event> {
    let parent = at.session.parent.and_then(|p| ask.state.session(p));
    let orphaned = parent.is_some_and(|p| p.retired);
    let running = !at.session.history.open.is_empty();
    let how = match (orphaned, running) {
        (true, _) if running || !at.session.open.is_empty() => Reconciliation::ParentCancelled,
        (false, true) => Reconciliation::Interrupted,
        _ => return None,
    };
    Some(
        Reconciled {
            session: at.number,
            how,
        }
        .into(),
    )
}

/// Takes over a tree without adopting any session of it yet (ADO-3).
pub(super) fn claim(ask: Ask<'_>, c: &Claim) -> Result<Decision, Refusal> {
    let at = Target::named(ask, c.name)?;
    seal::no_epochs(ask, at.number)?;
    if at.session.retired {
        ask.refuse(is_retired(ask, at.number, at.session))?;
    }
    let owned = at.is_owned_by(ask)?;
    let taken = takeover(ask, at, owned, true)?;
    let tree = at.next_epoch(ask)?;
    let events = vec![claimed(tree, c.bearer, taken).into()];
    Ok(on_epoch(tree, events))
}

/// A frame that stands on a tree's epoch and no token.
pub(super) fn on_epoch(tree: TreeFence, events: Vec<Event>) -> Decision {
    let fence = Fence {
        kind: FenceKind::Claim,
        tree: Some(tree),
        ..Fence::NONE
    };
    Decision { fence, events }
}

/// A take-over that is allowed.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    /// Why it had to be forced, if it had to.
    forced: Option<TextId>,
    /// Whether somebody loses it who was not proven dead.
    former: bool,
}

/// A holder that may live is in the way of everybody who presents nothing of the tree, unless it is forced.
/// Of a reserved tree only a current token gives anything, and nothing claims it.
pub(super) fn takeover(
    ask: Ask<'_>,
    at: Target<'_>,
    owned: bool,
    claims: bool,
) -> Result<Taken, Refusal> {
    let (verdict, proofs) = evidence(ask, at);
    let pending = at.tree.standing == TreeStanding::PendingPublish;
    let held_by = ask.state.tree_holder(at.root);
    let forced = ask.request.input.force;
    let free = owned || held_by.is_none() || verdict == Verdict::Dead;
    let barred = if pending {
        claims || !owned
    } else {
        !free && forced.is_none()
    };
    if barred {
        ask.refuse(held(ask, at, verdict, proofs))?;
    }
    Ok(Taken {
        forced: forced.filter(|_| !free),
        former: held_by.is_some() && !owned && verdict != Verdict::Dead,
    })
}

/// The verdict on who holds the tree that a session is in.
pub(super) fn evidence_about(ask: Ask<'_>, session: SessionNo) -> (Verdict, Vec<Proof>) {
    let Some(record) = ask.state.session(session) else {
        return (Verdict::Unknowable, vec![Proof::NotProbed]);
    };
    let tree = &ask.state.sessions[record.root.index()].tree;
    let at = Target {
        number: session,
        session: record,
        root: record.root,
        tree,
    };
    evidence(ask, at)
}

/// The verdict on who holds the tree now. Evidence about any other holding counts for nothing, so two who saw
/// the same dead holder cannot both take over.
pub(super) fn evidence(ask: Ask<'_>, at: Target<'_>) -> (Verdict, Vec<Proof>) {
    match &ask.request.input.evidence {
        Some(e) if ask.state.holding(at.root) == Some((e.session, e.generation)) => {
            (e.verdict, e.proofs.clone())
        }
        Some(_) => (Verdict::Unknowable, vec![Proof::OtherGrant]),
        None => (Verdict::Unknowable, vec![Proof::NotProbed]),
    }
}

/// Held by somebody who may live.
pub(super) fn held(ask: Ask<'_>, at: Target<'_>, verdict: Verdict, proofs: Vec<Proof>) -> Refusal {
    let name = ask.state.name(at.number);
    let root = ask.state.name(at.root);
    let mut refusal = ask
        .refusal(Code::Held, Some(at.number), &name)
        .relation(Relation::Foreign)
        .evidence(verdict, proofs);
    if let Some((holder, since)) = ask.state.tree_holder(at.root) {
        refusal.holder = Some(holder);
        refusal.since = Some(since);
    }
    let current = refusal.current.clone().unwrap_or_default();
    let state = match verdict {
        Verdict::Alive => "is alive",
        Verdict::Dead => "is dead",
        Verdict::Unknowable => "may be alive",
    };
    if at.tree.standing == TreeStanding::PendingPublish {
        return refusal
            .say(format!(
                "{root} is reserved and not published, and who reserved it {state}"
            ))
            .next(
                format!("tenure register {root}"),
                "registers it, once it is published and retired or its holder is provably dead",
            );
    }
    let message = if at.tree.grown {
        format!(
            "{current} is in the tree of {root}, whose holder {state}; that will not expire by itself"
        )
    } else {
        format!("{current} is held, and its holder {state}; that will not expire by itself")
    };
    refusal
        .say(message)
        .next(
            format!("tenure show {name}"),
            "shows what the holder last did, to wait for its retire",
        )
        .next(
            format!("tenure branch {name} NEW-NAME"),
            "continues its history under another name, and leaves it alone",
        )
        .next(
            format!("tenure adopt {name} --force --reason TEXT"),
            "takes over at once; the holder is fenced, not stopped, and may still be writing files",
        )
}
