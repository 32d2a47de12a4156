//! The ways to read a store of this project that are measured, by the benchmarks and beside other stores.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::codec::v1;
use tenure_core::generation::Generation;
use tenure_core::id::{Name, Position, SessionNo};
use tenure_log::frame::{Depth, FrameRef};
use tenure_log::look::PlainDirectory;
use tenure_log::reader::open::SegmentReader;
use tenure_log::storage::disk::Disk;
use tenure_log::verify::{Options, Outcome, verify};
use tenure_projection::authority::{About, When};
use tenure_projection::error::Error;
use tenure_projection::reader::Reader;

use crate::ours;
use crate::workload::Crew;

/// Opens the store below `dir` for reading.
///
/// # Panics
/// When it cannot be: a measurement has nothing to go on with. So do all of these.
#[must_use]
pub fn reader(dir: &Path) -> Reader {
    Reader::open(&dir.join("store"), ours::host(dir)).expect("the store is readable")
}

/// Opens it and looks at the state at its head: from the newest snapshot, or from the first frame where there is
/// none. Says how many frames the log has.
///
/// # Panics
/// See [`reader`].
#[must_use]
pub fn open(dir: &Path) -> u64 {
    reader(dir)
        .view(|state| state.at.position.0)
        .expect("the state is readable")
}

/// Opens it and asks whether a generation is current: what `tenure check` does.
///
/// # Panics
/// See [`reader`].
#[must_use]
pub fn check(dir: &Path, name: &Name, number: u64) -> bool {
    let generation = Generation {
        incarnation: 1,
        number,
    };
    let current = reader(dir).view(|state| {
        let session = state.find(name.as_str().as_bytes());
        session.is_some_and(|session| state.check(session, generation).is_ok())
    });
    current.expect("the state is readable")
}

/// The number of a session.
///
/// # Panics
/// See [`reader`]; and when there is none of that name.
#[must_use]
pub fn session(reader: &Reader, name: &Name) -> SessionNo {
    reader
        .view(|state| state.find(name.as_str().as_bytes()))
        .expect("the state is readable")
        .expect("the session is registered")
}

/// Whether a session was held once a frame was applied.
///
/// # Panics
/// See [`reader`].
#[must_use]
pub fn was_held(reader: &Reader, session: SessionNo, at: Position) -> bool {
    reader
        .held_at(&About::Session(session), When::At(at))
        .expect("what is kept is readable")
        .is_some()
}

/// Reads every frame without opening a state first.
fn frames(
    dir: &Path,
    depth: Depth,
    mut each: impl FnMut(&FrameRef<'_>) -> Result<(), Error>,
) -> u64 {
    let reader = SegmentReader::open(Arc::new(Disk), &dir.join("store"));
    let reader = reader.expect("the store is readable");
    let from = tenure_log::position::Position::ZERO;
    let mut frames = reader
        .read_from(from, depth)
        .expect("the store is readable");
    let mut count = 0;
    while let Some(frame) = frames.next() {
        each(&frame.expect("the frame is good")).expect("the frame decodes");
        count += 1;
    }
    count
}

/// Every checksum, and nothing else. Says how many frames there are.
///
/// # Panics
/// See [`reader`].
#[must_use]
pub fn checksums(dir: &Path) -> u64 {
    frames(dir, Depth::Whole, |_| Ok(()))
}

/// Who holds what: the checksums of headers and facts, and of the facts only the fence fields.
///
/// # Panics
/// See [`reader`].
#[must_use]
pub fn fences(dir: &Path) -> u64 {
    let mut current: HashMap<u64, u64> = HashMap::new();
    frames(dir, Depth::Facts, |frame| {
        let position = Position(frame.header.position.0);
        let fence = v1::decode_fence(frame.facts, frame.header.incarnation.0)
            .map_err(|fault| Error::Facts { position, fault })?;
        if let (Some(session), Some(granted)) = (fence.session, fence.granted) {
            current.insert(session.0, granted.number);
        }
        Ok(())
    })
}

/// What `tenure verify` holds against the log: checksums, chain and seals. Says how many frames it walked.
///
/// # Panics
/// When something is wrong with the store.
#[must_use]
pub fn verified(dir: &Path) -> u64 {
    let report = verify(
        &PlainDirectory::new(&dir.join("store")),
        &Options::default(),
    );
    assert_eq!(report.outcome, Outcome::Clean, "{:?}", report.findings);
    report.coverage.frames
}

/// A store's snapshots, put aside.
#[derive(Debug)]
pub struct Aside {
    snapshots: PathBuf,
    kept: PathBuf,
}

impl Aside {
    /// Puts them aside: until they are back, opening reads the whole log.
    ///
    /// # Errors
    /// When the directory cannot be renamed.
    pub fn put(dir: &Path) -> io::Result<Self> {
        let (snapshots, kept) = (dir.join("store/snapshots"), dir.join("snapshots.aside"));
        std::fs::rename(&snapshots, &kept)?;
        Ok(Self { snapshots, kept })
    }

    /// Puts them back in place of what has been written meanwhile.
    ///
    /// # Errors
    /// When they cannot be moved.
    pub fn put_back(self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.snapshots) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(&self.kept, &self.snapshots)
    }
}

/// The most steps that may stand behind a snapshot: behind more a store writes the next one by itself.
pub const TAIL_MAX: usize = 2_000;

/// Writes a store of `steps` steps in `dir`, with a snapshot at their end and `tail` steps behind it.
///
/// # Panics
/// When the store does not take them, or the tail is longer than [`TAIL_MAX`].
pub fn build(dir: &Path, crew: &mut Crew, steps: usize, tail: usize) {
    assert!(
        tail <= TAIL_MAX,
        "a tail has {TAIL_MAX} steps at most, not {tail}"
    );
    let store = ours::open(dir);
    ours::register(&store, crew);
    ours::fill(&store, crew, steps);
    store.snapshot().expect("the snapshot is written");
    ours::fill(&store, crew, tail);
}

/// Bytes of the files directly in a directory, none where there is no such directory.
#[must_use]
pub fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|about| about.len())
        .sum()
}
