//! What was reported of other tools, tried on real directories: through the store, the reader, `verify` and `inspect`.

mod copies;
mod damage;
mod histories;
mod locks;
mod snapshots;
mod space;
mod tail;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::command::Command;
use tenure_core::holder::{BootId, HostId};
use tenure_core::id::{Name, Position};
use tenure_log::frame::Depth;
use tenure_log::inspect::{Entry, inspect_all};
use tenure_log::look::PlainDirectory;
use tenure_log::recovery::Writer;
use tenure_log::scan::{Checks, Step};
use tenure_log::verify::{Options, Outcome, Report, verify};
use tenure_log::writer::site::Tuning;
use tenure_projection::call::Verb;
use tenure_projection::entry;
use tenure_projection::error::{Error, Failure};
use tenure_projection::host::Scripted;
use tenure_projection::reader::Reader;
use tenure_projection::session::Session;
use tenure_projection::store::{Done, OpenOptions, Store};

/// A few frames fill a segment.
pub fn small() -> Tuning {
    Tuning {
        segment_bytes: vec![4096 + 2048],
        fill_bytes: 512,
        ..Tuning::default()
    }
}

/// Which machine opens: the same in every process of a test.
pub fn host() -> Arc<Scripted> {
    Arc::new(Scripted::new(HostId([1; 16]), BootId([2; 16])))
}

/// The files beneath a directory with their bytes.
pub type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// A directory for a store, and the host that opens it.
pub struct Ground {
    pub dir: PathBuf,
    pub host: Arc<Scripted>,
    _temp: tempfile::TempDir,
}

/// A frame as it stands in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub path: PathBuf,
    pub offset: u64,
    pub bytes: u64,
    pub position: u64,
}

impl Stored {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

impl Ground {
    /// In memory where the machine has a file system for it: these tests sync some ten thousand times.
    pub fn new() -> Self {
        let memory = tempfile::tempdir_in("/dev/shm");
        Self::within(
            memory
                .or_else(|_| tempfile::tempdir())
                .expect("a directory"),
        )
    }

    /// Where temporary files are, which is a disk more often than not.
    pub fn on_disk() -> Self {
        Self::within(tempfile::tempdir().expect("a directory"))
    }

    fn within(temp: tempfile::TempDir) -> Self {
        Self {
            dir: temp.path().join("store"),
            host: host(),
            _temp: temp,
        }
    }

    /// A store with a session and `notes` notes, closed.
    pub fn filled(notes: usize) -> Self {
        let ground = Self::new();
        ground.fill(notes);
        ground
    }

    pub fn fill(&self, notes: usize) {
        let store = self.open();
        let api = session(&store, "api");
        for n in 1..=notes {
            note(&api, &format!("note {n}")).expect("noted");
        }
    }

    pub fn options(&self) -> OpenOptions {
        OpenOptions::new(&self.dir).create(true).tuning(small())
    }

    pub fn try_open(&self) -> Result<Store, Error> {
        Store::open(&self.options(), self.host.clone())
    }

    pub fn open(&self) -> Store {
        self.try_open().expect("the store opens")
    }

    pub fn try_read(&self) -> Result<Reader, Error> {
        Reader::open(&self.dir, self.host.clone())
    }

    pub fn read(&self) -> Reader {
        self.try_read().expect("the store can be read")
    }

    pub fn verify_with(&self, options: &Options) -> Report {
        verify(&PlainDirectory::new(&self.dir), options)
    }

    pub fn verify(&self) -> Report {
        self.verify_with(&Options::default())
    }

    /// While somebody may be writing.
    pub fn verify_live(&self) -> Report {
        self.verify_with(&Options {
            writer: Writer::Live,
            ..Options::default()
        })
    }

    pub fn assert_clean(&self) {
        let report = self.verify();
        assert_eq!(report.findings, []);
        assert_eq!(report.outcome, Outcome::Clean);
    }

    /// Every good frame of every segment file.
    pub fn frames(&self) -> Vec<Stored> {
        let (mut frames, mut path) = (Vec::new(), PathBuf::new());
        let look = PlainDirectory::new(&self.dir);
        inspect_all(&look, Checks::ALL, &mut |entry| match entry {
            Entry::Segment { name, .. } => path = self.dir.join("segments").join(name),
            Entry::Step { span, step } => {
                if let Step::Frame(frame, _) = step {
                    frames.push(Stored {
                        path: path.clone(),
                        offset: span.offset,
                        bytes: span.bytes,
                        position: frame.header.position.0,
                    });
                }
            }
            Entry::Unreadable { name, error } => panic!("{name}: {error}"),
        })
        .expect("listed");
        frames
    }

