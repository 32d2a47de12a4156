//! Every system call of every command of the story: it fails, is interrupted, is where the process dies; and every
//! byte at which a write of a frame may end short; and every sync of frames, which fails.
//!
//! What must hold, whatever happened: the process ends with a documented exit code or by the signal it got; an answer
//! is the one that the command has without a fault, and none is given by a sync that failed; what was answered is in the log, once; the same command under the
//! same key then ends as it should; and the log is clean.

use std::error::Error;
use std::path::Path;
use std::thread;

use super::scenario::{Ended, Kind, STORY, Stage};
use super::{Figures, Order, Outcome, trace};

/// What is done to a system call: a name for the page, `strace`'s word for it, and whether to every later one too.
const FAULTS: &[(&str, &str, bool)] = &[
    ("killed", "signal=SIGKILL", false),
    ("EIO", "error=EIO", false),
    ("EIO from then on", "error=EIO", true),
    ("ENOSPC", "error=ENOSPC", false),
    ("ENOSPC from then on", "error=ENOSPC", true),
    // From then on would be a kernel that never comes to an end.
    ("EINTR", "error=EINTR", false),
];

/// Name of the fault in which a write ends at the limit of a file's size.
const SHORT: &str = "short write";

/// Name of the fault in which the frames that the command wrote are not synced, and it is told so.
const UNSYNCED: &str = "failed sync of the frames";

/// Exit codes that say that a command did not come to an answer (`docs/cli.md`).
const NO_ANSWER: &[i32] = &[13, 65, 66, 69, 73, 74, 75, 77, 78];

/// What starts the process of a step.
#[derive(Clone, Debug)]
enum Runner {
    /// These words before it.
    Words(Vec<String>),
    /// What lets a sync of frames fail, one of those that the step makes; and every later sync too.
    Unsynced(usize, bool),
}

impl Runner {
    /// The words; none where the step makes no such call. The store stands before the step, and does so again.
    fn words(&self, stage: &Stage, number: usize) -> std::io::Result<Option<Vec<String>>> {
        let (index, onwards) = match self {
            Self::Words(words) => return Ok(Some(words.clone())),
            Self::Unsynced(index, onwards) => (*index, *onwards),
        };
        // Where a file of the store was made anew when it was set back, a step begins a segment, and syncs more.
        let syncs = trace::syncs(stage, &STORY[number])?;
        stage.set_back(number)?;
        let more = if onwards { "+" } else { "" };
        let when = syncs.get(index).map(|nth| format!("{nth}{more}"));
        Ok(when.map(|when| timed(trace::tampered(trace::SYNC, "error=EIO", &when))))
    }
}

/// One thing to try.
#[derive(Clone, Debug)]
struct Point {
    step: usize,
    fault: &'static str,
    runner: Runner,
    /// What is done where, for a person.
    told: String,
}

/// Runs the rig.
///
/// # Errors
/// When the story cannot be played without a fault, or a process cannot be started.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    if let Some(skipped) = trace::missing() {
        return Ok(skipped);
    }
    let stage = Stage::new(&order.program)?;
    let mut points = order.draw(all(&stage)?, 40, 800);
    let mut figures = Figures::default();
    points.extend(syncs(&stage, &mut figures)?);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let parts = thread::scope(|scope| {
        let started: Vec<_> = (0..workers)
            .map(|worker| {
                let mine: Vec<&Point> = points.iter().skip(worker).step_by(workers).collect();
                scope.spawn(move || part(&order.program, &mine).map_err(|error| error.to_string()))
            })
            .collect();
        let ended = started.into_iter().map(|part| part.join());
        ended.collect::<Vec<_>>()
    });
    for part in parts {
        figures.join(part.map_err(|_| "a part of the run panicked")??);
    }
    Ok(Outcome::Ran(figures))
}

fn part(program: &Path, points: &[&Point]) -> Result<Figures, Box<dyn Error>> {
    let mut figures = Figures::default();
    let stage = Stage::new(program)?;
    for point in points {
        stage.set_back(point.step)?;
        let step = &STORY[point.step];
        let Some(words) = point.runner.words(&stage, point.step)? else {
            continue;
        };
        figures.count("fault points", 1);
        figures.count(point.fault, 1);
        let ended = Stage::run(&mut stage.below(&words, step))?;
        let came = match ended.code {
            _ if ended.runtime_gave_up() => "runtime gave up",
            Some(code) if code == step.exit => "answered",
            Some(_) => "no answer",
            None => "died",
        };
        figures.count(came, 1);
        for broken in judge(&stage, point, &ended)? {
            let (words, place) = (step.words.join(" "), &point.told);
            figures
                .violations
                .push(format!("`{words}`, {place}: {broken}"));
        }
    }
    Ok(figures)
}

