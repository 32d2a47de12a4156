//! Places in a history: branch and revert.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Branch, BranchInTree, Revert};
use crate::event::{Branched, Claimed, Delegated, Event, Reverted, TreeFence};
use crate::generation::Generation;
use crate::history::{FoundRecord, Point};
use crate::id::{Position, SessionNo};
use crate::refusal::{Code, Refusal, Relation};
use crate::state::{Session, State};
use crate::text::TextId;
use crate::zoo::planted;

use super::Decision;
use super::adopt::{Target, claimed, takeover};
use super::guard::Ask;
use super::session::{Newcomer, grant};

/// Makes a session whose history begins as that of another (BRN-1), the root of a tree of its own. One frame:
/// whoever finds the name free gets it, and everybody else `name-taken` (BRN-3).
pub(super) fn branch(ask: Ask<'_>, c: &Branch) -> Result<Decision, Refusal> {
    let (source, at) = source(ask, c.source, c.name, c.at, c.found)?;
    let (session, generation) = number_and_generation(ask.state);
    let new = Newcomer {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        checkout: c.checkout.as_ref(),
    };
    let events = vec![
        new.registered(session, generation),
        branched(ask, source, at).into(),
    ];
    Ok(grant(session, None, generation, None, events))
}

/// The same within a tree, which needs the authority of that tree: a current token of any session of it
/// (BRN-17, BRN-20), or a tree that nobody holds, which the same frame claims (TRE-9).
pub(super) fn branch_in_tree(ask: Ask<'_>, c: &BranchInTree) -> Result<Decision, Refusal> {
    let parent = match ask.request.input.presented {
        None => ask.session(c.source)?.1.parent,
        Some(_) => None,
    };
    let joining = match parent {
        Some(parent) => claiming(ask, c, parent)?,
        None => {
            let author = ask.author()?;
            let (number, record) = ask.session(c.source)?;
            let root = ask.state.sessions[author.session.index()].root;
            if record.root != root {
                ask.refuse(foreign_tree(ask, number, author.session))?;
            }
            let epoch = ask.state.sessions[root.index()].tree.epoch;
            Joining {
                parent: author.session,
                tree: TreeFence { root, epoch },
                claimed: None,
            }
        }
    };
    let (source, at) = source(ask, c.source, c.name, c.at, c.found)?;
    let (session, generation) = number_and_generation(ask.state);
    let new = Newcomer {
        name: c.name,
        bearer: c.bearer,
        labels: &c.labels,
        checkout: c.checkout.as_ref(),
    };
    let delegated = Delegated {
        session,
        root: joining.tree.root,
        parent: joining.parent,
    };
    let mut events = Vec::with_capacity(4);
    events.extend(joining.claimed.map(Event::from));
    events.extend([
        new.registered(session, generation),
        delegated.into(),
        branched(ask, source, at).into(),
    ]);
    let tree = Some(joining.tree);
    Ok(grant(session, None, generation, tree, events))
}

/// How a branch comes into the tree of its source.
struct Joining {
    parent: SessionNo,
    /// The tree, at the epoch that the branch is granted under.
    tree: TreeFence,
    /// What takes the tree over first, where nobody held it.
    claimed: Option<Claimed>,
}

/// Without a token a session that was delegated can be branched in a tree that could be claimed: the branch stands where
/// its source does, and whoever makes it holds the tree.
fn claiming(ask: Ask<'_>, c: &BranchInTree, parent: SessionNo) -> Result<Joining, Refusal> {
    let at = Target::named(ask, c.source)?;
    let taken = takeover(ask, at, false, true)?;
    let tree = at.next_epoch(ask)?;
    Ok(Joining {
        parent,
        tree,
        claimed: Some(claimed(tree, c.bearer, taken)),
    })
}

/// The number and generation that a new name gets.
fn number_and_generation(state: &State) -> (SessionNo, Generation) {
    let session = SessionNo(state.sessions.len() as u64);
    (session, Generation::first(state.incarnation))
}

fn branched(ask: Ask<'_>, source: SessionNo, at: Option<Point>) -> Branched {
    Branched {
        session: number_and_generation(ask.state).0,
        source,
        at,
        first_envelope: ask.state.next_envelope(),
    }
}

/// What is branched, and where; the name must be nobody's.
fn source(
    ask: Ask<'_>,
    source: TextId,
    name: TextId,
    at: Option<Position>,
    found: Option<FoundRecord>,
) -> Result<(SessionNo, Option<Point>), Refusal> {
    let (source, record) = ask.session(source)?;
    match ask.state.find(ask.text(name)) {
        Some(taken) if taken == source => ask.refuse(same_name(ask, source))?,
        Some(taken) if !planted("branch-takes-a-name") => {
            ask.refuse(name_taken(ask, taken, &ask.string(name)))?
        }
        _ => {}
    }
    let at = match at {
        None => record.history.cut,
        Some(at) => Some(place(ask, source, at, found)?),
    };
    Ok((source, at))
}

