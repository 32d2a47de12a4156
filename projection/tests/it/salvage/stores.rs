//! Salvage of real directories.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::id::Position;
use tenure_log::error::Error as LogError;
use tenure_log::format::RulesVersion;
use tenure_log::frame::Depth;
use tenure_log::journal::memory::MemoryLog;
use tenure_log::look::PlainDirectory;
use tenure_log::verify::{Options, Outcome, verify};
use tenure_projection::audit::Audit;
use tenure_projection::error::Error;
use tenure_projection::projector::Projector;
use tenure_projection::reader::Reader;
use tenure_projection::salvage::{Order, Report, Target, run};
use tenure_projection::store::{OpenOptions, Store};

use crate::cases::{flip, small};
use crate::rules::replay::Dice;
use crate::scene::{Scene, Stage};

use super::streams;

struct Ground {
    temp: tempfile::TempDir,
}

/// What a file is, as far as anybody could tell that it was touched.
type Seen = BTreeMap<PathBuf, (u64, u32, i64, i64, Vec<u8>)>;

impl Ground {
    fn new() -> Self {
        let memory = tempfile::tempdir_in("/dev/shm");
        let temp = memory.or_else(|_| tempfile::tempdir());
        Self {
            temp: temp.expect("a directory"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn scene(&self, name: &str) -> Scene {
        let stage = Arc::new(Stage::of_machine(1));
        let options = OpenOptions::new(self.path(name))
            .create(true)
            .tuning(small());
        let store = Store::open(&options, stage.clone()).expect("it opens");
        let log = MemoryLog::new(RulesVersion(1));
        Scene { log, stage, store }
    }

    /// A store with the frames of random commands, closed; gives the tokens that were ever granted.
    fn fill(&self, seed: u64, steps: usize) -> Vec<String> {
        let (scene, mut dice) = (self.scene("store"), Dice::new(seed));
        for _ in 0..steps {
            let line = dice.line(&scene);
            scene.run(&line);
        }
        let mut tokens = Vec::new();
        scene
            .store
            .view(|state| {
                for (number, session) in state.sessions.iter().enumerate() {
                    let name = state.name(tenure_core::id::SessionNo(number as u64));
                    let newest = session.generation.number + 1;
                    tokens.extend((1..=newest).map(|g| format!("{name}@{g}")));
                }
            })
            .expect("it reads");
        tokens
    }

    fn order(&self, target: Target) -> Order {
        Order {
            source: self.path("store"),
            target,
            actor: Some("tester".to_owned()),
            reason: "a test".to_owned(),
        }
    }

    fn salvage(&self, target: Target) -> Result<Report, Error> {
        run(&self.order(target), &Stage::of_machine(1), &mut |_| {})
    }
}

fn seen(dir: &Path) -> Seen {
    let mut all = Seen::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let about = fs::symlink_metadata(&path).expect("it is there");
        let mut bytes = Vec::new();
        if about.is_dir() {
            let names = fs::read_dir(&path).expect("it lists");
            open.extend(names.map(|name| name.expect("a name").path()));
        } else {
            bytes = fs::read(&path).expect("it reads");
        }
        let what = (
            about.ino(),
            about.mode(),
            about.mtime(),
            about.mtime_nsec(),
            bytes,
        );
        all.insert(path.strip_prefix(dir).expect("within").to_owned(), what);
    }
    all
}

/// The parts and time of every frame, by position, and where it stands.
type Frames = BTreeMap<u64, (i64, [Vec<u8>; 3], (PathBuf, u64))>;

fn frames(dir: &Path) -> Frames {
    let (mut frames, mut path) = (Frames::new(), PathBuf::new());
    let look = PlainDirectory::new(dir);
    use tenure_log::inspect::{Entry, inspect_all};
    use tenure_log::scan::{Checks, Step};
    inspect_all(&look, Checks::ALL, &mut |entry| match entry {
        Entry::Segment { name, .. } => path = dir.join("segments").join(name),
        Entry::Step { span, step } => {
            if let Step::Frame(frame, _) = step {
                let parts = [frame.facts, frame.texts, frame.bodies].map(<[u8]>::to_vec);
                let place = (path.clone(), span.offset);
                let header = frame.header;
                frames.insert(header.position.0, (header.time.0, parts, place));
            }
        }
        Entry::Unreadable { name, error } => panic!("{name}: {error}"),
    })
    .expect("listed");
    frames
}

/// Everything that has to hold of a salvaged store; `whole` are the frames before the damage, `hurt` those that were
/// touched.
fn judge(ground: &Ground, name: &str, report: &Report, whole: &Frames, hurt: &[u64]) {
    let dir = ground.path(name);
    let bytes = verify(&PlainDirectory::new(&dir), &Options::default());
    assert_eq!(bytes.outcome, Outcome::Clean, "{:?}", bytes.findings);
    let after = frames(&dir);
    let untouched = whole
        .iter()
        .filter(|(position, _)| !hurt.contains(position));
    let mut kept = 0;
    for (position, (time, parts, _)) in untouched {
        let (now, same, _) = &after[position];
        assert_eq!((now, same), (time, parts), "{position} is not as it was");
        kept += 1;
    }
    assert!(
        report.bytes.frames >= kept,
        "{} of {kept}",
        report.bytes.frames
    );
    let host = Arc::new(Stage::of_machine(1));
    let reader = Reader::open(&dir, host).expect("it opens");
    let mut projector = Projector::new();
    projector.read(&reader, None, &mut []).expect("it reads");
    assert_eq!(projector.findings(), []);
    let live = reader.view(Clone::clone).expect("it reads");
    assert!(
        live == *projector.state(),
        "live and replayed states differ"
    );
    assert!(!live.is_unproven());
    let audit = Audit::of(&reader, None, |_| {}).expect("it reads");
    assert!(
        audit.is_clean(),
        "{:?} {:?}",
        audit.findings,
        audit.not_judged
    );
    let lost = report.positions_lost();
    assert_eq!(lost == 0, audit.unproven == 0, "{lost} {}", audit.unproven);
}

/// No token of the old lives writes, and the store goes on: its own later frames stand, and are clean.
fn goes_on(ground: &Ground, name: &str, tokens: &[String], seed: u64) {
    let scene = ground.scene(name);
    for token in tokens {
        let answer = scene.run(&format!("note late as={token}"));
        let refused = [
            "stale-generation",
            "never-issued",
            "unknown-session",
            "retired",
        ];
        assert!(
            refused.iter().any(|code| answer.starts_with(code)),
            "{token}: {answer}"
        );
    }
    let mut dice = Dice::new(seed + 50);
    for _ in 0..40 {
        let line = dice.line(&scene);
        let answer = scene.run(&line);
        assert!(!answer.starts_with("failed"), "{line}: {answer}");
    }
    scene.run("register after");
    let adopted = ["api", "web", "ops", "dev"].map(|name| scene.run(&format!("adopt {name}")));
    let audit = Audit::of(&scene.store, None, |_| {}).expect("it reads");
    assert!(audit.is_clean(), "{:?}, {adopted:?}", audit.findings);
    let again = Reader::open(&ground.path(name), scene.stage.clone()).expect("it opens");
    let mut projector = Projector::new();
    projector.read(&again, None, &mut []).expect("it reads");
    assert!(
        *projector.state() == scene.state(),
        "live and replayed states differ"
    );
}

/// F11, B27: frames hurt by a bit, one by one and some at once; tails cut off; whole segments gone. Every frame that was not
/// touched is kept, no token from before is accepted, and the new store goes on.
#[test]
fn a_damaged_store_is_copied_with_every_untouched_frame() {
    for seed in 1..=streams(2) {
        let ground = Ground::new();
        let tokens = ground.fill(seed, 450);
        let whole = frames(&ground.path("store"));
        assert!(whole.len() > 200, "{}", whole.len());
        let files = seen(&ground.path("store"));
        let mut dice = Dice::new(seed + 7);
        for round in 0..28_u64 {
            let last = *whole.keys().last().expect("a frame");
            let count = [1, 1, 2, 6, 30][(round % 5) as usize];
            let mut hurt: Vec<u64> = (0..count).map(|_| 1 + dice.roll(last)).collect();
            if round % 7 == 6 {
                // A whole segment is gone.
                let gone = whole[&hurt[0]].2.0.clone();
                let within = whole.iter().filter(|(_, frame)| frame.2.0 == gone);
                hurt = within.map(|(position, _)| *position).collect();
                fs::remove_file(gone).expect("removed");
            } else {
                hurt.sort_unstable();
                hurt.dedup();
                for position in &hurt {
                    let (file, offset) = &whole[position].2;
                    flip(file, offset + 20 + dice.roll(70));
                }
            }
            let before = seen(&ground.path("store"));
            let name = format!("new{round}");
            let dry = ground.salvage(Target::DryRun).expect("it can be read");
            let target = Target::Directory(ground.path(&name));
            let report = ground.salvage(target).expect("salvaged");
            assert_eq!(
                seen(&ground.path("store")),
                before,
                "the source was touched"
            );
            assert_eq!(
                (&dry.bytes.lost, dry.bytes.frames),
                (&report.bytes.lost, report.bytes.frames)
            );
            judge(&ground, &name, &report, &whole, &hurt);
            goes_on(&ground, &name, &tokens, seed + round);
            for (path, (.., bytes)) in files
                .iter()
                .filter(|(path, _)| path.starts_with("segments"))
            {
                if !bytes.is_empty() {
                    let path = ground.path("store").join(path);
                    fs::write(&path, bytes).expect("put back");
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
                }
            }
        }
    }
}

/// A lost registration: the session is found again by the name that its later frames have, at its number, and can be
/// adopted with the work that it had.
#[test]
fn a_session_is_found_again_by_the_name_in_its_tokens() {
    let ground = Ground::new();
    let scene = ground.scene("store");
    scene.play(
        "register api
         register web
         dispatch one web
         accept d1 as=web@1
         note hello as=web@1",
    );
    drop(scene);
    let all = frames(&ground.path("store"));
    let (file, offset) = &all[&2].2;
    flip(file, offset + 90);
    let target = Target::Directory(ground.path("new"));
    let report = ground.salvage(target).expect("salvaged");
    let web: Vec<_> = report.sessions.iter().filter(|s| s.name == "web").collect();
    assert_eq!(web.len(), 1, "{:?}", report.sessions);
    assert_eq!((web[0].before, web[0].is_certain()), (None, true));
    let scene = ground.scene("new");
    let life = report.bytes.incarnation.0;
    assert_eq!(scene.run("adopt web"), format!("web@{life}.2"));
    assert_eq!(
        scene.run(&format!("report d1 done as=web@{life}.2")),
        "done"
    );
    let held = scene.store.view(|state| state.is_proven_at(Position(3)));
    assert!(!held.expect("it reads"));
    // Without the loss in between, authority at a place before it is what it was.
    let frame = scene
        .store
        .frames(Position(1), Position(1), Depth::Whole, |_| Ok(true));
    frame.expect("it reads");
}

/// Two salvages of the same bytes are two lives.
#[test]
fn two_salvages_differ() {
    let ground = Ground::new();
    ground.fill(3, 20);
    let one = ground
        .salvage(Target::Directory(ground.path("one")))
        .expect("salvaged");
    let two = ground
        .salvage(Target::Directory(ground.path("two")))
        .expect("salvaged");
    assert_ne!(one.bytes.incarnation, two.bytes.incarnation);
    assert_eq!(one.positions_lost(), 0);
    let salt = |name: &str| {
        let segments = fs::read_dir(ground.path(name).join("segments")).expect("it lists");
        let mut files: Vec<_> = segments.map(|file| file.expect("a file").path()).collect();
        files.sort();
        fs::read(&files[0]).expect("it reads")[40..56].to_vec()
    };
    assert_ne!(salt("one"), salt("two"));
}

/// A target with anything in it, a file, and a source that is no store are refused, and nothing is left beside them.
#[test]
fn what_is_there_is_never_written_onto() {
    let ground = Ground::new();
    ground.fill(4, 10);
    fs::create_dir(ground.path("full")).expect("made");
    fs::write(ground.path("full/file"), b"x").expect("written");
    fs::write(ground.path("file"), b"x").expect("written");
    for name in ["full", "file", "store"] {
        let refused = ground.salvage(Target::Directory(ground.path(name)));
        let occupied =
            matches!(&refused, Err(Error::Log(log)) if matches!(&**log, LogError::Occupied { .. }));
        assert!(occupied, "{name}: {refused:?}");
    }
    fs::create_dir(ground.path("empty")).expect("made");
    let report = ground
        .salvage(Target::Directory(ground.path("empty")))
        .expect("salvaged");
    assert_eq!(report.store, Some(ground.path("empty")));
    let order = Order {
        source: ground.path("full"),
        ..ground.order(Target::DryRun)
    };
    let refused = run(&order, &Stage::of_machine(1), &mut |_| {});
    assert!(
        matches!(&refused, Err(Error::Log(log)) if matches!(&**log, LogError::NotAStore { .. }))
    );
    let mut names: Vec<String> = fs::read_dir(ground.temp.path())
        .expect("it lists")
        .map(|name| {
            name.expect("a name")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, ["empty", "file", "full", "store"]);
}

/// F28: of two salvages into one place one is made, whole, and the other is told that the place is taken.
#[test]
fn of_two_salvages_into_one_place_one_is_made() {
    let ground = Ground::new();
    ground.fill(8, 40);
    let whole = frames(&ground.path("store"));
    for round in 0..4 {
        let name = format!("new{round}");
        let ended: Vec<_> = std::thread::scope(|scope| {
            let one = || ground.salvage(Target::Directory(ground.path(&name)));
            let both = [scope.spawn(one), scope.spawn(one)];
            both.map(|ended| ended.join().expect("no panic")).into()
        });
        let made: Vec<_> = ended.iter().filter_map(|one| one.as_ref().ok()).collect();
        assert_eq!(made.len(), 1, "{ended:?}");
        judge(&ground, &name, made[0], &whole, &[]);
    }
    let names = fs::read_dir(ground.temp.path()).expect("it lists");
    let left = names.filter(|name| {
        let name = name.as_ref().expect("a name").file_name();
        name.to_string_lossy().contains(".salvage-")
    });
    assert_eq!(left.count(), 0, "what was not named is removed");
}

/// In place: the new store stands where the damaged one stood, which is kept beside it as it was; while somebody has the
/// store open it is refused.
#[test]
fn in_place_the_damaged_store_stays_beside() {
    let ground = Ground::new();
    let tokens = ground.fill(5, 60);
    let whole = frames(&ground.path("store"));
    let (file, offset) = &whole[&9].2;
    flip(file, offset + 30);
    // Readers hold the directory open too. This process does not count, so another one has to hold it.
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .stdin(fs::File::open(ground.path("store")).expect("it opens"))
        .spawn()
        .expect("it starts");
    let before = seen(&ground.path("store"));
    let refused = ground.salvage(Target::InPlace);
    let busy = matches!(&refused, Err(Error::Log(log)) if matches!(&**log, LogError::Busy { .. }));
    assert!(busy, "{refused:?}");
    assert_eq!(seen(&ground.path("store")), before);
    other.kill().expect("it ends");
    other.wait().expect("it ended");
    let report = ground.salvage(Target::InPlace).expect("salvaged");
    let damaged = ground.path("store.damaged-1");
    assert_eq!(report.damaged.as_deref(), Some(&*damaged));
    assert_eq!(seen(&damaged), before);
    judge(&ground, "store", &report, &whole, &[9]);
    goes_on(&ground, "store", &tokens, 5);
}

/// A source that may only be read is enough, and nothing of it is touched.
#[test]
fn a_source_that_may_only_be_read_is_enough() {
    let ground = Ground::new();
    ground.fill(6, 30);
    let store = ground.path("store");
    let set = |dir: u32, file: u32| {
        for path in seen(&store).into_keys() {
            let path = store.join(path);
            let mode = if path.is_dir() { dir } else { file };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        }
    };
    set(0o500, 0o400);
    let before = seen(&store);
    let report = ground.salvage(Target::Directory(ground.path("new")));
    assert_eq!(seen(&store), before);
    set(0o700, 0o600);
    assert_eq!(report.expect("salvaged").positions_lost(), 0);
}
