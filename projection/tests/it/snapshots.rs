//! Snapshots are never truth: whatever becomes of them, answers are those of a replay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::apply::apply;
use tenure_core::id::{DispatchNo, Moment, Name, Token};
use tenure_core::state::State;
use tenure_core::state::table::{SETTLING_STRETCHES, STRETCH_ROWS};
use tenure_log::format::RulesVersion;
use tenure_log::journal::Journal;
use tenure_log::journal::memory::MemoryLog;
use tenure_log::position::Position;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::host::System;
use tenure_projection::reader::Reader;
use tenure_projection::store::{OpenOptions, Store};

use crate::balky::Balky;

/// Dispatches of which a snapshot seals at least one stretch.
const DISPATCHES: usize = 3 * STRETCH_ROWS + 10;

fn host(dir: &Path) -> Arc<System> {
    Arc::new(System::new(&dir.join("host")))
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn submit_all(store: &Store, calls: impl Iterator<Item = Verb>) {
    let calls: Vec<_> = calls.map(|verb| Call::new(verb).by("test")).collect();
    for together in calls.chunks(250) {
        let submit = |call: &Call| store.submit(call.clone()).expect("well-formed");
        let tickets: Vec<_> = together.iter().map(submit).collect();
        for ticket in tickets {
            ticket.wait().expect("it stands");
        }
    }
}

/// A store with a snapshot whose dispatches and envelopes are mostly sealed, and a tail that ends some of them.
fn store_with_sealed_rows(dir: &Path) -> PathBuf {
    store_of(dir, DISPATCHES)
}

fn store_of(dir: &Path, dispatches: usize) -> PathBuf {
    let place = dir.join("store");
    let options = OpenOptions::new(&place).create(true);
    let store = Store::open(&options, host(dir)).expect("it opens");
    let register = Verb::Register {
        name: name("api"),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    submit_all(&store, std::iter::once(register));
    let dispatch = |n: usize| Verb::Dispatch {
        item: name(&format!("item/{n}")),
        to: name("api"),
        to_generation: None,
        title: Some(format!("title {n}")),
        writes: Vec::new(),
        body: None,
    };
    submit_all(&store, (0..dispatches).map(dispatch));
    let cancel = |number: u64| Verb::Cancel {
        dispatch: DispatchNo(number),
        reason: "enough".into(),
    };
    submit_all(&store, (1..=dispatches as u64).step_by(97).map(cancel));
    place
}

fn state(place: &Path) -> State {
    let reader = Reader::open(place, host(place)).expect("it opens");
    reader.view(Clone::clone).expect("it is readable")
}

fn assert_same_rows(found: &State, wanted: &State) {
    assert_eq!(found, wanted);
    assert!(found.dispatches.iter().eq(wanted.dispatches.iter()));
    assert!(found.envelopes.iter().eq(wanted.envelopes.iter()));
}

fn stretches(place: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place.join("snapshots"))
        .expect("there")
        .map(|e| e.expect("listed").path());
    let sealed = |path: &PathBuf| {
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        name.starts_with("dispatches-") || name.starts_with("envelopes-")
    };
    let mut files: Vec<_> = files.filter(sealed).collect();
    files.sort();
    files
}

#[test]
fn a_damaged_or_missing_file_of_a_snapshot_changes_no_answer() {
    let temp = tempfile::tempdir().expect("a directory");
    let place = store_with_sealed_rows(temp.path());
    let sealed = stretches(&place);
    assert!(
        sealed.len() >= 2,
        "of dispatches and of envelopes: {sealed:?}"
    );
    let from_snapshot = state(&place);
    std::fs::rename(place.join("snapshots"), temp.path().join("kept")).expect("moved");
    let replayed = state(&place);
    std::fs::rename(temp.path().join("kept"), place.join("snapshots")).expect("moved back");
    assert_eq!(replayed.dispatches.len(), DISPATCHES + 1);
    assert_same_rows(&from_snapshot, &replayed);

    let good = std::fs::read(&sealed[0]).expect("readable");
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bad in [&flipped[..], &good[..good.len() - 1], b""] {
        std::fs::write(&sealed[0], bad).expect("written");
        assert_same_rows(&state(&place), &replayed);
    }
    std::fs::remove_file(&sealed[0]).expect("removed");
    std::fs::remove_file(&sealed[sealed.len() - 1]).expect("removed");
    assert_same_rows(&state(&place), &replayed);

    let newest = place.join("snapshots/state");
    let good = std::fs::read(&newest).expect("readable");
    for at in (0..good.len()).step_by(good.len() / 20) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&newest, flipped).expect("written");
        assert_same_rows(&state(&place), &replayed);
    }
}

