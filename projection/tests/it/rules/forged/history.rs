//! Frames about histories, good and bad, in the scene of the tests: `api` has one record there, `web` none.

use tenure_core::event::{Branched, Event, Fence, Imported, Recorded, Renamed, Reverted};
use tenure_core::history::HistoryHash;
use tenure_core::id::{EnvelopeNo, SessionNo};
use tenure_core::text::{BodyId, TextId};

use super::frames::*;

fn recorded(session: SessionNo) -> Recorded {
    Recorded {
        session,
        index: 1,
        previous: None,
        before: HistoryHash::default(),
        depth: 0,
        kind: TextId(0),
        body: BodyId(0),
        opens: None,
        closes: None,
    }
}

fn reverted(session: SessionNo) -> Event {
    Reverted { session, to: None }.into()
}

fn renamed(session: SessionNo, name: u32) -> Event {
    let name = TextId(name);
    Renamed { session, name }.into()
}

fn imported(session: SessionNo) -> Event {
    Imported {
        session,
        from: TextId(0),
        parent: None,
        hash: HistoryHash::default(),
    }
    .into()
}

fn branched(session: SessionNo, source: SessionNo, first: u64) -> Event {
    Branched {
        session,
        source,
        at: None,
        first_envelope: EnvelopeNo(first),
    }
    .into()
}

pub fn good() -> Vec<(Fence, Vec<Event>)> {
    vec![
        (write(WEB, 1), vec![recorded(WEB).into()]),
        (write(API, 2), vec![reverted(API)]),
        (write(API, 2), vec![renamed(API, 0)]),
        (write(API, 2), vec![imported(API)]),
        (
            grant(NOBODY, None, 1),
            vec![registered(NOBODY, 0, 1), branched(NOBODY, WEB, 6)],
        ),
    ]
}

pub fn bad() -> Vec<(Fence, Vec<Event>)> {
    let later = Recorded {
        index: 2,
        ..recorded(WEB)
    };
    let new = grant(NOBODY, None, 1);
    let granted = |events: &[Event]| [&[registered(NOBODY, 0, 1)], events].concat();
    vec![
        (write(WEB, 1), vec![later.into()]),
        (write(WEB, 1), vec![recorded(API).into()]),
        // There is nothing to hide.
        (write(WEB, 1), vec![reverted(WEB)]),
        (write(API, 2), vec![reverted(WEB)]),
        (write(API, 2), vec![imported(WEB)]),
        // A name that is another's, or none.
        (write(WEB, 1), vec![renamed(WEB, 1)]),
        (write(WEB, 1), vec![renamed(WEB, 4)]),
        (write(WEB, 1), vec![renamed(API, 0)]),
        // Of nobody, of itself, of another point, of another number, without its grant, or of another.
        (new, granted(&[branched(NOBODY, SessionNo(9), 6)])),
        (new, granted(&[branched(NOBODY, NOBODY, 6)])),
        (new, granted(&[branched(NOBODY, API, 6)])),
        (new, granted(&[branched(NOBODY, WEB, 7)])),
        (new, granted(&[branched(API, WEB, 6)])),
        (new, vec![branched(NOBODY, WEB, 6)]),
        (new, granted(&[branched(NOBODY, WEB, 6), noted(API)])),
        (write(API, 2), vec![branched(NOBODY, WEB, 6)]),
        (Fence::NONE, vec![branched(NOBODY, WEB, 6)]),
        (
            grant(GONE, Some(1), 2),
            vec![registered(GONE, 2, 2), branched(GONE, WEB, 6)],
        ),
    ]
}
