//! Two states are the same where everything in them is.

use alloc::vec::Vec;

use crate::generation::Generation;
use crate::id::{DispatchNo, Moment, Position, RoleNo, SessionNo};
use crate::role::RoleScope;
use crate::state::paged::Item;
use crate::state::{
    Dispatch, DispatchRow, EnvelopeRow, GrantNote, Granted, RefusalRecord, Role, Session, State,
    Unproven,
};
use crate::text::{Symbol, Text};

type Change = (&'static str, fn(&mut State));

const CHANGES: [Change; 19] = [
    ("position", |state| state.at.position = Position(7)),
    ("incarnation", |state| state.incarnation += 1),
    ("sealed", |state| state.sealed = true),
    ("unknown", |state| state.unknown = Some(9)),
    ("a text", |state| _ = state.pool.intern(b"other")),
    ("a session", |state| state.sessions.push(session())),
    ("a session's state", |state| {
        state.sessions[0].retired ^= true
    }),
    ("a grant", |state| state.note_grant(SessionNo(0), grant())),
    ("a name", |state| {
        state.index_name(Symbol::default(), SessionNo(0))
    }),
    ("a dispatch", |state| {
        state.dispatches.push(DispatchRow::UNUSED)
    }),
    ("live work", |state| {
        state.live.insert(DispatchNo(1), Dispatch::blank())
    }),
    ("an envelope", |state| {
        state.envelopes.push(EnvelopeRow::UNUSED)
    }),
    ("a refusal", |state| {
        state.refusals.push(RefusalRecord::blank())
    }),
    ("a role", |state| state.roles.push(role())),
    ("a role's name", |state| {
        state.index_role(Symbol::default(), RoleNo(0))
    }),
    ("blocked work", |state| {
        _ = state
            .blocked
            .insert(DispatchNo(1), Text::from(&b"item"[..]))
    }),
    ("a finding", |state| state.findings.push(Position(1))),
    ("a frame without effect", |state| {
        state.dishonoured.push(Position(1))
    }),
    ("a file set aside", |state| {
        _ = state.set_aside.insert(Symbol::default())
    }),
];

fn session() -> Session {
    Session::unheld(Symbol::default(), SessionNo(0), Moment::default(), 1)
}

fn generation() -> Generation {
    Generation {
        incarnation: 1,
        number: 1,
    }
}

fn grant() -> GrantNote {
    GrantNote {
        generation: generation(),
        how: Granted::Registered,
        at: Moment::default(),
        actor: None,
        reason: None,
    }
}

fn role() -> Role {
    Role {
        name: Symbol::default(),
        scope: RoleScope {
            text: Symbol::default(),
            place: None,
        },
        generation: generation(),
        holding: None,
        past: Vec::new(),
    }
}

/// P1: the states that are compared everywhere, the one that decided beside the one replayed, differ where one thing in
/// them does.
#[test]
fn one_difference_makes_another_state() {
    let plain = || {
        let mut state = State::new();
        state.pool.intern(b"name");
        state.sessions.push(session());
        state
    };
    assert!(plain() == plain());
    let lost = |state: &mut State| {
        let (since, life, until) = (Position(1), 2, None);
        state.unproven.push(Unproven { since, life, until });
    };
    let changes = CHANGES
        .iter()
        .copied()
        .chain([("a loss", lost as fn(&mut State))]);
    for (what, change) in changes {
        let mut other = plain();
        change(&mut other);
        assert!(plain() != other && other != plain(), "{what}");
        let mut same = plain();
        change(&mut same);
        assert!(same == other, "{what}");
    }
}
