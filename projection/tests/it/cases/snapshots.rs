//! Snapshots and other derived files: cut, changed, of another store, of the future, half made, replaced under a reader.

use std::fs;
use std::sync::OnceLock;

use tenure_core::id::Position;
use tenure_core::state::State;
use tenure_log::frame::Depth;
use tenure_log::journal::{Blobs, Deadline};
use tenure_log::recovery::Row;
use tenure_log::verify::Outcome;
use tenure_projection::call::Verb;
use tenure_projection::error::Error;
use tenure_projection::projector::Projector;
use tenure_projection::store::Store;

use super::tail::is_damage;
use super::{Ground, Tree, adopt, cut, flip, head, name, note, session, write_private};

/// Frames of a store that wrote a snapshot.
const FRAMES: u64 = 2_200;
const SNAPSHOT: &str = "snapshots/state";

/// The files of a store with a snapshot, and the state at its head. Made once.
fn snapshotted() -> &'static (Tree, State) {
    static MADE: OnceLock<(Tree, State)> = OnceLock::new();
    MADE.get_or_init(|| {
        let ground = Ground::new();
        let state = fill_with_snapshot(&ground);
        (ground.tree(), state)
    })
}

/// One sync for a few hundred frames.
fn fill_with_snapshot(ground: &Ground) -> State {
    let store = ground.open();
    let api = session(&store, "api");
    let mut left = FRAMES - 1;
    while left > 0 {
        let batch = left.min(200);
        let tickets: Vec<_> = (0..batch)
            .map(|n| api.submit(observation(&format!("status {n} of {left}"))))
            .collect();
        for ticket in tickets {
            ticket.expect("submitted").wait().expect("noted");
        }
        left -= batch;
    }
    assert!(ground.dir.join(SNAPSHOT).exists(), "a snapshot was due");
    store.view(Clone::clone).expect("the log reads")
}

fn observation(status: &str) -> Verb {
    Verb::Observe {
        status: status.into(),
        wrote: Vec::new(),
    }
}

/// The same store again, in a directory of its own. It is told that it was moved there.
fn again() -> Ground {
    let ground = Ground::new();
    drop(ground.open());
    for folder in ["segments", "locks"] {
        for path in fs::read_dir(ground.dir.join(folder)).expect("listed") {
            fs::remove_file(path.expect("an entry").path()).expect("removed");
        }
    }
    let (files, _) = snapshotted();
    let mut files = files.clone();
    let home = fs::read(ground.dir.join("home")).expect("read");
    files.insert("home".into(), home);
    ground.restore(&files);
    ground
}

fn assert_same(ground: &Ground, what: &str) {
    let (_, state) = snapshotted();
    let seen = ground.read().view(Clone::clone).expect("the log reads");
    assert!(seen == *state, "{what}: a reader sees another state");
    let store = ground.open();
    let seen = store.view(Clone::clone).expect("the log reads");
    assert!(seen == *state, "{what}: a writer sees another state");
}

/// F06, B03: a snapshot that is empty, cut, changed, of another store, or left half made changes no answer.
#[test]
fn a_snapshot_that_does_not_fit_is_as_good_as_none() {
    let ground = again();
    let path = ground.dir.join(SNAPSHOT);
    let whole = fs::read(&path).expect("read");
    assert_same(&ground, "whole");
    for tenth in 0..10 {
        write_private(&path, &whole[..whole.len() * tenth / 10]);
        assert_same(&ground, &format!("cut to {tenth} tenths"));
    }
    for at in [
        0,
        8,
        12,
        16,
        32,
        40,
        48,
        64,
        72,
        80,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        write_private(&path, &whole);
        flip(&path, at as u64);
        assert_same(&ground, &format!("changed at {at}"));
    }
    write_private(&path, &vec![0; whole.len()]);
    assert_same(&ground, "zeros");
    let other = Ground::new();
    fill_with_snapshot(&other);
    write_private(&path, &fs::read(other.dir.join(SNAPSHOT)).expect("read"));
    assert_same(&ground, "of another store");
    fs::remove_file(&path).expect("removed");
    write_private(
        &ground.dir.join("snapshots/.state.0123456789abcdef.tmp"),
        &whole[..100],
    );
    assert_same(&ground, "half made");
    fs::create_dir(&path).expect("made");
    assert_same(&ground, "a directory of that name");
}

/// F04, F19: a snapshot that knows more than the log, as after a restore of the segments, is dropped: the log decides what
/// there is, and the next number is the one behind its last good frame.
#[test]
fn a_snapshot_from_beyond_the_end_of_the_log_is_dropped() {
    let ground = again();
    let frames = ground.frames();
    // Of the newest segment, all that no frame states as durable goes; the page that knew better goes with it.
    let last = frames.last().expect("a frame");
    ground.forget_control();
    let snapshot = fs::read(ground.dir.join(SNAPSHOT)).expect("read");
    let at = u64::from_le_bytes(*snapshot[40..].first_chunk().expect("a header"));
    assert_eq!(at, last.position, "the snapshot is of the head");
    // Longest first: the file only shrinks.
    for left in [last.bytes - 1, last.bytes / 2, 1, 0] {
        cut(&last.path, last.offset + left);
        let reader = ground.read();
        assert_eq!(head(&reader), last.position - 1, "{left}");
        let seen = reader.view(|state| state.at.position.0);
        assert_eq!(seen.expect("the log reads"), last.position - 1, "{left}");
    }
    let store = ground.open();
    let api = adopt(&store, "api");
    assert_eq!(
        head(&store),
        last.position,
        "the number is given again: it was never durable"
    );
    note(&api, "goes on").expect("noted");
    drop(store);
    ground.assert_clean();
    let mut replay = Projector::new();
    let reader = ground.read();
    replay.read(&reader, None, &mut []).expect("replayed");
    let seen = reader.view(Clone::clone).expect("the log reads");
    assert!(
        *replay.state() == seen,
        "the stale snapshot is not used at the same position either"
    );
}

