//! No space, failed syncs, kills and power cuts: what was answered is there, what failed is not, and who is not sure says so.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenure_log::error::Error as LogError;
use tenure_log::journal::segment::{Options as LogOptions, SegmentLog};
use tenure_log::storage::sim::{Fault, Sim, SimProcess, Survival};
use tenure_log::verify::Outcome;
use tenure_projection::call::{Call, Verb};
use tenure_projection::error::{Error, Failure, Trace};
use tenure_projection::host::Scripted;
use tenure_projection::reader::Known;
use tenure_projection::session::Session;
use tenure_projection::store::{Answer, RULES, Store};

use super::{Ground, adopt, head, name, note, notes, session, small};
use crate::actors;

fn no_space(outcome: &Result<tenure_projection::store::Done, Failure>) -> bool {
    let Err(Failure::Failed(Error::Log(error))) = outcome else {
        return false;
    };
    matches!(**error, LogError::NoSpace { .. })
}

fn keyed(
    api: &Session,
    store: &Store,
    text: &str,
) -> Result<tenure_projection::store::Done, Failure> {
    let verb = Verb::Note {
        body: text.into(),
        on: None,
    };
    store.execute(Call::new(verb).under(api.token()).keyed(key_of(text)))
}

/// A text is known by its first words.
fn key_of(text: &str) -> &str {
    &text[..text.len().min(12)]
}

/// Lets files of this process grow to `bytes`, and no further.
fn limit(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = bytes.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).expect("within the hard limit");
}

const LIMITED: &str = "cases::space::an_append_that_finds_no_space_leaves_the_log_as_it_was";

/// B06, B08, B25, F43: at every size at which the disk can be full, in the same process: the call says that nothing was
/// appended, so does the next one, a retry once there is space is stored once, and nothing of the failed one appears.
#[test]
fn an_append_that_finds_no_space_leaves_the_log_as_it_was() {
    match actors::part() {
        None => {
            // Writing beyond the limit would end the process by a signal; who ignores it gets an error.
            let ignoring = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
            assert_eq!(actors::play(&ignoring, LIMITED, "limited"), "done");
        }
        Some(_) => {
            for room in (0..700).step_by(23) {
                full_at(room);
            }
            actors::answer("done");
        }
    }
}

fn full_at(room: u64) {
    let ground = Ground::new();
    let store = ground.open();
    let api = session(&store, "api");
    note(&api, "one").expect("noted");
    let last = ground.frames().pop().expect("a frame");
    limit(Some(last.end() + room));
    let before = head(&store);
    let text = |n: u32| format!("{n} {}", "y".repeat(900));
    for n in 0..3 {
        let outcome = keyed(&api, &store, &text(n));
        assert!(no_space(&outcome), "{room}: {outcome:?}");
        assert_eq!(head(&store), before, "{room}");
    }
    // A shorter one may fit; then it stands right behind the last.
    let small = note(&api, "small");
    assert!(small.is_ok() || no_space(&small), "{room}: {small:?}");
    limit(None);
    let mut expected = vec!["one".to_owned()];
    if let Ok(done) = &small {
        assert_eq!(done.at.position.0, before + 1);
        expected.push("small".into());
    }
    keyed(&api, &store, &text(1)).expect("there is space");
    assert!(keyed(&api, &store, &text(1)).expect("again").repeated);
    expected.push(text(1));
    assert_eq!(notes(&store), expected, "{room}");
    drop((api, store));
    ground.assert_clean();
    let store = ground.open();
    assert_eq!(notes(&store), expected, "{room}");
    let everything = ground.truth().into_values().flatten().collect::<Vec<u8>>();
    for failed in [text(0), text(2)] {
        let found = everything
            .windows(40)
            .any(|w| w == &failed.as_bytes()[..40]);
        assert!(!found, "{room}: of what failed nothing is left");
    }
    note(&adopt(&store, "api"), "after").expect("noted");
}

const FULL: &str = "cases::space::a_disk_that_was_full_is_written_again_after_it_grew";

