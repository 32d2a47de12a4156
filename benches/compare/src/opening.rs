//! Opening a store and asking it something, in this process and as a process of its own; and branches.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use tenure_benches::figures::Figures;
use tenure_benches::workload::{Act, Bodies, Crew, Random, SEED};
use tenure_benches::{ours, reading};
use tenure_core::id::{Name, Position};
use tenure_log::journal::memory::MemoryLog;
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::session::Session;
use tenure_projection::store::{RULES, Store};

use crate::options::Options;
use crate::processes::memory_of_opening;

/// Steps behind the snapshot of the store that is opened.
pub const TAIL: usize = 1_000;
/// How often each is done.
const TIMES: usize = 21;
/// Questions of one measurement.
const QUESTIONS: u64 = 20;
/// Branches of one measurement.
const BRANCHES: u64 = 50;

/// What was measured; microseconds unless it says otherwise.
pub struct Opening {
    /// Frames of the store.
    pub frames: u64,
    /// From nothing to the state at the head.
    pub open: Figures,
    /// The same, and the generation of one session.
    pub check: Figures,
    /// One question about a place in the log, after opening and once the index was touched.
    pub who: Figures,
    /// The first such question.
    pub who_first: Figures,
    /// `tenure check`, and `tenure --version`; or why not.
    pub processes: Result<(Figures, Figures), String>,
    /// A branch of a session with 10 records, decided and folded on a log in memory.
    pub branch_short: Figures,
    /// The same with 100,000 records.
    pub branch_long: Figures,
    /// Bytes of snapshots and what stands beside them.
    pub snapshot_bytes: u64,
    /// Private memory that a session costs in a process that has opened the store from its snapshot.
    pub session_bytes: f64,
}

/// Sessions of the stores whose memory is compared.
const FEW: usize = 1_000;
/// As above.
const MANY: usize = 100_000;

/// Measures the store in `dir`, whose sessions are those of `crew`.
pub fn measure(options: &Options, dir: &Path, crew: &Crew) -> io::Result<Opening> {
    eprintln!("opening");
    let seat = &crew.seats[crew.seats.len() / 2];
    let frames = reading::open(dir);
    let open = times(|| reading::open(dir));
    let check = times(|| reading::check(dir, &seat.name, seat.generation));
    let mut random = Random::new(SEED);
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let reader = reading::reader(dir);
        let session = reading::session(&reader, &seat.name);
        let mut ask = || {
            let at = Position(1 + random.draw() % frames);
            micros(|| reading::was_held(&reader, session, at))
        };
        first.push(ask());
        let all: f64 = (0..QUESTIONS).map(|_| ask()).sum();
        later.push(all / QUESTIONS as f64);
    }
    eprintln!("branches");
    let branch = |records| branches(records, &mut Random::new(SEED));
    Ok(Opening {
        frames,
        open,
        check,
        who: Figures::new(later),
        who_first: Figures::new(first),
        processes: processes(options, dir, &format!("{}@{}", seat.name, seat.generation)),
        branch_short: branch(10),
        branch_long: branch(100_000),
        snapshot_bytes: reading::bytes_in(&dir.join("store/snapshots")),
        session_bytes: session_bytes(options)?,
    })
}

fn micros<R>(work: impl FnOnce() -> R) -> f64 {
    let began = Instant::now();
    std::hint::black_box(work());
    began.elapsed().as_secs_f64() * 1e6
}

fn times<R>(mut work: impl FnMut() -> R) -> Figures {
    Figures::new((0..TIMES).map(|_| micros(&mut work)).collect())
}

/// The program beside this one, or where `cargo build --release` puts it.
fn program(options: &Options) -> Option<PathBuf> {
    options.tenure.clone().or_else(|| {
        let own = std::env::current_exe().ok()?;
        Some(own.with_file_name("tenure")).filter(|path| path.exists())
    })
}

fn processes(options: &Options, dir: &Path, token: &str) -> Result<(Figures, Figures), String> {
    let program = program(options).ok_or("no program: name it with --tenure")?;
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command
            .args(arguments)
            .env("TENURE_STORE", dir.join("store"))
            .env("XDG_STATE_HOME", dir.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let began = Instant::now();
        let status = command.status();
        let took = began.elapsed().as_secs_f64() * 1e6;
        match status {
            Ok(status) if status.success() => Ok(took),
            Ok(status) => Err(format!("{arguments:?} ended with {status}")),
            Err(error) => Err(format!("{}: {error}", program.display())),
        }
    };
    let (mut check, mut version) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        check.push(run(&["check", token])?);
        version.push(run(&["--version"])?);
    }
    Ok((Figures::new(check), Figures::new(version)))
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("made of name characters")
}

/// What a branch of a session with so many records costs, on a log in memory: no disk is in it.
fn branches(records: usize, random: &mut Random) -> Figures {
    let log = MemoryLog::new(RULES);
    let store = Store::over(Arc::new(log), ours::host(&std::env::temp_dir()));
    let store = store.expect("an empty log opens");
    let session = Session::register(&store, &name("source")).expect("the name is free");
    for _ in 0..records {
        let bytes = Bodies::Mixed.bytes(Act::Record, random.draw());
        let record = Verb::Record {
            kind: "turn".into(),
            body: random.text(bytes),
            expect: None,
            opens: None,
            closes: None,
        };
        session.call(record).expect("it is recorded");
    }
    let mut made = 0;
    let mut branch = || {
        made += 1;
        let call = Call::new(Verb::Branch {
            source: name("source"),
            name: name(&format!("branch{made}")),
            at: None,
            bearer: Bearer::itself(),
            labels: Vec::new(),
            checkout: None,
            in_tree: false,
        });
        micros(|| store.execute(call).expect("the name is free"))
    };
    let round = |_| (0..BRANCHES).map(|_| branch()).sum::<f64>() / BRANCHES as f64;
    Figures::new((0..TIMES).map(round).collect())
}

/// What each of many sessions takes beyond what the first few do.
fn session_bytes(options: &Options) -> io::Result<f64> {
    eprintln!("memory of sessions");
    let held = |sessions| {
        let scratch = tempfile::tempdir_in(&options.dir)?;
        let crew = Crew::new(SEED, 0, sessions);
        let store = ours::open(scratch.path());
        ours::register(&store, &crew);
        store.snapshot().expect("the snapshot is written");
        drop(store);
        // Names stay in the snapshot until they are asked for, so that there are none to be taken off.
        let memory = memory_of_opening(scratch.path())?;
        io::Result::Ok(memory.held_bytes as f64)
    };
    Ok((held(MANY)? - held(FEW)?) / (MANY - FEW) as f64)
}
