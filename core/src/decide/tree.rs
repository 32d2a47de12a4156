//! Trees: roots, children, reservations, and how a tree is given back (`docs/trees.md`).

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Publish, Recover, RegisterChild, Release, ReleaseDead, Reserve, Rollback};
use crate::event::{
    Delegated, Event, Published, Recovered, ReleaseCause, Released, Reserved, Retired, RolledBack,
    TreeFence, Unreserved,
};
use crate::generation::{Epoch, Generation, Standing};
use crate::holder::Verdict;
use crate::id::SessionNo;
use crate::refusal::{Code, Refusal};
use crate::state::{Granted, TreeStanding};
use crate::text::TextId;

use super::Decision;
use super::adopt::{Target, evidence, held, on_epoch};
use super::guard::{Ask, Authority};
use super::session::{Newcomer, already_active, fenced, following, grant, is_retired};

/// Registers a root: the tree is reserved and published in one step, or only reserved.
pub(super) fn root(ask: Ask<'_>, new: Newcomer<'_>, reserves: bool) -> Result<Decision, Refusal> {
    let state = ask.state;
    let reserved = |root| Event::from(Reserved { root });
    let Some(number) = state.find(ask.text(new.name)) else {
        let number = SessionNo(state.sessions.len() as u64);
        let first = Generation::first(state.incarnation);
        let mut events = vec![new.registered(number, first)];
        events.extend(reserves.then(|| reserved(number)));
        return Ok(grant(number, None, first, None, events));
    };
    let at = Target::named(ask, new.name)?;
    let abandoned = !state.is_published(number);
    if abandoned {
        let (verdict, proofs) = evidence(ask, at);
        if verdict != Verdict::Dead || at.root != number {
            ask.refuse(held(ask, at, verdict, proofs))?;
        }
    } else if !at.session.retired {
        ask.refuse(already_active(ask, number))?;
    }
    let own = at.root == number;
    if own && at.tree.grown && !abandoned && at.tree.standing != TreeStanding::Unowned {
        // Its children were claimed while it was retired.
        let (verdict, proofs) = evidence(ask, at);
        if verdict != Verdict::Dead {
            ask.refuse(held(ask, at, verdict, proofs))?;
        }
    }
    if reserves && !abandoned && has_children(ask, number) {
        ask.refuse(has_a_tree(ask, number))?;
    }
    let next = following(ask, number, at.session)?;
    // Its own tree, also where it was another's child.
    let own_tree = Target {
        root: number,
        tree: &at.session.tree,
        ..at
    };
    let named = !own || at.session.tree.grown || abandoned;
    let tree = named.then(|| own_tree.next_epoch(ask)).transpose()?;
    let mut events = Vec::with_capacity(4);
    if let Some(tree) = tree.filter(|_| abandoned) {
        events.push(unreserved(tree));
    }
    events.push(new.registered(number, next));
    events.extend(reserves.then(|| reserved(number)));
    events.push(fenced(ask, number, next));
    Ok(grant(
        number,
        Some(at.session.generation),
        next,
        tree,
        events,
    ))
}

fn unreserved(tree: TreeFence) -> Event {
    Unreserved {
        root: tree.root,
        epoch: tree.epoch,
    }
    .into()
}

/// Reserves a root: its name is taken at once, and nobody sees it before it is published (TRE-8).
pub(super) fn reserve(ask: Ask<'_>, c: &Reserve) -> Result<Decision, Refusal> {
    let new = Newcomer {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        checkout: c.checkout.as_ref(),
    };
    root(ask, new, true)
}

/// Whether sessions that are active were delegated from a root.
fn has_children(ask: Ask<'_>, root: SessionNo) -> bool {
    let others = ask.state.sessions_of_tree(root).skip(1);
    others.into_iter().any(|(_, session)| !session.retired)
}

fn has_a_tree(ask: Ask<'_>, root: SessionNo) -> Refusal {
    let name = ask.state.name(root);
    ask.refusal(Code::OpenObligations, Some(root), &name)
        .say(format!(
            "{name} is the root of a tree with active sessions; it is registered as that root or not at all"
        ))
        .next(
            format!("tenure register {name}"),
            "makes it active as the root that it is",
        )
        .next(format!("tenure tree {name}"), "lists the tree")
}

