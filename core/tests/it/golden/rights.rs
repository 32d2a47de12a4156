//! Samples of the kinds that roles, hand-overs, policies and disclosures are made of.

use tenure_core::command::{
    Attend, CheckRole, CheckWrite, ClearRole, Command, HandOff, LapseRole, ReleaseRole, SetPolicy,
    TakeRole,
};
use tenure_core::disclosure::{Peer, Rule};
use tenure_core::event::{
    Attended, Event, HandedOver, PolicySet, RoleCleared, RoleLapsed, RoleReleased, RoleTaken,
    Shown, Warned,
};
use tenure_core::holder::{Evidence, Proof, Verdict};
use tenure_core::id::{DispatchNo, EnvelopeNo, RoleNo, SessionNo};
use tenure_core::path::Level;
use tenure_core::role::{ProcessEvidence, Requirement, RoleScope};
use tenure_core::text::TextId;

use super::{GENERATION, bearer, scope, text};

fn place() -> RoleScope<TextId> {
    RoleScope {
        text: text(4),
        place: Some(scope()),
    }
}

fn named() -> RoleScope<TextId> {
    RoleScope {
        text: text(4),
        place: None,
    }
}

pub fn requirement() -> Requirement<TextId> {
    Requirement {
        role: text(0),
        scope: place(),
    }
}

fn process() -> ProcessEvidence {
    ProcessEvidence {
        generation: GENERATION,
        verdict: Verdict::Dead,
        proofs: vec![Proof::OtherStart],
    }
}

fn peer() -> Peer {
    Peer {
        session: SessionNo(4),
        generation: GENERATION,
        level: Level::Repository,
    }
}

pub fn commands() -> Vec<Command> {
    let dispatch = DispatchNo(7);
    vec![
        TakeRole {
            role: text(0),
            scope: place(),
            process: Some(bearer().bearing),
            found: Some(process()),
        }
        .into(),
        LapseRole {
            role: text(0),
            scope: place(),
            found: Some(process()),
        }
        .into(),
        ReleaseRole {
            role: text(0),
            scope: named(),
        }
        .into(),
        CheckRole {
            role: text(0),
            scope: named(),
            generation: Some(GENERATION),
        }
        .into(),
        ClearRole {
            role: text(0),
            scope: place(),
            reason: text(9),
        }
        .into(),
        HandOff {
            dispatch,
            to: text(1),
            to_generation: Some(GENERATION),
        }
        .into(),
        SetPolicy {
            rule: Rule::WarnOnce,
            scope: scope(),
            shared: true,
        }
        .into(),
        CheckWrite {
            writes: vec![scope()],
        }
        .into(),
        Attend {
            dispatch,
            reason: Some(text(9)),
        }
        .into(),
    ]
}

pub fn events() -> Vec<Event> {
    [about_roles(), about_work()].concat()
}

fn about_roles() -> Vec<Event> {
    let (role, session, notice) = (RoleNo(2), SessionNo(3), EnvelopeNo(300));
    vec![
        RoleTaken {
            role,
            name: text(0),
            scope: place(),
            generation: GENERATION,
            session,
            under: GENERATION,
            process: None,
        }
        .into(),
        RoleLapsed {
            role,
            generation: GENERATION,
            session,
            evidence: Some(Evidence {
                session,
                generation: GENERATION,
                verdict: Verdict::Dead,
                proofs: vec![Proof::NoSuchProcess],
            }),
            process: Some(process()),
            notice,
        }
        .into(),
        RoleReleased { role, session }.into(),
        RoleCleared {
            role,
            generation: GENERATION,
            session,
            reason: text(9),
            notice,
        }
        .into(),
    ]
}

fn about_work() -> Vec<Event> {
    let (session, dispatch) = (SessionNo(3), DispatchNo(7));
    let (writes, peers, first_notice) = (vec![scope()], vec![peer()], EnvelopeNo(300));
    vec![
        HandedOver {
            dispatch,
            from: session,
            session: SessionNo(4),
            generation: GENERATION,
            envelope: first_notice,
        }
        .into(),
        PolicySet {
            rule: Rule::Refuse,
            scope: scope(),
            shared: false,
        }
        .into(),
        Shown {
            session,
            writes: writes.clone(),
            peers: peers.clone(),
            first_notice,
        }
        .into(),
        Warned {
            session,
            writes,
            peers,
            first_notice,
        }
        .into(),
        Attended {
            dispatch,
            reason: None,
        }
        .into(),
    ]
}
