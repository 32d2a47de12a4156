//! The table that people read and the numbers behind it.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::appends::Cell;
use crate::figures::{Figures, round};
use crate::machine::Machine;
use crate::peers::{self, Peer};
use crate::replay::Replay;

/// Everything that was measured.
pub struct Report {
    /// What it ran on.
    pub machine: Machine,
    /// What others left of the machine just before.
    pub idle_before: f64,
    /// Appends.
    pub appends: Vec<Cell>,
    /// Replays.
    pub replays: Vec<Replay>,
}

/// Where ours stands in the order of the stores.
const OURS: usize = 1;

impl Report {
    fn cells(&self, peer: usize, threads: usize) -> impl Iterator<Item = &Cell> {
        let wanted = move |cell: &&Cell| cell.peer == peer && cell.threads == threads;
        self.appends.iter().filter(wanted)
    }

    fn figures(&self, peer: usize, threads: usize, of: impl Fn(&Cell) -> f64) -> Figures {
        Figures::new(self.cells(peer, threads).map(of).collect())
    }

    fn threads(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = self.appends.iter().map(|cell| cell.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// As Markdown.
    pub fn tables(&self) -> String {
        let mut out = String::new();
        self.write_tables(&mut out)
            .expect("writing to a string succeeds");
        out
    }

    fn write_tables(&self, out: &mut String) -> std::fmt::Result {
        let Machine {
            cores,
            processor,
            kernel,
            file_system,
        } = &self.machine;
        let idle = self.idle_before * 100.0;
        writeln!(
            out,
            "{cores} cores ({processor}), {kernel}, {file_system}; idle before the run: {idle:.0} %\n"
        )?;
        let peers = peers::all();
        self.write_appends(out, &peers)?;
        self.write_ratios(out, &peers)?;
        self.write_replays(out)?;
        writeln!(out, "Sync calls:\n")?;
        for peer in &peers {
            writeln!(out, "- {}: {}", peer.name(), peer.sync_call())?;
        }
        Ok(())
    }

    fn write_appends(&self, out: &mut String, peers: &[Box<dyn Peer>]) -> std::fmt::Result {
        writeln!(
            out,
            "| threads | store | durable appends/s | p50 us | p99 us | least served | idle |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|")?;
        for threads in self.threads() {
            for (number, peer) in peers.iter().enumerate() {
                let of = |of: fn(&Cell) -> f64| self.figures(number, threads, of);
                let fair = of(|c| c.least_served as f64 / c.best_served.max(1) as f64);
                writeln!(
                    out,
                    "| {threads} | {} | {} | {} | {} | {:.0} % | {:.0} % |",
                    peer.name(),
                    of(|c| c.per_second).shown(),
                    round(of(|c| c.p50_micros).median()),
                    round(of(|c| c.p99_micros).median()),
                    fair.median() * 100.0,
                    of(|c| c.idle).median() * 100.0,
                )?;
            }
        }
        writeln!(
            out,
            "\nLeast served: appends of the thread that got the least, as a share of the one that got the \
             most. Idle: share of all cores meanwhile.\n"
        )
    }

    fn write_ratios(&self, out: &mut String, peers: &[Box<dyn Peer>]) -> std::fmt::Result {
        let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        writeln!(
            out,
            "| tenure divided by | {} |",
            self.threads()
                .iter()
                .map(|t| format!("{t} threads"))
                .collect::<Vec<_>>()
                .join(" | ")
        )?;
        writeln!(out, "|---|{}", "---|".repeat(self.threads().len()))?;
        for (number, name) in names
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != OURS)
        {
            write!(out, "| {name} |")?;
            for threads in self.threads() {
                let of = |peer| self.figures(peer, threads, |c| c.per_second).median();
                write!(out, " {} |", round(of(OURS) / of(number)))?;
            }
            writeln!(out)?;
        }
        writeln!(out)
    }

    fn write_replays(&self, out: &mut String) -> std::fmt::Result {
        let Some(sqlite) = self.replays.last() else {
            return Ok(());
        };
        let per_second = |replay: &Replay| {
            let rate = |seconds: &f64| replay.events as f64 / seconds;
            Figures::new(replay.seconds.iter().map(rate).collect())
        };
        let base = per_second(sqlite).median();
        writeln!(out, "| replay | events | events/s | divided by SQLite |")?;
        writeln!(out, "|---|---|---|---|")?;
        for replay in &self.replays {
            let figures = per_second(replay);
            let ratio = round(figures.median() / base);
            writeln!(
                out,
                "| {} | {} | {} | {ratio} |",
                replay.name,
                replay.events,
                figures.shown()
            )?;
        }
        writeln!(out)
    }

    /// Every measurement.
    pub fn json(&self) -> Value {
        let peers = peers::all();
        let cell = |cell: &Cell| {
            json!({
                "store": peers[cell.peer].name(),
                "threads": cell.threads,
                "appends_per_second": cell.per_second,
                "appends": cell.appends,
                "refused": cell.refused,
                "least_served": cell.least_served,
                "best_served": cell.best_served,
                "p50_micros": cell.p50_micros,
                "p99_micros": cell.p99_micros,
                "idle_share": cell.idle,
            })
        };
        let replay = |replay: &Replay| json!({ "what": replay.name, "events": replay.events, "seconds": replay.seconds });
        json!({
            "machine": {
                "cores": self.machine.cores,
                "processor": self.machine.processor,
                "kernel": self.machine.kernel,
                "file_system": self.machine.file_system,
                "idle_share_before": self.idle_before,
            },
            "sync_calls": peers.iter().map(|p| json!({ "store": p.name(), "call": p.sync_call() })).collect::<Vec<_>>(),
            "appends": self.appends.iter().map(cell).collect::<Vec<_>>(),
            "replays": self.replays.iter().map(replay).collect::<Vec<_>>(),
        })
    }
}
