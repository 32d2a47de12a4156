//! The figures of kept runs as the table of `docs/reliability.md`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::RIGS;

/// Before the table in the page.
const BEGIN: &str = "<!-- figures: written by the runner from fuzz/figures -->\n\n";
/// Behind it.
const END: &str = "\n<!-- end of figures -->";

/// The page with its table as the kept figures say. A rig that was never run is shown so.
///
/// # Errors
/// When a kept file cannot be read or is none, or the page has no place for the table.
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
    let lost = || io::Error::other("the page has no marks around its figures");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(lost)?;
    let (_, after) = rest.split_once(END).ok_or_else(lost)?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
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
