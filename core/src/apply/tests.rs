//! Events of every kind, folded where nothing is that they speak of.

use alloc::vec::Vec;

use super::Fold;
use crate::codec::v1;
use crate::event::{Event, SessionRegained};
use crate::id::{DispatchNo, EnvelopeNo, Moment, SessionNo};
use crate::state::{DispatchRow, EnvelopeRow, Session, State};
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
            state.sessions.push(session(number));
        }
        for _ in 0..2 {
            fold(&texts).event(&mut state, event);
        }
        let [_, dispatches, envelopes, ..] = amounts(&state);
        assert_eq!((dispatches, envelopes), (0, 0), "{}", event.word());
    }
}

fn session(number: u64) -> Session {
    let name = Symbol::default();
    Session::unheld(name, SessionNo(number), Moment::default(), 1)
}

/// What stands in one place may speak of another where nothing is: work and mail of sessions that are not there, and
/// sessions whose lists name work and mail that is not. Every sample is folded on both; nothing panics, and nobody comes to
/// hold a session but by the events that say so.
#[test]
fn events_about_halves_of_things_are_folded() {
    let texts = Texts::default();
    for event in &samples() {
        let mut rows = State::new();
        for _ in 0..7 {
            rows.dispatches.push(DispatchRow::UNUSED);
        }
        for _ in 0..300 {
            rows.envelopes.push(EnvelopeRow::UNUSED);
        }
        let mut lists = State::new();
        for number in 0..8 {
            lists.sessions.push(Session {
                open: [7, 99].map(DispatchNo).to_vec(),
                inbox: [300, 999].map(EnvelopeNo).to_vec(),
                ..session(number)
            });
        }
        for mut state in [rows, lists] {
            // The second time, what has a number is there.
            for _ in 0..2 {
                fold(&texts).event(&mut state, event);
            }
            let held = |session: &&Session| session.holder.is_some();
            let holders = state.sessions.iter().filter(held).count();
            let grants = matches!(event, Event::Registered(_) | Event::Adopted(_));
            assert!(holders == 0 || grants, "{}", event.word());
        }
    }
}

/// Mail and work begin under the number whose turn it is, for a session that is there, and no second time.
#[test]
fn a_number_is_given_once_and_to_who_is_there() {
    let texts = Texts::default();
    let samples = samples();
    let find = |word: &str| {
        let found = samples.iter().find(|event| event.word() == word);
        found.expect("every kind has a sample").clone()
    };
    let (mut sent, mut dispatched) = (find("sent"), find("dispatched"));
    let mut state = State::new();
    state.sessions.push(session(0));
    let mut try_as = |to: u64, envelope: u64, dispatch: u64| {
        if let Event::Sent(e) = &mut sent {
            (e.session, e.envelope) = (SessionNo(to), EnvelopeNo(envelope));
        }
        if let Event::Dispatched(e) = &mut dispatched {
            (e.session, e.dispatch) = (SessionNo(to), DispatchNo(dispatch));
            e.envelope = EnvelopeNo(envelope + 1);
        }
        for event in [&sent, &dispatched] {
            fold(&texts).event(&mut state, event);
        }
        let [_, dispatches, envelopes, ..] = amounts(&state);
        (envelopes, dispatches)
    };
    assert_eq!(try_as(1, 1, 9), (0, 0), "nobody is there");
    // Number 0 is not used.
    assert_eq!(try_as(0, 1, 1), (3, 2));
    assert_eq!(try_as(0, 1, 1), (3, 2), "given before");
    assert_eq!(try_as(0, 9, 9), (3, 2), "not its turn");
    assert_eq!(try_as(0, 3, 2), (5, 3));
}

/// F11: a session that a lost frame introduced gets its name, also from who has it still; whoever loses one gets another,
/// which nobody has.
#[test]
fn a_name_is_taken_from_who_lost_it_in_a_lost_frame() {
    let mut texts = Texts::default();
    let (api, made_up) = (texts.add(b"api"), texts.add(b"lost:s2"));
    let mut state = State::new();
    let regain = |state: &mut State, session, name| {
        let session = SessionNo(session);
        let event = SessionRegained { session, name };
        fold(&texts).event(state, &event.into());
    };
    let names = |state: &State| -> Vec<_> {
        let sessions = state.sessions.iter();
        sessions
            .map(|session| state.pool.string(session.name))
            .collect()
    };
    regain(&mut state, 0, api);
    assert_eq!(names(&state), ["api"]);
    // Another has it: the first is nameless again.
    regain(&mut state, 1, api);
    assert_eq!(names(&state), ["lost:s0", "api"]);
    assert_eq!(state.find(b"api"), Some(SessionNo(1)));
    assert_eq!(state.find(b"lost:s0"), Some(SessionNo(0)));
    // A name that was made up for another is evaded.
    regain(&mut state, 0, made_up);
    regain(&mut state, 2, api);
    assert_eq!(names(&state), ["lost:s2", "lost:s1", "api"]);
    regain(&mut state, 3, api);
    assert_eq!(names(&state), ["lost:s2", "lost:s1", "lost:s2+", "api"]);
    // What it is called already it stays.
    regain(&mut state, 0, made_up);
    assert_eq!(names(&state), ["lost:s2", "lost:s1", "lost:s2+", "api"]);
    assert_eq!(state.find(b"lost:s2"), Some(SessionNo(0)));
}
