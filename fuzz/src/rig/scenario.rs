//! A story of commands, each a process of its own, and the store as it is before each of them.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

/// One command of the story.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its words.
    pub words: &'static [&'static str],
    /// How it ends when nothing is in its way.
    pub exit: i32,
    /// What it does for whoever repeats it.
    pub kind: Kind,
}

/// What repeating a command must give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It has a key: what was done is answered again, and never done twice.
    Keyed,
    /// As [`Kind::Keyed`], under the token of the session `web`, which can be taken over meanwhile.
    Held,
    /// It may be repeated: it changes nothing, or says that it did before.
    Free,
}

const fn step(words: &'static [&'static str], exit: i32, kind: Kind) -> Step {
    Step { words, exit, kind }
}

/// The story: two sessions, work, mail, a history, a branch, a takeover, a refusal, and the end of a session.
pub const STORY: &[Step] = &[
    step(&["init"], 0, Kind::Free),
    step(&["register", "api"], 0, Kind::Keyed),
    step(&["register", "web"], 0, Kind::Keyed),
    step(&["dispatch", "item", "--to", "web"], 0, Kind::Keyed),
    step(&["accept", "d1", "--as", "web@1"], 0, Kind::Held),
    step(&["note", "hello", "--as", "web@1"], 0, Kind::Held),
    step(
        &["send", "--to", "api", "hi", "--as", "web@1"],
        0,
        Kind::Held,
    ),
    step(&["record", "turn", "--as", "web@1"], 0, Kind::Held),
    step(&["branch", "web", "copy"], 0, Kind::Keyed),
    step(
        &[
            "report",
            "d1",
            "--outcome",
            "done",
            "--body",
            "all of it",
            "--as",
            "web@1",
        ],
        0,
        Kind::Held,
    ),
    step(
        &["adopt", "web", "--force", "--reason", "it hangs"],
        0,
        Kind::Keyed,
    ),
    step(&["note", "late", "--as", "web@1"], 10, Kind::Free),
    step(&["check", "api@1"], 0, Kind::Free),
    step(&["retire", "api@1"], 0, Kind::Keyed),
    step(&["verify"], 0, Kind::Free),
    step(&["audit"], 0, Kind::Free),
];

/// How a process ended, with what it said.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Ended {
    /// From what a process left.
    #[must_use]
    pub fn of(output: Output) -> Self {
        let status: ExitStatus = output.status;
        Self {
            code: status.code(),
            signal: status.signal(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The receipt that it gives: which entry it speaks of.
    #[must_use]
    pub fn receipt(&self) -> Option<String> {
        Some(self.answer()?.get("receipt")?.as_str()?.to_owned())
    }

    /// The position that it gives.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.answer()?.get("position")?.as_u64()
    }

    fn answer(&self) -> Option<serde_json::Value> {
        serde_json::from_str(self.out.lines().next()?).ok()
    }

    /// Whether the loader or the language's runtime gave up: before the program's first line, or where the runtime takes
    /// a system call for one that cannot fail. No answer was given.
    #[must_use]
    pub fn runtime_gave_up(&self) -> bool {
        let mut lines = self.err.lines();
        let by_runtime = lines.any(|line| {
            line.contains("fatal runtime error: initialization")
                || line.contains("panicked at /rustc/") && line.contains("/library/std/src/")
        });
        self.code == Some(127) || self.code != Some(0) && by_runtime
    }

    /// One line of how it ended.
    #[must_use]
    pub fn told(&self) -> String {
        // What it says about an error stands on its last line, as JSON on one of the two.
        let last = self.err.lines().chain(self.out.lines()).last();
        let last = last.unwrap_or_default();
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit {code}: {last}"),
            (None, signal) => format!("signal {}: {last}", signal.unwrap_or_default()),
        }
    }
}

/// The files of a store: their places below its directory, and their bytes.
type Image = Vec<(PathBuf, Vec<u8>)>;

/// A store in which the story was played once, to be set back to before any of its steps.
pub struct Stage {
    room: tempfile::TempDir,
    program: PathBuf,
    before: Vec<Image>,
}

