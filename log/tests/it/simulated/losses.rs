//! What the simulated disk can lose, counted: the enumeration is what the rig of crash states relies on.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use tenure_log::storage::sim::{CrashState, KillPoint, Losses, Sim, SimProcess};
use tenure_log::storage::{Access, Directory, Opening, Storage};

use super::{Told, workload};

fn directory(process: &SimProcess) -> Arc<dyn Directory> {
    let opened = process.directory(Path::new("/store"), Opening::Create);
    opened.expect("a simulated directory opens")
}

/// The machine after a process has ended.
fn after(body: impl FnOnce(&dyn Directory)) -> KillPoint {
    let sim = Sim::new(1);
    sim.record();
    let ended = sim.run_one(|process| body(&*directory(&process)));
    ended.expect("nobody kills it");
    sim.recorded().pop().expect("the end is recorded")
}

fn only(point: &KillPoint) -> Losses {
    let mut losses = point.losses();
    assert_eq!(losses.len(), 1, "there is one set of names");
    losses.remove(0)
}

fn synced(dir: &dyn Directory, name: &str, bytes: &[u8]) {
    let file = dir.open(name, Access::CreateNew).expect("made");
    assert_eq!(file.write_at(bytes, 0).expect("written"), bytes.len());
    file.sync().expect("synced");
    dir.sync("").expect("synced");
}

fn bytes(state: &CrashState, name: &str) -> Vec<u8> {
    state.start().bytes_of(name).expect("the file is there")
}

/// Two sectors that are written over come out in every combination, each another state; and each is torn.
#[test]
fn sectors_that_are_not_synced_survive_in_every_combination() {
    let point = after(|dir| {
        synced(dir, "a", &[1; 1024]);
        let file = dir.open("a", Access::Write).expect("opened");
        file.write_at(&[2; 1024], 0).expect("written");
    });
    let losses = only(&point);
    assert_eq!(losses.radices(), [2, 2]);
    let (mut contents, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for digits in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        let state = losses.state(&digits);
        let found = bytes(&state, "a");
        assert_eq!(
            (found[0], found[1023]),
            (1 + digits[0] as u8, 1 + digits[1] as u8)
        );
        contents.insert(found);
        ids.insert(state.id);
    }
    assert_eq!((contents.len(), ids.len()), (4, 4));
    assert_eq!(losses.torn(), [6, 6]);
    let torn: BTreeSet<_> = (2..8)
        .map(|digit| bytes(&losses.state(&[digit, 0]), "a"))
        .collect();
    assert_eq!(torn.len(), 6);
    assert!(
        torn.iter()
            .all(|found| found.contains(&1) && found[..512].contains(&2))
    );
    assert!(torn.is_disjoint(&contents));
    assert_eq!(losses.moments(), [[0, 0], [1, 1]]);
}

/// Of several writes to one sector every subset survives, and a file that grew has either length.
#[test]
fn writes_to_one_sector_survive_in_every_subset() {
    let point = after(|dir| {
        synced(dir, "a", &[]);
        let file = dir.open("a", Access::Write).expect("opened");
        for part in 0..3 {
            file.write_at(&[part + 1; 10], u64::from(part) * 10)
                .expect("written");
        }
    });
    let losses = only(&point);
    assert_eq!(losses.radices(), [8, 2]);
    let mut all = BTreeSet::new();
    for whole in 0..8 {
        for length in 0..2 {
            all.insert(bytes(&losses.state(&[whole, length]), "a"));
        }
    }
    // Four of the subsets have the third write, and with it the whole length.
    assert_eq!(all.len(), 12);
    assert_eq!(losses.moments().len(), 4, "before any, and after each");
}

/// A name that was not synced is there or not; one that was is there.
#[test]
fn names_that_are_not_synced_survive_or_do_not() {
    let point = after(|dir| {
        synced(dir, "a", &[1]);
        dir.open("b", Access::CreateNew).expect("made");
        dir.open("c", Access::CreateNew).expect("made");
        assert!(dir.list("").expect("listed").len() == 3);
    });
    let names = |losses: &Losses| {
        let sim = losses.state(&[]).start();
        ["a", "b", "c"].map(|name| sim.bytes_of(name).is_some())
    };
    let found: BTreeSet<_> = point.losses().iter().map(names).collect();
    let expected = [
        [true, false, false],
        [true, false, true],
        [true, true, false],
        [true; 3],
    ];
    assert_eq!(found, BTreeSet::from(expected));
    let killed = point.killed().start();
    assert!(
        killed.bytes_of("c").is_some(),
        "what dies alone loses nothing"
    );
}

/// A mapped page reaches the disk as it was at any moment, or as a mixture by sectors of two.
#[test]
fn a_mapped_page_survives_as_of_any_moment() {
    let point = after(|dir| {
        synced(dir, "page", &[0; 1024]);
        let file = dir.open("page", Access::Write).expect("opened");
        let memory = file.map_shared(Access::Write).expect("mapped");
        for value in 1..=3 {
            memory.word(0).store(value, SeqCst);
            memory.word(64).store(value, SeqCst);
            file.size().expect("a step, at which the page is looked at");
        }
    });
    let losses = only(&point);
    let all: BTreeSet<_> = (0..losses.radices()[0])
        .map(|digit| {
            let found = bytes(&losses.state(&[digit]), "page");
            (found[0], found[512])
        })
        .collect();
    let whole = (0..4).map(|value| (value, value));
    assert!(whole.clone().all(|both| all.contains(&both)), "{all:?}");
    assert!(all.contains(&(1, 2)) && all.contains(&(2, 1)), "{all:?}");
    assert!(all.contains(&(3, 0)) && all.contains(&(0, 3)), "{all:?}");
    assert!(
        !all.contains(&(0, 2)),
        "only two that follow each other, or the newest, mix: {all:?}"
    );
    assert_eq!(bytes(&point.killed(), "page")[0], 3);
}

/// Equal states go on alike, whatever they came from: judging one of them is judging all.
#[test]
fn equal_crash_states_recover_alike() {
    let (sim, told) = (Sim::new(5), Told::default());
    sim.record();
    let played = sim.run_one(|process| workload(process, &told));
    played.expect("not killed").expect("no fault");
    let points = sim.recorded();
    let mut ends = BTreeSet::new();
    for point in points.iter().step_by(23) {
        for losses in point.losses() {
            let digits: Vec<u32> = losses.radices().iter().map(|radix| radix - 1).collect();
            let recovered = [(); 2].map(|()| {
                let sim = losses.state(&digits).start();
                sim.record();
                let opened = sim.run_one(|process| super::open(process).map(drop));
                opened.expect("not killed").expect("it opens");
                let points = sim.recorded();
                let last = points.last().expect("the end is recorded");
                (last.step(), last.killed().id)
            });
            assert_eq!(recovered[0], recovered[1]);
            ends.insert(recovered[0].1);
        }
    }
    assert!(ends.len() > 5, "{} recoveries ended otherwise", ends.len());
}
