//! Policies, and the question of every hook and guard: may this session change these paths now? The tables of
//! `docs/disclosure.md`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Attend, CheckWrite, SetPolicy};
use crate::disclosure::{Peer, Rule, Shared, shared_at};
use crate::event::{Attended, Event, PolicySet, Shown, Warned};
use crate::id::DispatchNo;
use crate::limits::PEERS_MAX;
use crate::path::Scope;
use crate::refusal::{Code, Refusal, Relation};
use crate::state::State;
use crate::text::TextId;

use super::Decision;
use super::guard::{Ask, Author};

/// Says what applies in a place.
pub(super) fn set(ask: Ask<'_>, c: &SetPolicy) -> Result<Decision, Refusal> {
    let authority = ask.author_or_operator()?;
    let set = PolicySet {
        rule: c.rule,
        scope: c.scope.clone(),
        shared: c.shared,
    };
    Ok(authority.decides(vec![set.into()]))
}

/// Whether the session may change the paths now: current, and no policy in the way.
pub(super) fn check_write(ask: Ask<'_>, c: &CheckWrite) -> Result<Decision, Refusal> {
    let author = ask.author()?;
    let list = met(ask, author, &c.writes);
    if let Some(first) = list.iter().find(|s| s.rule == Rule::Refuse) {
        let what = ask.state.name(author.session);
        ask.refuse(refused(ask, first, &what))?;
    }
    let warned = list
        .iter()
        .any(|s| s.rule == Rule::WarnOnce && !knows(ask.state, author, s));
    let Some(shown) = shown(ask, author, &c.writes, &list) else {
        return Ok(Decision::nothing());
    };
    let event = if warned {
        let Shown {
            session,
            writes,
            peers,
            first_notice,
        } = shown;
        Event::from(Warned {
            session,
            writes,
            peers,
            first_notice,
        })
    } else {
        shown.into()
    };
    Ok(author.writes(vec![event]))
}

/// Whoever is at work where `writes` are.
pub(super) fn met(ask: Ask<'_>, author: Author, writes: &[Scope<TextId>]) -> Vec<Shared> {
    let scopes: Vec<_> = writes
        .iter()
        .map(|scope| scope.map(|text| ask.text(*text)))
        .collect();
    shared_at(ask.state, Some(author.session), &scopes)
}

/// What there is to record of a list: those whom the author's holder was not shown before.
pub(super) fn shown(
    ask: Ask<'_>,
    author: Author,
    writes: &[Scope<TextId>],
    list: &[Shared],
) -> Option<Shown> {
    // The strictest first: who is beyond the maximum is named by the next question.
    let mut new: Vec<&Shared> = list
        .iter()
        .filter(|s| !knows(ask.state, author, s))
        .collect();
    new.sort_by_key(|s| core::cmp::Reverse(s.rule));
    new.truncate(PEERS_MAX);
    let mut peers: Vec<Peer> = new.into_iter().map(|s| peer(ask.state, s)).collect();
    peers.sort_by_key(|p| (p.session, p.generation));
    (!peers.is_empty()).then(|| Shown {
        session: author.session,
        writes: writes.to_vec(),
        peers,
        first_notice: ask.state.next_envelope(),
    })
}

fn peer(state: &State, shared: &Shared) -> Peer {
    let current = state.session(shared.session).map(|s| s.generation);
    let former = shared.former.map(|(generation, _)| generation);
    Peer {
        session: shared.session,
        generation: former
            .or(current)
            .expect("a list holds sessions of the state"),
        level: shared.level,
    }
}

fn knows(state: &State, author: Author, shared: &Shared) -> bool {
    let peer = peer(state, shared);
    state
        .session(author.session)
        .is_some_and(|s| s.knows(peer.session, peer.generation))
}

/// Somebody goes before the asker in a place where one session writes.
pub(super) fn refused(ask: Ask<'_>, first: &Shared, subject: &str) -> Refusal {
    let name = ask.state.name(first.session);
    let places: Vec<String> = first
        .writes
        .iter()
        .map(|path| ask.state.pool.string(*path))
        .collect();
    let work = first.dispatches.iter().map(ToString::to_string);
    let work: Vec<String> = work.collect();
    let doing = match &work[..] {
        [] => String::new(),
        work => format!(" on {}", work.join(", ")),
    };
    ask.refusal(Code::Held, Some(first.session), subject)
        .holder(ask.state)
        .relation(Relation::Foreign)
        .say(format!(
            "the policy there is `refuse`, and {name} is at work{doing} at {}",
            places.join(", ")
        ))
        .next(
            format!("tenure show {name}"),
            "shows what it does, to wait for its end",
        )
        .next(
            "tenure policy set disclose --scope PATH".into(),
            "lets several sessions write there, each told of the others",
        )
}

/// Somebody has seen to work that was reported blocked.
pub(super) fn attend(ask: Ask<'_>, c: &Attend) -> Result<Decision, Refusal> {
    let authority = ask.author_or_operator()?;
    let row = ask.dispatch(c.dispatch)?;
    if ask.state.blocked.contains_key(&c.dispatch) {
        let attended = Attended {
            dispatch: c.dispatch,
            reason: c.reason,
        };
        return Ok(authority.decides(vec![attended.into()]));
    }
    if row.state != crate::state::DispatchState::Blocked {
        ask.refuse(not_blocked(ask, c.dispatch, row.state.as_str()))?;
    }
    Ok(Decision::nothing())
}

fn not_blocked(ask: Ask<'_>, number: DispatchNo, state: &str) -> Refusal {
    let mut refusal = ask
        .refusal(Code::NotPending, None, &number.to_string())
        .say(format!("{number} is {state}, not blocked"))
        .next(format!("tenure show {number}"), "shows that dispatch");
    refusal.current = Some(state.into());
    refusal
}