impl Stage {
    /// Plays the story without any fault.
    ///
    /// # Errors
    /// When a file cannot be read or written, or a step does not end as the story says.
    pub fn new(program: &Path) -> io::Result<Self> {
        let room = tempfile::tempdir()?;
        for dir in ["checkout", "store"] {
            DirBuilder::new()
                .mode(0o700)
                .create(room.path().join(dir))?;
        }
        let mut stage = Self {
            room,
            program: program.to_owned(),
            before: Vec::new(),
        };
        for step in STORY {
            let mut image = Image::new();
            gather(&stage.store(), Path::new(""), &mut image)?;
            stage.before.push(image);
            let ended = Ended::of(stage.command(step).output()?);
            if ended.code != Some(step.exit) {
                let said = format!(
                    "without any fault {:?} ended with {}",
                    step.words,
                    ended.told()
                );
                return Err(io::Error::other(said));
            }
        }
        Ok(stage)
    }

    fn store(&self) -> PathBuf {
        self.room.path().join("store")
    }

    /// A file beside the store, for what a rig keeps.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    /// Sets the store back to before that step. What is there stays the same file or directory: a copied store is
    /// another store, and notices.
    ///
    /// # Errors
    /// When a file cannot be removed or written.
    pub fn set_back(&self, step: usize) -> io::Result<()> {
        let (store, image) = (self.store(), &self.before[step]);
        let mut there = Image::new();
        gather(&store, Path::new(""), &mut there)?;
        for (place, _) in &there {
            if !image.iter().any(|(kept, _)| kept == place) {
                fs::remove_file(store.join(place))?;
            }
        }
        for (place, bytes) in image {
            let path = store.join(place);
            let mut file = fs::OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            file.write_all(bytes)?;
            file.set_len(bytes.len() as u64)?;
        }
        Ok(())
    }

    /// Which bytes of the first segment a step writes; `None` for the last step and where it writes none.
    #[must_use]
    pub fn written(&self, step: usize) -> Option<Range<u64>> {
        let (before, after) = (
            segment(&self.before[step])?,
            segment(self.before.get(step + 1)?)?,
        );
        let differs = |at: &usize| before.get(*at) != after.get(*at);
        let first = (0..after.len()).find(differs)?;
        let last = (0..after.len()).rfind(differs)?;
        Some(first as u64..last as u64 + 1)
    }

    /// The process of a step, below a program that runs it, if there is one.
    #[must_use]
    pub fn below(&self, runner: &[String], step: &Step) -> Command {
        let program = self.program.display().to_string();
        let mut words = runner.iter().chain([&program]);
        let mut command = Command::new(words.next().expect("there is the program"));
        command.args(words).args(step.words);
        if matches!(step.kind, Kind::Keyed | Kind::Held) {
            command.args(["--idempotency-key", &step.words[..2].join("-")]);
        }
        self.surround(&mut command);
        command
    }

    /// The process of a step.
    #[must_use]
    pub fn command(&self, step: &Step) -> Command {
        self.below(&[], step)
    }

    /// Runs further words of the program on the store, without a fault.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn ask(&self, words: &[&str]) -> io::Result<Ended> {
        let mut command = Command::new(&self.program);
        command.args(words);
        self.surround(&mut command);
        Ok(Ended::of(command.output()?))
    }

    /// What `verify` and `audit` have against the store now.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub fn found(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for words in [["verify"], ["audit"]] {
            let ended = self.ask(&words)?;
            if ended.code != Some(0) {
                let (told, out) = (ended.told(), ended.out);
                found.push(format!("{} then ends with {told}: {out}", words[0]));
            }
        }
        Ok(found)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn run(command: &mut Command) -> io::Result<Ended> {
        Ok(Ended::of(command.output()?))
    }

    fn surround(&self, command: &mut Command) {
        command
            .args(["--json", "--timeout", "20s"])
            .env_remove("TENURE_TOKEN")
            .env_remove("TENURE_TOKEN_FILE")
            .env_remove("TENURE_SESSION")
            // A backtrace names places that nothing panicked at.
            .env("RUST_BACKTRACE", "0")
            .env("TENURE_STORE", self.store())
            .current_dir(self.room.path().join("checkout"))
            .stdin(Stdio::null());
    }
}

fn segment(image: &Image) -> Option<&[u8]> {
    let is_segment = |(place, _): &&(PathBuf, Vec<u8>)| place.starts_with("segments");
    image.iter().find(is_segment).map(|(_, bytes)| &**bytes)
}

fn gather(root: &Path, below: &Path, image: &mut Image) -> io::Result<()> {
    let listed = match fs::read_dir(root.join(below)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    for entry in listed {
        let entry = entry?;
        let place = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            gather(root, &place, image)?;
        } else {
            image.push((place, fs::read(entry.path())?));
        }
    }
    Ok(())
}
