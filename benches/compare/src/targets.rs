//! What the figures are to reach, and whether they do.

use tenure_benches::figures::round;

use crate::appends::{Cell, Way};
use crate::peers::{DISK, OURS, SQLITE_ONE, SQLITE_TUNED, SQLITE_USED};
use crate::replay;
use crate::report::Report;

/// One of them.
pub struct Target {
    /// What is compared.
    pub what: String,
    /// What it is to reach.
    pub wanted: f64,
    /// Whether more is better.
    pub at_least: bool,
    /// What it reached; none where a part of it was not measured.
    pub seen: Option<f64>,
    /// What the numbers are.
    pub unit: &'static str,
}

impl Target {
    /// `pass`, `short`, or `not measured`.
    pub fn verdict(&self) -> &'static str {
        match self.seen {
            None => "not measured",
            Some(seen) if self.at_least && seen >= self.wanted => "pass",
            Some(seen) if !self.at_least && seen <= self.wanted => "pass",
            Some(_) => "short",
        }
    }

    /// A row of the table.
    pub fn row(&self) -> String {
        let sign = if self.at_least { ">=" } else { "<=" };
        let seen = self.seen.map_or_else(|| "-".to_owned(), round);
        format!(
            "| {} | {sign} {}{} | {seen} | {} |",
            self.what,
            round(self.wanted),
            self.unit,
            self.verdict()
        )
    }
}

/// The targets, being gathered.
struct Gathered(Vec<Target>);

impl Gathered {
    fn least(
        &mut self,
        what: impl Into<String>,
        wanted: f64,
        unit: &'static str,
        seen: Option<f64>,
    ) {
        self.push(what.into(), wanted, true, unit, seen);
    }

    fn most(
        &mut self,
        what: impl Into<String>,
        wanted: f64,
        unit: &'static str,
        seen: Option<f64>,
    ) {
        self.push(what.into(), wanted, false, unit, seen);
    }

    fn push(
        &mut self,
        what: String,
        wanted: f64,
        at_least: bool,
        unit: &'static str,
        seen: Option<f64>,
    ) {
        self.0.push(Target {
            what,
            wanted,
            at_least,
            seen,
            unit,
        });
    }
}

/// Every target, held against what was measured.
pub fn all(report: &Report) -> Vec<Target> {
    let mut all = Gathered(Vec::new());
    threads(report, &mut all);
    processes(report, &mut all);
    replays(report, &mut all);
    opening(report, &mut all);
    all.0
}

fn over(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a / b)
}

fn threads(report: &Report, all: &mut Gathered) {
    let rate =
        |peer: &str, n: usize| report.median(peer, Way::Threads(n), |c| c.served.per_second());
    let p99 = |peer: &str, n: usize| report.median(peer, Way::Threads(n), |c| c.served.p99_micros);
    let ours = |n| rate(OURS, n);
    let plain = |n| rate(SQLITE_USED, n).map(|used| used.max(rate(SQLITE_ONE, n).unwrap_or(0.0)));
    let best_other = |n| {
        let ours = [DISK, OURS, SQLITE_USED, SQLITE_ONE, SQLITE_TUNED];
        let others = report.peers().filter(|peer| !ours.contains(peer));
        others.filter_map(|peer| rate(peer, n)).reduce(f64::max)
    };
    all.least(
        "1 thread / the disk's own write and sync",
        0.95,
        " x",
        over(ours(1), rate(DISK, 1)),
    );
    all.least(
        "1 thread / SQLite as used",
        1.0,
        " x",
        over(ours(1), rate(SQLITE_USED, 1)),
    );
    all.least(
        "4 threads / SQLite as used",
        2.8,
        " x",
        over(ours(4), rate(SQLITE_USED, 4)),
    );
    for (n, used, best, tuned) in [(16, 13.0, 9.0, 1.1), (64, 55.0, 30.0, 1.25)] {
        all.least(
            format!("{n} threads / SQLite as used"),
            used,
            " x",
            over(ours(n), rate(SQLITE_USED, n)),
        );
        all.least(
            format!("{n} threads / SQLite, its best plain form"),
            best,
            " x",
            over(ours(n), plain(n)),
        );
        all.least(
            format!("{n} threads / SQLite, batching"),
            tuned,
            " x",
            over(ours(n), rate(SQLITE_TUNED, n)),
        );
        all.least(
            format!("{n} threads / the best other store, tuned"),
            tuned,
            " x",
            over(ours(n), best_other(n)),
        );
    }
    all.most(
        "64 threads, p99 / the disk's own p99",
        3.0,
        " x",
        over(p99(OURS, 64), p99(DISK, 1)),
    );
    let batch = report.median(OURS, Way::Batch, |c| c.served.per_second());
    all.least("batches of 100 events", 400e3, "/s", batch);
}

