//! What a call is answered with.

use tenure_core::command::{Command, Request};
use tenure_core::disclosure::{Shared, instruction, shared, shared_at};
use tenure_core::event::Event;
use tenure_core::generation::{Epoch, Generation};
use tenure_core::history::Point;
use tenure_core::holder::{Verdict, judge};
use tenure_core::id::{DispatchNo, EnvelopeNo, Moment, Name, RoleNo, SessionNo, Token};
use tenure_core::path::Scope;
use tenure_core::role::RoleScope;
use tenure_core::seal::Secret;
use tenure_core::state::{Former, Holder, Session, State};
use tenure_core::text::{TextId, Texts};
use tenure_log::position::Receipt;

use crate::host::Host;

/// A call that was done.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    /// Proof, to be kept outside the store.
    pub receipt: Receipt,
    /// When it was written.
    pub at: Moment,
    /// What there is to know.
    pub answer: Answer,
    /// Whether it had been done before, and this is the first answer again.
    pub repeated: bool,
}

/// A session granted.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// Its number.
    pub session: SessionNo,
    /// What to present with every write.
    pub token: Token,
    /// Who holds it.
    pub holder: Holder,
    /// Former holders that were never proven dead and may still be writing files.
    pub former: Vec<Former>,
}

/// What there is to know beside position and receipt.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// Of register and adopt.
    Granted(Grant),
    /// Of a claim.
    Claimed {
        /// The root of the tree.
        root: SessionNo,
        /// The epoch that the claim stands under.
        epoch: Epoch,
    },
    /// Of accept.
    Accepted {
        /// The dispatch.
        dispatch: DispatchNo,
        /// Whose binding it is.
        session: SessionNo,
        /// The generation of the binding.
        generation: Generation,
        /// Who else works there.
        shared: Vec<Shared>,
        /// What to mind; `None` when alone.
        instruction: Option<&'static str>,
    },
    /// Of dispatch.
    Dispatched {
        /// The dispatch.
        dispatch: DispatchNo,
        /// Its work envelope.
        envelope: EnvelopeNo,
    },
    /// Of send.
    Sent {
        /// The envelope.
        envelope: EnvelopeNo,
    },
    /// Of branch.
    Branched {
        /// The session granted.
        grant: Grant,
        /// Whose history it begins with.
        source: SessionNo,
        /// Up to which point; `None`: it begins empty.
        at: Option<Point>,
    },
    /// Of record.
    Recorded {
        /// Whose history.
        session: SessionNo,
        /// The index of the record there, from 1.
        index: u64,
    },
    /// Of a role that was taken, or that the asker holds.
    Role {
        /// Which.
        role: RoleNo,
        /// Its generation.
        generation: Generation,
        /// Who holds it.
        session: SessionNo,
    },
    /// Of the question whether paths may be changed now, and of an observation that met somebody new.
    Met {
        /// Who else works there.
        shared: Vec<Shared>,
        /// What to mind; `None` when alone.
        instruction: Option<&'static str>,
        /// Whether a policy wants this to be known first: not now, and the same question again is answered yes.
        warned: bool,
    },
    /// Of everything else.
    Plain,
}

impl Answer {
    /// The same answer, of a grant with its secret: the log does not have it, and who asked chose it.
    pub(super) fn with_secret(mut self, secret: Option<Secret>) -> Self {
        if let Self::Granted(grant) | Self::Branched { grant, .. } = &mut self {
            grant.token.secret = secret;
        }
        self
    }

    /// The same answer without former holders that are provably dead by now: they write no files any more.
    pub(super) fn without_the_dead(mut self, host: &dyn Host) -> Self {
        match &mut self {
            Self::Granted(grant) => {
                let living = |f: &Former| !is_dead(host, &f.holder);
                grant.former.retain(living);
            }
            Self::Accepted {
                shared,
                instruction: said,
                ..
            } => {
                retain_living(host, shared);
                *said = instruction(shared);
            }
            Self::Met {
                shared,
                instruction: said,
                ..
            } => {
                retain_living(host, shared);
                *said = instruction(shared);
            }
            _ => {}
        }
        self
    }
}

fn is_dead(host: &dyn Host, holder: &Holder) -> bool {
    judge(&holder.bearing, &host.sight(&holder.bearing)).0 == Verdict::Dead
}

/// Takes former holders off a list that are provably dead.
pub(crate) fn retain_living(host: &dyn Host, list: &mut Vec<Shared>) {
    list.retain(|entry| {
        let former = entry.former.as_ref();
        former.is_none_or(|(_, holder)| !is_dead(host, holder))
    });
}

