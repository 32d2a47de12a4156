//! Real processes for tests: some that sleep, and this test binary again, in another namespace or as another user.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tenure_core::holder::{Bearing, BootId, HostId, Process, Source};
use tenure_core::id::Time;

/// Environment variable that tells this binary, started again, what its part is.
const PART: &str = "TENURE_TEST_PART";
/// Begins the line with which a part answers.
const ANSWER: &str = "ANSWER ";

/// Says loudly that a test could not show what it is for; not captured, so that it stands in every log.
pub fn skip(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error");
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a command can be run here and succeeds.
pub fn can(command: &[&str]) -> bool {
    Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The part this process has to play, when it was started by [`play`].
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Answers whoever started this part.
pub fn answer(text: &str) {
    assert!(!text.contains('\n'), "one line: {text:?}");
    println!("\n{ANSWER}{text}");
}

/// The command that plays `part` in the test `test` of this binary, behind `wrap`.
pub fn actor(wrap: &[&str], test: &str, part: &str) -> Command {
    let this = std::env::current_exe().expect("this binary");
    actor_at(&this, wrap, test, part)
}

fn actor_at(binary: &Path, wrap: &[&str], test: &str, part: &str) -> Command {
    let words = wrap.iter().map(OsStr::new).chain([binary.as_os_str()]);
    let mut words = words.chain(["--exact", test, "--nocapture"].map(OsStr::new));
    let mut command = Command::new(words.next().expect("a command"));
    command
        .args(words)
        .env(PART, part)
        .env("RUST_TEST_THREADS", "1")
        .stdin(Stdio::null());
    command
}

/// Plays a part to its end and returns its answer.
pub fn play(wrap: &[&str], test: &str, part: &str) -> String {
    answer_of(actor(wrap, test, part), test)
}

/// Plays a part as the user that owns nothing.
pub fn play_as_nobody(wrap: &[&str], test: &str, part: &str) -> String {
    // The build directory may be closed to that user.
    let open = tempfile::tempdir().expect("a directory");
    let binary: PathBuf = open.path().join("it");
    // By another process: one of ours that is just being started would keep a copy of our own open for writing,
    // and what is open for writing cannot be run.
    let copied = Command::new("cp")
        .arg(std::env::current_exe().expect("this binary"))
        .arg(&binary)
        .status();
    assert!(copied.expect("cp runs").success());
    open_to_all(open.path());
    open_to_all(&binary);
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let wrap: Vec<&str> = wrap.iter().copied().chain(nobody).collect();
    answer_of(actor_at(&binary, &wrap, test, part), test)
}

pub fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("set");
}

fn answer_of(mut command: Command, test: &str) -> String {
    let output = command.output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{test}: {:?}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let answer = text.lines().find_map(|line| line.strip_prefix(ANSWER));
    answer
        .unwrap_or_else(|| panic!("{test} did not play its part:\n{text}"))
        .to_owned()
}

/// A process that goes on until it is dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// One that sleeps.
    pub fn sleeping() -> Self {
        Self::command(Command::new("sleep").arg("600"))
    }

    pub fn command(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().expect("started"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its next answer.
    pub fn next_answer(&mut self) -> String {
        let from = self.0.stdout.as_mut().expect("piped");
        for line in BufReader::new(from).lines() {
            let line = line.expect("text");
            if let Some(answer) = line.strip_prefix(ANSWER) {
                return answer.to_owned();
            }
        }
        panic!("it ended without an answer");
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("a pid");
        kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("signalled");
    }

    /// Kills it and takes it off the list of processes.
    pub fn end(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }

    /// Stops it, and returns when it has stopped.
    pub fn stop(&self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        self.signal(Signal::STOP);
        let pid = Pid::from_child(&self.0);
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), stopped).expect("it stops");
    }

    /// Kills it and leaves it a zombie.
    pub fn abandon(&self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        self.signal(Signal::KILL);
        let pid = Pid::from_child(&self.0);
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), exited).expect("it exits");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A bearing as one line, to be carried to another process.
pub fn to_line(bearing: &Bearing) -> String {
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let id = |bytes: [u8; 16]| u128::from_be_bytes(bytes);
    let boot = bearing
        .boot
        .map_or_else(|| "-".to_owned(), |b| id(b.0).to_string());
    let head = format!(
        "{} {boot} {} {}",
        id(bearing.host.0),
        bearing.uid,
        bearing.recorded.0
    );
    let Some(p) = bearing.process else {
        return head;
    };
    format!(
        "{head} {} {} {} {} {} {} {}",
        p.pid,
        number(p.start),
        number(p.pidns),
        number(p.timens),
        number(p.pidfs),
        p.ancestor,
        p.source.as_str()
    )
}

/// The bearing that [`to_line`] wrote.
pub fn from_line(line: &str) -> Bearing {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| (words[at] != "-").then(|| words[at].parse().expect("a number"));
    let id = |at: usize| words[at].parse::<u128>().ok().map(u128::to_be_bytes);
    Bearing {
        host: HostId(id(0).expect("a host")),
        boot: id(1).map(BootId),
        uid: words[2].parse().expect("a user"),
        recorded: Time(words[3].parse().expect("a time")),
        process: (words.len() > 4).then(|| Process {
            pid: words[4].parse().expect("a pid"),
            start: number(5),
            pidns: number(6),
            timens: number(7),
            pidfs: number(8),
            ancestor: words[9] == "true",
            source: Source::from_word(words[10]).expect("a source"),
        }),
    }
}
