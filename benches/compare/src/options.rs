//! What the command line says.

use std::path::PathBuf;
use std::time::Duration;

/// How to use it.
pub const USAGE: &str = "\
tenure-compare [--dir DIR] [--seconds S] [--rounds N] [--threads N,N,..] [--events N] [--json FILE]

  --dir DIR      where the stores are made and removed; on the disk to be measured (default: the
                 directory for temporary files)
  --seconds S    how long each store runs in each round (default 2)
  --rounds N     how often everything is measured (default 5)
  --threads L    numbers of writing threads (default 1,4,16,64)
  --events N     events that are replayed (default 1000000; 0 leaves replay out)
  --json FILE    writes every single measurement too";

/// What to measure, and where.
#[derive(Debug)]
pub struct Options {
    /// Where stores are made.
    pub dir: PathBuf,
    /// How long each cell runs.
    pub duration: Duration,
    /// How often.
    pub rounds: usize,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Events to replay.
    pub events: usize,
    /// Where to write every measurement.
    pub json: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments behind the program's name.
    ///
    /// # Errors
    /// What is wrong with the first that is.
    pub fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            dir: std::env::temp_dir(),
            duration: Duration::from_secs(2),
            rounds: 5,
            threads: vec![1, 4, 16, 64],
            events: 1_000_000,
            json: None,
        };
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            let Some(value) = arguments.next() else {
                return Err(format!("{name} needs a value, or is unknown"));
            };
            let number = || {
                value
                    .parse::<usize>()
                    .map_err(|e| format!("{name} {value}: {e}"))
            };
            match name.as_str() {
                "--dir" => options.dir = value.into(),
                "--json" => options.json = Some(value.into()),
                "--rounds" => options.rounds = number()?.max(1),
                "--events" => options.events = number()?,
                "--seconds" => {
                    let seconds = value
                        .parse::<f64>()
                        .map_err(|e| format!("{name} {value}: {e}"))?;
                    options.duration = Duration::try_from_secs_f64(seconds)
                        .map_err(|e| format!("{name} {value}: {e}"))?;
                }
                "--threads" => {
                    let list = value.split(',').map(|n| n.parse::<usize>());
                    options.threads = list
                        .collect::<Result<_, _>>()
                        .map_err(|e| format!("{name} {value}: {e}"))?;
                    if options.threads.contains(&0) {
                        return Err("a number of threads begins at 1".into());
                    }
                }
                _ => return Err(format!("{name} is no option")),
            }
        }
        Ok(options)
    }
}
