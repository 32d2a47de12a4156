//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

use tenure_benches::options::each;
use tenure_benches::workload::Bodies;

use crate::peers::{self, Peer};

/// How to use it.
pub const USAGE: &str = "\
tenure-compare [OPTION VALUE]...

  --only LIST       of appends, batches, processes, syncs, replay, open (default: all of them)
  --peers LIST      stores whose names begin so, beside the disk and ours (default: all)
  --dir DIR         where the stores are made and removed; on the disk to be measured (default: the
                    directory for temporary files)
  --seconds S       how long each store is written to in each round (default 2)
  --rounds N        how often everything is measured (default 5)
  --threads LIST    numbers of writing threads (default 1,4,16,64)
  --processes LIST  numbers of writing processes (default 4,16)
  --bodies N        gives every text N bytes (default: of mixed lengths, as the workload says)
  --events N        events that are replayed (default 1000000)
  --sessions N      sessions of the store that is replayed and opened (default 10000)
  --tenure FILE     the program whose start is measured (default: beside this one; else it is left out)
  --json FILE       writes every single measurement
  --markdown FILE   puts the tables into a page, between its two marks

Some six minutes: --rounds 3 --seconds 1. What the targets are set for: --seconds 4 --events 10000000, which takes
well over half an hour and some 30 GB of disk.";

/// A part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Threads that append one event a call.
    Appends,
    /// Appends of many events a commit.
    Batches,
    /// Processes that append.
    Processes,
    /// Sync calls, counted.
    Syncs,
    /// Replay of a long log.
    Replay,
    /// Opening, questions, branches.
    Open,
}

const PARTS: [(&str, Part); 6] = [
    ("appends", Part::Appends),
    ("batches", Part::Batches),
    ("processes", Part::Processes),
    ("syncs", Part::Syncs),
    ("replay", Part::Replay),
    ("open", Part::Open),
];

/// What to measure, and where.
#[derive(Debug)]
pub struct Options {
    parts: Vec<Part>,
    peers: Vec<String>,
    /// Where stores are made.
    pub dir: PathBuf,
    /// How long each cell runs.
    pub duration: Duration,
    /// How often.
    pub rounds: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Numbers of processes.
    pub processes: Vec<usize>,
    /// How long texts are.
    pub bodies: Bodies,
    /// Events to replay.
    pub events: usize,
    /// Sessions that they are of.
    pub sessions: usize,
    /// The program.
    pub tenure: Option<PathBuf>,
    /// Where to write every measurement.
    pub json: Option<PathBuf>,
    /// The page to put the tables into.
    pub markdown: Option<PathBuf>,
    /// The options as they were given, without places.
    pub given: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            parts: PARTS.map(|(_, part)| part).to_vec(),
            peers: Vec::new(),
            dir: std::env::temp_dir(),
            duration: Duration::from_secs(2),
            rounds: 5,
            threads: vec![1, 4, 16, 64],
            processes: vec![4, 16],
            bodies: Bodies::Mixed,
            events: 1_000_000,
            sessions: 10_000,
            tenure: None,
            json: None,
            markdown: None,
            given: String::new(),
        }
    }
}

impl Options {
    /// Reads the arguments behind the program's name.
    ///
    /// # Errors
    /// What is wrong with the first that is.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        each(arguments, |name, value| {
            options
                .take(name, &value)
                .map_err(|error| format!("{name} {value}: {error}"))?;
            if !["--dir", "--json", "--markdown", "--tenure"].contains(&name) {
                options.given += &format!(" {name} {value}");
            }
            Ok(())
        })?;
        Ok(options)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--only" => {
                let parts = value.split(',').map(part);
                self.parts = parts.collect::<Result<_, _>>()?;
            }
            "--peers" => self.peers = value.split(',').map(str::to_owned).collect(),
            "--dir" => self.dir = value.into(),
            "--json" => self.json = Some(value.into()),
            "--markdown" => self.markdown = Some(value.into()),
            "--tenure" => self.tenure = Some(value.into()),
            "--rounds" => self.rounds = number(value)?.max(1),
            "--events" => self.events = number(value)?,
            "--sessions" => self.sessions = number(value)?.max(1),
            "--bodies" => self.bodies = Bodies::Of(number(value)?),
            "--threads" => self.threads = numbers(value)?,
            "--processes" => self.processes = numbers(value)?,
            "--seconds" => {
                let seconds = value.parse::<f64>().map_err(|e| e.to_string())?;
                self.duration = Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?;
            }
            _ => return Err("no such option".into()),
        }
        Ok(())
    }

    /// Whether a part is wanted.
    pub fn wants(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// The stores that are wanted, of all.
    pub fn chosen(&self, all: Vec<Box<dyn Peer>>) -> Vec<Box<dyn Peer>> {
        all.into_iter()
            .filter(|peer| self.wants_peer(peer.name()))
            .collect()
    }

    /// Whether a store is wanted.
    pub fn wants_peer(&self, name: &str) -> bool {
        let always = [peers::DISK, peers::OURS].contains(&name);
        let named = || {
            self.peers
                .iter()
                .any(|start| name.starts_with(start.as_str()))
        };
        self.peers.is_empty() || always || named()
    }

    /// The bytes of every text, where they are all of one length.
    pub fn body_bytes(&self) -> Option<usize> {
        match self.bodies {
            Bodies::Mixed => None,
            Bodies::Of(bytes) => Some(bytes),
        }
    }
}

fn part(word: &str) -> Result<Part, String> {
    let found = PARTS.iter().find(|(name, _)| *name == word);
    found
        .map(|(_, part)| *part)
        .ok_or_else(|| format!("{word} is no part of a run"))
}

fn number(value: &str) -> Result<usize, String> {
    value
        .parse()
        .map_err(|e: std::num::ParseIntError| e.to_string())
}

fn numbers(value: &str) -> Result<Vec<usize>, String> {
    let list = value
        .split(',')
        .map(number)
        .collect::<Result<Vec<_>, _>>()?;
    if list.contains(&0) {
        return Err("a number of writers begins at 1".into());
    }
    Ok(list)
}
