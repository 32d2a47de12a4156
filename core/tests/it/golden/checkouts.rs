//! Samples of what is done beside the ledger: in a checkout, and to the log's own tail.

use tenure_core::command::{BypassGuard, Command, Lose, Regained, RemoveLock, SealStore, SetAside};
use tenure_core::event::{
    Event, GrantSealed, GuardBypassed, LockRemoved, PositionLost, SessionRegained, StoreSealed,
    TailSetAside,
};
use tenure_core::id::{Position, SessionNo, Time};
use tenure_core::seal::Seal;

use super::{GENERATION, text};

pub fn commands() -> Vec<Command> {
    vec![
        BypassGuard {
            hook: text(0),
            checkout: text(4),
            said: text(8),
            reason: text(9),
        }
        .into(),
        SetAside {
            first: Position(9412),
            epoch: 3,
            offset: 70_008,
            bytes: 250,
            file: text(4),
        }
        .into(),
        Lose {
            first: Position(9412),
            epoch: 3,
            offset: Some(70_008),
            found: text(8),
            life: 1_702_345_678,
            regained: Some(Regained {
                session: SessionNo(3),
                name: text(0),
            }),
        }
        .into(),
        SealStore {}.into(),
        RemoveLock {
            path: text(4),
            uid: 1000,
            bytes: 300,
            modified: Time(1_800_000_000_000_000),
            reason: text(9),
        }
        .into(),
    ]
}

pub fn events() -> Vec<Event> {
    vec![
        GuardBypassed {
            hook: text(0),
            session: Some(SessionNo(3)),
            presented: Some(GENERATION),
            checkout: text(4),
            said: text(8),
            reason: text(9),
        }
        .into(),
        TailSetAside {
            first: Position(9412),
            epoch: 3,
            offset: 70_008,
            bytes: 250,
            file: text(4),
        }
        .into(),
        PositionLost {
            first: Position(9412),
            epoch: 3,
            offset: Some(70_008),
            found: text(8),
            life: 1_702_345_678,
        }
        .into(),
        SessionRegained {
            session: SessionNo(3),
            name: text(0),
        }
        .into(),
        StoreSealed {}.into(),
        GrantSealed {
            session: SessionNo(3),
            generation: GENERATION,
            seal: Seal([0xcc; 16]),
        }
        .into(),
        LockRemoved {
            path: text(4),
            uid: 1000,
            bytes: 300,
            modified: Time(1_800_000_000_000_000),
            reason: text(9),
        }
        .into(),
    ]
}
