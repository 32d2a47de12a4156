//! A host program without the command line: it registers a session, writes a thousand notes with shared syncs,
//! is adopted away by another process, and is refused.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tenure_projection::call::Verb;
use tenure_projection::core::id::Name;
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::session::Session;
use tenure_projection::store::{OpenOptions, Store};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    if let Some(dir) = std::env::args().nth(1) {
        return usurp(Path::new(&dir));
    }
    let room = tempfile::tempdir()?;
    let store = open(room.path())?;
    let session = Session::register(&store, &Name::parse("worker")?)?;
    println!("registered {}", session.token());

    let notes: Vec<_> = (0..1000)
        .map(|n| session.submit(note(n)))
        .collect::<Result<_, _>>()?;
    for note in notes {
        note.wait()?;
    }
    println!(
        "1000 notes are durable, at position {}",
        store.head()?.position
    );

    let this = std::env::current_exe()?;
    let usurper = Command::new(this).arg(room.path()).status()?;
    assert!(usurper.success());

    match session.call(note(1000)) {
        Err(Failure::Refused(refusal)) => {
            println!("{}: {}", refusal.code.as_str(), refusal.message)
        }
        other => panic!("a stale write was not refused: {other:?}"),
    }
    assert!(session.lost().is_some());
    Ok(())
}

fn open(dir: &Path) -> Result<Store, tenure_projection::error::Error> {
    Store::open(
        &OpenOptions::new(dir.join("store")).create(true),
        Arc::new(System::of_this_user()),
    )
}

fn note(number: u32) -> Verb {
    Verb::Note {
        body: format!("note {number}").into_bytes(),
        on: None,
    }
}

/// Another process: takes the session over while its holder lives.
fn usurp(dir: &Path) -> Outcome {
    let session = Session::adopt(
        &open(dir)?,
        &Name::parse("worker")?,
        Some("to show the fence"),
    )?;
    println!("another process adopted {}", session.token());
    Ok(())
}
