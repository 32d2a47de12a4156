//! The curves as tables, each line beside its prediction.

use std::fmt::Write;

use tenure_benches::figures::round;

use crate::measure::{Point, Thing};

/// Along what a store grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Events of a log with as many sessions.
    Events,
    /// Sessions, with as many steps behind their registrations.
    Sessions,
}

/// How a cost is to grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Growth {
    Flat,
    Logarithmic,
    Linear,
}

impl Growth {
    /// The steepest that still is this growth: the exponent from the last point but one to the last. A logarithm over
    /// one decade looks like a small power; timings move by a tenth or two by themselves.
    fn exponent_max(self) -> f64 {
        match self {
            Self::Flat => 0.10,
            Self::Logarithmic => 0.25,
            Self::Linear => 1.10,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Logarithmic => "logarithmic",
            Self::Linear => "linear at most",
        }
    }
}

impl Thing {
    fn name(self) -> &'static str {
        match self {
            Self::Append => "append, one durable event, us",
            Self::Batched => "append, one of up to 100 in a commit, us",
            Self::Branch => "branch, durable, us",
            Self::Open => "open, us",
            Self::Check => "open and check a token, us",
            Self::CheckProcess => "`tenure check`, whole process, us",
            Self::Who => "who at a place, us",
            Self::Replay => "replay of the whole state, s",
            Self::Verify => "verify, s",
            Self::Kept => "snapshot and what stands beside it, MiB",
            Self::Memory => "private memory of a replay, MiB",
        }
    }

    /// What `docs/performance.md` predicts, with the reasons there.
    fn predicted(self, axis: Axis) -> Growth {
        match (self, axis) {
            (Self::Append | Self::Batched | Self::Branch, _) => Growth::Flat,
            (Self::Open | Self::Check | Self::CheckProcess, Axis::Events) => Growth::Flat,
            (Self::Open | Self::Check | Self::CheckProcess, Axis::Sessions) => Growth::Linear,
            (Self::Who, _) => Growth::Logarithmic,
            (Self::Replay | Self::Verify | Self::Kept | Self::Memory, _) => Growth::Linear,
        }
    }
}

/// A table with a line for each thing and a column for each store.
pub fn shown(axis: Axis, points: &[Point]) -> String {
    let mut out = String::new();
    write(&mut out, axis, points).expect("writing to a string succeeds");
    out
}

fn write(out: &mut String, axis: Axis, points: &[Point]) -> std::fmt::Result {
    let along = match axis {
        Axis::Events => "events",
        Axis::Sessions => "sessions",
    };
    write!(out, "| {along} |")?;
    for point in points {
        write!(out, " {} |", round(point.at as f64))?;
    }
    writeln!(out, " exponent | predicted | |")?;
    writeln!(out, "|---|{}---|---|---|", "---|".repeat(points.len()))?;
    write!(out, "| frames |")?;
    for point in points {
        write!(out, " {} |", round(point.frames as f64))?;
    }
    writeln!(out, " | | |")?;
    let things: Vec<Thing> = points.first().map_or_else(Vec::new, |point| {
        point.seen.iter().map(|(thing, _)| *thing).collect()
    });
    for thing in things {
        let line: Vec<f64> = points.iter().filter_map(|point| point.of(thing)).collect();
        write!(out, "| {} |", thing.name())?;
        for seen in &line {
            write!(out, " {} |", round(*seen))?;
        }
        let growth = thing.predicted(axis);
        let exponent = exponent(points, &line);
        let shown = exponent.map_or_else(|| "-".to_owned(), |e| format!("{e:.2}"));
        let verdict = match exponent {
            None => "one point",
            Some(seen) if seen <= growth.exponent_max() => "as predicted",
            Some(_) => "steeper",
        };
        writeln!(out, " {shown} | {} | {verdict} |", growth.word())?;
    }
    writeln!(out)
}

impl Point {
    fn of(&self, wanted: Thing) -> Option<f64> {
        let found = self.seen.iter().find(|(thing, _)| *thing == wanted);
        found.map(|(_, seen)| *seen)
    }
}

/// The power with which the last decade grew.
fn exponent(points: &[Point], line: &[f64]) -> Option<f64> {
    let ([.., before, last], [.., low, high]) = (points, line) else {
        return None;
    };
    let grown = last.at as f64 / before.at as f64;
    Some((high / low).ln() / grown.ln())
}
