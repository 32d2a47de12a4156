//! Frames about roles, hand-overs, policies and disclosures, good and bad, in the scene of the tests: `web` holds
//! the role `api@gone` at role generation 1.

use tenure_core::disclosure::{Peer, Rule};
use tenure_core::event::{
    Attended, Event, Fence, HandedOver, PolicySet, RoleCleared, RoleLapsed, RoleReleased,
    RoleTaken, Shown, Warned,
};
use tenure_core::holder::HostId;
use tenure_core::id::{DispatchNo, EnvelopeNo, RoleNo, SessionNo};
use tenure_core::path::{Level, Scope};
use tenure_core::role::RoleScope;
use tenure_core::text::TextId;

use super::frames::*;

/// The role of the scene, and the next one.
const HELD: RoleNo = RoleNo(0);
const NEXT: RoleNo = RoleNo(1);

fn taken(role: RoleNo, (name, scope): (u32, u32), number: u64, under: u64) -> RoleTaken {
    RoleTaken {
        role,
        name: TextId(name),
        scope: RoleScope {
            text: TextId(scope),
            place: None,
        },
        generation: generation(number),
        session: API,
        under: generation(under),
        process: None,
    }
}

fn lapsed(session: SessionNo, number: u64, notice: u64) -> Event {
    RoleLapsed {
        role: HELD,
        generation: generation(number),
        session,
        evidence: None,
        process: None,
        notice: EnvelopeNo(notice),
    }
    .into()
}

fn released(role: RoleNo, session: SessionNo) -> Event {
    RoleReleased { role, session }.into()
}

fn cleared(session: SessionNo, number: u64, notice: u64) -> Event {
    RoleCleared {
        role: HELD,
        generation: generation(number),
        session,
        reason: TextId(0),
        notice: EnvelopeNo(notice),
    }
    .into()
}

fn handed(dispatch: u64, session: SessionNo, number: u64, envelope: u64) -> HandedOver {
    HandedOver {
        dispatch: DispatchNo(dispatch),
        from: API,
        session,
        generation: generation(number),
        envelope: EnvelopeNo(envelope),
    }
}

fn policy() -> Event {
    PolicySet {
        rule: Rule::Refuse,
        scope: Scope {
            path: TextId(0),
            host: HostId([9; 16]),
            boot: None,
            anchors: Vec::new(),
            repository: None,
        },
        shared: false,
    }
    .into()
}

fn peer(session: SessionNo, number: u64) -> Peer {
    Peer {
        session,
        generation: generation(number),
        level: Level::Tree,
    }
}

fn shown(session: SessionNo, peers: Vec<Peer>, first: u64) -> Shown {
    Shown {
        session,
        writes: Vec::new(),
        peers,
        first_notice: EnvelopeNo(first),
    }
}

fn warned(session: SessionNo, peers: Vec<Peer>, first: u64) -> Event {
    Warned {
        session,
        writes: Vec::new(),
        peers,
        first_notice: EnvelopeNo(first),
    }
    .into()
}

pub fn attended(dispatch: u64) -> Event {
    Attended {
        dispatch: DispatchNo(dispatch),
        reason: None,
    }
    .into()
}

pub fn good() -> Vec<(Fence, Vec<Event>)> {
    let (api, web, none) = (write(API, 2), write(WEB, 1), Fence::NONE);
    let one = |fence: Fence, event: Event| (fence, vec![event]);
    let over = |dispatch| Event::from(handed(dispatch, WEB, 1, 6));
    let met = || shown(API, vec![peer(WEB, 1)], 6);
    vec![
        one(api, taken(NEXT, (0, 5), 1, 2).into()),
        (
            api,
            vec![lapsed(WEB, 2, 6), taken(HELD, (1, 2), 3, 2).into()],
        ),
        one(none, lapsed(WEB, 2, 6)),
        one(web, released(HELD, WEB)),
        one(none, cleared(WEB, 2, 6)),
        one(api, over(1)),
        one(api, over(2)),
        (api, vec![over(1), joined(1, 7)]),
        one(none, policy()),
        one(api, policy()),
        one(web, policy()),
        one(api, met().into()),
        // Its own former holder.
        one(api, shown(API, vec![peer(API, 1), peer(WEB, 1)], 6).into()),
        (api, vec![observed(API), met().into()]),
        one(api, warned(API, vec![peer(WEB, 1)], 6)),
    ]
}

