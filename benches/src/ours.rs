//! The workload on a store of this project.

use std::path::Path;
use std::sync::Arc;

use tenure_core::apply::apply;
use tenure_core::command::{Outcome, Request};
use tenure_core::generation::Generation;
use tenure_core::id::{Name, Position, Token};
use tenure_core::refusal::Code;
use tenure_core::state::State;
use tenure_log::frame::{Depth, Frame, FrameRef};
use tenure_log::journal::memory::MemoryLog;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::entry;
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::store::{Answer, Done, OpenOptions, RULES, Store};

use crate::workload::{Act, Crew, SEED, Seat, Step};

/// The machine, with what it has to remember beside the store.
#[must_use]
pub fn host(dir: &Path) -> Arc<System> {
    Arc::new(System::new(&dir.join("state")))
}

/// A store in `dir/store`, made if there is none, as a program that lives long opens it.
///
/// # Panics
/// When it cannot be opened: a measurement has nothing to go on with.
#[must_use]
pub fn open(dir: &Path) -> Store {
    let options = OpenOptions::new(dir.join("store"))
        .create(true)
        .snapshots_aside(true);
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
    let name = || seat.name.clone();
    let dispatch = || seat.dispatch.expect("the crew was told of the dispatch");
    let body = step.body.clone();
    let verb = match step.act {
        Act::Adopt => Verb::Adopt {
            name: name(),
            bearer: Bearer::itself(),
            labels: Vec::new(),
        },
        Act::Dispatch { item } => Verb::Dispatch {
            item: Name::parse(&format!("item/{item}")).expect("made of name characters"),
            to: name(),
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
            body,
        },
        Act::Note | Act::Late => Verb::Note {
            body: body.unwrap_or_default(),
            on: None,
        },
        Act::Record => Verb::Record {
            kind: "turn".into(),
            body: body.unwrap_or_default(),
            expect: None,
            opens: None,
            closes: None,
        },
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
        let submit = |seat| {
            store
                .submit(registration(seat))
                .expect("the call is well-formed")
        };
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

/// A story played on a store in memory, to be told again part by part.
#[derive(Debug)]
pub struct Story {
    /// Every frame, oldest first.
    pub frames: Vec<Frame>,
    acts: Vec<(usize, Act, Request)>,
}

impl Story {
    /// `steps` steps of the workload with `seats` sessions.
    ///
    /// # Panics
    /// As [`settle`].
    #[must_use]
    pub fn new(seats: usize, steps: usize) -> Self {
        let log = MemoryLog::new(RULES);
        let dir = std::env::temp_dir();
        let store = Store::over(Arc::new(log), host(&dir)).expect("an empty log opens");
        let mut crew = Crew::new(SEED, 0, seats);
        register(&store, &crew);
        let mut acts = Vec::new();
        for _ in 0..steps {
            let step = crew.next_step();
            let before = store.head().expect("memory can be read").position;
            let answer = store.execute(call(&crew, &step));
            settle(&mut crew, &step, answer);
            // A refusal that was recorded before is only counted.
            if store.head().expect("memory can be read").position > before {
                let index = usize::try_from(before.0).expect("it fits into memory");
                acts.push((index, step.act));
            }
        }
        let mut frames = Vec::new();
        let every = |frame: &FrameRef<'_>| {
            frames.push(frame.to_owned());
            Ok(true)
        };
        let to = Position(u64::MAX);
        store
            .frames(Position(1), to, Depth::Whole, every)
            .expect("memory can be read");
        let request = |(at, act): (usize, Act)| {
            let frame = frames.get(at)?;
            let request = entry::decode_request(&frame.by_ref()).expect("the frame is good");
            Some((at, act, request))
        };
        let acts = acts.into_iter().filter_map(request).collect();
        Self { frames, acts }
    }

    /// The state at the end.
    ///
    /// # Panics
    /// When a frame does not decode: it was written by this program.
    #[must_use]
    pub fn state(&self) -> State {
        self.state_after(self.frames.len())
    }

    fn state_after(&self, count: usize) -> State {
        let mut state = State::new();
        for frame in &self.frames[..count] {
            apply(
                &mut state,
                &entry::decode(&frame.by_ref()).expect("the frame is good"),
            );
        }
        state
    }

    /// The last step of a kind: what was asked, and the state it was decided on.
    #[must_use]
    pub fn scene(&self, wanted: impl Fn(Act) -> bool) -> Option<(State, Request)> {
        let last = self.acts.iter().rev().find(|(_, act, _)| wanted(*act));
        last.map(|(at, _, request)| (self.state_after(*at), request.clone()))
    }
}
