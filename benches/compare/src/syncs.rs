//! How often each store asks the disk, counted by `strace` from outside.

use std::io;
use std::process::Command;

use serde_json::json;

use crate::drive::Served;
use crate::options::Options;
use crate::peers;
use crate::processes::Worker;

/// Threads that write while the calls are counted.
pub const THREADS: &[usize] = &[1, 16];

/// The calls that are counted.
pub const CALLS: [&str; 4] = ["fsync", "fdatasync", "sync_file_range", "msync"];

/// One store's calls.
#[derive(Clone, Debug)]
pub struct Syncs {
    /// The store's name.
    pub peer: &'static str,
    /// Threads that wrote.
    pub threads: usize,
    /// Appends acknowledged meanwhile.
    pub appends: u64,
    /// Calls of each of [`CALLS`].
    pub calls: [u64; 4],
}

impl Syncs {
    /// Calls of any kind per 1,000 acknowledgements.
    pub fn per_thousand(&self) -> f64 {
        let calls: u64 = self.calls.iter().sum();
        calls as f64 * 1e3 / self.appends.max(1) as f64
    }
}

/// Counts for every store; or says why it cannot.
pub fn measure(options: &Options) -> io::Result<Result<Vec<Syncs>, String>> {
    if let Err(error) = Command::new("strace").arg("-V").output() {
        return Ok(Err(format!("strace: {error}")));
    }
    let mut all = Vec::new();
    for peer in options.chosen(peers::all()) {
        for threads in THREADS {
            eprintln!("sync calls: {threads} threads, {}", peer.name());
            match count(peer.name(), *threads, options) {
                Ok(syncs) => all.push(syncs),
                Err(error) => eprintln!("{}: {error}", peer.name()),
            }
        }
    }
    Ok(Ok(all))
}

fn count(peer: &'static str, threads: usize, options: &Options) -> io::Result<Syncs> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let trace = scratch.path().join("trace");
    let wrapper = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-ttt",
        "-e",
        &format!("trace={}", CALLS.join(",")),
        "-o",
        &trace.to_string_lossy(),
    ]
    .map(str::to_owned);
    let dir = scratch.path().join("store");
    std::fs::create_dir(&dir)?;
    let task = json!({
        "do": "make",
        "peer": peer,
        "dir": dir,
        "crews": threads,
        "bodies": options.body_bytes(),
        "seconds": options.duration.as_secs_f64().min(1.0),
    });
    let mut worker = Worker::start(&wrapper, &task)?;
    worker.answer()?;
    worker.go()?;
    let answer = worker.answer()?;
    worker.end()?;
    let said = || io::Error::other(format!("not understood: {answer}"));
    let served = Served::from_json(&answer).ok_or_else(said)?;
    let began = answer["began"].as_f64().ok_or_else(said)?;
    let ended = answer["ended"].as_f64().ok_or_else(said)?;
    let trace = std::fs::read_to_string(trace)?;
    Ok(Syncs {
        peer,
        threads,
        appends: served.appends,
        calls: CALLS.map(|call| calls_between(&trace, call, began, ended)),
    })
}

/// Counts the calls that began between two times. A line is `PID SECONDS CALL(...`, and a call that was
/// interrupted by another thread's line has a second one, which begins with `<...`.
fn calls_between(trace: &str, call: &str, began: f64, ended: f64) -> u64 {
    let within = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        let time = words.next().and_then(|word| word.parse::<f64>().ok());
        let named = words.next().and_then(|word| word.split_once('('));
        time.is_some_and(|time| (began..=ended).contains(&time))
            && named.is_some_and(|(name, _)| name == call)
    };
    trace.lines().filter(within).count() as u64
}
