//! The tables of `docs/roles.md`, row by row, exhaustively.

use tenure_core::generation::Generation;
use tenure_core::holder::Verdict;
use tenure_core::role::{Acting, Held, Taking, act, take};

const HELD: [Held; 3] = [Held::ByNobody, Held::ByAsker, Held::ByAnother];

/// ROL-1, ROL-5, LIV-3: every combination is in exactly one row.
#[test]
fn a_take_follows_the_table() {
    for held in HELD {
        for has_holder in [false, true] {
            for verdict in Verdict::ALL {
                let row = match (held, has_holder, verdict) {
                    (Held::ByNobody, _, _) => ("free", Taking::Taken),
                    (Held::ByAsker, _, _) => ("own", Taking::Own),
                    (Held::ByAnother, false, _) => ("vacant", Taking::Taken),
                    (Held::ByAnother, true, Verdict::Dead) => ("dead", Taking::Taken),
                    (Held::ByAnother, true, Verdict::Alive | Verdict::Unknowable) => {
                        ("held", Taking::Refused)
                    }
                };
                let given = take(held, has_holder, *verdict);
                assert_eq!(given, row.1, "{}: {held:?} {has_holder} {verdict:?}", row.0);
            }
        }
    }
}

/// ROL-2, ROL-3: every combination is in exactly one row.
#[test]
fn a_check_follows_the_table() {
    let at = |number| Generation {
        incarnation: 1,
        number,
    };
    let asked = [None, Some(at(2)), Some(at(3)), Some(at(4))];
    for held in HELD {
        // Only a role that was never taken has no generation, and nobody holds it.
        for current in [None, Some(at(3))] {
            if current.is_none() && held != Held::ByNobody {
                continue;
            }
            for asked in asked {
                for before in [false, true] {
                    let is_current = asked.is_none() || asked == current;
                    let row = match (held, is_current, before) {
                        (_, false, _) => ("past", Acting::Stale),
                        (Held::ByAsker, true, _) => ("own", Acting::Allowed),
                        (Held::ByAnother, true, true) => ("lost", Acting::Stale),
                        (Held::ByAnother, true, false) => ("others", Acting::Refused),
                        (Held::ByNobody, true, _) => ("nobody", Acting::Stale),
                    };
                    let given = act(held, current, asked, before);
                    assert_eq!(given, row.1, "{}: {held:?} {asked:?} {before}", row.0);
                }
            }
        }
    }
}
