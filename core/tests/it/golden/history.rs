//! Samples of the kinds that histories are made of.

use tenure_core::command::{Branch, BranchInTree, Command, Import, Record, Rename, Revert};
use tenure_core::event::{Branched, Event, Imported, Recorded, Renamed, Reverted};
use tenure_core::history::{Activity, ActivityKind, FoundRecord, HistoryHash, Point};
use tenure_core::id::{EnvelopeNo, Position, SessionNo};
use tenure_core::text::BodyId;

use super::{bearer, scope, text};

fn point() -> Point {
    Point {
        position: Position(300),
        index: 299,
        hash: HistoryHash([0xab; 16]),
    }
}

fn found() -> FoundRecord {
    FoundRecord {
        session: SessionNo(2),
        point: point(),
        depth: 1,
    }
}

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
        Revert {
            to: Position(300),
            found: Some(found()),
        }
        .into(),
        Branch {
            source: text(1),
            name: text(0),
            at: Some(Position(300)),
            found: Some(found()),
            bearer: bearer(),
            labels: vec![(text(7), text(8))],
            checkout: Some(scope()),
        }
        .into(),
        Rename {
            name: text(0),
            to: text(1),
        }
        .into(),
        Import {
            from: text(0),
            parent: Some(text(1)),
            hash: HistoryHash([0xab; 16]),
        }
        .into(),
        BranchInTree {
            source: text(1),
            name: text(0),
            at: None,
            found: None,
            bearer: bearer(),
            labels: vec![(text(7), text(8))],
            checkout: None,
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
        Reverted {
            session: SessionNo(3),
            to: Some(point()),
        }
        .into(),
        Branched {
            session: SessionNo(4),
            source: SessionNo(3),
            at: Some(point()),
            first_envelope: EnvelopeNo(300),
        }
        .into(),
        Renamed {
            session: SessionNo(3),
            name: text(1),
        }
        .into(),
        Imported {
            session: SessionNo(3),
            from: text(0),
            parent: Some(text(1)),
            hash: HistoryHash([0xab; 16]),
        }
        .into(),
    ]
}
