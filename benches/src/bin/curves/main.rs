//! `curves`: how the cost of each thing grows with the events of a log and with its sessions, beside what
//! `docs/performance.md` predicts.

mod measure;
mod table;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tenure_benches::workload::{Bodies, Crew, SEED};
use tenure_benches::{ended, machine, options, ours, page, reading};

use measure::Point;
use table::Axis;

const USAGE: &str = "\
curves [OPTION VALUE]...

  --events N      the most events, from 10^4 by decades (default 1000000)
  --sessions N    the most sessions, from 10 by decades (default 100000)
  --steps N       steps of each log that grows in sessions (default 100000)
  --bodies N      texts of N bytes each (default: as long as people and programs write them)
  --dir DIR       where the stores are made and removed (default: the directory for temporary files)
  --tenure FILE   the program whose `check` is measured (default: it is left out)
  --markdown FILE puts the tables into a page, between its two marks

10^7 events take 4 GB of disk and 3 minutes on an idle machine of two cores, 10^8 some 45 GB and 40 minutes. With
`--bodies 40` 10^8 take 38 GB, of which 3 are below $TMPDIR while a replay is measured.";

/// The first argument of the process whose memory is looked at. Behind it: the directory.
const PEAK: &str = "--peak";
/// Sessions of the logs that grow in events.
const SESSIONS: usize = 1_000;

struct Options {
    events: usize,
    sessions: usize,
    steps: usize,
    bodies: Bodies,
    dir: PathBuf,
    tenure: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == PEAK).is_some() {
        return ended(peak(Path::new(&arguments.next().unwrap_or_default())));
    }
    match options(arguments) {
        Ok(options) => ended(run(&options)),
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut chosen = Options {
        events: 1_000_000,
        sessions: 100_000,
        steps: 100_000,
        bodies: Bodies::Mixed,
        dir: std::env::temp_dir(),
        tenure: None,
        markdown: None,
    };
    options::each(arguments, |name, value| {
        let number = || options::number(name, &value);
        match name {
            "--events" => chosen.events = number()?.max(10_000),
            "--sessions" => chosen.sessions = number()?.max(10),
            "--steps" => chosen.steps = number()?.max(1),
            "--bodies" => chosen.bodies = Bodies::Of(number()?),
            "--dir" => chosen.dir = value.into(),
            "--tenure" => chosen.tenure = Some(value.into()),
            "--markdown" => chosen.markdown = Some(value.into()),
            _ => return Err(format!("{name} is no option")),
        }
        Ok(())
    })?;
    Ok(chosen)
}

/// Says how much private memory it takes to open a store: in a process of its own, which has done nothing else.
fn peak(dir: &Path) -> io::Result<()> {
    let (_, bytes) = machine::peak_above(|| reading::open(dir))?;
    println!("{bytes}");
    Ok(())
}

fn decades(from: usize, to: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(from), |n| n.checked_mul(10)).take_while(move |n| *n <= to)
}

fn run(options: &Options) -> io::Result<()> {
    let about = machine::describe(&options.dir)?;
    let idle = machine::idle_for(Duration::from_secs(1))? * 100.0;
    let events = over_events(options)?;
    let sessions = over_sessions(options)?;
    let mut out = format!(
        "{} cores ({}), {}, {}; idle before the run: {idle:.0} %.\n\n",
        about.cores, about.processor, about.kernel, about.file_system
    );
    out += &table::shown(Axis::Events, &events);
    out += &table::shown(Axis::Sessions, &sessions);
    print!("{out}");
    match &options.markdown {
        Some(path) => page::replace(path, "curves", &out),
        None => Ok(()),
    }
}

/// One log that grows.
fn over_events(options: &Options) -> io::Result<Vec<Point>> {
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let dir = scratch.path();
    let mut crew = Crew::new(SEED, 0, SESSIONS).with(options.bodies);
    let store = ours::open(dir);
    ours::register(&store, &crew);
    drop(store);
    let mut points = Vec::new();
    let mut done = SESSIONS;
    for events in decades(10_000, options.events) {
        eprintln!("{events} events, {SESSIONS} sessions");
        let store = ours::open(dir);
        ours::fill(&store, &mut crew, events - done);
        done = events;
        let (point, steps) = measure::point(store, dir, &mut crew, options.tenure.as_deref())?;
        done += steps;
        points.push(Point {
            at: events,
            ..point
        });
    }
    Ok(points)
}

/// Logs of as many steps with more and more sessions.
fn over_sessions(options: &Options) -> io::Result<Vec<Point>> {
    let mut points = Vec::new();
    for sessions in decades(10, options.sessions) {
        eprintln!("{} steps, {sessions} sessions", options.steps);
        let scratch = tempfile::tempdir_in(&options.dir)?;
        let dir = scratch.path();
        let mut crew = Crew::new(SEED, 0, sessions).with(options.bodies);
        let store = ours::open(dir);
        ours::register(&store, &crew);
        ours::fill(&store, &mut crew, options.steps);
        let (point, _) = measure::point(store, dir, &mut crew, options.tenure.as_deref())?;
        points.push(Point {
            at: sessions,
            ..point
        });
    }
    Ok(points)
}
