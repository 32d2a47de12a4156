//! Frames about histories, good and bad, in the scene of the tests: no session there has recorded anything.

use tenure_core::event::{Event, Fence, Recorded};
use tenure_core::history::HistoryHash;
use tenure_core::id::SessionNo;
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

pub fn good() -> Vec<(Fence, Vec<Event>)> {
    vec![(write(API, 2), vec![recorded(API).into()])]
}

pub fn bad() -> Vec<(Fence, Vec<Event>)> {
    let later = Recorded {
        index: 2,
        ..recorded(API)
    };
    vec![(write(API, 2), vec![later.into()])]
}