fn foreign_tree(ask: Ask<'_>, source: SessionNo, author: SessionNo) -> Refusal {
    let (name, own) = (ask.state.name(source), ask.state.name(author));
    ask.refusal(Code::Held, Some(source), &name)
        .holder(ask.state)
        .relation(Relation::Foreign)
        .say(format!("{name} is not in the tree of {own}"))
        .next(
            format!("tenure branch {name} NEW-NAME"),
            "branches it as the root of a tree of its own, without a token",
        )
        .next(
            format!("tenure tree {name}"),
            "shows the tree that it is in",
        )
}

/// Hides what stands behind a point of the author's own history (BRN-19).
pub(super) fn revert(ask: Ask<'_>, c: &Revert) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let (number, state) = (author.session, ask.state);
    let history = &state.sessions[number.index()].history;
    let to = match c.to {
        Position(0) => None,
        position => Some(place(ask, number, position, c.found)?),
    };
    if let Some(open) = history.open.first() {
        let name = state.name(number);
        let what = format!(
            "{}:{}",
            open.kind.as_str(),
            alloc::string::String::from_utf8_lossy(open.id.as_bytes())
        );
        ask.refuse(
            ask.refusal(Code::OpenObligations, Some(number), &name)
                .say(format!(
                    "{name} has {} open activities, {what} since position {}; a history is not cut while it runs",
                    history.open.len(),
                    open.since.position
                ))
                .next(
                    format!("tenure record TEXT --closes {what}"),
                    "ends that one",
                ),
        )?;
    }
    if to == history.tip {
        return Ok(Decision::nothing());
    }
    let session = number;
    Ok(author.writes(vec![Reverted { session, to }.into()]))
}

/// The point behind a visible record at which no call or approval is open.
fn place(
    ask: Ask<'_>,
    session: SessionNo,
    at: Position,
    found: Option<FoundRecord>,
) -> Result<Point, Refusal> {
    let (state, record) = (ask.state, &ask.state.sessions[session.index()]);
    let tip = record.history.tip_position();
    if at.0 == 0 || at > tip {
        let newest = match tip.0 {
            0 => "it is empty".to_string(),
            _ => format!("its newest record is at position {tip}"),
        };
        ask.refuse(bad_position(ask, session, at, &newest))?;
    }
    let found = found.filter(|f| f.point.position == at);
    let writer = state.shown_in(&state.lineage(session, state.at.position), at);
    let found = ask.found(found.filter(|f| Some(f.session) == writer), || {
        bad_position(ask, session, at, "no visible record of it stands there")
    })?;
    let ended = record.history.cut == Some(found.point);
    if found.depth > 0 && !ended {
        let why = "a call or an approval is open there, and a turn is not taken apart";
        ask.refuse(bad_position(ask, session, at, why))?;
    }
    Ok(found.point)
}

fn bad_position(ask: Ask<'_>, session: SessionNo, at: Position, why: &str) -> Refusal {
    let name = ask.state.name(session);
    let mut refusal = ask
        .refusal(Code::BadPosition, Some(session), &name)
        .say(format!(
            "the history of {name} cannot be cut at position {at}: {why}"
        ))
        .next(
            format!("tenure history {name}"),
            "lists its records with their positions",
        );
    refusal.presented = Some(at.to_string());
    let tip = ask.state.session(session).map(|s| s.history.tip_position());
    refusal.current = tip.map(|tip| tip.to_string());
    refusal
}

fn same_name(ask: Ask<'_>, source: SessionNo) -> Refusal {
    let name = ask.state.name(source);
    ask.refusal(Code::SameName, Some(source), &name)
        .say(format!(
            "{name} cannot be a branch of itself; a branch has a name of its own"
        ))
        .next(
            format!("tenure branch {name} OTHER-NAME"),
            "branches it under another name",
        )
}

/// A name that any session has or had is taken for ever.
pub(super) fn name_taken(ask: Ask<'_>, taken: SessionNo, wanted: &str) -> Refusal {
    let name = ask.state.name(taken);
    let retired = ask
        .state
        .session(taken)
        .is_some_and(|s: &Session| s.retired);
    let how = match (name == wanted, retired) {
        (true, false) => format!("{name} is active"),
        (true, true) => format!("{name} was given before, and is retired"),
        (false, _) => format!("{wanted} is a name that {name} had"),
    };
    let mut refusal = ask
        .refusal(Code::NameTaken, Some(taken), wanted)
        .holder(ask.state)
        .relation(Relation::Taken)
        .say(how)
        .next(format!("tenure show {name}"), "shows that session")
        .next("tenure sessions --all".into(), "lists the names there are");
    refusal.presented = Some(wanted.into());
    refusal
}

/// Whether the history of `source` could be cut at `at` when a frame was read, as far as a state can say: index
/// and digest of a record that is not the newest stand in its frame alone.
pub(super) fn can_be_cut(state: &State, source: SessionNo, at: Option<Point>) -> bool {
    let Some(history) = state.session(source).map(|s| &s.history) else {
        return false;
    };
    let Some(at) = at else {
        return history.cut.is_none();
    };
    if history.cut == Some(at) {
        return true;
    }
    let behind = history
        .tip
        .is_some_and(|tip| at.position < tip.position && at.index > 0 && at.index < tip.index);
    let lineage = state.lineage(source, state.at.position);
    behind && state.shown_in(&lineage, at.position).is_some()
}
