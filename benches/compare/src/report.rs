//! The tables that people read and the numbers behind them.

use std::fmt::{self, Write};

use serde_json::{Value, json};
use tenure_benches::figures::{Figures, round};
use tenure_benches::machine::Machine;

use crate::appends::{Appends, Cell, TOGETHER, Way};
use crate::limits::Limits;
use crate::opening::{Opening, TAIL};
use crate::options::Options;
use crate::peers::{self, OURS};
use crate::replay::{Replays, SQLITE};
use crate::syncs::{CALLS, Syncs};
use crate::targets;

/// Everything that was measured.
pub struct Report {
    /// The options.
    pub given: String,
    /// What it ran on.
    pub machine: Machine,
    /// What others left of the machine just before.
    pub idle_before: f64,
    /// Appends.
    pub appends: Appends,
    /// Sync calls, or why they were not counted; none where they were not asked for.
    pub syncs: Option<Result<Vec<Syncs>, String>>,
    /// Ceilings of replay.
    pub limits: Option<Limits>,
    /// Replays.
    pub replays: Option<Replays>,
    /// Opening.
    pub opening: Option<Opening>,
    /// Stores that were not wanted are in no table; these were, and are not there.
    pub skipped: Vec<(&'static str, String)>,
}

impl Report {
    /// A report with nothing measured yet.
    pub fn new(options: &Options, machine: Machine, idle_before: f64) -> Self {
        let mut skipped = peers::skipped();
        skipped.retain(|(name, _)| options.wants_peer(name));
        Self {
            given: options.given.clone(),
            machine,
            idle_before,
            appends: Appends::default(),
            syncs: None,
            limits: None,
            replays: None,
            opening: None,
            skipped,
        }
    }

    fn cells(&self, peer: &str, way: Way) -> impl Iterator<Item = &Cell> {
        let wanted = move |cell: &&Cell| cell.peer == peer && cell.way == way;
        self.appends.cells.iter().filter(wanted)
    }

    fn figures(&self, peer: &str, way: Way, of: impl Fn(&Cell) -> f64) -> Option<Figures> {
        let all: Vec<f64> = self.cells(peer, way).map(of).collect();
        (!all.is_empty()).then(|| Figures::new(all))
    }

    /// The median of a store's rounds.
    pub fn median(&self, peer: &str, way: Way, of: impl Fn(&Cell) -> f64) -> Option<f64> {
        self.figures(peer, way, of).map(|figures| figures.median())
    }

    /// The stores that appended, in the order of the table.
    pub fn peers(&self) -> impl Iterator<Item = &'static str> {
        let measured = |name: &&str| self.appends.cells.iter().any(|cell| cell.peer == *name);
        let names: Vec<_> = peers::all().iter().map(|peer| peer.name()).collect();
        names.into_iter().filter(measured)
    }

    fn ways(&self) -> Vec<Way> {
        let mut ways: Vec<Way> = self.appends.cells.iter().map(|cell| cell.way).collect();
        ways.sort_unstable();
        ways.dedup();
        ways
    }

    /// As Markdown.
    pub fn tables(&self) -> String {
        let mut out = String::new();
        self.write_tables(&mut out)
            .expect("writing to a string succeeds");
        out
    }

    fn write_tables(&self, out: &mut String) -> fmt::Result {
        let Machine {
            cores,
            processor,
            kernel,
            file_system,
        } = &self.machine;
        let idle = self.idle_before * 100.0;
        let given = &self.given;
        writeln!(
            out,
            "`tenure-compare{given}`, {cores} cores ({processor}), {kernel}, {file_system}."
        )?;
        writeln!(
            out,
            "Idle before the run: {idle:.0} %. Medians with their range.\n"
        )?;
        self.write_targets(out)?;
        self.write_appends(out)?;
        self.write_ratios(out)?;
        self.write_syncs(out)?;
        self.write_replays(out)?;
        self.write_opening(out)?;
        self.write_skipped(out)
    }

