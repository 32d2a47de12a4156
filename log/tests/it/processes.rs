//! Real processes on a real disk: killed at any moment, stopped while they hold the append lock.
//!
//! A child is this test binary again, running [`child`] with its orders in the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure_log::conformance::{append, draft, follow_each_other, read};
use tenure_log::error::Error;
use tenure_log::format::RulesVersion;
use tenure_log::journal::segment::{Options, SegmentLog};
use tenure_log::journal::{Deadline, Journal, TransactError};
use tenure_log::position::{Head, Position};
use tenure_log::storage::Storage;
use tenure_log::storage::disk::Disk;
use tenure_log::writer::site::Tuning;

mod stopping;

use stopping::{Stopping, stop_here};

const STORE: &str = "TENURE_CHILD_STORE";
const ORDERS: &str = "TENURE_CHILD_ORDERS";

fn open(
    storage: Arc<dyn Storage>,
    path: &Path,
    append_wait: Duration,
) -> Result<SegmentLog, Error> {
    let tuning = Tuning {
        append_wait,
        sync_wait: append_wait,
        segment_bytes: vec![32 << 10],
        ..Tuning::default()
    };
    let options = Options {
        create: true,
        rules: RulesVersion(1),
        tuning,
        ..Options::default()
    };
    SegmentLog::open(storage, path, options)
}

/// Not a test of its own: what a child process does.
#[test]
#[ignore = "runs as a child of the tests here"]
fn child() {
    let (Ok(store), Ok(orders)) = (std::env::var(STORE), std::env::var(ORDERS)) else {
        return;
    };
    let store = PathBuf::from(store);
    match orders.split_once(' ') {
        Some(("write", name)) => write_for_ever(&store, name),
        Some(("decide", name)) => decide_for_ever(&store, name),
        Some(("stop", at)) => stop_once(&store, at),
        Some(("limited", bytes)) => write_until_full(&store, bytes.parse().expect("a number")),
        _ => panic!("unknown orders {orders:?}"),
    }
}

fn spawn(store: &Path, orders: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args([
            "processes::child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STORE, store)
        .env(ORDERS, orders)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("piped"));
    (child, lines)
}

/// Says something to the parent, at once: what is said before a kill was said.
fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{words}\n").as_bytes())
        .and_then(|()| out.flush())
        .expect("the parent listens");
}