/// Registers a session in the tree of the token presented (TRE-4). The root of that very tree, retired, comes
/// back as its root.
pub(super) fn register_child(ask: Ask<'_>, c: &RegisterChild) -> Result<Decision, Refusal> {
    let state = ask.state;
    let author = ask.author()?;
    let new = Newcomer {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        checkout: c.checkout.as_ref(),
    };
    let root = state.sessions[author.session.index()].root;
    let tree = TreeFence {
        root,
        epoch: state.sessions[root.index()].tree.epoch,
    };
    let delegated = |session| {
        Event::from(Delegated {
            session,
            root,
            parent: author.session,
        })
    };
    let Some(number) = state.find(ask.text(c.name)) else {
        let number = SessionNo(state.sessions.len() as u64);
        let first = Generation::first(state.incarnation);
        let events = vec![new.registered(number, first), delegated(number)];
        return Ok(grant(number, None, first, Some(tree), events));
    };
    let at = Target::named(ask, c.name)?;
    if !ask.sees(number) {
        let (verdict, proofs) = evidence(ask, at);
        ask.refuse(held(ask, at, verdict, proofs))?;
    }
    if !at.session.retired {
        ask.refuse(already_active(ask, number))?;
    }
    let next = following(ask, number, at.session)?;
    let mut events = vec![new.registered(number, next)];
    if number != root {
        if at.root == number && !at.session.tree.members.is_empty() {
            ask.refuse(has_a_tree(ask, number))?;
        }
        events.push(delegated(number));
    }
    events.push(fenced(ask, number, next));
    let named = Some(at.session.generation);
    Ok(grant(number, named, next, Some(tree), events))
}

/// By what right something is done to a tree as a whole: a current token of it, or its epoch.
fn right(ask: Ask<'_>, at: Target<'_>, epoch: Option<Epoch>) -> Result<Option<Authority>, Refusal> {
    if let Some(epoch) = epoch {
        at.is_claimed_at(ask, epoch)?;
        return Ok(None);
    }
    let author = ask.author()?;
    if ask.state.session(author.session).map(|s| s.root) != Some(at.root) {
        let (verdict, proofs) = evidence(ask, at);
        ask.refuse(held(ask, at, verdict, proofs))?;
    }
    Ok(Some(Authority::Token(author)))
}

/// A frame about a tree under such a right; `tree` is its epoch afterwards.
fn frame(right: Option<Authority>, tree: TreeFence, events: Vec<Event>) -> Decision {
    let Some(authority) = right else {
        return on_epoch(tree, events);
    };
    let mut decision = authority.decides(events);
    decision.fence.tree = Some(tree);
    decision
}

fn not_pending(ask: Ask<'_>, at: Target<'_>, what: String) -> Refusal {
    let name = ask.state.name(at.root);
    let mut refusal = ask
        .refusal(
            Code::NotPending,
            Some(at.number),
            &ask.state.name(at.number),
        )
        .say(what)
        .next(
            format!("tenure tree {name}"),
            "shows the tree, who holds it and which of its sessions are adopted",
        );
    refusal.current = Some(at.tree.standing.as_str().into());
    refusal
}

/// Lets a reserved root be seen.
pub(super) fn publish(ask: Ask<'_>, c: &Publish) -> Result<Decision, Refusal> {
    if c.epoch.is_none() && ask.request.input.presented.is_none() {
        ask.refuse(ask.missing_token())?;
    }
    let at = Target::named(ask, c.name)?;
    let right = right(ask, at, c.epoch)?;
    if at.tree.standing != TreeStanding::PendingPublish {
        let root = ask.state.name(at.root);
        let what = format!("{root} is not waiting to be published");
        ask.refuse(not_pending(ask, at, what))?;
    }
    let published = Published { root: at.root };
    Ok(frame(right, at.this_epoch(), vec![published.into()]))
}

/// Gives up a claim under which nothing was adopted: nothing is left of it but its epoch (ADO-5).
pub(super) fn rollback(ask: Ask<'_>, c: &Rollback) -> Result<Decision, Refusal> {
    let at = Target::named(ask, c.name)?;
    at.is_claimed_at(ask, c.epoch)?;
    if at.tree.standing != TreeStanding::Adopting {
        let root = ask.state.name(at.root);
        let what = format!("the tree of {root} has nothing to roll back; release gives it back");
        ask.refuse(not_pending(ask, at, what))?;
    }
    let tree = at.next_epoch(ask)?;
    let rolled_back = RolledBack {
        root: tree.root,
        epoch: tree.epoch,
    };
    Ok(on_epoch(tree, vec![rolled_back.into()]))
}