    fn write_targets(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "| what | target | seen | |\n|---|---|---|---|")?;
        for target in targets::all(self) {
            writeln!(out, "{}", target.row())?;
        }
        writeln!(out)
    }

    fn write_appends(&self, out: &mut String) -> fmt::Result {
        if self.appends.cells.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "| writers | store | durable appends/s | p50 us | p99 us | least served | idle |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|")?;
        for way in self.ways() {
            for peer in self.peers() {
                let Some(rate) = self.figures(peer, way, |c| c.served.per_second()) else {
                    continue;
                };
                let of = |of: fn(&Cell) -> f64| self.median(peer, way, of).unwrap_or_default();
                writeln!(
                    out,
                    "| {way} | {peer} | {} | {} | {} | {:.0} % | {:.0} % |",
                    rate.shown(),
                    round(of(|c| c.served.p50_micros)),
                    round(of(|c| c.served.p99_micros)),
                    of(|c| c.served.fairness()) * 100.0,
                    of(|c| c.idle) * 100.0,
                )?;
            }
        }
        writeln!(
            out,
            "\nLeast served: appends of the writer that got the least, as a share of the one that got the most. \
             Idle: share of all cores meanwhile. A process's latencies are those of the worst.\n"
        )
    }

    fn write_ratios(&self, out: &mut String) -> fmt::Result {
        let ways = self.ways();
        if ways.is_empty() {
            return Ok(());
        }
        let heads: Vec<String> = ways.iter().map(Way::to_string).collect();
        writeln!(out, "| tenure divided by | {} |", heads.join(" | "))?;
        writeln!(out, "|---|{}", "---|".repeat(ways.len()))?;
        for peer in self.peers().filter(|peer| *peer != OURS) {
            write!(out, "| {peer} |")?;
            for way in &ways {
                let of = |peer| self.median(peer, *way, |c| c.served.per_second());
                let ratio = of(OURS).zip(of(peer)).map(|(a, b)| round(a / b));
                write!(out, " {} |", ratio.as_deref().unwrap_or("-"))?;
            }
            writeln!(out)?;
        }
        writeln!(out)
    }

    fn write_syncs(&self, out: &mut String) -> fmt::Result {
        let counted = match &self.syncs {
            None => return Ok(()),
            Some(Err(reason)) => return writeln!(out, "Sync calls: SKIPPED, {reason}\n"),
            Some(Ok(counted)) => counted,
        };
        writeln!(
            out,
            "| store | threads | sync calls per 1,000 acknowledgements | which | its durable call |"
        )?;
        writeln!(out, "|---|---|---|---|---|")?;
        let peers = peers::all();
        for syncs in counted {
            let peer = peers.iter().find(|peer| peer.name() == syncs.peer);
            let which: Vec<String> = CALLS
                .iter()
                .zip(syncs.calls)
                .filter(|(_, count)| *count > 0)
                .map(|(call, count)| format!("{call} {count}"))
                .collect();
            writeln!(
                out,
                "| {} | {} | {} | {} of {} | {} |",
                syncs.peer,
                syncs.threads,
                round(syncs.per_thousand()),
                which.join(", "),
                syncs.appends,
                peer.map_or("", |peer| peer.sync_call()),
            )?;
        }
        writeln!(out)
    }

    fn write_replays(&self, out: &mut String) -> fmt::Result {
        if let Some(limits) = &self.limits {
            writeln!(out, "| limit, one core | GB/s |\n|---|---|")?;
            writeln!(out, "| summing memory | {} |", limits.memory.shown())?;
            writeln!(
                out,
                "| summing a mapped file in the page cache | {} |",
                limits.scan.shown()
            )?;
            let bytes = limits.frame_bytes;
            writeln!(
                out,
                "| CRC-32 of pieces of {bytes} bytes | {} |\n",
                limits.checksum.shown()
            )?;
        }
        let Some(replays) = &self.replays else {
            return Ok(());
        };
        let base = replays.way(SQLITE).map(|way| way.per_second().median());
        writeln!(
            out,
            "| replay | checks | events | events/s | divided by SQLite |"
        )?;
        writeln!(out, "|---|---|---|---|---|")?;
        for way in &replays.ways {
            let rate = way.per_second();
            let ratio = base.map_or_else(|| "-".to_owned(), |base| round(rate.median() / base));
            writeln!(
                out,
                "| {} | {} | {} | {} | {ratio} |",
                way.name,
                way.checks,
                way.events,
                rate.shown()
            )?;
        }
        let mib = replays.peak_bytes as f64 / f64::from(1 << 20);
        writeln!(
            out,
            "\nPrivate memory of a process that replays the whole state, at its peak: {mib:.0} MiB.\n"
        )
    }

    fn write_opening(&self, out: &mut String) -> fmt::Result {
        let Some(opening) = &self.opening else {
            return Ok(());
        };
        writeln!(
            out,
            "| on a store of {} frames, {TAIL} steps behind its snapshot | us |\n|---|---|",
            opening.frames
        )?;
        for (what, figures) in opening.rows() {
            writeln!(out, "| {what} | {} |", figures.shown())?;
        }
        let mib = opening.snapshot_bytes as f64 / f64::from(1 << 20);
        writeln!(
            out,
            "\nSnapshot and what stands beside it: {mib:.1} MiB. Memory that each session costs a process which has opened \
             the store, without its name: {} bytes.\n",
            round(opening.session_bytes)
        )?;
        match &opening.processes {
            Ok(_) => Ok(()),
            Err(reason) => writeln!(out, "`tenure check` as a process: SKIPPED, {reason}.\n"),
        }
    }

    fn write_skipped(&self, out: &mut String) -> fmt::Result {
        let built = self.skipped.iter().map(|(name, reason)| (*name, reason));
        let replayed = self.replays.iter().flat_map(|replays| &replays.failed);
        let failed = self.appends.failed.iter().chain(replayed);
        for (name, reason) in built.chain(failed.map(|(name, reason)| (*name, reason))) {
            writeln!(out, "- {name}: SKIPPED, {reason}")?;
        }
        Ok(())
    }

    /// Every measurement.
    pub fn json(&self) -> Value {
        let cell = |cell: &Cell| {
            let mut value = cell.served.to_json();
            value["store"] = cell.peer.into();
            value["writers"] = cell.way.to_string().into();
            value["appends_per_second"] = cell.served.per_second().into();
            value["idle_share"] = cell.idle.into();
            value
        };
        let target = |target: &targets::Target| {
            json!({
                "what": target.what,
                "wanted": target.wanted,
                "at_least": target.at_least,
                "seen": target.seen,
                "verdict": target.verdict(),
            })
        };
        let sync = |syncs: &Syncs| {
            json!({
                "store": syncs.peer,
                "threads": syncs.threads,
                "appends": syncs.appends,
                "calls": CALLS.iter().zip(syncs.calls).map(|(c, n)| json!({ "call": c, "count": n })).collect::<Vec<_>>(),
            })
        };
        let syncs = self.syncs.as_ref().and_then(|syncs| syncs.as_ref().ok());
        json!({
            "options": self.given.trim(),
            "machine": {
                "cores": self.machine.cores,
                "processor": self.machine.processor,
                "kernel": self.machine.kernel,
                "file_system": self.machine.file_system,
                "idle_share_before": self.idle_before,
            },
            "targets": targets::all(self).iter().map(target).collect::<Vec<_>>(),
            "durable_calls": peers::all().iter().map(|p| json!({ "store": p.name(), "call": p.sync_call() })).collect::<Vec<_>>(),
            "appends": self.appends.cells.iter().map(cell).collect::<Vec<_>>(),
            "sync_calls": syncs.map(|syncs| syncs.iter().map(sync).collect::<Vec<_>>()),
            "limits_gb_per_second": self.limits.as_ref().map(|l| json!({
                "memory": l.memory.median(),
                "scan": l.scan.median(),
                "checksum": l.checksum.median(),
                "frame_bytes": l.frame_bytes,
            })),
            "replays": self.replays.as_ref().map(|replays| replays.ways.iter().map(|way| {
                json!({ "what": way.name, "events": way.events, "seconds": way.seconds })
            }).collect::<Vec<_>>()),
            "replay_peak_private_bytes": self.replays.as_ref().map(|replays| replays.peak_bytes),
            "session_bytes": self.opening.as_ref().map(|opening| opening.session_bytes),
            "opening_micros": self.opening.as_ref().map(|opening| opening.rows().iter().map(|(what, figures)| {
                json!({ "what": what, "median": figures.median(), "min": figures.min(), "max": figures.max() })
            }).collect::<Vec<_>>()),
        })
    }
}

impl Opening {
    fn rows(&self) -> Vec<(&'static str, &Figures)> {
        let mut rows = vec![
            ("open, in process", &self.open),
            ("open and check a token, in process", &self.check),
            (
                "who at a place, the first question after open",
                &self.who_first,
            ),
            ("who at a place, after that", &self.who),
            (
                "branch of a session with 10 records, no disk",
                &self.branch_short,
            ),
            (
                "branch of a session with 100,000 records, no disk",
                &self.branch_long,
            ),
        ];
        if let Ok((check, version)) = &self.processes {
            rows.push(("`tenure check`, whole process", check));
            rows.push(("`tenure --version`, whole process", version));
        }
        rows
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(1) => f.write_str("1 thread"),
            Self::Threads(count) => write!(f, "{count} threads"),
            Self::Batch => write!(f, "1 thread, {TOGETHER} a commit"),
            Self::Ahead => write!(f, "1 thread, {TOGETHER} a commit, two on their way"),
            Self::Processes(count) => write!(f, "{count} processes"),
        }
    }
}