/// The answer that events give, read in the state that shows them.
pub(super) fn answer(state: &State, texts: &Texts, events: &[Event]) -> Answer {
    // The seal of a grant stands behind everything else, and tells nobody anything.
    let events = match events.split_last() {
        Some((Event::GrantSealed(_), before)) => before,
        _ => events,
    };
    if let Some(Event::RoleTaken(e)) = events.last() {
        return Answer::Role {
            role: e.role,
            generation: e.generation,
            session: e.session,
        };
    }
    match events.last() {
        Some(Event::Shown(e)) => return met(state, texts, e.session, &e.writes, false),
        Some(Event::Warned(e)) => return met(state, texts, e.session, &e.writes, true),
        _ => {}
    }
    if let [.., Event::Registered(e), Event::Branched(branch)]
    | [
        ..,
        Event::Registered(e),
        Event::Delegated(_),
        Event::Branched(branch),
    ] = events
        && let Answer::Granted(grant) = granted(state, e.session, e.generation)
    {
        return Answer::Branched {
            grant,
            source: branch.source,
            at: branch.at,
        };
    }
    let grant = events.iter().find_map(|event| match event {
        Event::Registered(e) => Some((e.session, e.generation)),
        Event::Adopted(e) => Some((e.session, e.generation)),
        _ => None,
    });
    if let Some((session, generation)) = grant {
        return granted(state, session, generation);
    }
    match events.first() {
        Some(Event::Claimed(e)) => Answer::Claimed {
            root: e.root,
            epoch: e.epoch,
        },
        Some(Event::Accepted(e)) => accepted(state, e.dispatch),
        Some(Event::Dispatched(e)) => Answer::Dispatched {
            dispatch: e.dispatch,
            envelope: e.envelope,
        },
        Some(Event::Sent(e)) => Answer::Sent {
            envelope: e.envelope,
        },
        Some(Event::Recorded(e)) => Answer::Recorded {
            session: e.session,
            index: e.index,
        },
        _ => Answer::Plain,
    }
}

/// The answer to a command that had nothing left to do, and when what it asks for was done.
pub(super) fn standing(state: &State, request: &Request) -> (Moment, Answer) {
    match &request.input.command {
        Command::Accept(c) => {
            let since = state.dispatch(c.dispatch).map(|row| row.since);
            (since.unwrap_or(state.at), accepted(state, c.dispatch))
        }
        Command::Retire(c) => {
            let session = state
                .find(request.texts.get(c.name))
                .and_then(|s| state.session(s));
            (session.map_or(state.at, Session::since), Answer::Plain)
        }
        Command::TakeRole(c) => holding(state, request, c.role, &c.scope),
        Command::CheckRole(c) => holding(state, request, c.role, &c.scope),
        Command::CheckWrite(c) => {
            let name = request.input.presented.map(|p| request.texts.get(p.name));
            let asker = name.and_then(|name| state.find(name));
            let answer = asker.map(|asker| met(state, &request.texts, asker, &c.writes, false));
            (state.at, answer.unwrap_or(Answer::Plain))
        }
        Command::Release(c) => (since(state, request.texts.get(c.name)), Answer::Plain),
        Command::ReleaseDead(c) => (since(state, request.texts.get(c.name)), Answer::Plain),
        _ => (state.at, Answer::Plain),
    }
}

/// The role that the asker holds already.
fn holding(
    state: &State,
    request: &Request,
    name: TextId,
    scope: &RoleScope<TextId>,
) -> (Moment, Answer) {
    let text = |t: &TextId| request.texts.get(*t);
    let number = state.find_role(text(&name), &scope.map(text));
    let found = number.and_then(|n| Some((n, state.role(n)?)));
    match found.and_then(|(n, role)| Some((n, role, role.holding.as_ref()?))) {
        Some((number, role, holding)) => (
            holding.since,
            Answer::Role {
                role: number,
                generation: role.generation,
                session: holding.session,
            },
        ),
        None => (state.at, Answer::Plain),
    }
}

fn met(
    state: &State,
    texts: &Texts,
    asker: SessionNo,
    writes: &[Scope<TextId>],
    warned: bool,
) -> Answer {
    let text = |t: &TextId| texts.get(*t);
    let scopes: Vec<_> = writes.iter().map(|scope| scope.map(text)).collect();
    let list = shared_at(state, Some(asker), &scopes);
    let said = instruction(&list);
    Answer::Met {
        shared: list,
        instruction: said,
        warned,
    }
}

/// Since when the session of that name stands as it does.
fn since(state: &State, name: &[u8]) -> Moment {
    let session = state.find(name);
    session.and_then(|s| state.since(s)).unwrap_or(state.at)
}

fn granted(state: &State, session: SessionNo, generation: Generation) -> Answer {
    let record = state.session(session);
    let holder = record.and_then(|r| r.holder);
    let name = Name::parse(&state.name(session));
    match (record, holder, name) {
        (Some(record), Some(holder), Ok(name)) => Answer::Granted(Grant {
            session,
            token: Token {
                name,
                generation,
                secret: None,
            },
            holder,
            former: record.formers.clone(),
        }),
        _ => Answer::Plain,
    }
}

fn accepted(state: &State, dispatch: DispatchNo) -> Answer {
    let (Some(row), Some(live)) = (state.dispatch(dispatch), state.live.get(&dispatch)) else {
        return Answer::Plain;
    };
    let list = shared(state, Some(row.session), &live.writes);
    let said = instruction(&list);
    Answer::Accepted {
        dispatch,
        session: row.session,
        generation: row.generation,
        shared: list,
        instruction: said,
    }
}
