//! Samples of the kinds that histories are made of.

use tenure_core::command::{Command, Record};
use tenure_core::event::{Event, Recorded};
use tenure_core::history::{Activity, ActivityKind, HistoryHash};
use tenure_core::id::{Position, SessionNo};
use tenure_core::text::BodyId;

use super::text;

pub fn commands() -> Vec<Command> {
    vec![
        Record {
            kind: text(0),
            body: BodyId(0),
            expect: Some(Position(300)),
            opens: Some(Activity {
                kind: ActivityKind::Call,
                id: text(9),
            }),
            closes: None,
        }
        .into(),
    ]
}

pub fn events() -> Vec<Event> {
    vec![
        Recorded {
            session: SessionNo(3),
            index: 300,
            previous: Some(Position(299)),
            before: HistoryHash([0xab; 16]),
            depth: 1,
            kind: text(0),
            body: BodyId(0),
            opens: None,
            closes: Some(Activity {
                kind: ActivityKind::Approval,
                id: text(9),
            }),
        }
        .into(),
    ]
}
