//! Fences and events, good and bad, in the scene of the tests.

use tenure_core::command::{Bearer, Outcome, Settlement};
use tenure_core::event::{
    Accepted, Acknowledged, Adopted, AssignmentFailed, Cancelled, Carried, Declined, Delivered,
    Dispatched, Event, Fence, FenceKind, Fenced, GuardBypassed, IncarnationRaised, Joined,
    LockRemoved, Noted, Observed, RefusalsCounted, Refused, Registered, Reported, Retired, Sent,
    TailSetAside,
};
use tenure_core::generation::Generation;
use tenure_core::holder::{Bearing, HostId};
use tenure_core::id::{DispatchNo, EnvelopeNo, Position, RefusalNo, SessionNo, Time};
use tenure_core::text::{BodyId, TextId};

pub const API: SessionNo = SessionNo(0);
pub const WEB: SessionNo = SessionNo(1);
pub const GONE: SessionNo = SessionNo(2);
pub const NOBODY: SessionNo = SessionNo(3);

pub fn generation(number: u64) -> Generation {
    Generation {
        incarnation: 1,
        number,
    }
}

pub fn write(session: SessionNo, named: u64) -> Fence {
    Fence {
        kind: FenceKind::Write,
        session: Some(session),
        named: Some(generation(named)),
        granted: None,
        tree: None,
    }
}

pub fn grant(session: SessionNo, named: Option<u64>, granted: u64) -> Fence {
    Fence {
        kind: FenceKind::Grant,
        session: Some(session),
        named: named.map(generation),
        granted: Some(generation(granted)),
        tree: None,
    }
}

pub fn bearer() -> Bearer {
    Bearer {
        bearing: Bearing {
            host: HostId([9; 16]),
            boot: None,
            process: None,
            uid: 0,
            recorded: Time(0),
        },
        actor: TextId(0),
        host_name: TextId(0),
        engine: None,
    }
}

/// Texts by number: a new name, a name that is taken, the name of the retired session, a live item, no name.
pub const TEXTS: &[&str] = &["fresh", "api", "gone", "one", "no name\n", "item"];

pub fn registered(session: SessionNo, name: u32, number: u64) -> Event {
    Registered {
        session,
        name: TextId(name),
        generation: generation(number),
        bearer: bearer(),
        labels: Vec::new(),
        checkout: None,
    }
    .into()
}

pub fn adopted(session: SessionNo, number: u64) -> Event {
    Adopted {
        session,
        generation: generation(number),
        bearer: bearer(),
        labels: Vec::new(),
        forced: None,
        former: false,
    }
    .into()
}

pub fn carried(session: SessionNo, number: u64) -> Event {
    let generation = generation(number);
    Carried {
        session,
        generation,
    }
    .into()
}

pub fn fenced(session: SessionNo, below: u64, first: u64) -> Event {
    let (below, first_review) = (generation(below), EnvelopeNo(first));
    Fenced {
        session,
        below,
        first_review,
    }
    .into()
}

pub fn retired(session: SessionNo, number: u64, forced: bool) -> Event {
    let (generation, reason) = (generation(number), None);
    Retired {
        session,
        generation,
        reason,
        forced,
    }
    .into()
}

pub fn dispatched(
    dispatch: u64,
    session: SessionNo,
    number: u64,
    from: Option<SessionNo>,
) -> Dispatched {
    Dispatched {
        dispatch: DispatchNo(dispatch),
        session,
        generation: generation(number),
        from,
        item: TextId(5),
        title: None,
        writes: Vec::new(),
        envelope: EnvelopeNo(6),
        body: None,
    }
}

pub fn sent(envelope: u64, session: SessionNo, number: u64, from: Option<SessionNo>) -> Event {
    Sent {
        envelope: EnvelopeNo(envelope),
        session,
        generation: generation(number),
        from,
        re: None,
        body: BodyId(0),
    }
    .into()
}

pub fn accepted(dispatch: u64, session: SessionNo, number: u64) -> Event {
    let dispatch = DispatchNo(dispatch);
    Accepted {
        dispatch,
        session,
        generation: generation(number),
    }
    .into()
}

pub fn joined(dispatch: u64, first: u64) -> Event {
    let (dispatch, first_notice) = (DispatchNo(dispatch), EnvelopeNo(first));
    Joined {
        dispatch,
        first_notice,
    }
    .into()
}

pub fn declined(dispatch: u64) -> Event {
    Declined {
        dispatch: DispatchNo(dispatch),
        reason: TextId(0),
    }
    .into()
}

pub fn reported(dispatch: u64) -> Event {
    let (dispatch, outcome) = (DispatchNo(dispatch), Outcome::Done);
    Reported {
        dispatch,
        outcome,
        body: None,
    }
    .into()
}

pub fn cancelled(dispatch: u64, forced: bool) -> Event {
    let (dispatch, reason) = (DispatchNo(dispatch), TextId(0));
    Cancelled {
        dispatch,
        reason,
        forced,
    }
    .into()
}

pub fn failed(dispatch: u64, notice: u64, forced: bool) -> Event {
    AssignmentFailed {
        dispatch: DispatchNo(dispatch),
        reason: TextId(0),
        notice: EnvelopeNo(notice),
        forced,
    }
    .into()
}

pub fn refused(refusal: u64) -> Event {
    Refused {
        refusal: RefusalNo(refusal),
        code: 1,
        session: Some(API),
        presented: None,
        command: 1,
        current: None,
        subject: TextId(0),
        body: Some([1; 16]),
        body_bytes: u64::MAX,
    }
    .into()
}

pub fn counted(refusal: u64) -> Event {
    RefusalsCounted {
        refusal: RefusalNo(refusal),
        count: u64::MAX,
    }
    .into()
}

pub fn raised(incarnation: u64) -> Event {
    IncarnationRaised {
        incarnation,
        how: Settlement::Restored,
        reason: TextId(0),
    }
    .into()
}

pub fn noted(session: SessionNo) -> Event {
    Noted {
        session,
        body: BodyId(0),
        on: None,
    }
    .into()
}

pub fn observed(session: SessionNo) -> Event {
    Observed {
        session,
        status: TextId(0),
        wrote: Vec::new(),
    }
    .into()
}

pub fn delivered(envelope: u64) -> Event {
    Delivered {
        envelope: EnvelopeNo(envelope),
    }
    .into()
}

pub fn acknowledged(envelope: u64) -> Event {
    Acknowledged {
        envelope: EnvelopeNo(envelope),
    }
    .into()
}

pub fn bypassed(session: Option<SessionNo>, presented: Option<u64>) -> Event {
    let text = TextId(0);
    GuardBypassed {
        hook: text,
        session,
        presented: presented.map(generation),
        checkout: text,
        said: text,
        reason: text,
    }
    .into()
}

pub fn tail_set_aside() -> Event {
    TailSetAside {
        first: Position(1),
        epoch: 1,
        offset: 4096,
        bytes: 16,
        file: TextId(0),
    }
    .into()
}

pub fn lock_removed() -> Event {
    LockRemoved {
        path: TextId(0),
        uid: 0,
        bytes: 0,
        modified: Time(0),
        reason: TextId(0),
    }
    .into()
}
