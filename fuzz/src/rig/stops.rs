//! A writer is stopped at a system call, its session is taken over meanwhile, and it goes on.
//!
//! What must hold: the takeover succeeds within its bounded wait, wherever the writer stopped; what the writer then
//! says was done stands before the takeover in the log, and else it is refused as stale or says that it does not know;
//! and the log is clean.

use std::error::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::scenario::{Ended, Kind, STORY, Stage};
use super::{Figures, Order, Outcome, side_by_side, trace};

/// Longest that a writer may take, stopped or not.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a writer is told to go on.
const TOLD_AGAIN: Duration = Duration::from_millis(200);

/// Runs the rig.
///
/// # Errors
/// When the story cannot be played without a stop, or a process cannot be started.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    if let Some(skipped) = trace::missing() {
        return Ok(skipped);
    }
    let stage = Stage::new(&order.program)?;
    let mut points = Vec::new();
    for (number, step) in STORY.iter().enumerate() {
        if step.kind == Kind::Held {
            stage.set_back(number)?;
            for (call, count) in trace::calls(&stage, step)? {
                points.extend((1..=count).map(|nth| (number, call.clone(), nth)));
            }
        }
    }
    let points = order.draw(points, 24, 160);
    let figures = side_by_side(&points, |mine| {
        let mut figures = Figures::default();
        if let Err(error) = part(&order.program, mine, &mut figures) {
            figures
                .violations
                .push(format!("a part of the run ended: {error}"));
        }
        figures
    })?;
    Ok(Outcome::Ran(figures))
}

/// A step of the story, a system call that it makes, and which of them it is.
type Point = (usize, String, u64);

fn part<'p>(
    program: &Path,
    points: impl Iterator<Item = &'p Point>,
    figures: &mut Figures,
) -> Result<(), Box<dyn Error>> {
    let stage = Stage::new(program)?;
    for (number, call, nth) in points {
        for broken in stop(&stage, *number, call, *nth, figures)? {
            let words = STORY[*number].words.join(" ");
            let line = format!("`{words}`, stopped at {call} {nth}: {broken}");
            figures.violations.push(line);
        }
    }
    Ok(())
}

fn stop(
    stage: &Stage,
    number: usize,
    call: &str,
    nth: u64,
    figures: &mut Figures,
) -> Result<Vec<String>, Box<dyn Error>> {
    stage.set_back(number)?;
    let runner = trace::tampered(call, "signal=SIGSTOP", &nth.to_string());
    let mut command = stage.below(&runner, &STORY[number]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (child, stopped) = until_stopped(child)?;
    let Some(writer) = stopped else {
        figures.count("ended before it was stopped", 1);
        let ended = Ended::of(child.wait_with_output()?);
        let is_whole = ended.code == Some(0);
        return Ok(if is_whole {
            Vec::new()
        } else {
            vec![format!("it ended with {}", ended.told())]
        });
    };
    figures.count("stops", 1);
    let mut broken = Vec::new();
    let takeover = stage.ask(&["adopt", "web", "--force", "--reason", "stopped"])?;
    if takeover.code != Some(0) {
        broken.push(format!("the takeover ended with {}", takeover.told()));
    }
    let ended = in_time(child, writer)?;
    match ended.code {
        Some(0) => {
            figures.count("done before the takeover", 1);
            let (done, taken) = (ended.position(), takeover.position());
            if done.is_none() || done >= taken {
                broken.push(format!("done at {done:?}, taken over at {taken:?}"));
            }
        }
        Some(10) => figures.count("refused as stale", 1),
        Some(13 | 75) => figures.count("did not know, or nothing happened", 1),
        _ => broken.push(format!("it ended with {}", ended.told())),
    }
    broken.extend(stage.found()?);
    Ok(broken)
}

/// Waits until what `strace` runs has stopped, which it stays; `None` when it ended before.
fn until_stopped(mut child: Child) -> io::Result<(Child, Option<Pid>)> {
    let begun = Instant::now();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let mut seen_stopped = 0;
    while begun.elapsed() < PATIENCE {
        if child.try_wait()?.is_some() {
            return Ok((child, None));
        }
        let listed = fs::read_to_string(&children).unwrap_or_default();
        let writer = listed
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok());
        if let Some(pid) = writer.and_then(Pid::from_raw) {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let stat = stat.unwrap_or_default();
            let state = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.bytes().next());
            // A tracer stops it at every call that it looks at, for a moment.
            seen_stopped = if matches!(state, Some(b'T' | b't')) {
                seen_stopped + 1
            } else {
                0
            };
            if seen_stopped == 8 {
                return Ok((child, Some(pid)));
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(io::Error::other("a writer neither stopped nor ended"))
}

/// Lets a writer go on, and waits for its end. It is told more than once: a signal that comes while the tracer learns of
/// the stop is lost now and then.
fn in_time(mut child: Child, writer: Pid) -> io::Result<Ended> {
    let begun = Instant::now();
    let mut told = None;
    while child.try_wait()?.is_none() {
        if told.is_none_or(|told: Instant| told.elapsed() > TOLD_AGAIN) {
            // It may have been killed by what it met.
            let _ = kill_process(writer, Signal::CONT);
            told = Some(Instant::now());
        }
        if begun.elapsed() > PATIENCE {
            let _ = kill_process(writer, Signal::KILL);
            child.kill()?;
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(Ended::of(child.wait_with_output()?))
}
