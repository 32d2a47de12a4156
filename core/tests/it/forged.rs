//! Frames that no writer wrote: every frame of the rules' scenes with another fence, with an event of another frame in
//! the place of one of its own, with one event less and one more. What the fold says of each is a contract like what was
//! decided: the file `forged-v1.txt` holds for each log how many of them stand and a digest of which. `WRITE_GOLDEN=1`
//! writes it anew, for other scenes.

use std::collections::BTreeMap;
use std::path::Path;

use tenure_core::apply::{Applied, apply};
use tenure_core::codec::v1;
use tenure_core::decide::stands;
use tenure_core::event::{Entry, Event, Fence, FenceKind, GrantSealed, TreeFence};
use tenure_core::generation::{Epoch, Generation};
use tenure_core::id::SessionNo;
use tenure_core::seal::Seal;
use tenure_core::state::State;

use crate::decisions::{read, short};

/// So many events of each kind are put in the place of others.
const SAMPLES: usize = 8;

type Samples = BTreeMap<u16, Vec<Event>>;

fn entries() -> Vec<(String, Vec<Entry>)> {
    let logs = read().into_iter().map(|log| {
        let frames = log.frames.iter();
        let decoded = frames.map(|frame| {
            let [facts, texts, _] = &frame.parts;
            v1::decode_entry(facts, texts, frame.at, frame.incarnation).expect("it decodes")
        });
        (log.name, decoded.collect())
    });
    logs.collect()
}

/// The first different events of each kind.
fn samples(logs: &[(String, Vec<Entry>)]) -> Samples {
    let mut samples = Samples::new();
    for event in logs.iter().flat_map(|(_, log)| log).flat_map(|e| &e.events) {
        let known = samples.entry(event.kind()).or_default();
        if known.len() < SAMPLES && !known.contains(event) {
            known.push(event.clone());
        }
    }
    samples
}

fn later(generation: Generation, by: u64) -> Generation {
    Generation {
        number: generation.number.wrapping_add(by),
        ..generation
    }
}

/// Fences that differ from a frame's own in what they are, in one field or in whose they are. Whether none of them can
/// stand, whatever the frame holds.
fn fences(state: &State, own: Fence) -> Vec<(Fence, bool)> {
    let mut all = Vec::new();
    for kind in [
        FenceKind::None,
        FenceKind::Write,
        FenceKind::Grant,
        FenceKind::Claim,
    ] {
        all.push((Fence { kind, ..own }, kind != own.kind));
    }
    for by in [1, u64::MAX] {
        if let Some(named) = own.named {
            let named = Some(later(named, by));
            all.push((Fence { named, ..own }, true));
        }
        if let Some(granted) = own.granted {
            let granted = Some(later(granted, by));
            all.push((Fence { granted, ..own }, true));
        }
        if let Some(TreeFence { root, epoch }) = own.tree {
            let epoch = Epoch(epoch.0.wrapping_add(by));
            // An epoch may be kept where it may be ended.
            let tree = Some(TreeFence { root, epoch });
            all.push((Fence { tree, ..own }, false));
        }
    }
    all.push((Fence::NONE, false));
    all.push((Fence { tree: None, ..own }, false));
    all.push((
        Fence {
            session: None,
            ..own
        },
        own.session.is_some(),
    ));
    all.push((Fence { named: None, ..own }, own.named.is_some()));
    all.push((
        Fence {
            granted: None,
            ..own
        },
        own.granted.is_some(),
    ));
    all.extend(of_others(state, own).map(|fence| (fence, false)));
    all
}

/// The fences that the first sessions could write under, and a frame's own in the name of each.
fn of_others(state: &State, own: Fence) -> impl Iterator<Item = Fence> {
    (0..4).map(SessionNo).flat_map(move |session| {
        let known = state.session(session);
        known.map_or_else(Vec::new, |known| {
            let tree = TreeFence {
                root: session,
                epoch: known.epoch,
            };
            let claim = Fence {
                kind: FenceKind::Claim,
                tree: Some(tree),
                ..Fence::NONE
            };
            let write = Fence {
                kind: FenceKind::Write,
                session: Some(session),
                named: Some(known.generation),
                ..Fence::NONE
            };
            let within = Fence {
                tree: Some(tree),
                ..write
            };
            let other = Fence {
                session: Some(session),
                ..own
            };
            vec![claim, write, within, other]
        })
    })
}

/// Lists of events that differ from a frame's own in one place.
fn lists(samples: &Samples, own: &[Event]) -> Vec<Vec<Event>> {
    let mut all = Vec::new();
    for (at, event) in own.iter().enumerate() {
        for other in &samples[&event.kind()] {
            let mut list = own.to_vec();
            list[at] = other.clone();
            all.push(list);
        }
        let mut less = own.to_vec();
        less.remove(at);
        all.push(less);
        let twice = [&own[..=at], &own[at..]].concat();
        all.push(twice);
    }
    for first in samples.values().filter_map(|known| known.first()) {
        all.push([own, std::slice::from_ref(first)].concat());
        all.push(vec![first.clone()]);
    }
    all
}

