//! The zoo: each of forty-one known bugs is planted in a build of its own kind, and what should see it has to.
//!
//! The build is under `--cfg tenure_zoo`, which nothing else sets and which does not compile without debug assertions; in
//! it the environment names one bug. First everything has to succeed without one.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::{Figures, Order, Outcome, Tier};

mod bugs;

pub use bugs::{BUGS, Bug, Guard};

/// The environment variable that names the planted bug.
const PLANTED: &str = "PLANTED_BUG";
/// Longest that one guard may take, with or without a bug.
const PATIENCE: Duration = Duration::from_secs(240);
/// What is built: every crate's tests, and the two programs.
const PACKAGES: &[&str] = &[
    "tenure-core",
    "tenure-log",
    "tenure-projection",
    "tenure",
    "tenure-fuzz",
];

/// With these, the environment can name a bug.
const FLAGS: &str = "--cfg tenure_zoo";
/// The package whose threads a scheduler plays.
const PLAYED: &str = "projection";

/// The programs of the builds: tests by room and place, those of threads that are played, and others by name.
struct Built {
    tests: BTreeMap<(String, bool), PathBuf>,
    programs: BTreeMap<String, PathBuf>,
    played: Option<PathBuf>,
}

/// How a guard ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Held,
    Failed,
    /// It was ended because it took too long.
    Late,
}

/// Runs the rig.
///
/// # Errors
/// When the build fails or a program cannot be started.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    if order.tier == Tier::Sample {
        let why = "it needs a build of its own, which takes minutes: from tier 1 on";
        return Ok(Outcome::Skipped(why.into()));
    }
    let built = build(order)?;
    let all: BTreeSet<Guard> = BUGS.iter().flat_map(|bug| bug.guards).copied().collect();
    let control: Vec<(Option<&Bug>, Guard)> = all.into_iter().map(|guard| (None, guard)).collect();
    let planted = BUGS
        .iter()
        .flat_map(|bug| bug.guards.iter().map(move |guard| (Some(bug), *guard)));
    let mut figures = Figures::default();
    for (_, guard, ended, took) in run_all(order, &built, &control)? {
        figures.count("guards that hold without a bug", 1);
        if ended != Ended::Held {
            let took = took.as_secs();
            let line = format!("without a bug {} {ended:?} after {took} s", told(guard));
            figures.violations.push(line);
        }
    }
    let mut missed: BTreeSet<&str> = BTreeSet::new();
    let mut slowest = Duration::ZERO;
    for (bug, guard, ended, took) in run_all(order, &built, &planted.collect::<Vec<_>>())? {
        let name = bug.map_or("", |bug| bug.name);
        let by = match guard {
            Guard::Tests { room, .. } => format!("caught by tests of {room}"),
            Guard::Rig(rig) => format!("caught by {rig}"),
            Guard::Played(_) => "caught by threads that are played".to_owned(),
        };
        if ended == Ended::Held {
            missed.insert(name);
            figures
                .violations
                .push(format!("{} did not see {name}", told(guard)));
        } else {
            figures.count(&by, 1);
            slowest = slowest.max(took);
        }
    }
    figures.count("bugs planted", BUGS.len() as u64);
    figures.count("bugs caught", (BUGS.len() - missed.len()) as u64);
    figures.count("seconds at most until one was caught", slowest.as_secs());
    Ok(Outcome::Ran(figures))
}

/// A guard as a person runs it.
#[must_use]
pub fn told(guard: Guard) -> String {
    match guard {
        Guard::Tests { room, unit, names } => {
            let place = if unit { "--lib" } else { "--test it" };
            format!("`-p {} {place} -- {names}`", package_in(room))
        }
        Guard::Rig(name) => format!("`--rig {name}`"),
        Guard::Played(names) => {
            let package = package_in(PLAYED);
            format!("`-p {package} --test it -- {names}` under `--cfg tenure_shuttle`")
        }
    }
}

fn package_in(room: &str) -> &'static str {
    match room {
        "core" => "tenure-core",
        "log" => "tenure-log",
        "projection" => "tenure-projection",
        "cli" => "tenure",
        _ => "tenure-fuzz",
    }
}

/// What a build made: whether it is of tests, of which kind it is, its name, the package's directory, and the program.
type Made = (bool, String, String, String, PathBuf);

