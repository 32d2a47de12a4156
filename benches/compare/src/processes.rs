//! Several processes that write to one store, and single ones that are watched from outside.

use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tenure_benches::workload::Bodies;
use tenure_benches::{machine, reading};

use crate::drive::{SEATS_PER_THREAD, Served, crews, drive};
use crate::options::Options;
use crate::peers::{self, Peer};

/// The first argument of a process that this program starts of itself. Behind it: what it does, as JSON.
pub const WORKER: &str = "--worker";

/// A process of this program that says when it is ready, waits for a line, works, and says what it did.
pub struct Worker {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts one, below `wrapper` where there is one.
    pub fn start(wrapper: &[String], task: &Value) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = match wrapper.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        let mut child = command
            .args([WORKER, &task.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let gone = || io::Error::other("the process has no pipe");
        let ask = child.stdin.take().ok_or_else(gone)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        Ok(Self {
            child,
            ask,
            answers,
        })
    }

    /// The next thing that it says.
    pub fn answer(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|e| io::Error::other(format!("{line:?}: {e}")))
    }

    /// Lets it go on.
    pub fn go(&mut self) -> io::Result<()> {
        self.ask.write_all(b"go\n")
    }

    /// Waits for its end.
    pub fn end(mut self) -> io::Result<()> {
        drop(self.ask);
        let status = self.child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("a process ended with {status}")))
    }
}

/// So many processes with one thread each on one store.
pub fn run(peer: &dyn Peer, count: usize, options: &Options) -> io::Result<Served> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let crews = crews(count, SEATS_PER_THREAD, options.bodies);
    let place = peer.make(scratch.path(), &crews);
    let start = |n| {
        let task = json!({
            "do": "join",
            "peer": peer.name(),
            "dir": scratch.path(),
            "crew": n,
            "crews": count,
            "bodies": options.body_bytes(),
            "seconds": options.duration.as_secs_f64(),
        });
        Worker::start(&[], &task)
    };
    let mut workers = (0..count).map(start).collect::<io::Result<Vec<_>>>()?;
    for worker in &mut workers {
        worker.answer()?;
    }
    for worker in &mut workers {
        worker.go()?;
    }
    let mut all = Vec::with_capacity(count);
    for mut worker in workers {
        let answer = worker.answer()?;
        let served = Served::from_json(&answer);
        all.push(served.ok_or_else(|| io::Error::other(format!("not understood: {answer}")))?);
        worker.end()?;
    }
    let served = together(&all);
    served.stands_in(peer, place);
    Ok(served)
}

/// Latencies are those of the worst process.
fn together(all: &[Served]) -> Served {
    let worst = |of: fn(&Served) -> f64| all.iter().map(of).fold(0.0, f64::max);
    Served {
        appends: all.iter().map(|s| s.appends).sum(),
        refused: all.iter().map(|s| s.refused).sum(),
        least: all.iter().map(|s| s.appends).min().unwrap_or(0),
        best: all.iter().map(|s| s.appends).max().unwrap_or(0),
        seconds: worst(|s| s.seconds),
        p50_micros: worst(|s| s.p50_micros),
        p99_micros: worst(|s| s.p99_micros),
    }
}

/// Private memory of a process that opens a store, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// At its peak, above what it had before.
    pub peak_bytes: u64,
    /// With the state at hand, above what it had before.
    pub held_bytes: u64,
}

/// Looks at a process that opens a store and does nothing else.
pub fn memory_of_opening(dir: &Path) -> io::Result<Memory> {
    let mut worker = Worker::start(&[], &json!({ "do": "open", "dir": dir }))?;
    worker.answer()?;
    worker.go()?;
    let answer = worker.answer()?;
    worker.end()?;
    let bytes = |name: &str| {
        let bytes = answer[name].as_u64();
        bytes.ok_or_else(|| io::Error::other(format!("not understood: {answer}")))
    };
    Ok(Memory {
        peak_bytes: bytes("peak_bytes")?,
        held_bytes: bytes("held_bytes")?,
    })
}

/// What such a process does.
pub fn work(task: &str) -> io::Result<()> {
    let task: Value = serde_json::from_str(task)?;
    let dir = PathBuf::from(task["dir"].as_str().unwrap_or_default());
    match task["do"].as_str() {
        Some("open") => {
            wait()?;
            let before = machine::private_bytes()?;
            let open = || {
                let reader = reading::reader(&dir);
                let frames = reader.view(|state| state.at.position.0);
                (reader, frames.expect("the state is readable"))
            };
            let ((reader, frames), peak) = machine::peak_above(open)?;
            let held = machine::private_bytes()?.saturating_sub(before);
            drop(reader);
            println!(
                "{}",
                json!({ "frames": frames, "peak_bytes": peak, "held_bytes": held })
            );
            Ok(())
        }
        Some(how @ ("join" | "make")) => write(&task, &dir, how == "make"),
        _ => Err(io::Error::other(format!("no such task: {task}"))),
    }
}

fn wait() -> io::Result<()> {
    println!("{}", json!({ "ready": true }));
    io::stdin().read_line(&mut String::new()).map(drop)
}

/// Writes to a store: with one crew of those that share it, or with all of them as threads.
fn write(task: &Value, dir: &Path, make: bool) -> io::Result<()> {
    let number = |name: &str| task[name].as_u64().unwrap_or_default() as usize;
    let bodies = task["bodies"].as_u64().map(|bytes| bytes as usize);
    let bodies = bodies.map_or(Bodies::Mixed, Bodies::Of);
    let seconds = task["seconds"].as_f64().unwrap_or_default();
    let peers = peers::all();
    let peer = peers.iter().find(|peer| task["peer"] == peer.name());
    let peer = peer.ok_or_else(|| io::Error::other(format!("no such store: {task}")))?;
    let mut crews = crews(number("crews"), SEATS_PER_THREAD, bodies);
    let place = if make {
        Some(peer.make(dir, &crews))
    } else {
        crews = vec![crews.swap_remove(number("crew"))];
        peer.join(dir)
    };
    let place = place.ok_or_else(|| io::Error::other("only one process can have it open"))?;
    wait()?;
    let began = unix_seconds();
    let served = drive(&*place, crews, 1, Duration::from_secs_f64(seconds));
    let mut answer = served.to_json();
    answer["began"] = began.into();
    answer["ended"] = unix_seconds().into();
    println!("{answer}");
    Ok(())
}

fn unix_seconds() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
