//! Frames that stand in the scene of the tests, and frames that cannot have been decided there.

use tenure_core::event::{Dispatched, Event, Fence, FindingAccepted, HomeAccepted};
use tenure_core::id::{EnvelopeNo, Position, SessionNo};
use tenure_core::text::TextId;

use super::frames::*;

/// One frame of each kind that stands, with what could be wrong with its fence: the good ones show that the bad
/// ones are refused for what is said of them.
pub fn good() -> Vec<(Fence, Vec<Event>)> {
    let (api, web, none) = (write(API, 2), write(WEB, 1), Fence::NONE);
    let one = |fence: Fence, event: Event| (fence, vec![event]);
    vec![
        one(grant(NOBODY, None, 1), registered(NOBODY, 0, 1)),
        (
            grant(GONE, Some(1), 2),
            vec![registered(GONE, 2, 2), fenced(GONE, 2, 6)],
        ),
        (
            grant(API, Some(2), 3),
            vec![adopted(API, 3), carried(API, 3)],
        ),
        one(api, retired(API, 2, false)),
        one(none, retired(API, 2, true)),
        one(none, dispatched(4, API, 2, None).into()),
        one(web, dispatched(4, API, 2, Some(WEB)).into()),
        one(none, sent(6, API, 2, None)),
        one(web, sent(6, API, 2, Some(WEB))),
        one(api, accepted(2, API, 2)),
        (api, vec![accepted(2, API, 2), joined(2, 6)]),
        one(api, declined(2)),
        one(api, reported(1)),
        one(none, cancelled(1, false)),
        one(web, cancelled(2, false)),
        one(none, cancelled(2, true)),
        one(web, failed(2, 6, false)),
        one(none, failed(2, 6, true)),
        one(api, noted(API)),
        one(api, observed(API)),
        one(api, delivered(3)),
        one(api, acknowledged(3)),
        one(none, refused(1)),
        one(none, refused(2)),
        one(none, counted(1)),
        one(none, HomeAccepted { reason: TextId(0) }.into()),
        one(
            none,
            FindingAccepted {
                position: Position(1),
                reason: TextId(0),
            }
            .into(),
        ),
        one(none, bypassed(None, None)),
        // The token presented need not be current.
        one(none, bypassed(Some(API), Some(1))),
        one(none, lock_removed()),
        one(none, tail_set_aside()),
        // Events that touch no decision are skipped, and leave nothing.
        (api, Vec::new()),
        (none, Vec::new()),
    ]
}