    /// The segment files in their order; within one epoch that is the order of names.
    pub fn segments(&self) -> Vec<PathBuf> {
        let mut paths = files_in(&self.dir.join("segments"));
        paths.retain(|path| path.extension().is_some_and(|end| end == "seg"));
        paths.sort();
        paths
    }

    /// What only helps and can be made anew, as after a reboot that it did not outlive.
    pub fn forget_control(&self) {
        fs::remove_file(self.dir.join("control")).expect("removed");
    }

    pub fn quarantined(&self) -> Vec<PathBuf> {
        let folder = self.dir.join("quarantine");
        if folder.exists() {
            files_in(&folder)
        } else {
            Vec::new()
        }
    }

    pub fn tree(&self) -> Tree {
        tree(&self.dir)
    }

    /// The truth: segments and what was taken out of them.
    pub fn truth(&self) -> Tree {
        let mut all = self.tree();
        all.retain(|path, _| path.starts_with("segments") || path.starts_with("quarantine"));
        all
    }

    /// Puts the files back as they were, in the same directory: for the store it has not moved.
    pub fn restore(&self, before: &Tree) {
        for path in self
            .tree()
            .keys()
            .filter(|path| !before.contains_key(*path))
        {
            fs::remove_file(self.dir.join(path)).expect("removed");
        }
        for (path, bytes) in before {
            write_private(&self.dir.join(path), bytes);
        }
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("listed");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

pub fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in files_in(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("beneath").to_owned();
                found.insert(name, fs::read(&path).expect("read"));
            }
        }
    }
    found
}

pub fn write_private(path: &Path, bytes: &[u8]) {
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .expect("opened");
    file.write_all_at(bytes, 0).expect("written");
}

/// Writes bytes into the middle of a file.
pub fn poke(path: &Path, offset: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(path);
    file.expect("opened")
        .write_all_at(bytes, offset)
        .expect("written");
}

/// Turns one byte over.
pub fn flip(path: &Path, offset: u64) {
    let at = usize::try_from(offset).expect("small");
    let byte = fs::read(path).expect("read")[at];
    poke(path, offset, &[!byte]);
}

pub fn cut(path: &Path, bytes: u64) {
    let file = fs::OpenOptions::new().write(true).open(path);
    file.expect("opened").set_len(bytes).expect("cut");
}

pub fn bytes_at(path: &Path, offset: u64, bytes: u64) -> Vec<u8> {
    let file = fs::File::open(path).expect("opened");
    let mut found = vec![0; usize::try_from(bytes).expect("small")];
    file.read_exact_at(&mut found, offset).expect("read");
    found
}

pub fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

pub fn session(store: &Store, text: &str) -> Session {
    Session::register(store, &name(text)).expect("registered")
}

pub fn note(session: &Session, text: &str) -> Result<Done, Failure> {
    session.call(Verb::Note {
        body: text.into(),
        on: None,
    })
}

/// Takes the session over, whoever holds it.
pub fn adopt(store: &Store, text: &str) -> Session {
    Session::adopt(store, &name(text), Some("the test goes on")).expect("adopted")
}

pub fn head(reader: &Reader) -> u64 {
    reader.head().expect("the log reads").position.0
}

/// The bodies of all notes, in the order of the log.
pub fn notes(reader: &Reader) -> Vec<String> {
    let mut found = Vec::new();
    let all = Position(u64::MAX >> 16);
    let walked = reader.frames(Position(1), all, Depth::Whole, |frame| {
        let request = entry::decode_request(frame)?;
        if let Command::Note(note) = &request.input.command {
            let body = request.bodies.get(note.body).expect("kept");
            found.push(String::from_utf8(body.to_vec()).expect("a text"));
        }
        Ok(true)
    });
    walked.expect("the log reads");
    found
}

/// `note 1` to `note N`.
pub fn numbered(notes: usize) -> Vec<String> {
    (1..=notes).map(|n| format!("note {n}")).collect()
}
