//! What one store costs.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use tenure_benches::figures::Figures;
use tenure_benches::workload::{Crew, Random, SEED};
use tenure_benches::{ours, reading};
use tenure_core::id::{Name, Position};
use tenure_projection::call::{Bearer, Call, Verb};
use tenure_projection::store::Store;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    /// One durable event.
    Append,
    /// One event of a batch of 100.
    Batched,
    /// A branch of one of the sessions, durable.
    Branch,
    /// From nothing to the state at the head.
    Open,
    /// That, and whether a token is current.
    Check,
    /// The same as a process.
    CheckProcess,
    /// Who held a session at a place.
    Who,
    /// From the first frame to the state at the head.
    Replay,
    /// All that `verify` checks.
    Verify,
    /// Everything below `snapshots`.
    Kept,
    /// Private memory of a replay at its peak.
    Memory,
}

/// One store.
#[derive(Clone, Debug)]
pub struct Point {
    /// How many events or sessions.
    pub at: usize,
    /// Frames of its log.
    pub frames: u64,
    /// Each thing in its own unit; what was not measured is not there.
    pub seen: Vec<(Thing, f64)>,
}

/// How often short things are done.
const TIMES: usize = 15;
/// How often the whole log is read, and how often if it has more frames than [`MANY`].
const READS: (usize, usize) = (3, 1);
const MANY: u64 = 20_000_000;
/// Events that are appended one by one.
const APPENDS: usize = 300;
/// Events of a batch.
const TOGETHER: usize = 100;
/// Steps behind the snapshot that is opened.
const TAIL: usize = 1_000;

fn seconds<R>(work: impl FnOnce() -> R) -> f64 {
    let began = Instant::now();
    std::hint::black_box(work());
    began.elapsed().as_secs_f64()
}

fn median(times: usize, mut work: impl FnMut() -> f64) -> f64 {
    Figures::new((0..times).map(|_| work()).collect()).median()
}

/// Measures a store that has been filled. Says too how many steps that took.
pub fn point(
    store: Store,
    dir: &Path,
    crew: &mut Crew,
    tenure: Option<&Path>,
) -> io::Result<(Point, usize)> {
    let mut seen = Vec::new();
    let together = crew.seats.len().min(TOGETHER);
    let batched = median(TIMES, || seconds(|| ours::fill(&store, crew, together)));
    seen.push((Thing::Batched, batched / together as f64 * 1e6));
    let append = median(APPENDS, || seconds(|| ours::play(&store, crew)));
    seen.push((Thing::Append, append * 1e6));
    // The log has grown since the last time, so that no name is used twice.
    let head = store.head().expect("the log is readable").position.0;
    let mut made = 0;
    let mut branched = || {
        made += 1;
        let call = branch(crew, &format!("branch{head}/{made}"));
        seconds(|| store.execute(call).expect("the name is free"))
    };
    seen.push((Thing::Branch, median(TIMES, &mut branched) * 1e6));
    store.snapshot().expect("the snapshot is written");
    ours::fill(&store, crew, TAIL);
    drop(store);
    let frames = reads(dir, crew, tenure, &mut seen)?;
    let steps = TIMES * together + APPENDS + TAIL;
    let point = Point {
        at: 0,
        frames,
        seen,
    };
    Ok((point, steps))
}

fn branch(crew: &Crew, dest: &str) -> Call {
    Call::new(Verb::Branch {
        source: crew.seats[0].name.clone(),
        name: Name::parse(dest).expect("made of name characters"),
        at: None,
        bearer: Bearer::itself(),
        labels: Vec::new(),
        checkout: None,
        in_tree: false,
    })
}

/// What reading costs, and how many frames there are.
fn reads(
    dir: &Path,
    crew: &Crew,
    tenure: Option<&Path>,
    seen: &mut Vec<(Thing, f64)>,
) -> io::Result<u64> {
    let seat = &crew.seats[crew.seats.len() / 2];
    let frames = reading::open(dir);
    let micros = |work: &mut dyn FnMut()| median(TIMES, || seconds(&mut *work)) * 1e6;
    let open = micros(&mut || assert_eq!(reading::open(dir), frames));
    let check = micros(&mut || assert!(reading::check(dir, &seat.name, seat.generation)));
    seen.extend([(Thing::Open, open), (Thing::Check, check)]);
    if let Some(program) = tenure {
        let token = format!("{}@{}", seat.name, seat.generation);
        let mut command = Command::new(program);
        command
            .args(["check", &token])
            .env("TENURE_STORE", dir.join("store"))
            .env("XDG_STATE_HOME", dir.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = micros(&mut || {
            let status = command.status().expect("the program starts");
            assert!(status.success(), "check ended with {status}");
        });
        seen.push((Thing::CheckProcess, process));
    }
    let reader = reading::reader(dir);
    let session = reading::session(&reader, &seat.name);
    let mut random = Random::new(SEED);
    let who = micros(&mut || {
        let at = Position(1 + random.draw() % frames);
        std::hint::black_box(reading::was_held(&reader, session, at));
    });
    drop(reader);
    seen.push((Thing::Who, who));
    let reads = if frames > MANY { READS.1 } else { READS.0 };
    let verify = median(reads, || seconds(|| reading::verified(dir)));
    seen.push((Thing::Verify, verify));
    let kept = reading::bytes_in(&dir.join("store/snapshots"));
    seen.push((Thing::Kept, kept as f64 / f64::from(1 << 20)));
    let aside = reading::Aside::put(dir)?;
    let replay = median(reads, || seconds(|| reading::open(dir)));
    seen.push((Thing::Replay, replay));
    seen.push((Thing::Memory, peak(dir)? / f64::from(1 << 20)));
    aside.put_back()?;
    Ok(frames)
}

/// Bytes of private memory at the peak of a replay in another process.
fn peak(dir: &Path) -> io::Result<f64> {
    let output = Command::new(std::env::current_exe()?)
        .arg(crate::PEAK)
        .arg(dir)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let bytes = text.trim().parse::<f64>();
    bytes.map_err(|error| io::Error::other(format!("{text:?}: {error}")))
}