/// What the fold says of every frame made of one: a bit each.
fn verdicts(state: &State, entry: &Entry, samples: &Samples) -> Vec<u8> {
    let mut said = Vec::new();
    // Some scenes are of frames that do not stand: a change may mend one. Behind a loss no fence is proven.
    let honest = stands(state, entry) && !state.is_unproven();
    for (fence, never) in fences(state, entry.fence) {
        let forged = Entry {
            fence,
            ..entry.clone()
        };
        let stood = fence != entry.fence && stands(state, &forged);
        assert!(
            !(stood && never && honest),
            "{}: {fence:?} for {entry:?}",
            entry.at.position
        );
        said.push(u8::from(stood));
    }
    for incarnation in [entry.incarnation.wrapping_sub(1), entry.incarnation + 1] {
        let forged = Entry {
            incarnation,
            ..entry.clone()
        };
        let stood = stands(state, &forged);
        assert!(!(stood && honest), "{}", entry.at.position);
    }
    for events in lists(samples, &entry.events) {
        let forged = Entry {
            events,
            ..entry.clone()
        };
        said.push(u8::from(stands(state, &forged)));
    }
    said
}

/// F2: frames made of others by one change, judged where the others stand. A fence of another kind or generation stands
/// nowhere; of the rest exactly those stand that stood before.
#[test]
fn of_frames_that_no_writer_wrote_the_same_stand_as_ever() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/forged-v1.txt");
    let logs = entries();
    let samples = samples(&logs);
    let mut came: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let mut tried = 0;
    for (name, log) in &logs {
        let mut state = State::new();
        let step = log.len() / 60 + 1;
        for (number, entry) in log.iter().enumerate() {
            if number % step == 0 {
                let said = verdicts(&state, entry, &samples);
                let (count, stood, digest) = came.entry(name).or_default();
                *count += said.len() as u64;
                *stood += said.iter().map(|bit| u64::from(*bit)).sum::<u64>();
                *digest = digest.rotate_left(7) ^ short(&said);
                tried += said.len();
            }
            if apply(&mut state, entry) == Applied::Unknown {
                break;
            }
        }
    }
    assert!(tried > 100_000, "{tried}");
    let lines = came.iter().map(|(name, (count, stood, digest))| {
        (name.to_string(), format!("{digest:016x} {stood}/{count}"))
    });
    let lines: BTreeMap<String, String> = lines.collect();
    if std::env::var_os("WRITE_GOLDEN").is_some_and(|v| v == "1") {
        let text: String = lines
            .iter()
            .map(|(name, line)| format!("{name}: {line}\n"))
            .collect();
        std::fs::write(&file, text).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&file).expect("the golden file is there");
    let known = golden.lines().filter_map(|line| line.split_once(": "));
    let known: BTreeMap<String, String> = known
        .map(|(name, line)| (name.to_owned(), line.to_owned()))
        .collect();
    assert_eq!(known, lines, "others stand than stood before");
}

/// In a sealed store, a grant stands with the seal of itself; with none, with two, or with that of another session or
/// generation it does not.
#[test]
fn a_grant_is_sealed_as_itself() {
    let mut tried = 0;
    for (name, log) in entries() {
        let mut state = State::new();
        for entry in log.into_iter().take(40) {
            let Fence {
                session, granted, ..
            } = entry.fence;
            if let (Some(session), Some(generation)) = (session, granted)
                && stands(&state, &entry)
                && !state.is_unproven()
            {
                state.sealed = true;
                let seals = |of: &[(u64, u64)]| {
                    let mut sealed = entry.clone();
                    sealed.events.extend(of.iter().map(|(other, by)| {
                        let session = SessionNo(session.0 + other);
                        let generation = later(generation, *by);
                        let seal = Seal([7; 16]);
                        Event::from(GrantSealed {
                            session,
                            generation,
                            seal,
                        })
                    }));
                    stands(&state, &sealed)
                };
                let place = format!("{name} at {}", entry.at.position);
                assert!(seals(&[(0, 0)]), "{place}");
                for forged in [
                    &[][..],
                    &[(1, 0)],
                    &[(0, 1)],
                    &[(0, u64::MAX)],
                    &[(0, 0), (0, 0)],
                ] {
                    assert!(!seals(forged), "{place}: {forged:?}");
                }
                state.sealed = false;
                tried += 1;
            }
            apply(&mut state, &entry);
        }
    }
    assert!(tried > 100, "{tried}");
}