/// F21, B06, B25: a real file system runs full, the writer is killed, there is space again: every acknowledged event is
/// there, in the same process as in the next, and appends go on.
#[test]
fn a_disk_that_was_full_is_written_again_after_it_grew() {
    if let Some(part) = actors::part() {
        return full_disk(Path::new(&part));
    }
    if !actors::is_root() || !actors::can(&["unshare", "-m", "true"]) {
        return actors::skip(FULL, "mounting a small file system needs root");
    }
    let temp = tempfile::tempdir().expect("a directory");
    let mount = temp.path().to_str().expect("UTF-8").to_owned();
    // The mount is seen by that process alone and ends with it.
    let script = format!("mount -t tmpfs -o size=96k,mode=0700 tmpfs {mount} && exec \"$@\"");
    let wrap = ["unshare", "-m", "sh", "-c", &script, "sh"];
    assert_eq!(actors::play(&wrap, FULL, &mount), "done");
}

fn full_disk(mount: &Path) {
    let host = super::host();
    let options = tenure_projection::store::OpenOptions::new(mount.join("store"))
        .create(true)
        .tuning(small());
    let open = || Store::open(&options, host.clone());
    let resize = |size: &str| {
        let how = format!("remount,size={size}");
        let status = std::process::Command::new("mount")
            .args(["-o", &how])
            .arg(mount)
            .status();
        assert!(status.expect("mount runs").success());
    };
    let store = open().expect("opened");
    let api = session(&store, "api");
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        // Headers, bodies, the files of new segments: each write finds the disk full at another time.
        let mut refused = 0;
        for n in 0..400 {
            let text = format!("{round}.{n} {}", "z".repeat(n * 37 % 1_500));
            match note(&api, &text) {
                Ok(_) => acknowledged.push(text),
                outcome => {
                    assert!(no_space(&outcome), "{outcome:?}");
                    refused += 1;
                    if refused > 20 {
                        break;
                    }
                }
            }
        }
        assert!(refused > 0, "the disk was full");
        assert_eq!(
            notes(&store),
            acknowledged,
            "nothing else, while it is full"
        );
        // What is found by whoever opens it: with the page of this boot, and the disk still full.
        if let Ok(other) = open() {
            assert_eq!(notes(&other), acknowledged);
        }
        resize(&format!("{}k", 96 * (round + 2)));
        note(&api, "the same process").expect("there is space");
        acknowledged.push("the same process".into());
    }
    // Killed: its page says that nothing is in doubt, or is lost.
    std::mem::forget(store);
    std::fs::remove_file(mount.join("store/control")).expect("removed");
    let store = open().expect("opened");
    note(&adopt(&store, "api"), "the next process").expect("there is space");
    acknowledged.push("the next process".into());
    assert_eq!(notes(&store), acknowledged);
    let look = tenure_log::look::PlainDirectory::new(&mount.join("store"));
    let report = tenure_log::verify::verify(&look, &tenure_log::verify::Options::default());
    assert_eq!(
        (report.outcome, report.findings),
        (Outcome::Clean, Vec::new())
    );
    actors::answer("done");
}

/// A store on the simulated machine.
fn open_sim(process: Arc<SimProcess>, host: &Arc<Scripted>) -> Result<Store, Error> {
    let mut tuning = small();
    tuning.append_wait = Duration::from_millis(200);
    tuning.sync_wait = Duration::from_millis(200);
    let options = LogOptions {
        create: true,
        rules: RULES,
        tuning,
        ..LogOptions::default()
    };
    let log = SegmentLog::open(process, Path::new("/store"), options)?;
    Store::over(Arc::new(log), host.clone())
}

/// What the calls of a workload were answered.
#[derive(Clone, Default, Debug)]
struct Told {
    noted: Vec<String>,
    generations: Vec<u64>,
    unknown: Vec<Trace>,
    failed: Vec<String>,
}

impl Told {
    fn note(&mut self, api: &Session, store: &Store, text: &str) {
        match keyed(api, store, text) {
            Ok(_) => self.noted.push(text.into()),
            Err(Failure::Unknown { trace, .. }) => self.unknown.push(trace),
            Err(Failure::Failed(_)) => self.failed.push(text.into()),
            Err(other) => panic!("{other}"),
        }
    }

    fn grant(&mut self, outcome: Result<Session, Failure>) -> Option<Session> {
        let session = outcome.ok()?;
        self.generations.push(session.token().generation.number);
        Some(session)
    }

