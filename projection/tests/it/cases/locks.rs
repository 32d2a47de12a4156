//! The lock between processes, and file systems on which it may be worth nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use tenure_core::refusal::Code;
use tenure_log::error::Error as LogError;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{
    Access, BootId, Directory, FileIdentity, FileSystem, Onto, Opening, ProcessId, SealedBytes,
    SharedMemory, Storage, StoredFile, Trust,
};
use tenure_projection::error::Failure;
use tenure_projection::session::Session;
use tenure_projection::store::{RULES, Store};

use super::{Ground, adopt, head, name, note, notes, session, small};
use crate::actors::{self, Running};

/// Opens the store of a part: `VERB DIRECTORY ...`.
fn open_at(dir: &Path) -> Store {
    let options = tenure_projection::store::OpenOptions::new(dir).tuning(small());
    Store::open(&options, super::host()).expect("opened")
}

/// Waits for a file that says that all may go.
fn await_go(dir: &Path) {
    while !dir.with_file_name("go").exists() {
        std::thread::sleep(Duration::from_micros(200));
    }
}

const RECLAIM: &str = "cases::locks::of_eight_processes_that_reclaim_one_session_one_does";

/// C20: eight processes that all find the holder gone take one session at once, a millisecond apart: exactly one gets it, the
/// others are told who.
#[test]
fn of_eight_processes_that_reclaim_one_session_one_does() {
    if let Some(part) = actors::part() {
        let (number, dir) = part.split_once(' ').expect("a number and a directory");
        let store = open_at(Path::new(dir));
        actors::answer("ready");
        await_go(Path::new(dir));
        std::thread::sleep(Duration::from_millis(number.parse().expect("a number")));
        match Session::register(&store, &name("api")) {
            Ok(session) => {
                note(&session, number).expect("noted");
                actors::answer("won");
            }
            Err(Failure::Refused(refusal)) => {
                assert_eq!(refusal.code, Code::AlreadyActive);
                assert!(refusal.message.contains("api@2"), "{}", refusal.message);
                actors::answer("lost");
            }
            Err(other) => panic!("{other}"),
        }
        return;
    }
    for _ in 0..2 {
        let ground = Ground::new();
        session(&ground.open(), "api").retire().expect("retired");
        let dir = ground.dir.to_str().expect("UTF-8");
        let part = |n: usize| actors::actor(&[], RECLAIM, &format!("{n} {dir}"));
        let mut all: Vec<Running> = (0..8).map(|n| Running::command(&mut part(n))).collect();
        for process in &mut all {
            assert_eq!(process.next_answer(), "ready");
        }
        super::write_private(&ground.dir.with_file_name("go"), b"");
        let answers: Vec<String> = all.iter_mut().map(Running::next_answer).collect();
        let won = answers.iter().filter(|answer| *answer == "won").count();
        assert_eq!(won, 1, "{answers:?}");
        assert_eq!(notes(&ground.read()).len(), 1);
        ground.assert_clean();
    }
}

const CHILD: &str = "cases::locks::a_child_of_the_owner_keeps_no_lock";

/// C23: a process that starts another one while it holds the store, and goes, leaves no lock and no file open in it.
#[test]
fn a_child_of_the_owner_keeps_no_lock() {
    if let Some(dir) = actors::part() {
        let store = open_at(Path::new(&dir));
        let api = adopt(&store, "api");
        note(&api, "before").expect("noted");
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        actors::answer(&child.id().to_string());
        // Gone without closing anything.
        std::process::abort();
    }
    let ground = Ground::filled(1);
    let dir = ground.dir.to_str().expect("UTF-8");
    let mut owner = Running::command(actors::actor(&[], CHILD, dir).stderr(Stdio::null()));
    let child: u32 = owner.next_answer().parse().expect("a pid");
    let open: Vec<PathBuf> = std::fs::read_dir(format!("/proc/{child}/fd"))
        .expect("the child runs")
        .filter_map(|fd| std::fs::read_link(fd.expect("an entry").path()).ok())
        .collect();
    let inherited = open
        .iter()
        .filter(|path| path.starts_with(&ground.dir))
        .count();
    let store = ground.open();
    note(&adopt(&store, "api"), "after").expect("not held");
    let pid = rustix::process::Pid::from_raw(child.cast_signed()).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it still ran");
    assert_eq!(inherited, 0, "{open:?}");
    assert_eq!(notes(&store), ["note 1", "before", "after"]);
}

const UNLINKED: &str = "cases::locks::a_lock_file_that_was_removed_lets_nobody_overwrite_anybody";

/// C21: the lock file is removed while its owner is open; others make a new one. Whoever appends in turn sees what the other
/// wrote: nothing is overwritten.
#[test]
fn a_lock_file_that_was_removed_lets_nobody_overwrite_anybody() {
    if let Some(dir) = actors::part() {
        let dir = Path::new(&dir);
        let store = open_at(dir);
        let api = session(&store, "b");
        for n in 0..10 {
            note(&api, &format!("b {n}")).expect("noted");
        }
        return actors::answer("done");
    }
    let ground = Ground::filled(1);
    let store = ground.open();
    let a = session(&store, "a");
    let mut expected = vec!["note 1".to_owned()];
    let dir = ground.dir.to_str().expect("UTF-8");
    note(&a, "a 0").expect("noted");
    std::fs::remove_file(ground.dir.join("locks/1")).expect("removed");
    assert_eq!(actors::play(&[], UNLINKED, dir), "done");
    note(&a, "a 1").expect("noted");
    expected.push("a 0".into());
    expected.extend((0..10).map(|n| format!("b {n}")));
    expected.push("a 1".into());
    assert_eq!(notes(&store), expected);
    drop((a, store));
    ground.assert_clean();
}

