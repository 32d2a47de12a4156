//! Threads that share a store, played in many orders by a scheduler: how a batch passes from leader to leader, who is
//! woken, and what a call that is answered depends on (OUT-11, L1, L3, R1, F1).
//!
//! A thread that is never woken ends a run as a deadlock. The journal is one in memory whose syncs take a while.

use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread;
use tenure_core::holder::{BootId, HostId};
use tenure_core::id::{Name, Token};
use tenure_log::error::Error;
use tenure_log::frame::Depth;
use tenure_log::journal::memory::MemoryLog;
use tenure_log::journal::{
    Appended, Blobs, Counters, Deadline, Decision, Frames, Identity, Journal, Raising,
    TransactError,
};
use tenure_log::position::{Head, Position, Salt, StoreId};
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::error::Failure;
use tenure_projection::host::Scripted;
use tenure_projection::projector::Projector;
use tenure_projection::store::{Answer, Done, RULES, Store};

/// Orders that are played of each test, drawn by the seed of the runs; `TENURE_SCHEDULES` names another number.
fn played(story: impl Fn() + Send + Sync + 'static) {
    let asked = std::env::var("TENURE_SCHEDULES").ok();
    let schedules = asked.map_or(1_000, |text| text.parse().expect("a number"));
    let story = Arc::new(story);
    for depth in [2, 4] {
        let story = story.clone();
        shuttle::check_pct(move || story(), schedules / 4, depth);
    }
    shuttle::check_random(move || story(), schedules / 2);
}

/// A journal in memory that the scheduler sees: one thread at a time is in it, and what is appended becomes durable by
/// a sync, which others may join before it begins and wait for.
struct Scheduled {
    inner: MemoryLog,
    turn: Mutex<()>,
    syncing: Mutex<()>,
    durable: Mutex<Position>,
    /// Syncs that fail before one succeeds.
    failing: Mutex<u32>,
}

impl Scheduled {
    fn new() -> Arc<Self> {
        // The same log in every run: what differs is the order alone.
        let inner = MemoryLog::with_identity(RULES, StoreId([1; 16]), Salt([2; 16]));
        Arc::new(Self {
            inner,
            turn: Mutex::default(),
            syncing: Mutex::default(),
            durable: Mutex::new(Position::ZERO),
            failing: Mutex::default(),
        })
    }

    fn store(self: &Arc<Self>) -> Store {
        let host = Arc::new(Scripted::new(HostId([1; 16]), BootId([1; 16])));
        Store::over(self.clone() as Arc<dyn Journal>, host).expect("a log in memory opens")
    }

    /// Runs while nobody else is in the journal.
    fn alone<R>(&self, run: impl FnOnce(&MemoryLog) -> R) -> R {
        let _turn = self.turn.lock().expect("nobody panicked in the journal");
        run(&self.inner)
    }

    fn is_durable(&self, position: Position) -> bool {
        *self.durable.lock().expect("nobody panicked") >= position
    }
}

impl Journal for Scheduled {
    fn identity(&self) -> Identity {
        self.alone(Journal::identity)
    }

    fn head(&self) -> Result<Head, Error> {
        self.alone(Journal::head)
    }

    fn durable(&self) -> Result<Position, Error> {
        Ok(*self.durable.lock().expect("nobody panicked"))
    }

    fn transact(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Decision<'_>,
    ) -> Result<Appended, TransactError> {
        self.alone(|inner| inner.transact(known, deadline, decide))
    }

    fn wait_durable(&self, position: Position, _: Deadline) -> Result<(), Error> {
        if self.is_durable(position) {
            return Ok(());
        }
        let _syncing = self.syncing.lock().expect("nobody panicked");
        if self.is_durable(position) {
            return Ok(());
        }
        let target = self.head()?.position;
        thread::yield_now();
        let mut failing = self.failing.lock().expect("nobody panicked");
        if *failing > 0 {
            *failing -= 1;
            let path = "segments/1".into();
            return Err(Error::NoSpace { path });
        }
        drop(failing);
        let mut durable = self.durable.lock().expect("nobody panicked");
        *durable = target.max(*durable);
        Ok(())
    }

    fn read_from(&self, after: Position, depth: Depth) -> Result<Box<dyn Frames + '_>, Error> {
        self.alone(|_| self.inner.read_from(after, depth))
    }

    fn wait_beyond(&self, _: Position, _: Deadline) -> Result<Head, Error> {
        self.head()
    }

    fn raise(
        &self,
        known: Head,
        deadline: Deadline,
        decide: Raising<'_>,
    ) -> Result<Appended, TransactError> {
        self.alone(|inner| inner.raise(known, deadline, decide))
    }

    fn counters(&self) -> &dyn Counters {
        self.inner.counters()
    }

    fn snapshots(&self) -> &dyn Blobs {
        self.inner.snapshots()
    }
}

fn named(name: &str) -> Name {
    Name::parse(name).expect("a name")
}

fn register(name: &str) -> Call {
    Call::new(Verb::Register {
        name: named(name),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    })
}