    /// Two grants and notes over three segments. Ends early when it is killed; goes on whatever is answered.
    fn work(&mut self, store: &Store) {
        let first = self.grant(Session::register(store, &name("api")));
        for n in 0..3 {
            if let Some(api) = &first {
                self.note(api, store, &format!("first {n} {}", "f".repeat(300)));
            }
        }
        let second = Session::adopt(store, &name("api"), Some("next"));
        if let Some(api) = self.grant(second) {
            for n in 0..3 {
                self.note(&api, store, &format!("second {n} {}", "s".repeat(300)));
            }
        }
    }

    /// Holds a store that was opened again against what was answered before.
    fn judge(&self, store: &Store, at: &str) {
        let found = notes(store);
        let kept: Vec<&String> = found
            .iter()
            .filter(|text| self.noted.contains(text))
            .collect();
        assert_eq!(
            kept,
            self.noted.iter().collect::<Vec<_>>(),
            "{at}: acknowledged, in order"
        );
        for failed in &self.failed {
            assert!(
                !found.contains(failed),
                "{at}: {failed:?} was said to be absent"
            );
        }
        // The next generation is above every one that was answered.
        let newest = self.generations.iter().max().copied().unwrap_or_default();
        let next = match Session::register(store, &name("api")) {
            Ok(session) => session,
            Err(Failure::Refused(_)) => adopt(store, "api"),
            Err(other) => panic!("{at}: {other}"),
        };
        let number = next.token().generation.number;
        assert!(
            number > newest,
            "{at}: {number} after {:?}",
            self.generations
        );
        keyed(&next, store, "after").expect("it goes on");
        // Once somebody has appended: until then, a sync that failed leaves nothing to be sure of.
        let found = notes(store);
        for trace in &self.unknown {
            let known = store.outcome(trace).expect("the log reads");
            let Trace::Key(key) = trace else { continue };
            let is_there = found.iter().any(|text| key_of(text) == key.0);
            assert_eq!(matches!(known, Known::Done { .. }), is_there, "{at}");
        }
        let mut replay = tenure_projection::projector::Projector::new();
        replay.read(store, None, &mut []).expect("replayed");
        assert_eq!(replay.findings(), [], "{at}");
    }
}

/// How many steps the workload has on a machine without faults.
fn steps() -> u64 {
    let sim = Sim::new(1);
    let mut told = Told::default();
    let host = super::host();
    sim.run_one(|process| told.work(&open_sim(process, &host).expect("opened")))
        .expect("not killed");
    assert_eq!(
        (told.noted.len(), told.generations.as_slice()),
        (6, &[1, 2][..])
    );
    sim.steps()
}

/// Runs the workload with a fault at every `stride`-th step, cuts the power, and judges what opens afterwards.
fn try_every(
    stride: usize,
    fault: impl Fn(u64) -> Fault,
    survival: impl Fn(u64) -> Option<Survival>,
) -> Vec<Told> {
    let mut all = Vec::new();
    for at in (0..steps()).step_by(stride) {
        let sim = Sim::new(at);
        let (mut told, host) = (Told::default(), super::host());
        sim.set_fault(at, fault(at));
        let _: Option<()> = sim.run_one(|process| {
            if let Ok(store) = open_sim(process, &host) {
                told.work(&store);
            }
        });
        sim.clear_fault();
        if let Some(survival) = survival(at) {
            sim.cut_power(survival);
        }
        let judged = sim.run_one(|process| {
            let store = open_sim(process, &host).expect("it opens without anybody's help");
            told.judge(&store, &format!("step {at}"));
        });
        judged.expect("not killed again");
        all.push(told);
    }
    all
}

/// F26, F05, E26, REG-12: killed at any step of making a store, granting, appending and closing a segment: it opens, all that
/// was answered is there, and no generation is given twice.
#[test]
fn a_kill_at_any_step_needs_nobodys_help() {
    let all = try_every(1, |_| Fault::Kill, |_| None);
    assert!(
        all.iter().any(|told| told.generations.is_empty()),
        "before the first grant"
    );
    assert!(
        all.iter().any(|told| told.noted.len() == 5),
        "and near the end"
    );
}