/// C20, C21: nothing of ours ever removes a lock file.
#[test]
fn lock_files_stay() {
    let ground = Ground::filled(3);
    let locks = || {
        let mut names: Vec<_> = super::tree(&ground.dir.join("locks")).into_keys().collect();
        names.sort();
        names
    };
    let before = locks();
    assert!(!before.is_empty());
    for _ in 0..3 {
        let store = ground.open();
        note(&adopt(&store, "api"), "x").expect("noted");
        drop(store);
        ground.verify();
        drop(ground.read());
    }
    assert_eq!(locks(), before);
}

/// What a machine does differently from the real one.
#[derive(Clone, Debug)]
struct Odd {
    file_system: Option<FileSystem>,
    lock_error: Option<i32>,
}

impl Storage for Odd {
    fn directory(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn Directory>> {
        let inner = Disk.directory(path, opening)?;
        let odd = self.clone();
        Ok(Arc::new(OddDirectory { inner, odd }))
    }

    fn now(&self) -> Instant {
        Disk.now()
    }

    fn boot(&self) -> io::Result<BootId> {
        Disk.boot()
    }

    fn process(&self) -> ProcessId {
        Disk.process()
    }

    fn wait(&self, word: &AtomicU32, expected: u32, bound: Duration) {
        Disk.wait(word, expected, bound);
    }

    fn wake(&self, word: &AtomicU32, count: u32) {
        Disk.wake(word, count);
    }

    fn random(&self, into: &mut [u8]) -> io::Result<()> {
        Disk.random(into)
    }
}

#[derive(Debug)]
struct OddDirectory {
    inner: Arc<dyn Directory>,
    odd: Odd,
}

impl Directory for OddDirectory {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.inner.identity()
    }

    fn file_system(&self) -> io::Result<FileSystem> {
        match &self.odd.file_system {
            Some(odd) => Ok(odd.clone()),
            None => self.inner.file_system(),
        }
    }

    fn make_directory(&self, name: &str) -> io::Result<()> {
        self.inner.make_directory(name)
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.inner.list(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn StoredFile>> {
        let inner = self.inner.open(name, access)?;
        let lock_error = self.odd.lock_error;
        Ok(Arc::new(OddFile { inner, lock_error }))
    }

    fn rename(&self, from: &str, to: &str, onto: Onto) -> io::Result<()> {
        self.inner.rename(from, to, onto)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.inner.sync(name)
    }
}

#[derive(Debug)]
struct OddFile {
    inner: Arc<dyn StoredFile>,
    lock_error: Option<i32>,
}

impl StoredFile for OddFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_at(bytes, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.lock_error {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => self.inner.try_lock(),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.inner.identity()
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.inner.is_linked()
    }

    fn map_shared(&self, access: Access) -> io::Result<Arc<dyn SharedMemory>> {
        self.inner.map_shared(access)
    }

    fn map_sealed(&self, bytes: u64) -> io::Result<Arc<dyn SealedBytes>> {
        self.inner.map_sealed(bytes)
    }
}

fn open_odd(ground: &Ground, odd: &Odd, allowed: &[&str]) -> Result<Store, LogError> {
    let options = Options {
        create: true,
        rules: RULES,
        host: vec![1; 16],
        allowed_file_systems: allowed.iter().map(ToString::to_string).collect(),
        tuning: small(),
    };
    let log = SegmentLog::open(Arc::new(odd.clone()), &ground.dir, options)?;
    Ok(Store::over(Arc::new(log), ground.host.clone()).expect("the log reads"))
}

/// C12, C27: on a network file system or one in user space nothing is written unless that kind is allowed by name; the refusal
/// names it, and reading is not refused.
#[test]
fn a_file_system_whose_locks_may_lie_is_refused_by_name() {
    let ground = Ground::filled(2);
    let before = ground.tree();
    for kind in ["nfs", "smb2", "9p", "fuse"] {
        let file_system = FileSystem {
            kind: kind.into(),
            trust: Trust::Doubtful,
        };
        let odd = Odd {
            file_system: Some(file_system),
            lock_error: None,
        };
        for allowed in [&[][..], &["ext4"]] {
            let Err(error) = open_odd(&ground, &odd, allowed) else {
                panic!("{kind} is opened")
            };
            assert!(matches!(&error, LogError::RefusedFileSystem { kind: k } if k == kind));
            assert!(error.to_string().contains(kind), "{error}");
        }
        assert_eq!(ground.tree(), before, "{kind}: not a byte is written");
        drop(open_odd(&ground, &odd, &[kind]).expect("allowed"));
    }
    assert_eq!(head(&ground.read()), 3);
}

/// C12, C26: an error of the lock call itself is shown as that; it is never "in use by somebody", and nothing is appended.
#[test]
fn an_error_of_the_lock_call_is_no_holder() {
    let ground = Ground::filled(2);
    let before = ground.truth();
    for (number, kind) in [(37, "ENOLCK"), (95, "ENOTSUP"), (22, "EINVAL")] {
        let odd = Odd {
            file_system: None,
            lock_error: Some(number),
        };
        let store =
            open_odd(&ground, &odd, &[]).expect("the page is there, and nothing is in doubt");
        let outcome = Session::register(&store, &name("other"));
        let Err(Failure::Failed(tenure_projection::error::Error::Log(error))) = outcome else {
            panic!("{kind}: {outcome:?}")
        };
        let LogError::Io { op, source, .. } = &*error else {
            panic!("{kind}: {error:?}")
        };
        assert_eq!(
            (*op, source.raw_os_error()),
            ("lock", Some(number)),
            "{kind}"
        );
        assert_eq!(ground.truth(), before, "{kind}");
    }
}