fn adopt(name: &str) -> Call {
    let verb = Verb::Adopt {
        name: named(name),
        bearer: Bearer::itself(),
        labels: Vec::new(),
    };
    Call::new(verb).by_force("it must be")
}

fn note(token: &Token) -> Call {
    let verb = Verb::Note {
        body: b"text".to_vec(),
        on: None,
    };
    Call::new(verb).under(token)
}

fn granted(done: &Done) -> Token {
    match &done.answer {
        Answer::Granted(grant) => grant.token.clone(),
        other => panic!("{other:?} is no grant"),
    }
}

/// What an answer depends on was durable before it was given.
fn answered(journal: &Scheduled, done: &Done) {
    let at = done.at.position;
    let is_durable = journal.is_durable(Position(at.0));
    assert!(is_durable, "answered {at} before it was durable");
}

/// Three threads of one store, each with a name of its own, to their end.
fn three(journal: &Arc<Scheduled>, store: &Store, writes: fn(&Scheduled, &Store, &str)) {
    let spawn = |name: &'static str| {
        let (journal, store) = (journal.clone(), store.clone());
        thread::spawn(move || writes(&journal, &store, name))
    };
    let writers = ["api", "web", "ops"].map(spawn);
    for writer in writers {
        writer.join().expect("it is answered");
    }
}

/// Nothing in the log was refused by the rules, and it has so many frames.
fn stands(journal: &Scheduled, store: &Store, frames: u64) {
    let mut replay = Projector::new();
    replay.read(store, None, &mut []).expect("the log reads");
    assert_eq!(replay.findings(), &[], "every frame stands");
    let head = journal.head().expect("a head").position;
    assert_eq!(head, Position(frames));
}

/// R1, L3, OUT-11: each of several threads is answered, once, when it is durable.
#[test]
fn threads_of_one_store_are_all_answered_when_it_is_durable() {
    played(|| {
        let journal = Scheduled::new();
        let store = journal.store();
        three(&journal, &store, |journal, store, name| {
            let done = store.execute(register(name)).expect("the name is free");
            answered(journal, &done);
            let done = store.execute(note(&granted(&done))).expect("it is current");
            answered(journal, &done);
        });
        stands(&journal, &store, 6);
    });
}

/// F1, F3, F4: two stores on one log, as two processes: of two who take a session over both are granted, one after the
/// other, and of two who register one name one is.
#[test]
fn threads_of_two_stores_keep_the_fence() {
    played(|| {
        let journal = Scheduled::new();
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let journal = journal.clone();
                thread::spawn(move || {
                    let store = journal.store();
                    let is_first = match store.execute(register("api")) {
                        Ok(done) => {
                            answered(&journal, &done);
                            true
                        }
                        Err(Failure::Refused(_)) => false,
                        Err(other) => panic!("{other}"),
                    };
                    let done = store.execute(adopt("api")).expect("by force");
                    answered(&journal, &done);
                    (is_first, granted(&done).generation.number)
                })
            })
            .collect();
        let joined = takers.into_iter().map(|taker| taker.join());
        let mut came: Vec<_> = joined.map(|came| came.expect("it is answered")).collect();
        came.sort_by_key(|(_, generation)| *generation);
        assert_eq!(came.iter().filter(|(is_first, _)| *is_first).count(), 1);
        let generations: Vec<u64> = came.iter().map(|(_, generation)| *generation).collect();
        assert_eq!(generations, [2, 3]);
        // Who came late left a record of its refusal, or was counted by the snapshot of it.
        let mut replay = Projector::new();
        let store = journal.store();
        replay.read(&store, None, &mut []).expect("the log reads");
        assert_eq!(replay.findings(), &[]);
    });
}

/// R6, L3: a sync that fails strands nobody, and nobody is told that it succeeded.
#[test]
fn a_sync_that_fails_strands_nobody() {
    played(|| {
        let journal = Scheduled::new();
        let store = journal.store();
        *journal.failing.lock().expect("nobody panicked") = 1;
        three(&journal, &store, |journal, store, name| {
            match store.execute(register(name)) {
                Ok(done) => answered(journal, &done),
                Err(Failure::Unknown { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        });
        stands(&journal, &store, 3);
    });
}

/// L3: what was submitted is answered by whoever drives, while others wait for theirs.
#[test]
fn whoever_drives_serves_those_who_do_not_wait() {
    played(|| {
        let journal = Scheduled::new();
        let store = journal.store();
        let submitted = store.submit(register("api")).expect("well-formed");
        let other = {
            let (journal, store) = (journal.clone(), store.clone());
            thread::spawn(move || {
                let done = store.execute(register("web")).expect("the name is free");
                answered(&journal, &done);
            })
        };
        let driver = {
            let store = store.clone();
            thread::spawn(move || store.drive().expect("it syncs"))
        };
        driver.join().expect("it ends");
        answered(&journal, &submitted.wait().expect("the name is free"));
        other.join().expect("it is answered");
        stands(&journal, &store, 2);
    });
}