/// A replay that puts old rows away gives the state of one that keeps them in memory, and a snapshot of it serves.
#[test]
fn a_replay_that_puts_rows_away_gives_the_same_state() {
    let temp = tempfile::tempdir().expect("a directory");
    // Of one that was sealed twice, so that it is put away.
    let place = store_of(temp.path(), (SETTLING_STRETCHES + 3) * STRETCH_ROWS);
    std::fs::remove_dir_all(place.join("snapshots")).expect("removed");
    let reader = Reader::open(&place, host(temp.path())).expect("it opens");
    let away = reader.view(Clone::clone).expect("it is readable");
    let mut kept = State::new();
    for entry in reader
        .entries(Moment::default().position)
        .expect("it is readable")
    {
        apply(&mut kept, &entry.expect("it decodes"));
    }
    assert_same_rows(&away, &kept);
    let laid_out = |state: &State| {
        let layout = state.lay_out().expect("it is laid out");
        (layout.head, layout.pages)
    };
    assert!(laid_out(&away) == laid_out(&kept));
    drop((reader, away));
    let store = Store::open(&OpenOptions::new(&place), host(temp.path())).expect("it opens");
    store.snapshot().expect("it is written");
    drop(store);
    let opened = Reader::open(&place, host(temp.path())).expect("it opens");
    let snapshot = opened.snapshot().expect("it is readable");
    assert_same_rows(&snapshot.expect("it is as it was written"), &kept);
    assert_same_rows(&state(&place), &kept);
}

/// The next snapshot writes what is missing, and clears away what belongs to another history.
#[test]
fn the_next_snapshot_completes_the_files() {
    let temp = tempfile::tempdir().expect("a directory");
    let place = store_with_sealed_rows(temp.path());
    let sealed = stretches(&place);
    let wanted = state(&place);
    std::fs::remove_file(&sealed[1]).expect("removed");
    let stranger = place.join(format!("snapshots/dispatches-0-{}", "00".repeat(16)));
    let newer = place.join(format!("snapshots/dispatches-9-{}", "00".repeat(16)));
    std::fs::copy(&sealed[0], &stranger).expect("copied");
    std::fs::copy(&sealed[0], &newer).expect("copied");
    let store = Store::open(&OpenOptions::new(&place), host(temp.path())).expect("it opens");
    let note = |n: usize| Verb::Send {
        to: name("api"),
        body: format!("message {n}").into_bytes(),
        re: None,
    };
    submit_all(&store, (0..4000).map(note));
    drop(store);
    assert!(sealed.iter().all(|path| path.exists()), "written again");
    assert!(!stranger.exists() && newer.exists());
    assert!(state(&place).dispatches == wanted.dispatches);
}

const KEYED: usize = 9000;

fn keyed(n: usize) -> Call {
    let body = format!("note {n}").into_bytes();
    let verb = Verb::Note { body, on: None };
    let token = "api@1".parse::<Token>().expect("a token");
    Call::new(verb)
        .by("test")
        .under(&token)
        .keyed(format!("key {n}"))
}

fn submit_keyed(store: &Store, numbers: std::ops::Range<usize>) {
    let numbers: Vec<_> = numbers.collect();
    for together in numbers.chunks(250) {
        let submit = |n: &usize| store.submit(keyed(*n)).expect("well-formed");
        let tickets: Vec<_> = together.iter().map(submit).collect();
        for ticket in tickets {
            assert!(!ticket.wait().expect("it stands").repeated);
        }
    }
}

fn register(store: &Store) {
    let verb = Verb::Register {
        name: name("api"),
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
    };
    store
        .execute(Call::new(verb).by("test"))
        .expect("registered");
}

/// `log.md`, Snapshots: keys given by callers stand in a part of their own. Asking for one reads the tail, not
/// the log, and no key is forgotten.
#[test]
fn a_key_is_found_without_reading_the_log_again() {
    let temp = tempfile::tempdir().expect("a directory");
    let memory = MemoryLog::new(RulesVersion(1));
    let open = || {
        let journal = Arc::new(Balky::new(&memory));
        let store = Store::over(journal.clone(), host(temp.path())).expect("it opens");
        (journal, store)
    };
    let (_, store) = open();
    register(&store);
    submit_keyed(&store, 0..KEYED);
    let runs = memory.snapshots().list().expect("listed");
    let runs = runs.iter().filter(|name| name.starts_with("keys-")).count();
    assert!((1..=6).contains(&runs), "{runs} files");
    drop(store);

    let (journal, store) = open();
    journal.reads();
    for n in (0..KEYED).step_by(31).chain(KEYED - 3..KEYED) {
        assert!(store.execute(keyed(n)).expect("it stands").repeated, "{n}");
    }
    let from_the_start = |after: &Position| *after == Position::ZERO;
    assert!(!journal.reads().iter().any(from_the_start));
    let other = Verb::Note {
        body: b"other".to_vec(),
        on: None,
    };
    let token = "api@1".parse::<Token>().expect("a token");
    let reused = Call::new(other).by("test").under(&token).keyed("key 0");
    let refused = store.execute(reused).expect_err("another payload");
    assert!(
        refused.to_string().contains("the key was used"),
        "{refused}"
    );
}

