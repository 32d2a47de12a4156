//! What is known of tokens, of secrets and of stretches that cannot be proven.

use tenure_core::generation::Generation;
use tenure_core::history::Hidden;
use tenure_core::id::{Name, Position, SessionNo, Token};
use tenure_core::seal::{Seal, Secret};
use tenure_core::state::paged::Item;
use tenure_core::state::{Session, State, Unproven};

fn generation(number: u64) -> Generation {
    Generation {
        incarnation: 1,
        number,
    }
}

/// S5: a token that is printed for whoever looks for faults says that it has a secret, and not which.
#[test]
fn a_token_that_is_printed_shows_no_secret() {
    let token = |secret: Option<Secret>| Token {
        name: Name::parse("api").expect("a name"),
        generation: generation(3),
        secret,
    };
    assert_eq!(format!("{:?}", token(None)), "Token(api@3)");
    let sealed = token(Some(Secret::from_bytes([0xab; 16])));
    assert_eq!(format!("{sealed:?}"), "Token(api@3~...)");
    assert_eq!(sealed.to_string(), "api@3");
}

/// A secret counts for the session and the generation that it was granted with.
#[test]
fn a_secret_is_that_of_one_generation_of_one_session() {
    let mut state = State::new();
    for seal in [[1; 16], [2; 16]] {
        state.sessions.push(Session {
            generation: generation(3),
            seal: Some(Seal(seal)),
            ..Session::blank()
        });
    }
    let sealed = |session, number, seal| {
        state.is_sealed_with(SessionNo(session), generation(number), Seal([seal; 16]))
    };
    assert!(sealed(0, 3, 1) && sealed(1, 3, 2));
    assert!(!sealed(0, 2, 1) && !sealed(0, 4, 1), "another generation");
    assert!(!sealed(0, 3, 2) && !sealed(1, 3, 1), "another's secret");
    assert!(!sealed(2, 3, 1), "a session that is not there");
}

/// A revert hides what stands between the record that stays and itself.
#[test]
fn a_revert_hides_what_stands_between() {
    let hidden = Hidden {
        to: Position(4),
        marker: Position(8),
    };
    let hides: Vec<u64> = (0..12).filter(|at| hidden.hides(Position(*at))).collect();
    assert_eq!(hides, [5, 6, 7]);
}

/// F11: a stretch behind a loss begins where the frame was lost and ends where a new life begins.
#[test]
fn what_is_proven_is_told_by_position() {
    let mut state = State::new();
    assert!(!state.is_unproven() && state.is_proven_at(Position(1)));
    state.unproven.push(Unproven {
        since: Position(5),
        life: 2,
        until: Some(Position(9)),
    });
    let proven = |state: &State| {
        (3..12)
            .map(|at| state.is_proven_at(Position(at)))
            .collect::<Vec<_>>()
    };
    let (yes, no) = (true, false);
    assert_eq!(proven(&state), [yes, yes, no, no, no, no, yes, yes, yes]);
    assert!(!state.is_unproven());
    state.unproven.push(Unproven {
        since: Position(10),
        life: 3,
        until: None,
    });
    assert_eq!(proven(&state), [yes, yes, no, no, no, no, yes, no, no]);
    assert!(state.is_unproven());
}