/// Frames whose fence names what is current, and whose content cannot have been decided.
pub fn bad() -> Vec<(Fence, Vec<Event>)> {
    let (api, web, none) = (write(API, 2), write(WEB, 1), Fence::NONE);
    let one = |fence: Fence, event: Event| (fence, vec![event]);
    let item = |item: u32| Dispatched {
        item: TextId(item),
        ..dispatched(4, API, 2, None)
    };
    let envelope = |n: u64| Dispatched {
        envelope: EnvelopeNo(n),
        ..dispatched(4, API, 2, None)
    };
    vec![
        // Names and numbers that are taken, are none, or run ahead.
        one(grant(NOBODY, None, 1), registered(NOBODY, 1, 1)),
        one(grant(NOBODY, None, 1), registered(NOBODY, 4, 1)),
        one(grant(NOBODY, None, 1), registered(NOBODY, 99, 1)),
        one(grant(NOBODY, None, 1), registered(SessionNo(4), 0, 1)),
        one(grant(NOBODY, None, 1), registered(NOBODY, 0, 2)),
        one(none, dispatched(3, API, 2, None).into()),
        one(none, dispatched(0, API, 2, None).into()),
        one(none, dispatched(5, API, 2, None).into()),
        one(none, dispatched(u64::MAX, API, 2, None).into()),
        one(none, envelope(5).into()),
        one(none, envelope(u64::MAX).into()),
        one(none, sent(5, API, 2, None)),
        one(none, sent(1 << 20, API, 2, None)),
        one(none, bypassed(Some(NOBODY), Some(1))),
        one(api, tail_set_aside()),
        one(none, bypassed(Some(API), None)),
        one(none, bypassed(None, Some(1))),
        one(none, refused(0)),
        one(none, refused(3)),
        one(none, counted(0)),
        one(none, counted(2)),
        (api, vec![accepted(2, API, 2), joined(2, 7)]),
        (api, vec![accepted(2, API, 2), joined(2, u64::MAX)]),
        one(web, failed(2, u64::MAX, false)),
        (
            grant(GONE, Some(1), 2),
            vec![registered(GONE, 2, 2), fenced(GONE, 2, u64::MAX)],
        ),
        // A grant that is not in its events, or another one, or half of one.
        (grant(API, Some(2), 3), vec![]),
        (grant(NOBODY, None, 1), vec![]),
        one(grant(API, Some(2), 3), adopted(API, 3)),
        one(grant(API, Some(2), 3), carried(API, 3)),
        one(grant(API, Some(2), 3), noted(API)),
        (
            grant(API, Some(2), 3),
            vec![adopted(WEB, 3), carried(API, 3)],
        ),
        (
            grant(API, Some(2), 3),
            vec![adopted(API, 4), carried(API, 4)],
        ),
        (
            grant(API, Some(2), 3),
            vec![adopted(API, 3), carried(WEB, 3)],
        ),
        (
            grant(API, Some(2), 3),
            vec![adopted(API, 3), carried(API, 3), noted(API)],
        ),
        (
            grant(API, Some(2), 3),
            vec![registered(API, 1, 3), fenced(API, 3, 6)],
        ),
        (
            grant(GONE, Some(1), 2),
            vec![registered(GONE, 0, 2), fenced(GONE, 2, 6)],
        ),
        (grant(GONE, Some(1), 2), vec![registered(GONE, 2, 2)]),
        (
            grant(GONE, Some(1), 2),
            vec![adopted(GONE, 2), carried(GONE, 2)],
        ),
        (
            grant(NOBODY, None, 1),
            vec![adopted(NOBODY, 1), carried(NOBODY, 1)],
        ),
        (
            grant(NOBODY, None, 1),
            vec![registered(NOBODY, 0, 1), fenced(NOBODY, 1, 6)],
        ),
        // More than one decision.
        (none, vec![sent(6, API, 2, None), sent(6, API, 2, None)]),
        (api, vec![noted(API), noted(API)]),
        (api, vec![accepted(2, API, 2), joined(1, 6)]),
        (api, vec![joined(2, 6)]),
        (
            none,
            vec![HomeAccepted { reason: TextId(0) }.into(), raised(2)],
        ),
        // Another's, or not in the state that it begins from.
        one(web, accepted(2, WEB, 1)),
        one(web, accepted(2, API, 2)),
        one(api, accepted(2, API, 1)),
        one(api, accepted(1, API, 2)),
        one(api, accepted(9, API, 2)),
        (web, vec![accepted(2, WEB, 1), joined(2, 6)]),
        one(web, declined(2)),
        one(api, declined(1)),
        one(web, reported(1)),
        one(api, reported(2)),
        one(api, reported(9)),
        one(api, cancelled(2, false)),
        one(none, cancelled(2, false)),
        one(web, cancelled(2, true)),
        one(web, cancelled(1, true)),
        one(none, cancelled(9, true)),
        one(none, failed(1, 6, true)),
        one(api, failed(2, 6, false)),
        one(none, failed(2, 6, false)),
        one(web, noted(API)),
        one(web, observed(API)),
        one(web, delivered(3)),
        one(api, delivered(4)),
        one(api, delivered(0)),
        one(web, acknowledged(3)),
        one(api, acknowledged(4)),
        one(web, retired(API, 2, false)),
        one(api, retired(API, 1, false)),
        one(api, retired(API, 2, true)),
        one(none, retired(API, 2, false)),
        one(none, retired(API, 3, true)),
        one(none, retired(GONE, 1, true)),
        one(none, retired(NOBODY, 1, true)),
        one(web, dispatched(4, API, 2, None).into()),
        one(web, dispatched(4, API, 2, Some(API)).into()),
        one(none, dispatched(4, API, 2, Some(WEB)).into()),
        one(none, dispatched(4, API, 1, None).into()),
        one(none, dispatched(4, API, 3, None).into()),
        one(none, dispatched(4, GONE, 1, None).into()),
        one(none, dispatched(4, NOBODY, 1, None).into()),
        one(none, item(3).into()),
        one(web, sent(6, API, 2, Some(API))),
        one(none, sent(6, API, 3, None)),
        one(none, sent(6, GONE, 1, None)),
        one(none, raised(1)),
        one(none, raised(2)),
        one(none, raised(u64::MAX)),
    ]
}
