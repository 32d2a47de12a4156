//! The segment log on a real disk: homes, forks, readers, rotation, prepared files, torn tails, refusals.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tenure_log::conformance::{append, draft, read};
use tenure_log::error::Error;
use tenure_log::format::RulesVersion;
use tenure_log::frame::Depth;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::position::{Head, Position};
use tenure_log::reader::open::SegmentReader;
use tenure_log::storage::disk::Disk;
use tenure_log::storage::{BootId, Directory, Opening, ProcessId, Storage};
use tenure_log::writer::site::Tuning;

pub(crate) struct Store {
    _temp: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Store {
    pub(crate) fn new() -> Store {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let path = temp.path().join("store");
        Store { _temp: temp, path }
    }

    /// A copy that passes for the original.
    pub(crate) fn copied(&self) -> Store {
        let other = Store::new();
        copy(&self.path, &other.path);
        SegmentLog::accept_home(&Disk, &other.path, &options().host).expect("accepted");
        other
    }

    pub(crate) fn open(&self) -> SegmentLog {
        SegmentLog::open(Arc::new(Disk), &self.path, options()).expect("opened")
    }

    pub(crate) fn reader(&self) -> SegmentReader {
        SegmentReader::open(Arc::new(Disk), &self.path).expect("opened")
    }

    /// Every file with its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path.clone(), std::fs::read(path).expect("read"));
                }
            }
        }
        files
    }

    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let files = self.files();
        files
            .into_keys()
            .filter(|path| path.extension().is_some_and(|end| end == "seg"))
            .collect()
    }
}

pub(crate) fn options() -> Options {
    let tuning = Tuning {
        segment_bytes: vec![8192],
        fill_bytes: 1024,
        ..Tuning::default()
    };
    let host = b"this machine".to_vec();
    Options {
        create: true,
        rules: RulesVersion(1),
        host,
        tuning,
        ..Options::default()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    std::fs::set_permissions(to, std::fs::metadata(from).expect("there").permissions())
        .expect("set");
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry").path();
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy(&entry, &target)
        } else {
            std::fs::copy(&entry, &target).map(drop).expect("copied")
        }
    }
}

/// A copied store refuses to write until it is accepted, on this machine or another; reading works.
#[test]
fn a_store_that_was_copied_refuses_to_write_until_it_is_accepted() {
    let store = Store::new();
    let head = append(&store.open(), "one").head;
    let path = store.path.with_file_name("copy");
    copy(&store.path, &path);
    let open = |host: &[u8]| {
        SegmentLog::open(
            Arc::new(Disk),
            &path,
            Options {
                host: host.to_vec(),
                ..options()
            },
        )
    };
    let Err(Error::HomeChanged { was, is }) = open(b"this machine") else {
        panic!("the copy was taken for the original")
    };
    assert_eq!((was, is), (store.path.clone(), path.clone()));
    assert_eq!(
        SegmentReader::open(Arc::new(Disk), &path)
            .expect("opened")
            .head()
            .expect("a head"),
        head
    );
    SegmentLog::accept_home(&Disk, &path, b"another").expect("accepted");
    assert!(
        matches!(open(b"this machine"), Err(Error::HomeChanged { .. })),
        "it was accepted for another machine"
    );
    let log = open(b"another").expect("accepted");
    let old = log.identity().incarnation;
    let raised = log
        .raise(head, Deadline::NEVER, &mut |_, _| draft("raised"))
        .expect("raised");
    assert_eq!(raised.first, Position(2));
    assert!(log.identity().incarnation > old);
    append(&store.open(), "the original goes on");
}

/// The disk, in a process whose number can change: what a handle sees after a fork.
#[derive(Debug, Default)]
struct Forking {
    forked: AtomicBool,
}

