//! `hooks`: what an agent host waits for at each tool call, as a whole process: `tenure hook` before a tool, on the files
//! and with a server that answers it, and `tenure check` beside it.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use tenure_benches::figures::round;
use tenure_benches::workload::{Crew, SEED};
use tenure_benches::{ended, figures, machine, options, page, reading};

const USAGE: &str = "\
hooks [OPTION VALUE]...

  --events N      steps of the store (default 1000000)
  --sessions N    sessions (default 1000)
  --times N       tool calls of each kind (default 500)
  --dir DIR       where the store is made and removed (default: the directory for temporary files)
  --tenure FILE   the program (default: the one beside this)
  --markdown FILE puts the table into a page, between its two marks";

/// The session that this process, as an agent host, holds.
const SESSION: &str = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

struct Options {
    events: usize,
    sessions: usize,
    times: usize,
    dir: PathBuf,
    tenure: PathBuf,
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(options) => ended(run(&options)),
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn options(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut chosen = Options {
        events: 1_000_000,
        sessions: 1_000,
        times: 500,
        dir: std::env::temp_dir(),
        tenure: own.with_file_name("tenure"),
        markdown: None,
    };
    options::each(arguments, |name, value| {
        let number = || options::number(name, &value);
        match name {
            "--events" => chosen.events = number()?.max(1),
            "--sessions" => chosen.sessions = number()?.max(1),
            "--times" => chosen.times = number()?.max(1),
            "--dir" => chosen.dir = value.into(),
            "--tenure" => chosen.tenure = value.into(),
            "--markdown" => chosen.markdown = Some(value.into()),
            _ => return Err(format!("{name} is no option")),
        }
        Ok(())
    })?;
    Ok(chosen)
}

/// A program and the store that it is pointed at.
struct Played<'a> {
    program: &'a Path,
    dir: &'a Path,
}

impl Played<'_> {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .env("TENURE_STORE", self.dir.join("store"))
            .env("XDG_STATE_HOME", self.dir.join("state"))
            .env_remove("TENURE_SESSION")
            .env_remove("TENURE_TOKEN")
            .env_remove("TENURE_TOKEN_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    /// Runs it to its end: microseconds, and what it printed.
    fn timed(&self, arguments: &[&str], input: &str) -> io::Result<(u64, String)> {
        let began = Instant::now();
        let mut child = self.command(arguments).spawn()?;
        // A program that reads no input closes it.
        let _ = child
            .stdin
            .take()
            .map(|mut into| into.write_all(input.as_bytes()));
        let output = child.wait_with_output()?;
        let micros = began.elapsed().as_micros();
        if !output.status.success() {
            let error = format!("{arguments:?} ended with {}", output.status);
            return Err(io::Error::other(error));
        }
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((u64::try_from(micros).unwrap_or(u64::MAX), printed))
    }

    fn served(&self) -> io::Result<Child> {
        let mut child = self.command(&["serve"]).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line)?;
        }
        match line.starts_with("serving ") {
            true => Ok(child),
            false => Err(io::Error::other("no server began")),
        }
    }
}

/// What one kind of call took, sorted.
struct Row {
    what: &'static str,
    micros: Vec<u64>,
}

fn run(options: &Options) -> io::Result<()> {
    let about = machine::describe(&options.dir)?;
    let scratch = tempfile::tempdir_in(&options.dir)?;
    let dir = scratch.path();
    let mut crew = Crew::new(SEED, 0, options.sessions);
    reading::build(dir, &mut crew, options.events, reading::TAIL_MAX / 2);
    let played = Played {
        program: &options.tenure,
        dir,
    };
    let checkout = dir.join("checkout");
    std::fs::create_dir_all(checkout.join(".git"))?;
    let event = |name: &str| {
        let (top, file) = (checkout.display(), checkout.join("a.rs"));
        let file = file.display();
        format!(
            r#"{{"hook_event_name":"{name}","session_id":"{SESSION}","cwd":"{top}","source":"startup","tool_name":"Write","tool_input":{{"file_path":"{file}"}}}}"#
        )
    };
    played.timed(&["hook", "--host", "claude"], &event("SessionStart"))?;
    let token = format!("{SESSION}@1");
    let before = event("PreToolUse");
    let idle = machine::idle_for(Duration::from_secs(1))? * 100.0;
    let mut rows = vec![measure(
        options,
        &played,
        ["hook, on the files", "check, on the files"],
        &before,
        &token,
    )?];
    let mut server = played.served()?;
    let served = ["hook, with a server", "check, with a server"];
    let measured = measure(options, &played, served, &before, &token);
    let _ = server.kill();
    server.wait()?;
    rows.push(measured?);
    let mut out = format!(
        "{} events of {} sessions, {} calls of each kind; {} cores ({}), {}, {}; idle before: {idle:.0} %.\n\n\
         | whole process | median ms | p99 ms | least | most |\n|---|---|---|---|---|\n",
        options.events,
        options.sessions,
        options.times,
        about.cores,
        about.processor,
        about.kernel,
        about.file_system
    );
    for row in rows.iter().flatten() {
        let millis = |share| round(figures::quantile(&row.micros, share) as f64 / 1e3);
        let (least, most) = (millis(0.0), millis(1.0));
        out += &format!(
            "| {} | {} | {} | {least} | {most} |\n",
            row.what,
            millis(0.5),
            millis(0.99)
        );
    }
    print!("{out}");
    match &options.markdown {
        Some(path) => page::replace(path, "hooks", &out),
        None => Ok(()),
    }
}

/// Hooks and checks by turns, and a process that only parses its arguments.
fn measure(
    options: &Options,
    played: &Played<'_>,
    [hook, check]: [&'static str; 2],
    before: &str,
    token: &str,
) -> io::Result<[Row; 3]> {
    let mut rows = [hook, check, "--version"].map(|what| Row {
        what,
        micros: Vec::with_capacity(options.times),
    });
    for _ in 0..options.times {
        let (micros, said) = played.timed(&["hook", "--host", "claude"], before)?;
        if !said.is_empty() {
            return Err(io::Error::other(format!(
                "the tool was not let through: {said}"
            )));
        }
        rows[0].micros.push(micros);
        rows[1].micros.push(played.timed(&["check", token], "")?.0);
        rows[2].micros.push(played.timed(&["--version"], "")?.0);
    }
    rows.iter_mut().for_each(|row| row.micros.sort_unstable());
    Ok(rows)
}