/// Files of keys are never truth.
#[test]
fn damaged_or_missing_files_of_keys_change_no_answer() {
    let temp = tempfile::tempdir().expect("a directory");
    let place = temp.path().join("store");
    let options = OpenOptions::new(&place).create(true);
    let open = || Store::open(&options, host(temp.path())).expect("it opens");
    let store = open();
    register(&store);
    submit_keyed(&store, 0..KEYED);
    drop(store);
    let files = || -> Vec<PathBuf> {
        let all = std::fs::read_dir(place.join("snapshots")).expect("there");
        let all = all.map(|e| e.expect("listed").path());
        all.filter(|path| path.to_string_lossy().contains("/keys-"))
            .collect()
    };
    let all_known = || {
        let store = open();
        (0..KEYED)
            .step_by(97)
            .all(|n| store.execute(keyed(n)).expect("it stands").repeated)
    };
    assert!(!files().is_empty() && all_known());
    for file in files() {
        let good = std::fs::read(&file).expect("readable");
        let mut flipped = good.clone();
        flipped[good.len() / 2] ^= 1;
        let wrong_name = file.with_file_name("keys-0-3");
        std::fs::copy(&file, &wrong_name).expect("copied");
        for bad in [&flipped[..], &good[..good.len() - 40], b""] {
            std::fs::write(&file, bad).expect("written");
            assert!(all_known(), "{}", file.display());
        }
        std::fs::remove_file(&file).expect("removed");
        assert!(all_known());
        std::fs::write(&file, good).expect("written");
        std::fs::remove_file(&wrong_name).expect("removed");
    }
}

/// The files beside the snapshot, by name.
fn beside(place: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = std::fs::read_dir(place.join("snapshots")).expect("there");
    let all = all.map(|e| e.expect("listed").path());
    let named = all.map(|path| {
        let name = path.file_name().expect("a file").to_string_lossy();
        (name.into_owned(), std::fs::read(&path).expect("readable"))
    });
    let of = |name: &str| {
        ["held", "keys-", "marks-"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    named.filter(|(name, _)| of(name)).collect()
}

/// What a handle notes of the frames that it appends is what another one reads of them: when they were decided, their
/// keys, and where they stand.
#[test]
fn what_is_noted_is_written_as_what_is_read() {
    let temp = tempfile::tempdir().expect("a directory");
    let place = temp.path().join("store");
    let options = OpenOptions::new(&place).create(true);
    let open = || Store::open(&options, host(temp.path())).expect("it opens");
    let store = open();
    register(&store);
    let append = |keys: std::ops::Range<usize>| {
        submit_keyed(&store, keys);
        let note = |_| Verb::Dispatch {
            item: name("again"),
            to: name("nobody"),
            to_generation: None,
            title: None,
            writes: Vec::new(),
            body: None,
        };
        // Refusals, of which one is recorded.
        for verb in (0..3).map(note) {
            store
                .execute(Call::new(verb).by("test"))
                .expect_err("nobody");
        }
    };
    append(0..70);
    store.snapshot().expect("written");
    let first = place.join("snapshots");
    let kept = temp.path().join("kept");
    copy(&first, &kept);
    append(70..71);
    append(71..300);
    store.snapshot().expect("written");
    let noted = beside(&place);
    drop(store);
    assert!(
        ["held", "marks-0"]
            .iter()
            .all(|name| noted.contains_key(*name))
    );
    assert!(noted.keys().any(|name| name.starts_with("keys-")));

    std::fs::remove_dir_all(&first).expect("removed");
    copy(&kept, &first);
    assert_ne!(beside(&place), noted);
    open().snapshot().expect("written");
    assert_eq!(beside(&place), noted);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("there") {
        let path = entry.expect("listed").path();
        let name = path.file_name().expect("a file");
        std::fs::copy(&path, to.join(name)).expect("copied");
    }
}