impl Storage for Forking {
    fn directory(&self, path: &Path, opening: Opening) -> io::Result<Arc<dyn Directory>> {
        Disk.directory(path, opening)
    }
    fn now(&self) -> Instant {
        Disk.now()
    }
    fn boot(&self) -> io::Result<BootId> {
        Disk.boot()
    }
    fn process(&self) -> ProcessId {
        ProcessId(Disk.process().0 + u32::from(self.forked.load(Ordering::SeqCst)))
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

#[test]
fn a_handle_used_after_a_fork_refuses() {
    let (store, storage) = (Store::new(), Arc::new(Forking::default()));
    let log = SegmentLog::open(storage.clone(), &store.path, options()).expect("opened");
    let head = append(&log, "parent").head;
    storage.forked.store(true, Ordering::SeqCst);
    let answer = log.transact(head, Deadline::NEVER, &mut |_| panic!("decided in a child"));
    assert!(
        matches!(
            answer,
            Err(TransactError::Failed(Error::ForkedHandle { .. }))
        ),
        "{answer:?}"
    );
    assert!(matches!(log.head(), Err(Error::ForkedHandle { .. })));
    assert!(matches!(
        log.wait_durable(Position(1), Deadline::NEVER),
        Err(Error::ForkedHandle { .. })
    ));
    storage.forked.store(false, Ordering::SeqCst);
    append(&log, "parent again");
}

/// R10 and S1: a reader takes no lock and changes no byte, with a control page and without one.
#[test]
fn a_reader_changes_no_byte_and_waits_for_no_lock() {
    let store = Store::new();
    let log = store.open();
    let heads: Vec<Head> = (0..60)
        .map(|index| append(&log, &index.to_string()).head)
        .collect();
    assert!(store.segments().len() > 1, "several segments");
    for with_page in [true, false] {
        if !with_page {
            std::fs::remove_file(store.path.join("control")).expect("removed");
        }
        let before = store.files();
        let reader = store.reader();
        let inside = log.transact(heads[59], Deadline::NEVER, &mut |_| {
            // The append lock is held here.
            assert_eq!(reader.head().expect("a head"), heads[59]);
            let mut walk = reader.read_from(Position(3), Depth::Whole).expect("a walk");
            for head in &heads[3..] {
                assert_eq!(
                    walk.next().expect("a frame").expect("good").header.head(),
                    *head
                );
            }
            assert!(walk.next().is_none());
            let until = Deadline::after(Duration::from_millis(5));
            assert_eq!(
                reader.wait_beyond(Position(60), until).expect("a head"),
                heads[59]
            );
            Vec::new()
        });
        if with_page {
            inside.expect("decided");
            let mut after = store.files();
            // The writer's own page counts its acquisitions.
            after.insert(
                store.path.join("control"),
                before[&store.path.join("control")].clone(),
            );
            assert_eq!(before, after);
        } else {
            inside.expect("decided, on a page that was built anew");
        }
    }
    assert_eq!(store.reader().identity().expect("known"), log.identity());
}

#[test]
fn a_reader_hears_of_what_is_published() {
    let store = Store::new();
    let log = store.open();
    let reader = store.reader();
    std::thread::scope(|scope| {
        let waiter = scope
            .spawn(|| reader.wait_beyond(Position::ZERO, Deadline::after(Duration::from_secs(60))));
        let head = append(&log, "one").head;
        assert_eq!(waiter.join().expect("waited").expect("a head"), head);
    });
    assert_eq!(reader.durable().expect("known"), Position(1));
}

/// The same answers without the control page and the snapshots, for handles opened before and after.
#[test]
fn a_store_without_its_derived_files_gives_the_same_answers() {
    let store = Store::new();
    let log = store.open();
    for index in 0..30 {
        append(&log, &index.to_string());
    }
    let (head, frames) = (log.head().expect("a head"), read(&log, Position::ZERO));
    std::fs::remove_file(store.path.join("control")).expect("removed");
    std::fs::remove_dir_all(store.path.join("snapshots")).expect("removed");
    let fresh = store.open();
    for log in [&fresh, &log] {
        assert_eq!(
            (log.head().expect("a head"), read(log, Position::ZERO)),
            (head, frames.clone())
        );
    }
    assert_eq!(append(&log, "old handle").first, Position(31));
    assert_eq!(append(&fresh, "new handle").first, Position(32));
}

/// LOG: the next segment is made of a file of zeros that somebody with time has prepared.
#[test]
fn a_prepared_file_becomes_the_next_segment() {
    let store = Store::new();
    let log = store.open();
    append(&log, "first");
    assert!(log.prepare_next().expect("prepared"));
    assert!(!log.prepare_next().expect("asked"), "one is enough");
    let prepared = store.path.join("segments/prepared");
    assert!(
        std::fs::read(&prepared)
            .expect("there")
            .iter()
            .all(|byte| *byte == 0)
    );
    while store.segments().len() == 1 {
        append(&log, "more");
    }
    assert!(!prepared.exists(), "it was taken");
    let frames = read(&store.open(), Position::ZERO);
    assert_eq!(frames.len() as u64, log.head().expect("a head").position.0);
}

/// Recovery row 6: the bytes of a torn tail go to quarantine, the writer says so once, and the log goes on.
#[test]
fn a_torn_tail_is_put_away_and_said_once() {
    let store = Store::new();
    let head = append(&store.open(), "one").head;
    let [segment] = store.segments().try_into().expect("one segment");
    let end = std::fs::read(&segment)
        .expect("read")
        .iter()
        .rposition(|byte| *byte != 0)
        .expect("a frame")
        + 1;
    let file = std::fs::File::options()
        .write(true)
        .open(&segment)
        .expect("opened");
    let at = (end as u64).next_multiple_of(8);
    std::os::unix::fs::FileExt::write_all_at(&file, b"TNF1 and no more", at).expect("written");
    // As after a boot: what the page said is void.
    std::fs::remove_file(store.path.join("control")).expect("removed");
    let log = store.open();
    let [torn] = log.torn().try_into().expect("one torn tail");
    assert_eq!((torn.offset, torn.bytes), (at, 16));
    let kept = std::fs::read(store.path.join("quarantine").join(&torn.quarantine)).expect("kept");
    assert_eq!(kept, b"TNF1 and no more");
    assert_eq!(log.head().expect("a head"), head);
    assert_eq!(append(&log, "two").first, Position(2));
    assert_eq!(
        store.open().torn(),
        [torn],
        "whoever opens it later can record it too"
    );
}

/// Recovery row 3 and F25: what was durable and is bad stops every write, and no byte is changed.
#[test]
fn damage_below_the_durable_position_stops_every_write() {
    let store = Store::new();
    for text in ["one", "two"] {
        append(&store.open(), text);
    }
    let [segment] = store.segments().try_into().expect("one segment");
    let mut bytes = std::fs::read(&segment).expect("read");
    bytes[4096 + 84] ^= 1;
    std::fs::write(&segment, &bytes).expect("written");
    std::fs::remove_file(store.path.join("control")).expect("removed");
    let opened = SegmentLog::open(Arc::new(Disk), &store.path, options());
    let Err(Error::Damaged(damage)) = opened else {
        panic!("opened: {opened:?}")
    };
    assert_eq!((damage.offset, damage.positions.first), (4096, Position(1)));
    assert_eq!(std::fs::read(&segment).expect("read"), bytes);
}

#[test]
fn newer_rules_begin_a_segment_and_older_ones_do_not_append() {
    let store = Store::new();
    append(&store.open(), "by rules 1");
    let newer = Options {
        rules: RulesVersion(2),
        ..options()
    };
    let log = SegmentLog::open(Arc::new(Disk), &store.path, newer).expect("opened");
    assert_eq!(log.identity().rules, RulesVersion(1));
    append(&log, "by rules 2");
    assert_eq!(log.identity().rules, RulesVersion(2));
    assert_eq!(store.segments().len(), 2);
    let older = store.open();
    let head = older.head().expect("a head");
    let answer = older.transact(head, Deadline::NEVER, &mut |_| {
        panic!("decided by older rules")
    });
    assert!(
        matches!(
            answer,
            Err(TransactError::Failed(Error::LimitExceeded { .. }))
        ),
        "{answer:?}"
    );
    assert_eq!(read(&older, Position::ZERO).len(), 2, "reading goes on");
}

/// A segment without a frame has the name that the next one would have: the epoch is raised past it.
#[test]
fn newer_rules_begin_a_segment_in_a_store_without_a_frame() {
    let store = Store::new();
    drop(store.open());
    let newer = Options {
        rules: RulesVersion(2),
        ..options()
    };
    let log = SegmentLog::open(Arc::new(Disk), &store.path, newer).expect("opened");
    assert_eq!(append(&log, "first").first, Position(1));
    assert_eq!(log.identity().rules, RulesVersion(2));
    assert_eq!(
        (store.segments().len(), read(&log, Position::ZERO).len()),
        (2, 1)
    );
}

#[test]
fn a_caller_far_behind_is_told_to_read_on_instead_of_being_shown_everything() {
    let store = Store::new();
    let tuning = Tuning {
        tail_bytes_max: 1000,
        ..options().tuning
    };
    let log = SegmentLog::open(
        Arc::new(Disk),
        &store.path,
        Options {
            tuning,
            ..options()
        },
    )
    .expect("opened");
    let born = log.head().expect("a head");
    for index in 0..20 {
        append(&log, &index.to_string());
    }
    let answer = log.transact(born, Deadline::NEVER, &mut |_| {
        panic!("decided on half the past")
    });
    assert!(
        matches!(&answer, Err(TransactError::Moved { appended }) if appended.is_empty()),
        "{answer:?}"
    );
}

/// L3: a wait ends at its deadline and says who is waited for.
#[test]
fn a_deadline_passes_while_another_thread_decides() {
    let store = Store::new();
    let log = store.open();
    let head = log.head().expect("a head");
    let answer = log.transact(head, Deadline::NEVER, &mut |_| {
        std::thread::scope(|scope| {
            let late = || {
                log.transact(
                    head,
                    Deadline::after(Duration::from_millis(20)),
                    &mut |_| Vec::new(),
                )
            };
            let other = scope.spawn(late).join().expect("answered");
            let Err(TransactError::Failed(Error::Busy { waited, .. })) = other else {
                panic!("{other:?}")
            };
            assert!(waited >= Duration::from_millis(20));
        });
        let other = store.open();
        let late = other.transact(
            head,
            Deadline::after(Duration::from_millis(20)),
            &mut |_| Vec::new(),
        );
        let Err(TransactError::Failed(Error::Busy { holder, .. })) = late else {
            panic!("{late:?}")
        };
        assert!(
            holder.starts_with(&format!("process {}", std::process::id())),
            "{holder}"
        );
        Vec::new()
    });
    answer.expect("decided");
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    let store = Store::new();
    let open = || {
        SegmentLog::open(
            Arc::new(Disk),
            &store.path,
            Options {
                create: false,
                ..options()
            },
        )
    };
    assert!(matches!(open(), Err(Error::NotAStore { .. })));
    std::fs::create_dir(&store.path).expect("made");
    std::fs::set_permissions(
        &store.path,
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .expect("set");
    assert!(matches!(open(), Err(Error::NotAStore { .. })));
    assert!(matches!(
        SegmentReader::open(Arc::new(Disk), &store.path),
        Err(Error::NotAStore { .. })
    ));
    assert!(!store.path.join("locks").exists(), "looking made nothing");
    std::fs::remove_dir(&store.path).expect("removed");
    std::fs::write(&store.path, b"a file").expect("written");
    assert!(matches!(open(), Err(Error::NotAStore { .. })));
}

/// Whoever has read further than its writer is shown what came behind that, and nothing of another history.
#[test]
fn a_head_read_past_the_writers_own_is_gone_on_from() {
    let store = Store::new();
    let (ours, theirs) = (store.open(), store.open());
    append(&ours, "one");
    let heads: Vec<Head> = (0..40)
        .map(|n| append(&theirs, &n.to_string()).head)
        .collect();
    for (number, known) in heads.iter().enumerate().skip(1).step_by(13) {
        let fresh = store.open();
        append(&fresh, "a writer with a place of its own");
        for writer in [&ours, &fresh] {
            let mut shown = Vec::new();
            let nothing = writer.transact(*known, Deadline::NEVER, &mut |tail| {
                shown = tail
                    .frames
                    .iter()
                    .map(|frame| frame.header.head())
                    .collect();
                Vec::new()
            });
            let appended = nothing.expect("decided");
            assert!(shown.starts_with(&heads[number + 1..]), "behind {known:?}");
            assert_eq!(appended.mark.map(|mark| mark.head), Some(appended.head));
        }
        let mut other = *known;
        other.chain.0[0] ^= 1;
        let late = store.open();
        append(&theirs, "unseen by the late one");
        append(&theirs, "nor this");
        let refused = late.transact(other, Deadline::NEVER, &mut |_| Vec::new());
        assert!(matches!(
            refused,
            Err(TransactError::Failed(Error::Diverged { .. }))
        ));
    }
    let again = ours.transact(heads[39], Deadline::NEVER, &mut |_| Vec::new());
    again.expect("decided");
    append(&theirs, "one more");
    let mut other = append(&theirs, "and the newest").head;
    other.chain.0[0] ^= 1;
    let refused = ours.transact(other, Deadline::NEVER, &mut |_| Vec::new());
    assert!(matches!(
        refused,
        Err(TransactError::Failed(Error::Diverged { .. }))
    ));
}