pub fn bad() -> Vec<(Fence, Vec<Event>)> {
    let (api, web, none) = (write(API, 2), write(WEB, 1), Fence::NONE);
    let one = |fence: Fence, event: Event| (fence, vec![event]);
    let take = |role, texts, number| Event::from(taken(role, texts, number, 2));
    let over = |dispatch, envelope| Event::from(handed(dispatch, WEB, 1, envelope));
    let met = |peers| Event::from(shown(API, peers, 6));
    let itself = HandedOver {
        session: API,
        generation: generation(2),
        ..handed(1, API, 2, 6)
    };
    let many = (0..=256).map(|n| peer(WEB, n)).collect();
    vec![
        // A role that is held, under another number, or by no name.
        one(api, take(HELD, (1, 2), 2)),
        one(api, take(NEXT, (1, 2), 1)),
        one(api, take(NEXT, (0, 5), 2)),
        one(api, take(RoleNo(2), (0, 5), 1)),
        one(api, take(NEXT, (4, 5), 1)),
        one(api, taken(NEXT, (0, 5), 1, 1).into()),
        one(web, take(NEXT, (0, 5), 1)),
        one(api, lapsed(WEB, 2, 6)),
        (api, vec![lapsed(WEB, 2, 6), take(HELD, (1, 2), 2)]),
        (api, vec![lapsed(WEB, 3, 6), take(HELD, (1, 2), 4)]),
        (api, vec![lapsed(WEB, 2, 7), take(HELD, (1, 2), 3)]),
        (api, vec![lapsed(API, 2, 6), take(HELD, (1, 2), 3)]),
        (api, vec![lapsed(WEB, 2, 6), take(HELD, (0, 5), 3)]),
        (api, vec![lapsed(WEB, 2, 6), take(NEXT, (0, 5), 1)]),
        (api, vec![take(HELD, (1, 2), 3), lapsed(WEB, 2, 6)]),
        one(api, released(HELD, API)),
        one(api, released(HELD, WEB)),
        one(web, released(NEXT, WEB)),
        one(none, cleared(API, 2, 6)),
        one(none, cleared(WEB, 1, 6)),
        one(none, cleared(WEB, 3, 6)),
        one(none, cleared(WEB, 2, 7)),
        // Work of somebody else, to nobody, or under another number.
        one(web, over(1, 6)),
        one(api, over(3, 6)),
        one(api, over(9, 6)),
        one(api, over(1, 7)),
        one(api, itself.into()),
        one(api, handed(1, WEB, 2, 6).into()),
        one(api, handed(1, GONE, 1, 6).into()),
        one(api, handed(1, NOBODY, 1, 6).into()),
        (api, vec![over(1, 6), joined(1, 6)]),
        (api, vec![over(1, 6), joined(2, 7)]),
        (api, vec![over(2, 6), joined(2, 7)]),
        (api, vec![joined(1, 7), over(1, 6)]),
        // Nobody, twice, itself, or one that never was.
        one(api, met(vec![])),
        one(api, met(vec![peer(WEB, 1), peer(WEB, 1)])),
        one(api, met(vec![peer(WEB, 1), peer(API, 1)])),
        one(api, met(vec![peer(API, 2)])),
        one(api, met(vec![peer(WEB, 2)])),
        one(api, met(vec![peer(NOBODY, 1)])),
        one(api, met(many)),
        one(api, shown(API, vec![peer(WEB, 1)], 7).into()),
        one(api, shown(WEB, vec![peer(API, 2)], 6).into()),
        one(api, warned(API, vec![], 6)),
        (api, vec![met(vec![peer(WEB, 1)]), observed(API)]),
        (api, vec![observed(API), warned(API, vec![peer(WEB, 1)], 6)]),
        one(none, attended(1)),
        one(api, attended(9)),
    ]
}
