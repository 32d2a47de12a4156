//! The tables of `docs/reliability.md` that follow from the code and from kept runs: the figures, and the zoo.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::RIGS;
use super::zoo::{BUGS, told};

/// Before the table in the page.
const BEGIN: &str = "<!-- figures: written by the runner from fuzz/figures -->\n\n";
/// Behind it.
const END: &str = "\n<!-- end of figures -->";
/// Before and behind the table of planted bugs.
const ZOO: [&str; 2] = [
    "<!-- zoo: written by the runner from fuzz/src/rig/zoo/bugs.rs -->\n\n",
    "\n<!-- end of the zoo -->",
];

/// The page with its figures as they were kept, and the planted bugs as they are. A rig that was never run is shown so.
///
/// # Errors
/// When a kept file cannot be read or is none, or the page has no place for a table.
pub fn with_figures(page: &str, kept: &Path) -> io::Result<String> {
    let mut table = String::from("| rig | tried | found | run |\n|---|---|---|---|\n");
    for rig in RIGS {
        let row = match fs::read(kept.join(format!("{}.json", rig.name))) {
            Ok(bytes) => row(&serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "| not run | | |".to_owned(),
            Err(error) => return Err(error),
        };
        writeln!(table, "| `{}` {row}", rig.name).map_err(io::Error::other)?;
    }
    between(&between(page, [BEGIN, END], &table)?, ZOO, &zoo()?)
}

fn between(page: &str, [begin, end]: [&str; 2], table: &str) -> io::Result<String> {
    let lost = || io::Error::other(format!("the page has no marks {begin:?} and {end:?}"));
    let (before, rest) = page.split_once(begin).ok_or_else(lost)?;
    let (_, after) = rest.split_once(end).ok_or_else(lost)?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

fn zoo() -> io::Result<String> {
    let mut table = String::from("| bug | what it does | caught by |\n|---|---|---|\n");
    for bug in BUGS {
        let guards: Vec<_> = bug.guards.iter().copied().map(told).collect();
        let (name, what) = (bug.name, bug.what);
        writeln!(table, "| `{name}` | {what} | {} |", guards.join(", "))
            .map_err(io::Error::other)?;
    }
    Ok(table)
}

fn row(run: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let how = format!(
        "tier {}, seed {}, {} s, {} cores, Linux {}, commit {:.12}",
        run["tier"],
        run["seed"],
        run["seconds"],
        run["machine"]["cores"],
        text(&run["machine"]["kernel"]),
        text(&run["commit"]),
    );
    if let Some(reason) = run.get("skipped") {
        return format!("| skipped: {} | | {how} |", text(reason));
    }
    let counts = run["tried"].as_object().into_iter().flatten();
    let counts: Vec<_> = counts
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let found = run["violations"].as_array().map_or(0, Vec::len);
    format!("| {} | {found} | {how} |", counts.join(", "))
}
