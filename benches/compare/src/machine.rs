//! What the measurements ran on, and how busy it was: without names of hosts or people.

use std::io;
use std::path::Path;
use std::time::Duration;

use tenure_log::storage::disk::Disk;
use tenure_log::storage::{Opening, Storage};

/// The class of machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: usize,
    /// What the processor calls itself.
    pub processor: String,
    /// Kernel and its release.
    pub kernel: String,
    /// The file system of the measured directory.
    pub file_system: String,
}

/// Looks at the machine.
pub fn describe(dir: &Path) -> io::Result<Machine> {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // A store's directory has to be nobody else's, so the one above it cannot be opened as one.
    let probe = tempfile::tempdir_in(dir)?;
    let probe = Disk.directory(&probe.path().join("probe"), Opening::Create)?;
    Ok(Machine {
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        processor: model
            .unwrap_or("unknown")
            .trim_start_matches([' ', '\t', ':'])
            .to_owned(),
        kernel: format!(
            "Linux {}",
            release.split('-').next().unwrap_or_default().trim()
        ),
        file_system: probe.file_system()?.kind,
    })
}

/// Ticks that the cores spent idle, and all of them, since the machine began.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    /// As `/proc/stat` says; idle includes waiting for a disk.
    pub fn now() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .filter_map(|t| t.parse().ok())
            .take(8)
            .collect();
        Ok(Self {
            idle: ticks.iter().skip(3).take(2).sum(),
            all: ticks.iter().sum(),
        })
    }

    /// The idle share of all cores since then.
    pub fn idle_since(self) -> io::Result<f64> {
        let now = Self::now()?;
        let all = now.all.saturating_sub(self.all).max(1);
        Ok(now.idle.saturating_sub(self.idle) as f64 / all as f64)
    }
}

/// The idle share while this process sleeps: what others leave of the machine.
pub fn idle_for(duration: Duration) -> io::Result<f64> {
    let ticks = Ticks::now()?;
    std::thread::sleep(duration);
    ticks.idle_since()
}
