//! What the measurements ran on, and how busy it was: without names of hosts or people.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
///
/// # Errors
/// When the directory cannot be written to.
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
    ///
    /// # Errors
    /// When it cannot be read.
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
    ///
    /// # Errors
    /// As [`Ticks::now`].
    pub fn idle_since(self) -> io::Result<f64> {
        let now = Self::now()?;
        let all = now.all.saturating_sub(self.all).max(1);
        Ok(now.idle.saturating_sub(self.idle) as f64 / all as f64)
    }
}

/// The idle share while this process sleeps: what others leave of the machine.
///
/// # Errors
/// As [`Ticks::now`].
pub fn idle_for(duration: Duration) -> io::Result<f64> {
    let ticks = Ticks::now()?;
    std::thread::sleep(duration);
    ticks.idle_since()
}

/// Bytes of memory that belong to this process alone, now: heap and stacks, no mapped files.
///
/// # Errors
/// When the system does not say.
pub fn private_bytes() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("no RssAnon in /proc/self/status"))
}

/// Runs `work` and says how far the private memory of this process rose above what it was before, looking every
/// two milliseconds.
///
/// # Errors
/// As [`private_bytes`].
///
/// # Panics
/// When `work` does.
pub fn peak_above<R>(work: impl FnOnce() -> R) -> io::Result<(R, u64)> {
    let before = private_bytes()?;
    let (ended, peak) = (AtomicBool::new(false), AtomicU64::new(before));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if let Ok(now) = private_bytes() {
                    peak.fetch_max(now, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let result = work();
        // What is still there at the end counts, however short the work was.
        if let Ok(now) = private_bytes() {
            peak.fetch_max(now, Ordering::Relaxed);
        }
        ended.store(true, Ordering::Relaxed);
        result
    });
    Ok((result, peak.load(Ordering::Relaxed) - before))
}