/// F19: a log that was cut below what its page knows is damage; below what only a follower knows, the follower is told.
#[test]
fn whoever_knows_more_than_the_log_is_told() {
    let ground = Ground::filled(12);
    let reader = ground.read();
    let known = head(&reader);
    let frames = ground.frames();
    let cut_at = &frames[frames.len() - 3];
    assert_eq!(frames.last().expect("a frame").path, cut_at.path);
    cut(&cut_at.path, cut_at.end());
    assert_eq!(ground.verify().row, Row::DurableBad, "the page knows");
    assert!(is_damage(ground.read_to_end(known)), "so is who reads");
    ground.forget_control();
    // The last frame that is left says what was durable before it, and nothing says more.
    assert_eq!(ground.verify().outcome, Outcome::Clean);
    let fresh = ground.read();
    assert_eq!(head(&fresh), cut_at.position);
    let mut follower = Projector::from_state(ahead(known));
    let asked = follower.read(&fresh, Some(Position(known)), &mut []);
    assert!(matches!(
        asked,
        Err(Error::BeyondHead { head, asked }) if head.0 == cut_at.position && asked.0 == known
    ));
    let state = fresh.state_at(Position(known));
    assert!(matches!(state, Err(Error::BeyondHead { .. })));
    // A handle that saw more never answers with less.
    let stale = reader.head();
    assert!(stale.is_err() || stale.is_ok_and(|head| head.position.0 == known));
}

fn ahead(position: u64) -> State {
    let mut state = State::new();
    state.at.position = Position(position);
    state
}

impl Ground {
    fn read_to_end(&self, last: u64) -> Result<(), Error> {
        self.try_read()?
            .frames(Position(1), Position(last), Depth::Whole, |_| Ok(true))
    }
}

/// F38: there is no pointer that has to agree with the log: a page that is behind the data, as after a kill between the two,
/// finds what is there; the suffix counts.
#[test]
fn a_page_behind_the_data_finds_what_is_there() {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    note(&api, "one").expect("noted");
    let page = fs::read(ground.dir.join("control")).expect("read");
    note(&api, "two").expect("noted");
    note(&api, "three").expect("noted");
    let last = head(&store);
    drop((api, store));
    write_private(&ground.dir.join("control"), &page);
    let store = ground.open();
    note(&adopt(&store, "api"), "four").expect("noted");
    assert_eq!(head(&store), last + 2);
    assert_eq!(super::notes(&store), ["one", "two", "three", "four"]);
    drop(store);
    ground.assert_clean();
}

/// LOG-6: a derived file is replaced as a whole: whoever reads it finds the old or the new one, never none and never a part.
#[test]
fn a_derived_file_is_never_absent_and_never_partial() {
    const ROUNDS: u32 = 2_000;
    let ground = Ground::filled(1);
    let store = ground.open();
    let blob = |n: u32| n.to_le_bytes().repeat(500 + n as usize % 700);
    let blobs: &dyn Blobs = store.journal().snapshots();
    blobs.write_atomic("probe", &blob(0)).expect("written");
    let done = std::sync::atomic::AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let (mut looks, mut newest) = (0_u32, 0);
            while !done.load(std::sync::atomic::Ordering::Relaxed) || looks < 10 {
                let found = blobs.read("probe").expect("read").expect("there");
                let n = u32::from_le_bytes(*found.first_chunk().expect("not empty"));
                assert_eq!(found, blob(n), "whole");
                assert!(n >= newest, "{n} after {newest}");
                (newest, looks) = (n, looks + 1);
            }
            looks
        });
        for n in 1..=ROUNDS {
            blobs.write_atomic("probe", &blob(n)).expect("written");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        looking.join().expect("looked")
    });
    assert!(looks >= 10);
    assert_eq!(
        blobs.list().expect("listed").len(),
        1,
        "no scratch file is left"
    );
}

/// F06: a snapshot that cannot be written costs nothing but the replay: the calls that made it due are answered.
#[test]
fn a_snapshot_that_cannot_be_written_refuses_no_call() {
    let ground = Ground::new();
    let store: Store = ground.open();
    let api = session(&store, "api");
    let folder = ground.dir.join("snapshots");
    fs::remove_dir(&folder).expect("it was empty");
    write_private(&folder, b"in the way");
    for round in 0..12 {
        let tickets: Vec<_> = (0..200)
            .map(|n| api.submit(observation(&format!("{round}.{n}"))))
            .collect();
        for ticket in tickets {
            ticket.expect("submitted").wait().expect("done");
        }
    }
    let seen = store.view(|state| state.find(name("api").as_str().as_bytes()).is_some());
    assert!(seen.expect("the log reads"));
    let beyond = store.wait_beyond(Position(2_400), Deadline::after(std::time::Duration::ZERO));
    beyond.expect("the log reads");
    assert_eq!(head(&store), 2_401);
}