/// Writes something down about a session that is not adopted yet (ADO-3).
pub(super) fn recover(ask: Ask<'_>, c: &Recover) -> Result<Decision, Refusal> {
    let at = Target::named(ask, c.name)?;
    if at.session.retired {
        ask.refuse(is_retired(ask, at.number, at.session))?;
    }
    at.is_claimed_at(ask, c.epoch)?;
    if ask.state.standing(at.number) == Some(Standing::Granted) {
        let name = ask.state.name(at.number);
        let what = format!("{name} is adopted: what is written about it carries its token");
        ask.refuse(not_pending(ask, at, what))?;
    }
    let recovered = Recovered {
        session: at.number,
        body: c.body,
    };
    Ok(on_epoch(at.this_epoch(), vec![recovered.into()]))
}

/// Gives a whole tree back: every token in it lapses. Repeated, it changes nothing (TRE-12).
pub(super) fn release(ask: Ask<'_>, c: &Release) -> Result<Decision, Refusal> {
    if c.epoch.is_none() && ask.request.input.presented.is_none() {
        ask.refuse(ask.missing_token())?;
    }
    let at = Target::named(ask, c.name)?;
    if c.epoch.is_none() && released_by(ask, at) {
        return Ok(Decision::nothing());
    }
    let right = right(ask, at, c.epoch)?;
    let root = ask.state.name(at.root);
    let open = |what: &str| {
        ask.refusal(
            Code::OpenObligations,
            Some(at.number),
            &ask.state.name(at.number),
        )
        .say(format!("the tree of {root} {what}"))
    };
    match at.tree.standing {
        TreeStanding::Owned => {}
        TreeStanding::PendingPublish => {
            ask.refuse(open("is reserved and not published").next(
                format!("tenure retire {root}"),
                "ends the reservation; the name is free",
            ))?;
        }
        TreeStanding::Adopting | TreeStanding::Unowned => {
            ask.refuse(open(
                "is claimed and nothing in it is adopted; its claim is rolled back",
            ))?;
        }
    }
    let tree = at.next_epoch(ask)?;
    let released = released(tree, ReleaseCause::Given, c.reason);
    Ok(frame(right, tree, vec![released]))
}

fn released(tree: TreeFence, how: ReleaseCause, reason: Option<TextId>) -> Event {
    Released {
        root: tree.root,
        epoch: tree.epoch,
        how,
        reason,
    }
    .into()
}

/// Whether the token presented was current until the release that the tree stands after.
fn released_by(ask: Ask<'_>, at: Target<'_>) -> bool {
    let Some(presented) = ask.request.input.presented else {
        return false;
    };
    let session = ask.presented_session().and_then(|n| ask.state.session(n));
    session.is_some_and(|s| {
        s.root == at.root
            && s.generation == presented.generation
            && ask.state.opens(presented.secret_matched)
            && s.epoch.next() == Some(at.tree.epoch)
            && at
                .tree
                .notes
                .last()
                .is_some_and(|note| note.how == Granted::Released && note.epoch == at.tree.epoch)
    })
}

/// Gives back what a dead holder holds. The evidence must be about the holding that stands here, so that a
/// claim that came first is never taken away (LIV-14).
pub(super) fn release_dead(ask: Ask<'_>, c: &ReleaseDead) -> Result<Decision, Refusal> {
    let at = Target::named(ask, c.name)?;
    if ask.state.tree_holder(at.root).is_none() {
        return Ok(Decision::nothing());
    }
    let (verdict, proofs) = evidence(ask, at);
    if verdict != Verdict::Dead {
        ask.refuse(held(ask, at, verdict, proofs))?;
    }
    let tree = at.next_epoch(ask)?;
    let event = match at.tree.standing {
        TreeStanding::PendingPublish => unreserved(tree),
        _ => released(tree, ReleaseCause::Proven, None),
    };
    Ok(on_epoch(tree, vec![event]))
}

/// A retire, with what it does to a tree of which the session is the root: a reservation ends, and a tree from
/// which something was delegated is dropped.
pub(super) fn retire(
    ask: Ask<'_>,
    authority: Authority,
    retired: Retired,
) -> Result<Decision, Refusal> {
    let state = ask.state;
    let number = retired.session;
    let session = &state.sessions[number.index()];
    let pending = session.tree.standing == TreeStanding::PendingPublish;
    if session.root != number || !(session.tree.grown || pending) {
        return Ok(authority.decides(vec![retired.into()]));
    }
    let at = Target {
        number,
        session,
        root: number,
        tree: &session.tree,
    };
    let tree = at.next_epoch(ask)?;
    let events = if pending {
        vec![unreserved(tree)]
    } else {
        let reason = retired.reason;
        let dropped = released(tree, ReleaseCause::RootRetired, reason);
        vec![retired.into(), dropped]
    };
    let right = match authority {
        Authority::Token(_) => Some(authority),
        Authority::Operator => None,
    };
    Ok(frame(right, tree, events))
}
