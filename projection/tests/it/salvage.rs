//! What a salvage makes of a log: numbers mean what they meant, nothing behind a loss is red, and no token from before is
//! current, whatever was lost.

use tenure_core::apply::{Applied, apply};
use tenure_core::codec;
use tenure_core::event::{Entry, Event, Fence, IncarnationRaised, PositionLost};
use tenure_core::generation::Generation;
use tenure_core::id::{Moment, Position};
use tenure_core::state::State;
use tenure_core::text::Texts;

use crate::rules::replay::Dice;
use crate::scene::Scene;

mod stores;

const LIFE: u64 = 1_000_000;

fn frame(at: Moment, incarnation: u64, event: Event, texts: Texts) -> Entry {
    Entry {
        at,
        incarnation,
        fence: Fence::NONE,
        texts,
        events: vec![event],
        ..Entry::default()
    }
}

/// What stands in place of a lost frame.
fn lost(at: Moment, incarnation: u64) -> Entry {
    let mut texts = Texts::default();
    let found = texts.add(b"zeros");
    let event = PositionLost {
        first: Position(1),
        epoch: 1,
        offset: None,
        found,
        life: LIFE,
    };
    frame(at, incarnation, event.into(), texts)
}

fn raise(state: &mut State) {
    let mut texts = Texts::default();
    let reason = texts.add(b"salvaged");
    let at = Moment {
        position: Position(state.at.position.0 + 1),
        time: state.at.time,
    };
    let settled = tenure_core::command::Settlement::Salvaged;
    let mut entry = frame(
        at,
        LIFE,
        IncarnationRaised {
            incarnation: LIFE,
            how: settled,
            reason,
        }
        .into(),
        texts,
    );
    entry
        .events
        .push(tenure_core::event::HomeAccepted { reason }.into());
    assert_eq!(apply(state, &entry), Applied::Honoured);
    assert!(!state.is_unproven());
}

/// How many random logs are tried; `TENURE_STREAMS` says otherwise.
fn streams(ordinary: u64) -> u64 {
    let said = std::env::var("TENURE_STREAMS").ok();
    said.and_then(|n| n.parse().ok()).unwrap_or(ordinary)
}

/// A random log of the rules' generator.
fn random(seed: u64, steps: usize) -> Vec<Entry> {
    let (scene, mut dice) = (Scene::new(), Dice::new(seed));
    for _ in 0..steps {
        let line = dice.line(&scene);
        scene.run(&line);
    }
    scene.entries()
}

/// The names and generations of every token that a log ever granted.
fn tokens(entries: &[Entry]) -> Vec<(Vec<u8>, Generation)> {
    let (mut names, mut tokens) = (std::collections::BTreeMap::new(), Vec::new());
    for entry in entries {
        for event in &entry.events {
            match event {
                Event::Registered(e) => {
                    names.insert(e.session, entry.texts.get(e.name).to_vec());
                    tokens.push((names[&e.session].clone(), e.generation));
                }
                Event::Adopted(e) => tokens.push((names[&e.session].clone(), e.generation)),
                Event::Renamed(e) => {
                    names.insert(e.session, entry.texts.get(e.name).to_vec());
                }
                _ => {}
            }
        }
    }
    tokens
}

/// What an entry gives a number to stands under that number.
fn numbers_hold(state: &State, entry: &Entry) {
    let at = entry.at.position;
    for event in &entry.events {
        match event {
            Event::Registered(e) => {
                let name = entry.texts.get(e.name);
                assert_eq!(state.find(name), Some(e.session), "at {at}");
                let known = state.session(e.session).expect("it is there");
                assert_eq!(known.generation, e.generation, "at {at}");
            }
            Event::Dispatched(e) => {
                let row = state.dispatch(e.dispatch).expect("it is there");
                assert_eq!((row.session, row.opened), (e.session, entry.at), "at {at}");
                let item = entry.texts.get(e.item);
                assert_eq!(state.live_dispatch_of(item), Some(e.dispatch), "at {at}");
                let row = state.envelope(e.envelope).expect("it is there");
                assert_eq!((row.session, row.position), (e.session, at), "at {at}");
            }
            Event::Sent(e) => {
                let row = state.envelope(e.envelope).expect("it is there");
                assert_eq!((row.session, row.position), (e.session, at), "at {at}");
            }
            Event::RoleTaken(e) => {
                let role = state.role(e.role).expect("it is there");
                assert_eq!(role.generation, e.generation, "at {at}");
            }
            Event::Refused(e) => {
                let record = state.refusal(e.refusal).expect("it is there");
                assert_eq!(record.last, entry.at, "at {at}");
            }
            _ => {}
        }
    }
}

/// What is written down of a state is that state.
fn comes_back(state: &State) {
    let bytes = codec::encode(state).expect("it encodes");
    let back: State = codec::decode(&bytes).expect("it decodes");
    assert!(back == *state, "at {}", state.at.position);
}

