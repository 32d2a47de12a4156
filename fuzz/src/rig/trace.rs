//! System calls of a process, listed and tampered with by `strace`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::Outcome;
use super::scenario::{Stage, Step};

/// What starts and ends a process, and what the kernel never refuses: an answer that cannot be is no fault.
const NOT_TRIED: &[&str] = &[
    "execve",
    "exit",
    "exit_group",
    "rt_sigreturn",
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "set_tid_address",
    "arch_prctl",
    "uname",
    "getrandom",
];

/// The system call that makes frames durable.
pub const SYNC: &str = "fdatasync";

/// Why nothing can be tried, where `strace` is not there or may not trace.
#[must_use]
pub fn missing() -> Option<Outcome> {
    let tried = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    let works = tried.is_ok_and(|out| out.status.success());
    let why = "strace is not there or may not trace";
    (!works).then(|| Outcome::Skipped(why.into()))
}

/// How often a step makes each system call, as a run without fault does. What cannot fail is left out.
///
/// # Errors
/// When the step cannot be run.
pub fn calls(stage: &Stage, step: &Step) -> io::Result<BTreeMap<String, u64>> {
    let list = stage.beside("calls");
    let runner = ["strace", "-f", "-qq", "-o", &list.display().to_string()].map(str::to_owned);
    Stage::run(&mut stage.below(&runner, step))?;
    listed(&list)
}

fn listed(list: &Path) -> io::Result<BTreeMap<String, u64>> {
    let mut calls = BTreeMap::new();
    for line in fs::read_to_string(list)?.lines() {
        // `PID NAME(...`; what goes on in another line begins with `<`.
        let call = line.split_once(' ').map(|(_, call)| call.trim_start());
        let Some((name, _)) = call.and_then(|call| call.split_once('(')) else {
            continue;
        };
        let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_name && !NOT_TRIED.contains(&name) {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
    }
    Ok(calls)
}

/// Which of a step's calls of [`SYNC`] are of a segment's frames, by their numbers from one.
///
/// # Errors
/// When the step cannot be run.
pub fn syncs(stage: &Stage, step: &Step) -> io::Result<Vec<u64>> {
    let list = stage.beside("syncs");
    let (out, trace) = (list.display().to_string(), format!("trace={SYNC}"));
    let words = ["strace", "-f", "-qq", "-y", "-o", &out, "-e", &trace];
    Stage::run(&mut stage.below(&words.map(str::to_owned), step))?;
    let text = fs::read_to_string(&list)?;
    let calls = text.lines().filter(|line| line.contains(SYNC)).zip(1..);
    let of_segments = calls.filter(|(line, _)| line.contains(".seg>"));
    Ok(of_segments.map(|(_, number)| number).collect())
}

/// What starts a process in which the system call `name` is tampered with.
#[must_use]
pub fn tampered(name: &str, how: &str, when: &str) -> Vec<String> {
    let inject = format!("inject={name}:{how}:when={when}");
    let trace = format!("trace={name}");
    let words = [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        &trace,
        "-e",
        &inject,
    ];
    words.map(str::to_owned).to_vec()
}
