//! Calls that wait together: what they share, and whom they do not hold up.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use tenure_core::id::Name;
use tenure_log::journal::memory::MemoryLog;
use tenure_log::journal::{Deadline, Journal};
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::session::Session;
use tenure_projection::store::{OpenOptions, RULES, Store};

use crate::balky::Balky;

fn registration(number: usize) -> Call {
    Call::new(Verb::Register {
        name: Name::parse(&format!("agent-{number}")).expect("a name"),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    })
}

fn over_balky() -> (Arc<Balky>, Store) {
    let journal = Arc::new(Balky::new(&MemoryLog::new(RULES)));
    let host = Arc::new(System::of_this_user());
    let store = Store::over(journal.clone() as Arc<dyn Journal>, host).expect("an empty log opens");
    (journal, store)
}

/// Three hundred tickets are two transactions, since one holds the append lock for 256 at most, and one sync; whichever is
/// waited for first.
#[test]
fn tickets_that_were_submitted_together_share_a_sync() {
    let (journal, store) = over_balky();
    let submit = |n| store.submit(registration(n)).expect("well-formed");
    let mut tickets: Vec<_> = (0..300).map(submit).collect();
    let last = tickets.pop().expect("there are many");
    let before = last.wait().expect("the name is free").at.position;
    assert_eq!(journal.asked(), (2, 1));
    for (number, ticket) in tickets.into_iter().enumerate() {
        let done = ticket.wait().expect("the name is free");
        assert_eq!(done.at.position.0, number as u64 + 1);
        assert!(done.at.position < before);
    }
    assert_eq!(journal.asked(), (2, 1));
}

/// Registers eight sessions with one sync, so that the next one but the first is decided beside a sync with others only.
fn eight_at_once(store: &Store) {
    let submit = |n| store.submit(registration(n)).expect("well-formed");
    let tickets: Vec<_> = (0..8).map(submit).collect();
    for ticket in tickets {
        ticket.wait().expect("the name is free");
    }
}

/// A call with a deadline is decided and told that nobody knows, while the syncs of others are kept waiting; they are
/// answered when those are done.
#[test]
fn a_deadline_does_not_wait_for_the_syncs_of_others() {
    let (journal, store) = over_balky();
    eight_at_once(&store);
    let (_, syncs) = journal.asked();
    journal.holds_syncs();
    let (answered, answers) = channel();
    std::thread::scope(|scope| {
        let (store, answered) = (&store, answered.clone());
        scope.spawn(move || {
            let done = store.execute(registration(8)).expect("the name is free");
            answered.send(done.at.position).expect("somebody listens");
        });
        while journal.asked().1 == syncs {
            std::thread::yield_now();
        }
        let mut hasty = registration(9);
        hasty.deadline = Deadline::after(Duration::from_millis(20));
        let failure = store.execute(hasty).expect_err("nothing is durable");
        assert!(matches!(failure, Failure::Unknown { .. }), "{failure}");
        assert!(answers.try_recv().is_err());
        journal.syncs();
    });
    assert_eq!(answers.try_iter().count(), 1);
}

/// Whoever syncs for others and may not wait any longer leaves it to one of them.
#[test]
fn a_sync_that_is_given_up_is_taken_over() {
    let (journal, store) = over_balky();
    journal.holds_syncs();
    std::thread::scope(|scope| {
        let store = &store;
        let mut hasty = registration(0);
        hasty.deadline = Deadline::after(Duration::from_millis(50));
        let given_up = scope.spawn(move || store.execute(hasty));
        while journal.asked().1 < 1 {
            std::thread::yield_now();
        }
        let patient = scope.spawn(move || store.execute(registration(1)));
        let failure = given_up.join().expect("it ends");
        let failure = failure.expect_err("nothing is durable");
        assert!(matches!(failure, Failure::Unknown { .. }), "{failure}");
        // Its own, what it asked once more for itself, and the one of who takes over.
        while journal.asked().1 < 3 {
            std::thread::yield_now();
        }
        journal.syncs();
        let done = patient.join().expect("it ends");
        assert_eq!(done.expect("the name is free").at.position.0, 2);
    });
}

/// While a sync is under way, half as many as the last one served are decided in one transaction, and share the next sync.
#[test]
fn what_gathers_beside_a_sync_is_decided_beside_it() {
    let (journal, store) = over_balky();
    eight_at_once(&store);
    let (transactions, syncs) = journal.asked();
    journal.holds_syncs();
    std::thread::scope(|scope| {
        let execute = |n| store.execute(registration(n)).expect("the name is free");
        scope.spawn(move || execute(8));
        while journal.asked().1 == syncs {
            std::thread::yield_now();
        }
        for number in 9..13 {
            scope.spawn(move || execute(number));
        }
        while journal.asked().0 < transactions + 2 {
            std::thread::yield_now();
        }
        journal.syncs();
    });
    assert_eq!(journal.asked(), (transactions + 2, syncs + 2));
}