/// Folds a log without some positions, and the salvage's raise.
fn folded(entries: &[Entry], is_lost: impl Fn(u64) -> bool) -> State {
    let mut state = State::new();
    for entry in entries {
        if is_lost(entry.at.position.0) {
            let incarnation = state.incarnation;
            apply(&mut state, &lost(entry.at, incarnation));
            continue;
        }
        let expected = match state.is_unproven() {
            true => Applied::Unproven,
            false => Applied::Honoured,
        };
        let applied = apply(&mut state, entry);
        assert_eq!(applied, expected, "at {}", entry.at.position);
        numbers_hold(&state, entry);
    }
    assert_eq!(state.findings, [], "nothing behind a loss is red");
    comes_back(&state);
    raise(&mut state);
    comes_back(&state);
    state
}

fn nothing_is_current(state: &State, tokens: &[(Vec<u8>, Generation)]) {
    for (name, generation) in tokens {
        if let Some(session) = state.find(name) {
            let checked = state.check(session, *generation);
            assert!(checked.is_err(), "{name:?} {generation}");
        }
    }
}

/// F11: every single position of random logs lost, every tail, and random sets: what is kept keeps its numbers, nothing
/// is red, and no token that was ever granted is current afterwards.
#[test]
fn whatever_is_lost_numbers_stay_and_no_older_token_is_current() {
    let mut folds = 0;
    for seed in 1..=streams(8) {
        let entries = random(seed, 110);
        let tokens = tokens(&entries);
        let (end, mut dice) = (entries.len() as u64, Dice::new(seed + 100));
        for position in 1..=end {
            nothing_is_current(&folded(&entries, |p| p == position), &tokens);
            nothing_is_current(&folded(&entries, |p| p >= position), &tokens);
            let sides = 2 + dice.roll(12);
            let set: Vec<bool> = (0..=end).map(|_| dice.roll(sides) == 0).collect();
            nothing_is_current(&folded(&entries, |p| set[p as usize]), &tokens);
            folds += 3;
        }
    }
    assert!(folds > 1000, "{folds}");
}

/// What lost frames gave is counted on: no number that a kept frame names is given again.
#[test]
fn a_number_is_never_given_twice() {
    let scene = Scene::new();
    scene.play(
        "register api
         register web
         dispatch one web
         dispatch two web
         accept d2 as=web@1
         send api hello as=web@1",
    );
    // Both dispatches are lost; the acceptance of the second and the envelope of a message name what came.
    let state = folded(&scene.entries(), |p| p == 3 || p == 4);
    assert_eq!(state.next_dispatch().0, 3);
    assert_eq!(state.next_envelope().0, 4);
}

/// A frame behind a loss that names what cannot have been given yet is red all the same: somebody made it up.
#[test]
fn an_impossible_number_is_a_finding_behind_a_loss_too() {
    let scene = Scene::new();
    scene.play("register api\nregister web\nnote hello as=web@1");
    let mut entries = scene.entries();
    entries[2].fence.session = Some(tenure_core::id::SessionNo(3));
    let mut state = State::new();
    apply(&mut state, &lost(entries[0].at, 1));
    assert_eq!(apply(&mut state, &entries[1]), Applied::Unproven);
    assert_eq!(apply(&mut state, &entries[2]), Applied::Finding);
    assert_eq!(state.findings, [Position(3)]);
}

/// A salvage within a stretch that an older salvage left unproven: only the newest life ends it.
#[test]
fn an_older_raise_does_not_end_a_newer_loss() {
    let mut state = State::new();
    let at = |position| Moment {
        position: Position(position),
        ..Moment::default()
    };
    apply(&mut state, &lost(at(1), 1));
    let Event::PositionLost(mut newer) = lost(at(2), 1).events[0].clone() else {
        unreachable!("it is one")
    };
    newer.life = LIFE + 1;
    let mut texts = Texts::default();
    texts.add(b"zeros");
    apply(&mut state, &frame(at(2), 1, newer.into(), texts));
    let mut raised = state.clone();
    let mut texts = Texts::default();
    let reason = texts.add(b"salvaged");
    let how = tenure_core::command::Settlement::Salvaged;
    let event = |incarnation| IncarnationRaised {
        incarnation,
        how,
        reason,
    };
    let old = frame(at(3), LIFE, event(LIFE).into(), texts.clone());
    assert_eq!(apply(&mut raised, &old), Applied::Unproven);
    assert!(raised.is_unproven());
    let new = frame(at(4), LIFE + 1, event(LIFE + 1).into(), texts);
    assert_eq!(apply(&mut raised, &new), Applied::Honoured);
    assert!(raised.is_proven_at(Position(4)) && !raised.is_proven_at(Position(3)));
}
