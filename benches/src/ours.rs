//! The workload on a store of this project.

use std::path::Path;
use std::sync::Arc;

use tenure_core::command::Outcome;
use tenure_core::generation::Generation;
use tenure_core::id::{Name, Token};
use tenure_core::refusal::Code;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::store::{Answer, Done, OpenOptions, Store};

use crate::workload::{Act, Crew, Seat, Step};

/// The machine, with what it has to remember beside the store.
#[must_use]
pub fn host(dir: &Path) -> Arc<System> {
    Arc::new(System::new(&dir.join("state")))
}

/// A store in `dir/store`, made if there is none.
///
/// # Panics
/// When it cannot be opened: a measurement has nothing to go on with.
#[must_use]
pub fn open(dir: &Path) -> Store {
    let options = OpenOptions::new(dir.join("store")).create(true);
    Store::open(&options, host(dir)).expect("the store opens")
}

fn token(seat: &Seat, number: u64) -> Token {
    Token {
        name: seat.name.clone(),
        generation: Generation {
            incarnation: 1,
            number,
        },
        secret: None,
    }
}

/// The call that registers a seat.
#[must_use]
pub fn registration(seat: &Seat) -> Call {
    Call::new(Verb::Register {
        name: seat.name.clone(),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    })
    .by("bench")
}

/// The call that a step is.
///
/// # Panics
/// When the crew was not told of the dispatch that the step is about.
#[must_use]
pub fn call(crew: &Crew, step: &Step) -> Call {
    let seat = &crew.seats[step.seat];
    let name = seat.name.clone();
    let dispatch = || seat.dispatch.expect("the crew was told of the dispatch");
    let body = step.body.to_vec();
    let verb = match step.act {
        Act::Adopt => Verb::Adopt {
            name,
            bearer: Bearer::itself(),
            labels: Vec::new(),
        },
        Act::Dispatch { item } => Verb::Dispatch {
            item: Name::parse(&format!("item/{item}")).expect("made of name characters"),
            to: name,
            to_generation: None,
            title: None,
            writes: Vec::new(),
            body: None,
        },
        Act::Accept => Verb::Accept {
            dispatch: dispatch(),
        },
        Act::Report => Verb::Report {
            dispatch: dispatch(),
            outcome: Outcome::Done,
            body: Some(body),
        },
        Act::Note | Act::Late => Verb::Note { body, on: None },
    };
    let late = u64::from(step.act == Act::Late);
    Call::new(verb)
        .under(&token(seat, seat.generation - late))
        .by("bench")
}

/// Takes in the answer to a step.
///
/// # Panics
/// When a late write was carried out, or another step was not: then nothing measured counts.
pub fn settle(crew: &mut Crew, step: &Step, answer: Result<Done, Failure>) {
    match (step.act, answer) {
        (Act::Late, Err(Failure::Refused(refusal))) if refusal.code == Code::StaleGeneration => {
            crew.done(step, None);
        }
        (act, Ok(done)) if act != Act::Late => {
            let dispatch = match done.answer {
                Answer::Dispatched { dispatch, .. } => Some(dispatch),
                _ => None,
            };
            crew.done(step, dispatch);
        }
        (act, answer) => panic!("{act:?} was answered with {answer:?}"),
    }
}

/// Registers every seat, many with one sync.
///
/// # Panics
/// When the store does not take them.
pub fn register(store: &Store, crew: &Crew) {
    for seats in crew.seats.chunks(256) {
        let submit = |seat| store.submit(registration(seat)).expect("the call is well-formed");
        let tickets: Vec<_> = seats.iter().map(submit).collect();
        for ticket in tickets {
            ticket.wait().expect("the name is free");
        }
    }
}

/// Carries out the next step.
///
/// # Panics
/// As [`settle`].
pub fn play(store: &Store, crew: &mut Crew) {
    let step = crew.next_step();
    let answer = store.execute(call(crew, &step));
    settle(crew, &step, answer);
}

/// Carries out `steps` steps, with as many on their way as there are seats, at most 256.
///
/// # Panics
/// As [`settle`].
pub fn fill(store: &Store, crew: &mut Crew, steps: usize) {
    let together = crew.seats.len().min(256);
    let mut left = steps;
    while left > 0 {
        let mut sent = Vec::with_capacity(together);
        for _ in 0..together.min(left) {
            let step = crew.next_step();
            let call = call(crew, &step);
            let ticket = store.submit(call).expect("the call is well-formed");
            sent.push((step, ticket));
        }
        left -= sent.len();
        for (step, ticket) in sent {
            settle(crew, &step, ticket.wait());
        }
    }
}
