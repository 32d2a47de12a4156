//! A projection of one's own: several in one pass, to a position, on from a snapshot of one's own, and along a log that
//! grows; by a reader that takes no lock and changes no byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenure_projection::call::Verb;
use tenure_projection::core::event::{Entry, Event};
use tenure_projection::core::id::{Name, Position, SessionNo};
use tenure_projection::core::state::State;
use tenure_projection::host::System;
use tenure_projection::log::journal::Deadline;
use tenure_projection::projection::Projection;
use tenure_projection::projector::Projector;
use tenure_projection::reader::Reader;
use tenure_projection::session::Session;
use tenure_projection::store::{OpenOptions, Store};

/// How many notes each session wrote.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Notes(BTreeMap<u64, u64>);

impl Projection for Notes {
    fn apply(&mut self, entry: &Entry, _before: &State) {
        for event in &entry.events {
            if let Event::Noted(noted) = event {
                let SessionNo(session) = noted.session;
                *self.0.entry(session).or_default() += 1;
            }
        }
    }
}

/// What a projection was when it had seen the log up to somewhere, to be kept wherever one likes.
struct Kept {
    upto: Position,
    notes: Notes,
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Plays it all, and fails where something is not as it should be.
///
/// # Errors
/// Whatever the store says.
pub fn main() -> Outcome {
    let room = tempfile::tempdir()?;
    let dir = room.path().join("store");
    let host = Arc::new(System::of_this_user());
    let store = Store::open(&OpenOptions::new(&dir).create(true), host.clone())?;
    let worker = Session::register(&store, &Name::parse("worker")?)?;
    for n in 0..20 {
        worker.call(note(n))?;
    }

    let before = files(&dir)?;
    let reader = Reader::open(&dir, host)?;

    // Two in one pass, stopping at a position.
    let (mut notes, mut words) = (Notes::default(), Vec::new());
    let mut word = |entry: &Entry, _: &State| words.extend(entry.events.iter().map(Event::word));
    let mut projector = Projector::new();
    projector.read(&reader, Some(Position(11)), &mut [&mut notes, &mut word])?;
    assert_eq!((projector.position(), words.len()), (Position(11), 11));
    assert_eq!(notes.0.values().sum::<u64>(), 10);

    // A snapshot of one's own: what was derived, and up to where. Going on shows it only what came since.
    let kept = Kept {
        upto: projector.position(),
        notes: notes.clone(),
    };
    let mut again = Projector::from_state(reader.state_at(kept.upto)?);
    let mut notes = kept.notes;
    again.read(&reader, None, &mut [&mut notes])?;
    let mut from_start = Notes::default();
    Projector::new().read(&reader, None, &mut [&mut from_start])?;
    assert_eq!(notes, from_start);

    // As an iterator, where no state is needed.
    let noted = reader.entries(Position(12))?.filter(|entry| {
        let events = entry.as_ref().map(|entry| entry.events.as_slice());
        matches!(events, Ok([Event::Noted(_)]))
    });
    assert_eq!(noted.count(), 10);
    assert_eq!(files(&dir)?, before, "whoever reads changes nothing");

    // Along a log that grows.
    std::thread::scope(|threads| -> Outcome {
        let writer = threads.spawn(|| (0..5).try_for_each(|n| worker.call(note(n)).map(drop)));
        while notes.0.values().sum::<u64>() < 25 {
            again.follow(
                &reader,
                Deadline::after(Duration::from_secs(1)),
                &mut [&mut notes],
            )?;
        }
        writer.join().expect("it does not panic")?;
        Ok(())
    })?;
    println!("{} notes, up to position {}", notes.0[&0], again.position());
    Ok(())
}

fn note(number: u32) -> Verb {
    Verb::Note {
        body: format!("note {number}").into_bytes(),
        on: None,
    }
}

/// Every file below a directory with its bytes.
fn files(dir: &Path) -> std::io::Result<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(files(&path)?);
        } else {
            all.insert(path.display().to_string(), std::fs::read(&path)?);
        }
    }
    Ok(all)
}
