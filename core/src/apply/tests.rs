//! Events of every kind, folded where nothing is that they speak of.

use alloc::vec::Vec;

use super::Fold;
use crate::codec::v1;
use crate::event::Event;
use crate::id::{Moment, SessionNo};
use crate::state::{Session, State};
use crate::text::{Symbol, Texts};

/// The event of every sample in the golden file, with its word.
fn samples() -> Vec<Event> {
    let golden = include_str!("../../tests/golden/facts-v1.txt");
    let lines = golden.lines().filter(|line| line.starts_with("event-"));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(_, hex)| {
            let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
            let facts: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
            let (kind, payload) = v1::an_item(&facts, false);
            let event = Event::decode_payload(kind, payload, |event| event);
            event.expect("a known kind").expect("a good sample")
        })
        .collect()
}

fn fold<'t>(texts: &'t Texts) -> Fold<'t> {
    Fold {
        texts,
        bodies: &[],
        at: Moment::default(),
        tree: None,
    }
}

/// How much of everything that has a number there is.
fn amounts(state: &State) -> [usize; 6] {
    [
        state.sessions.len(),
        state.dispatches.len(),
        state.envelopes.len(),
        state.refusals.len(),
        state.roles.len(),
        state.live.iter().count(),
    ]
}

/// What events say about numbers never given is ignored: nobody comes to hold anything, and no work and no mail is
/// there that was not before. The guard of a frame lets none of these through; the fold does not rely on it.
#[test]
fn events_about_numbers_never_given_change_nothing() {
    let samples = samples();
    assert_eq!(samples.len(), Event::KINDS.len());
    let texts = Texts::default();
    for event in &samples {
        let mut state = State::new();
        fold(&texts).event(&mut state, event);
        let expected = match event {
            // These begin something, under the number whose turn it is.
            Event::Registered(_) => [1, 0, 0, 0, 0, 0],
            // A name and a generation of a session that a lost frame began; there are none without a loss.
            Event::SessionRegained(_) => [4, 0, 0, 0, 0, 0],
            Event::RoleTaken(_) => [0, 0, 0, 0, 1, 0],
            _ => [0; 6],
        };
        assert_eq!(amounts(&state), expected, "{}", event.word());
    }
}

/// The same twice, on a state with the sessions that the samples name and nothing else of theirs: no work and no mail
/// comes from an event about work or mail that nobody has.
#[test]
fn events_about_work_and_mail_never_given_add_none() {
    let texts = Texts::default();
    for event in &samples() {
        let mut state = State::new();
        for number in 0..8 {
            let session =
                Session::unheld(Symbol::default(), SessionNo(number), Moment::default(), 1);
            state.sessions.push(session);
        }
        for _ in 0..2 {
            fold(&texts).event(&mut state, event);
        }
        let [_, dispatches, envelopes, ..] = amounts(&state);
        assert_eq!((dispatches, envelopes), (0, 0), "{}", event.word());
    }
}