/// F17, LOG-1, REG-12, F26: the power goes at any step and takes what was not synced, wholly, partly or in any order: what
/// was acknowledged is there, and no generation is given twice.
#[test]
fn a_power_cut_at_any_step_loses_nothing_that_was_acknowledged() {
    let survivals = [
        Survival::Nothing,
        Survival::Everything,
        Survival::LastWrite,
        Survival::Some(0),
        Survival::Some(0),
    ];
    let survival = |at: u64| match survivals[usize::try_from(at % 5).expect("small")] {
        Survival::Some(_) => Some(Survival::Some(at)),
        other => Some(other),
    };
    try_every(1, |_| Fault::Kill, survival);
}

/// F17, LOG-1: at the moment of every answer, power cut: the synced bytes alone hold what was answered.
#[test]
fn at_the_moment_of_an_answer_its_bytes_are_synced() {
    let sim = Sim::new(7);
    let host = super::host();
    let mut points = 0;
    sim.run_one(|process| {
        let store = open_sim(process, &host).expect("opened");
        let api = session(&store, "api");
        let mut acknowledged = Vec::new();
        for n in 0..250_u64 {
            let text = format!(
                "{n} {}",
                "a".repeat(usize::try_from(n * 31 % 400).expect("small"))
            );
            note(&api, &text).expect("noted");
            acknowledged.push(text);
            for survival in [
                Survival::Nothing,
                Survival::LastWrite,
                Survival::Some(n),
                Survival::Some(n + 1_000),
            ] {
                let cut = sim.fork();
                cut.cut_power(survival);
                let found =
                    cut.run_one(|process| notes(&open_sim(process, &host).expect("opened")));
                assert_eq!(found.expect("not killed"), acknowledged, "{survival:?}");
                points += 1;
            }
        }
    })
    .expect("not killed");
    assert_eq!(points, 1_000);
}

/// LOG-5, B08: a sync that fails is told to the call that depended on it, as unknown; what comes next goes on behind it, and
/// a retry under the same key gives the event once.
#[test]
fn a_failed_sync_is_told_and_never_taken_for_success() {
    let all = try_every(
        1,
        |_| Fault::FailedSync,
        |at| (at % 2 == 0).then_some(Survival::Nothing),
    );
    let unknown = all.iter().filter(|told| !told.unknown.is_empty()).count();
    // The other notes begin a segment; where that cannot be synced it gets no name, and nothing was appended.
    assert!(unknown >= 3, "{unknown}");
    assert!(all.iter().any(|told| !told.failed.is_empty()));
}

/// F21, F43, B25: a write that finds no space, or ends short, at any step: the call says that nothing was appended, nothing
/// of it is found later, and the next call goes on.
#[test]
fn a_write_that_fails_or_ends_short_at_any_step_leaves_nothing() {
    for fault in [Fault::NoSpace, Fault::Short(1), Fault::Short(100)] {
        let all = try_every(
            1,
            |_| fault,
            |at| (at % 3 == 0).then_some(Survival::Nothing),
        );
        let failed = all.iter().filter(|told| !told.failed.is_empty()).count();
        assert!(failed > 0, "{fault:?} was met by a note");
    }
}

/// E26: what only helps may go between two grants: the next number is still greater.
#[test]
fn a_grant_is_above_every_earlier_one_whatever_is_deleted_in_between() {
    let ground = Ground::new();
    let mut newest = session(&ground.open(), "api").token().generation.number;
    for round in 0..12 {
        let store = ground.open();
        let verb = Verb::Adopt {
            name: name("api"),
            bearer: tenure_projection::call::Bearer::itself(),
            labels: Vec::new(),
        };
        let granted = store.execute(Call::new(verb).by_force("next").keyed(format!("k{round}")));
        let Answer::Granted(grant) = granted.expect("granted").answer else {
            panic!("no grant")
        };
        let number = grant.token.generation.number;
        assert!(number > newest, "{number} after {newest}");
        newest = number;
        if round % 3 == 0 {
            std::mem::forget(store);
        } else {
            drop(store);
        }
        let helps = ["control", "snapshots", "locks", "seals"];
        let gone = ground.dir.join(helps[round % helps.len()]);
        if gone.is_dir() {
            std::fs::remove_dir_all(gone).expect("removed");
        } else {
            std::fs::remove_file(gone).expect("removed");
        }
    }
    ground.assert_clean();
}
