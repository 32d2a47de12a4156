//! Histories and branches for people.

use tenure_projection::core::id::{Moment, Position};
use tenure_projection::history::{ActivityView, RecordView};
use tenure_projection::views::{BranchView, Kinship, LineageView};

use super::Line;
use crate::clock::rfc3339;
use crate::output::{DIM, HEAD, PLAIN};

/// The head of a record; `origin` where an ancestor recorded it.
#[must_use]
pub fn record(record: &RecordView, origin: Option<&str>) -> Line {
    let mut line = format!(
        "{} {} {}",
        record.at.position,
        rfc3339(record.at.time),
        record.kind
    );
    let mut add = |word: &str, what: Option<&str>| {
        if let Some(what) = what {
            line.push_str(&format!(" {word} {what}"));
        }
    };
    add("of", origin);
    add("opens", record.opens.as_deref());
    add("closes", record.closes.as_deref());
    if record.hidden {
        line.push_str(" (hidden)");
    }
    (if record.hidden { DIM } else { HEAD }, line)
}

/// A revert among the records.
#[must_use]
pub fn revert(at: Moment, origin: &str, to: Position) -> Line {
    let (position, time) = (at.position, rfc3339(at.time));
    let back = match to.0 {
        0 => "to the beginning".to_owned(),
        _ => format!("to {to}"),
    };
    (
        DIM,
        format!("{position} {time} reverted {back} by {origin}"),
    )
}

/// Where a session was branched.
#[must_use]
pub fn branched(branch: &BranchView) -> String {
    match branch.at {
        Some(at) => format!(
            "branched from {} at position {} (record {}, prefix {})",
            branch.source, at.position, at.index, at.hash
        ),
        None => format!("branched from {}, empty", branch.source),
    }
}

/// One session of a lineage, as deep as it stands.
#[must_use]
pub fn lineage(view: &LineageView) -> Line {
    let style = match view.kinship {
        Kinship::Itself => HEAD,
        _ => PLAIN,
    };
    let mut line = format!(
        "{}{}: {} records",
        "  ".repeat(view.depth),
        view.session,
        view.records
    );
    if let Some(branch) = &view.branch {
        line.push_str(&format!(", {}", branched(branch)));
    }
    if !view.active {
        line.push_str(", retired");
    }
    (style, line)
}

/// How an activity stands.
#[must_use]
pub fn activity(view: &ActivityView, name: &str, session: &str, origin: &str) -> Vec<Line> {
    let place = |at: Moment| format!("position {} ({})", at.position, rfc3339(at.time));
    let by = match origin == session {
        true => String::new(),
        false => format!(" by {origin}"),
    };
    let mut lines = vec![
        (
            HEAD,
            format!("{name} of {session}: {}", view.state.as_str()),
        ),
        (PLAIN, format!("  opened{by} at {}", place(view.opened))),
    ];
    if let Some(ended) = view.ended {
        lines.push((PLAIN, format!("  ended at {}", place(ended))));
    }
    lines
}