fn processes(report: &Report, all: &mut Gathered) {
    for (n, ratio, p99) in [(4, 2.2, 2_000.0), (16, 4.5, 4_000.0)] {
        let of = |peer: &str, of: fn(&Cell) -> f64| report.median(peer, Way::Processes(n), of);
        let rate = |peer| of(peer, |c| c.served.per_second());
        all.least(
            format!("{n} processes / SQLite with as many"),
            ratio,
            " x",
            over(rate(OURS), rate(SQLITE_USED)),
        );
        let fair = of(OURS, |c| c.served.fairness() * 100.0);
        all.least(
            format!("{n} processes, least served of best"),
            90.0,
            " %",
            fair,
        );
        all.most(
            format!("{n} processes, p99"),
            p99,
            " us",
            of(OURS, |c| c.served.p99_micros),
        );
    }
}

fn replays(report: &Report, all: &mut Gathered) {
    let replays = report.replays.as_ref();
    let rate = |name: &str| replays?.way(name).map(|way| way.per_second().median());
    let bytes = |name: &str| {
        let way = replays?.way(name)?;
        let frame_bytes = replays?.bytes as f64 / way.events as f64;
        let scan = report.limits.as_ref()?.scan.median();
        Some(way.per_second().median() * frame_bytes / 1e9 / scan * 100.0)
    };
    all.least("replay of the whole state", 10e6, "/s", rate(replay::WHOLE));
    all.least(
        "replay of the whole state, of the scan bandwidth",
        12.0,
        " %",
        bytes(replay::WHOLE),
    );
    all.least(
        "replay of the whole state / SQLite",
        3.0,
        " x",
        over(rate(replay::WHOLE), rate(replay::SQLITE)),
    );
    all.least(
        "replay of the whole state / LMDB",
        1.7,
        " x",
        over(rate(replay::WHOLE), rate(replay::LMDB)),
    );
    all.least("authority alone", 20e6, "/s", rate(replay::FENCES));
    all.least(
        "authority alone / SQLite",
        6.0,
        " x",
        over(rate(replay::FENCES), rate(replay::SQLITE)),
    );
    all.least(
        "checksums, of the scan bandwidth",
        30.0,
        " %",
        bytes(replay::CHECKSUMS),
    );
    all.least("verify", 6e6, "/s", rate(replay::VERIFY));
    let peak = replays.map(|replays| replays.peak_bytes as f64 / f64::from(1 << 20));
    all.most(
        "private memory of a replay (set for 10^8 events)",
        200.0,
        " MiB",
        peak,
    );
}

fn opening(report: &Report, all: &mut Gathered) {
    let opening = report.opening.as_ref();
    let micros = opening.map(|o| o.open.median());
    let whole = report.replays.as_ref().and_then(|r| r.way(replay::WHOLE));
    let replayed = whole.map(|way| way.events as f64 / way.per_second().median() * 1e6);
    all.most("open, in process", 1_000.0, " us", micros);
    all.least(
        "open / replay of the whole state",
        500.0,
        " x",
        over(replayed, micros),
    );
    let processes = opening.and_then(|o| o.processes.as_ref().ok());
    let check = processes.map(|(check, _)| check.median());
    all.most("tenure check, whole process", 6_000.0, " us", check);
    let version = processes.map(|(_, version)| version.median());
    all.most(
        "tenure check / a process that only parses arguments",
        4.0,
        " x",
        over(check, version),
    );
    all.most(
        "who at a place, after open",
        50.0,
        " us",
        opening.map(|o| o.who.median()),
    );
    let session = opening.map(|o| o.session_bytes);
    all.most(
        "memory of a session beyond its name",
        256.0,
        " bytes",
        session,
    );
    let short = opening.map(|o| o.branch_short.median());
    let long = opening.map(|o| o.branch_long.median());
    all.most("branch, 100,000 records, no disk", 50.0, " us", long);
    all.most(
        "branch, 100,000 records / 10 records",
        1.2,
        " x",
        over(long, short),
    );
}