/// Builds tests under more flags, in a directory of its own beside what is there.
fn make(
    order: &Order,
    place: &str,
    flags: &str,
    what: &[&str],
) -> Result<Vec<Made>, Box<dyn Error>> {
    let dir = order.itself.ancestors().nth(2).ok_or("no directory")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["test", "--no-run", "--quiet", "--message-format=json"])
        .args(what)
        .arg("--target-dir")
        .arg(dir.join(place))
        .current_dir(house())
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // Backtraces are not read, and cost half of the build.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_DEBUG", "0")
        .stderr(Stdio::inherit());
    let out = cargo.output()?;
    if !out.status.success() {
        return Err("the build with planted bugs fails".into());
    }
    let messages = out.stdout.split(|byte| *byte == b'\n');
    let messages = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let made = messages.filter_map(|message| {
        let program = message["executable"].as_str().map(PathBuf::from)?;
        let target = &message["target"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let manifest = text(&message["manifest_path"]);
        let room = Path::new(&manifest).parent().and_then(Path::file_name);
        let room = room.unwrap_or_default().to_string_lossy().into_owned();
        let is_test = message["profile"]["test"] == true;
        let (kind, name) = (text(&target["kind"][0]), text(&target["name"]));
        Some((is_test, kind, name, room, program))
    });
    Ok(made.collect())
}

fn build(order: &Order) -> Result<Built, Box<dyn Error>> {
    let mut built = Built {
        tests: BTreeMap::new(),
        programs: BTreeMap::new(),
        played: None,
    };
    let packages: Vec<&str> = PACKAGES
        .iter()
        .flat_map(|package| ["-p", package])
        .collect();
    for (is_test, kind, name, room, program) in make(order, "zoo", FLAGS, &packages)? {
        match (is_test, kind.as_str()) {
            (true, "lib") => built.tests.insert((room, true), program),
            (true, "test") => built.tests.insert((room, false), program),
            (false, "bin") => built.programs.insert(name, program),
            _ => None,
        };
    }
    let flags = format!("{FLAGS} --cfg tenure_shuttle");
    let what = ["-p", package_in(PLAYED), "--test", "it"];
    let played = make(order, "shuttle", &flags, &what)?;
    built.played = played
        .into_iter()
        .find(|(is_test, ..)| *is_test)
        .map(|(.., program)| program);
    Ok(built)
}

fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

type Run<'b> = (Option<&'b Bug>, Guard, Ended, Duration);

/// Runs guards, each with its bug, as many at a time as the machine has cores.
fn run_all<'b>(
    order: &Order,
    built: &Built,
    runs: &[(Option<&'b Bug>, Guard)],
) -> Result<Vec<Run<'b>>, Box<dyn Error>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let work = || -> Result<(), String> {
        while let Some((bug, guard)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let ended = run_one(order, built, *bug, *guard).map_err(|e| e.to_string())?;
            let mut done = done.lock().map_err(|e| e.to_string())?;
            done.push((*bug, *guard, ended, begun.elapsed()));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut ended = started.into_iter().map(|worker| worker.join());
        ended.try_for_each(|worker| worker.map_err(|_| "a worker panicked".to_owned())?)
    })?;
    done.into_inner().map_err(|error| error.to_string().into())
}

fn run_one(
    order: &Order,
    built: &Built,
    bug: Option<&Bug>,
    guard: Guard,
) -> Result<Ended, Box<dyn Error>> {
    let room = tempfile::tempdir()?;
    let mut command = match guard {
        Guard::Tests { room, unit, names } => {
            let tests = built.tests.get(&(room.to_owned(), unit));
            let mut command = Command::new(tests.ok_or_else(|| format!("no tests of {room}"))?);
            command.arg(names).current_dir(house().join(room));
            command
        }
        Guard::Played(names) => {
            let tests = built.played.as_ref().ok_or("no tests of threads")?;
            let mut command = Command::new(tests);
            command.arg(names).current_dir(house().join(PLAYED));
            command
        }
        Guard::Rig(rig) => {
            let program = |name: &str| {
                let program = built.programs.get(name);
                program.ok_or_else(|| format!("the build made no {name}"))
            };
            let mut command = Command::new(program("tenure-fuzz")?);
            command
                .args(["--tier", "0", "--rig", rig, "--seed"])
                .arg(order.seed.to_string())
                .arg("--program")
                .arg(program("tenure")?);
            command
        }
    };
    let said = room.path().join("said");
    command
        .env_remove(PLANTED)
        .envs(bug.map(|bug| (PLANTED, bug.name)))
        .env("RUST_BACKTRACE", "0")
        // What a planted bug shows is no regression to be kept.
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        .env("TMPDIR", room.path())
        .stdin(Stdio::null())
        .stdout(File::create(&said)?)
        .stderr(Stdio::null())
        .process_group(0);
    let ended = in_time(&mut command)?;
    // A filter that nothing matches would hold for ever.
    let text = String::from_utf8_lossy(&std::fs::read(&said)?).into_owned();
    if text.contains("running 0 tests") {
        return Err(format!("there is no test {}", told(guard)).into());
    }
    Ok(ended)
}

fn in_time(command: &mut Command) -> Result<Ended, Box<dyn Error>> {
    let (mut child, begun) = (command.spawn()?, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() {
                Ended::Held
            } else {
                Ended::Failed
            });
        }
        if begun.elapsed() > PATIENCE {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // Its children too; they may have ended.
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(Ended::Late);
        }
        thread::sleep(Duration::from_millis(20));
    }
}