/// Two processes with one store, as far as handles can be: a session of the first, and the second.
fn two_handles(dir: &Path) -> (Session, Store) {
    let open = || {
        let host = Arc::new(System::of_this_user());
        let options = OpenOptions::new(dir).create(true);
        Store::open(&options, host).expect("it opens")
    };
    let (one, other) = (open(), open());
    let name = Name::parse("agent").expect("a name");
    let session = Session::register(&one, &name).expect("the name is free");
    (session, other)
}

/// A process that has read as much as is worth a snapshot finds that another one has written it, and leaves it as it is.
#[test]
fn a_snapshot_of_another_process_is_not_written_again() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let (session, other) = two_handles(&dir);
    let note = || Verb::Note {
        body: b"a note".to_vec(),
        on: None,
    };
    for _ in 0..9 {
        let submit = |_| session.submit(note()).expect("well-formed");
        let pending: Vec<_> = (0..256).map(submit).collect();
        for write in pending {
            write.wait().expect("its token is current");
        }
    }
    let newest = dir.join("snapshots/state");
    let written = std::fs::read(&newest).expect("a snapshot was due");
    let same = Session::of(&other, session.token().clone());
    same.call(note()).expect("its token is current");
    assert_eq!(std::fs::read(&newest).expect("it is there"), written);
    other.snapshot().expect("it can be written");
    assert_ne!(std::fs::read(&newest).expect("it is there"), written);
}

/// Notes enough that a snapshot is due.
fn make_a_snapshot_due(session: &Session) {
    for _ in 0..9 {
        let note = |_| {
            let verb = Verb::Note {
                body: b"a note".to_vec(),
                on: None,
            };
            session.submit(verb).expect("well-formed")
        };
        let pending: Vec<_> = (0..256).map(note).collect();
        for write in pending {
            write.wait().expect("its token is current");
        }
    }
}

/// A store whose snapshots are written beside the work, and a session in it.
fn with_snapshots_aside(dir: &Path) -> (Store, Session) {
    let host = Arc::new(System::of_this_user());
    let options = OpenOptions::new(dir).create(true).snapshots_aside(true);
    let store = Store::open(&options, host).expect("it opens");
    let name = Name::parse("agent").expect("a name");
    let session = Session::register(&store, &name).expect("the name is free");
    (store, session)
}

/// A snapshot is written beside the work, and whoever gives up the last handle waits for it.
#[test]
fn a_snapshot_that_is_due_is_there_when_the_last_handle_is_gone() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let (store, session) = with_snapshots_aside(&dir);
    make_a_snapshot_due(&session);
    drop(store);
    drop(session);
    assert!(dir.join("snapshots/state").exists());
}

/// While calls go on, and once they have ended: a snapshot that is due is written although no handle is given up.
#[test]
fn a_snapshot_that_is_due_is_written_beside_calls_and_behind_them() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let (_store, session) = with_snapshots_aside(&dir);
    let newest = dir.join("snapshots/state");
    let mut rounds = 0;
    while !newest.exists() {
        rounds += 1;
        assert!(rounds <= 32, "nobody writes it while calls go on");
        make_a_snapshot_due(&session);
    }
    std::fs::remove_file(&newest).expect("it is there");
    make_a_snapshot_due(&session);
    let start = std::time::Instant::now();
    while !newest.exists() {
        let waited = start.elapsed();
        assert!(waited.as_secs() < 60, "nobody writes it behind the calls");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Of several processes that find one due, a single one writes it; one that stands still is waited for until the tail is
/// several times as long.
#[test]
fn a_snapshot_that_another_process_writes_is_not_written_twice() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = temp.path().join("store");
    let (session, other) = two_handles(&dir);
    let newest = dir.join("snapshots/state");
    let alone = || {
        other
            .journal()
            .snapshots()
            .alone()
            .expect("it can be asked")
    };
    let writing = alone().expect("nobody writes");
    assert!(alone().is_none(), "it is another one's turn");
    make_a_snapshot_due(&session);
    assert!(!newest.exists(), "it is another one's turn");
    for _ in 0..3 {
        make_a_snapshot_due(&session);
    }
    assert!(newest.exists(), "it stands still");
    drop(writing);
    assert!(alone().is_some());
}
