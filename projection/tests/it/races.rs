//! Races of real processes: sixteen want one thing at one moment, and one gets it (ROL-1, DIS-2).
//!
//! `TENURE_ROUNDS=200` runs as many rounds as the page promises; the ordinary run has 20.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::event::Event;
use tenure_core::id::{Name, Position};
use tenure_core::refusal::Code;
use tenure_core::state::State;
use tenure_log::frame::Depth;
use tenure_log::journal::Deadline;
use tenure_projection::call::{Call, RoleAt, Verb};
use tenure_projection::entry;
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::session::Session;
use tenure_projection::store::{Answer, OpenOptions, Store};

use crate::actors::{self, Running};

const PROCESSES: usize = 16;
/// The session that says that every round is over.
const OVER: &str = "over";

fn rounds() -> u64 {
    let said = std::env::var("TENURE_ROUNDS").ok();
    said.map_or(20, |n| n.parse().expect("TENURE_ROUNDS is a number"))
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn open(dir: &Path, create: bool) -> Store {
    let host = Arc::new(System::of_this_user());
    Store::open(&OpenOptions::new(dir).create(create), host).expect("it opens")
}

/// Waits until the state is as it should be.
fn until(store: &Store, is: impl Fn(&State) -> bool) {
    loop {
        let look = |state: &State| (is(state), state.at.position);
        let (reached, seen) = store.view(look).expect("the log reads");
        if reached {
            return;
        }
        let pause = Deadline::after(Duration::from_millis(50));
        store.wait_beyond(seen, pause).expect("the log reads");
    }
}

/// One of those who want it: attempts once a round, and answers how often it won.
fn contend(part: &str, attempt: impl Fn(&Session) -> Result<(), Failure>, refused: Code) {
    let mut words = part.split(' ');
    let mut next = || words.next().expect("a word");
    let (number, rounds, dir) = (next(), next().parse::<u64>(), next());
    let store = open(Path::new(dir), false);
    let session = Session::register(&store, &name(&format!("racer-{number}"))).expect("granted");
    let mut won = 0;
    for round in 1..=rounds.expect("a number") {
        let go = format!("go-{round}");
        until(&store, |state| state.find(go.as_bytes()).is_some());
        match attempt(&session) {
            Ok(()) => won += 1,
            Err(Failure::Refused(refusal)) if refusal.code == refused => {}
            Err(other) => panic!("{other}"),
        }
        let status = round.to_string();
        let over = Verb::Observe {
            status,
            wrote: Vec::new(),
        };
        session.call(over).expect("its token is current");
    }
    // Who wins the last round and is gone has left the thing to whoever comes later in it, and rightly so.
    until(&store, |state| state.find(OVER.as_bytes()).is_some());
    actors::answer(&won.to_string());
}

/// Runs the rounds, and makes the thing free again behind each. Gives how often `wins` happened in each round.
fn race(test: &str, free: impl Fn(&Store), wins: impl Fn(&Event) -> bool) -> Vec<u64> {
    let (place, rounds) = (tempfile::tempdir().expect("a directory"), rounds());
    let dir = place.path().join("store");
    let store = open(&dir, true);
    let part = |n| format!("{n} {rounds} {}", dir.display());
    let mut racers: Vec<Running> = (0..PROCESSES)
        .map(|n| Running::command(&mut actors::actor(&[], test, &part(n))))
        .collect();
    let status = |state: &State, n: usize| {
        let session = state.find(format!("racer-{n}").as_bytes());
        let said = session.and_then(|s| state.session(s)?.status.clone());
        said.map(|s| String::from_utf8_lossy(s.as_bytes()).into_owned())
    };
    let registered =
        |state: &State, n: usize| state.find(format!("racer-{n}").as_bytes()).is_some();
    until(&store, |state| (0..PROCESSES).all(|n| registered(state, n)));
    for round in 1..=rounds {
        Session::register(&store, &name(&format!("go-{round}"))).expect("granted");
        let over = Some(round.to_string());
        until(&store, |state| {
            (0..PROCESSES).all(|n| status(state, n) == over)
        });
        free(&store);
    }
    Session::register(&store, &name(OVER)).expect("granted");
    let won: u64 = racers
        .iter_mut()
        .map(|racer| racer.next_answer().parse::<u64>().expect("a number"))
        .sum();
    assert_eq!(won, rounds, "so many were told that they won");
    counted(&store, wins)
}

/// What happened in each round, as the log has it.
fn counted(store: &Store, wins: impl Fn(&Event) -> bool) -> Vec<u64> {
    let mut counts = Vec::new();
    let each = |frame: &tenure_log::frame::FrameRef<'_>| {
        let entry = entry::decode(frame)?;
        for event in &entry.events {
            match event {
                Event::Registered(e) if entry.texts.get(e.name).starts_with(b"go-") => {
                    counts.push(0);
                }
                event if wins(event) => *counts.last_mut().expect("a round has begun") += 1,
                _ => {}
            }
        }
        Ok(true)
    };
    let end = Position(u64::MAX);
    let read = store.frames(Position(1), end, Depth::Whole, each);
    read.expect("the log reads");
    counts
}

/// ROL-1, ROL-9, C20: sixteen processes take one role; one has it, in each of the rounds.
#[test]
fn of_sixteen_who_take_one_role_one_has_it() {
    const TEST: &str = "races::of_sixteen_who_take_one_role_one_has_it";
    let at = || "command@w".parse::<RoleAt>().expect("a role");
    if let Some(part) = actors::part() {
        let take = |session: &Session| {
            let verb = Verb::TakeRole {
                at: at(),
                process: None,
            };
            session.call(verb).map(|_| ())
        };
        return contend(&part, take, Code::RoleHeld);
    }
    let free = |store: &Store| {
        let reason = "the round is over".to_owned();
        let verb = Verb::ClearRole { at: at(), reason };
        store.execute(Call::new(verb)).expect("it is cleared");
    };
    let counts = race(TEST, free, |event| matches!(event, Event::RoleTaken(_)));
    assert_eq!(counts, vec![1; counts.len()]);
    assert_eq!(counts.len() as u64, rounds());
}

/// DIS-2, DIS-5: sixteen processes claim one item for themselves; one has it, in each of the rounds.
#[test]
fn of_sixteen_who_claim_one_item_one_has_it() {
    const TEST: &str = "races::of_sixteen_who_claim_one_item_one_has_it";
    if let Some(part) = actors::part() {
        let claim = |session: &Session| {
            let verb = Verb::Dispatch {
                item: name("item"),
                to: session.token().name.clone(),
                to_generation: None,
                title: None,
                writes: Vec::new(),
                body: None,
            };
            let Answer::Dispatched { dispatch, .. } = session.call(verb)?.answer else {
                panic!("a dispatch is answered with its number");
            };
            session.call(Verb::Accept { dispatch }).map(|_| ())
        };
        return contend(&part, claim, Code::DuplicateItem);
    }
    let free = |store: &Store| {
        let live = store.view(|state| state.live_dispatch_of(b"item"));
        let dispatch = live.expect("the log reads").expect("somebody has it");
        let reason = "the round is over".to_owned();
        let cancel = Call::new(Verb::Cancel { dispatch, reason }).by_force("the round is over");
        store.execute(cancel).expect("it is cancelled");
    };
    let counts = race(TEST, free, |event| matches!(event, Event::Accepted(_)));
    assert_eq!(counts, vec![1; counts.len()]);
    assert_eq!(counts.len() as u64, rounds());
}