/// What does not hold after a fault.
fn judge(stage: &Stage, point: &Point, ended: &Ended) -> Result<Vec<String>, Box<dyn Error>> {
    let step = &STORY[point.step];
    let mut broken = Vec::new();
    let forensic = matches!(step.words[0], "verify" | "audit");
    let is_truth = match ended.code {
        Some(code) if code == step.exit => true,
        // A fault may be what there is to find.
        Some(1 | 3) => forensic,
        Some(code) => NO_ANSWER.contains(&code),
        None => !ended.err.contains("panicked"),
    };
    if !is_truth && !ended.runtime_gave_up() {
        broken.push(format!("it ended with {}", ended.told()));
    }
    if point.fault == UNSYNCED && ended.code == Some(0) {
        broken.push("it is done, and what it wrote could not be synced".to_owned());
    }
    let again = Stage::run(&mut stage.command(step))?;
    if again.code != Some(step.exit) {
        broken.push(format!("repeated it ended with {}", again.told()));
    }
    let acknowledged = ended.code == Some(0) && step.kind != Kind::Free;
    let (first, second) = (ended.receipt(), again.receipt());
    if acknowledged && (first.is_none() || first != second) {
        broken.push(format!(
            "acknowledged as {first:?}, and repeated as {second:?}"
        ));
    }
    broken.extend(stage.found()?);
    Ok(broken)
}

/// Everything there is to try.
fn all(stage: &Stage) -> Result<Vec<Point>, Box<dyn Error>> {
    let mut points = Vec::new();
    for (number, step) in STORY.iter().enumerate() {
        stage.set_back(number)?;
        for (call, count) in trace::calls(stage, step)? {
            for nth in 1..=count {
                for (fault, how, onwards) in FAULTS {
                    let when = if *onwards {
                        format!("{nth}+")
                    } else {
                        nth.to_string()
                    };
                    let runner = trace::tampered(&call, how, &when);
                    points.push(Point {
                        step: number,
                        fault,
                        // A process that was to die does; any other has a minute.
                        runner: Runner::Words(if *fault == "killed" {
                            runner
                        } else {
                            timed(runner)
                        }),
                        told: format!("{fault} at {call} {nth}"),
                    });
                }
            }
        }
        let written = stage.written(number).unwrap_or(0..0);
        for end in written.filter(|_| step.kind != Kind::Free) {
            let limit = format!("--fsize={end}:{end}");
            let words = ["env", "--ignore-signal=XFSZ", "prlimit", &limit];
            points.push(Point {
                step: number,
                fault: SHORT,
                runner: Runner::Words(timed(words.map(str::to_owned).to_vec())),
                told: format!("{SHORT} at byte {end} of the segment"),
            });
        }
    }
    Ok(points)
}

/// Every sync of frames by a command that has an answer: it fails, once and from then on. A command that syncs nothing
/// answers too early.
fn syncs(stage: &Stage, figures: &mut Figures) -> Result<Vec<Point>, Box<dyn Error>> {
    let mut points = Vec::new();
    for (number, step) in STORY.iter().enumerate() {
        if step.kind == Kind::Free {
            continue;
        }
        stage.set_back(number)?;
        let count = trace::syncs(stage, step)?.len();
        if count == 0 {
            let words = step.words.join(" ");
            let line = format!("`{words}` is answered, and nothing that it wrote is synced");
            figures.violations.push(line);
        }
        for index in 0..count {
            for onwards in [false, true] {
                let (number_of, more) =
                    (index + 1, if onwards { " and all later ones" } else { "" });
                points.push(Point {
                    step: number,
                    fault: UNSYNCED,
                    runner: Runner::Unsynced(index, onwards),
                    told: format!("{UNSYNCED}, sync {number_of}{more}"),
                });
            }
        }
    }
    Ok(points)
}

fn timed(runner: Vec<String>) -> Vec<String> {
    let limit = ["timeout", "-s", "KILL", "60"].map(str::to_owned);
    limit.into_iter().chain(runner).collect()
}