fn write_for_ever(store: &Path, name: &str) {
    let log = open(Arc::new(Disk), store, Duration::from_secs(5)).expect("opened");
    let mut known = log.head().expect("a head");
    for index in 0_u64.. {
        let text = format!("{name}:{index}");
        loop {
            match log.transact(known, Deadline::NEVER, &mut |_| vec![draft(&text)]) {
                Ok(appended) => {
                    known = appended.head;
                    log.wait_durable(known.position, Deadline::NEVER)
                        .expect("durable");
                    say(&format!("ack {} {} {text}", known.position, known.chain));
                    break;
                }
                Err(TransactError::Moved { appended }) if appended.is_empty() => {
                    known = log.head().expect("a head")
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Appends frames that say which head they were decided on. Busy is an answer: nothing happened.
fn decide_for_ever(store: &Path, name: &str) {
    let log = loop {
        match open(Arc::new(Disk), store, Duration::from_secs(5)) {
            Err(Error::Busy { .. }) => {}
            opened => break opened.expect("opened"),
        }
    };
    let mut known = log.head().expect("a head");
    for index in 0_u64.. {
        let decided = log.transact(known, Deadline::NEVER, &mut |tail| {
            vec![draft(&format!("{name}:{index}:{}", tail.head.chain))]
        });
        match decided {
            Ok(appended) => {
                known = appended.head;
                let durable = log.wait_durable(known.position, Deadline::NEVER);
                durable.expect("durable");
                say(&format!(
                    "ack {} {} {name}:{index}",
                    known.position, known.chain
                ));
            }
            Err(TransactError::Moved { appended }) if appended.is_empty() => {
                known = log.head().expect("a head");
            }
            Err(TransactError::Failed(Error::Busy { .. })) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// C21: four processes append, a new one opens every few milliseconds, and somebody removes the lock
/// files under them again and again. Nobody decides on a head that was not the newest, nothing
/// acknowledged is missing, positions have no gap.
#[test]
fn lock_files_removed_under_four_writers_let_no_two_decide_at_once() {
    const REMOVALS: u64 = 60;
    let temp = tempfile::tempdir().expect("a temporary directory");
    let store = temp.path().join("store");
    drop(open(Arc::new(Disk), &store, Duration::from_secs(5)).expect("made"));
    let listen = |number: u64| {
        let (child, lines) = spawn(&store, &format!("decide {number}"));
        (child, std::thread::spawn(move || acknowledged(lines)))
    };
    let mut children: Vec<_> = (0..4).map(listen).collect();
    let mut listeners = Vec::new();
    for removal in 0..REMOVALS {
        std::thread::sleep(Duration::from_millis(10 + removal % 7));
        for entry in std::fs::read_dir(store.join("locks")).expect("listed") {
            // Between listing and removing nobody else removes one.
            std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
        let index = (removal % 4) as usize;
        let (mut child, listener) = std::mem::replace(&mut children[index], listen(4 + removal));
        child.kill().expect("killed");
        child.wait().expect("gone");
        listeners.push(listener);
    }
    for (mut child, listener) in children {
        child.kill().expect("killed");
        child.wait().expect("gone");
        listeners.push(listener);
    }
    let log = open(Arc::new(Disk), &store, Duration::from_secs(5)).expect("opened");
    let frames = read(&log, Position::ZERO);
    let mut before = Head {
        position: Position::ZERO,
        chain: born(&store),
    };
    follow_each_other(before, &frames);
    let mut acks: BTreeMap<Position, (Head, String)> = BTreeMap::new();
    for listener in listeners {
        for (head, text) in listener.join().expect("listened") {
            let other = acks.insert(head.position, (head, text));
            assert_eq!(other, None, "one position was acknowledged to two");
        }
    }
    assert!(acks.len() > 100, "only {} were acknowledged", acks.len());
    for frame in &frames {
        let text = String::from_utf8(frame.parts.texts.clone()).expect("UTF-8");
        let (name, decided_on) = text.rsplit_once(':').expect("a chain");
        assert_eq!(
            decided_on,
            before.chain.to_string(),
            "{text} was decided late"
        );
        before = frame.header.head();
        if let Some((head, text)) = acks.remove(&before.position) {
            assert_eq!((head, &*text), (before, name));
        }
    }
    assert_eq!(acks, BTreeMap::new(), "acknowledged, and not there");
    assert!(
        frames.last().expect("some").header.epoch.0 > 5,
        "epochs were raised"
    );
}

/// Everything a killed child said, in whole lines.
fn acknowledged(lines: BufReader<ChildStdout>) -> Vec<(Head, String)> {
    let mut acks = Vec::new();
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8(line).expect("UTF-8");
        let mut words = line.split(' ');
        if words.next() == Some("ack")
            && let (Some(position), Some(chain), Some(text)) =
                (words.next(), words.next(), words.next())
        {
            let position = Position(position.parse().expect("a position"));
            acks.push((
                Head {
                    position,
                    chain: chain.parse().expect("a chain"),
                },
                text.to_owned(),
            ));
        }
    }
    acks
}

/// R1 to R3 and L3: eight processes, one killed every few milliseconds and replaced. Nothing
/// acknowledged is missing, no frame is doubled, positions have no gap.
#[test]
fn eight_processes_killed_at_random_lose_and_double_nothing() {
    const KILLS: u64 = 120;
    let temp = tempfile::tempdir().expect("a temporary directory");
    let store = temp.path().join("store");
    drop(open(Arc::new(Disk), &store, Duration::from_secs(5)).expect("made"));
    let listen = |number: u64| {
        let (child, lines) = spawn(&store, &format!("write {number}"));
        (child, std::thread::spawn(move || acknowledged(lines)))
    };
    let mut children: Vec<_> = (0..8).map(listen).collect();
    let (mut listeners, mut random) = (Vec::new(), 0x9E37_79B9_u64);
    for kill in 0..KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros(5_000 + (random >> 33) % 40_000));
        let index = ((random >> 40) % children.len() as u64) as usize;
        let (mut child, listener) = std::mem::replace(&mut children[index], listen(8 + kill));
        child.kill().expect("killed");
        child.wait().expect("gone");
        listeners.push(listener);
    }
    for (mut child, listener) in children {
        child.kill().expect("killed");
        child.wait().expect("gone");
        listeners.push(listener);
    }
    let acks: Vec<_> = listeners
        .into_iter()
        .flat_map(|listener| listener.join().expect("listened"))
        .collect();
    let log = open(Arc::new(Disk), &store, Duration::from_secs(5)).expect("opened");
    append(&log, "last");
    let frames = read(&log, Position::ZERO);
    follow_each_other(
        Head {
            position: Position::ZERO,
            chain: born(&store),
        },
        &frames,
    );
    let texts: BTreeSet<&[u8]> = frames.iter().map(|frame| &*frame.parts.texts).collect();
    assert_eq!(texts.len(), frames.len(), "each once");
    let at: BTreeMap<Position, _> = frames
        .iter()
        .map(|frame| (frame.header.position, frame))
        .collect();
    for (head, text) in &acks {
        let frame = at
            .get(&head.position)
            .unwrap_or_else(|| panic!("{text} is missing"));
        assert_eq!(
            (frame.header.head(), &*frame.parts.texts),
            (*head, text.as_bytes())
        );
    }
    assert!(acks.len() > 200, "only {} were acknowledged", acks.len());
}

fn born(store: &Path) -> tenure_log::position::Chain {
    let first = std::fs::read(store.join("segments/00000000000000000001-1.seg"))
        .expect("the first segment");
    tenure_log::format::SegmentHeader::decode(&first)
        .expect("a header")
        .chain
}

/// Appends `stopped`, stopping itself once on the way, and says what it was told.
fn stop_once(store: &Path, at: &str) {
    let log = open(
        Arc::new(Stopping { at: at.to_owned() }),
        store,
        Duration::from_secs(5),
    )
    .expect("opened");
    let known = log.head().expect("a head");
    let answer = log.transact(known, Deadline::NEVER, &mut |_| {
        if at == "deciding" {
            stop_here();
        }
        vec![draft("stopped")]
    });
    match answer {
        Ok(appended) => {
            log.wait_durable(appended.head.position, Deadline::NEVER)
                .expect("durable");
            say(&format!(
                "applied {} {}",
                appended.head.position, appended.head.chain
            ));
        }
        Err(TransactError::Moved { appended }) if appended.is_empty() => say("absent"),
        Err(other) => panic!("{other}"),
    }
}

fn state_of(child: &Child) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("alive");
    let (_, behind) = stat.rsplit_once(')').expect("a name in brackets");
    behind.trim_start().chars().next().expect("a state")
}

/// A child that stopped itself, and what it said.
struct Stopped {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Stopped {
    fn hear(&mut self, wanted: &[&str]) -> String {
        let mut heard = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).expect("heard") > 0,
                "it ended after {heard:?}"
            );
            heard.push_str(&line);
            if wanted.iter().any(|word| line.starts_with(word)) {
                return line.trim().to_owned();
            }
        }
    }

    /// Lets it go on until it has an answer. It stops itself at every write of a frame, or sync.
    fn wake_until_answered(mut self) -> String {
        let pid = Pid::from_child(&self.child);
        let waker = std::thread::spawn(move || {
            while kill_process(pid, Signal::CONT).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let answer = self.hear(&["applied", "absent"]);
        assert!(self.child.wait().expect("ended").success());
        waker.join().expect("woke it");
        answer
    }
}

/// F4 and L3: a holder stopped while it decides, before and after its write, and in its sync. Others go
/// on within the bound; woken, it is told the truth, and its frame is in the log once or not at all.
#[test]
fn a_stopped_holder_strands_nobody_and_is_told_the_truth() {
    for at in ["deciding", "before-write", "after-write", "in-sync"] {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let store = temp.path().join("store");
        let log = open(Arc::new(Disk), &store, Duration::from_millis(300)).expect("made");
        append(&log, "first");
        let (child, lines) = spawn(&store, &format!("stop {at}"));
        let mut stopped = Stopped { child, lines };
        stopped.hear(&["stopping"]);
        while state_of(&stopped.child) != 'T' {
            std::thread::sleep(Duration::from_millis(1));
        }
        let others: Vec<Head> = ["second", "third"]
            .map(|text| append(&log, text).head)
            .to_vec();
        assert_eq!(
            state_of(&stopped.child),
            'T',
            "{at}: the others went on while it was stopped"
        );
        let answer = stopped.wake_until_answered();
        let frames = read(&log, Position::ZERO);
        follow_each_other(
            Head {
                position: Position::ZERO,
                chain: born(&store),
            },
            &frames,
        );
        for head in &others {
            assert!(
                frames.iter().any(|frame| frame.header.head() == *head),
                "{at}: {} is missing",
                head.position
            );
        }
        let found = frames
            .iter()
            .filter(|frame| frame.parts.texts == b"stopped");
        let found: Vec<_> = found
            .map(|frame| format!("applied {} {}", frame.header.position, frame.header.chain))
            .collect();
        if at == "deciding" || at == "before-write" {
            assert_eq!((answer.as_str(), found.len()), ("absent", 0), "{at}");
        } else {
            assert_eq!(found, [answer], "{at}");
        }
    }
}

fn write_until_full(store: &Path, bytes: u64) {
    let log = open(Arc::new(Disk), store, Duration::from_secs(5)).expect("opened");
    let limit = rustix::process::Rlimit {
        current: Some(bytes),
        maximum: None,
    };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).expect("limited");
    let mut known = log.head().expect("a head");
    loop {
        let text = "x".repeat(997);
        match log.transact(known, Deadline::NEVER, &mut |_| vec![draft(&text)]) {
            Ok(appended) => {
                known = appended.head;
                log.wait_durable(known.position, Deadline::NEVER)
                    .expect("durable");
                say(&format!("ack {} {} x", known.position, known.chain));
            }
            Err(TransactError::Failed(Error::NoSpace { .. })) => return say("full"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// R8 and F25: at a file-size limit the append says so, nothing acknowledged is lost, and the store goes
/// on when there is room again.
#[test]
fn a_full_disk_is_said_and_the_store_goes_on_when_there_is_room() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let store = temp.path().join("store");
    drop(open(Arc::new(Disk), &store, Duration::from_secs(5)).expect("made"));
    // The shell ignores the signal that would end the child at the limit.
    let mut child = Command::new("/bin/sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("this binary"))
        .args([
            "processes::child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STORE, &store)
        .env(ORDERS, format!("limited {}", 20_001))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("piped"), &mut said)
        .expect("heard");
    assert!(child.wait().expect("ended").success());
    assert!(said.contains("\nfull\n"), "{said}");
    let acks = said.lines().filter(|line| line.starts_with("ack ")).count();
    assert!(acks > 3, "{acks} were acknowledged");
    let log = open(Arc::new(Disk), &store, Duration::from_secs(5)).expect("opened");
    assert_eq!(read(&log, Position::ZERO).len(), acks);
    assert_eq!(append(&log, "room again").first, Position(acks as u64 + 1));
    assert_eq!(log.torn(), [], "nothing was left behind");
}
