//! The tidy test: the habits of the house as checks over the repository's own files.
//!
//! Each module holds one rule as a function from a [`tree::Tree`] to what it found, a test that runs
//! it over the repository, and tests that show a bad sample being flagged.

mod behaviours;
mod code_map;
mod direction;
mod glossary;
mod links;
mod machine_paths;
mod markdown;
mod names;
mod pages;
mod rust;
mod section;
mod size;
mod stubs;
mod tree;
mod unsafety;

/// Fails with one line per finding, so that a run lists everything that is to be done.
fn assert_none(rule: &str, findings: Vec<String>) {
    assert!(
        findings.is_empty(),
        "{rule}:\n  {}\n",
        findings.join("\n  ")
    );
}

/// Fails unless exactly one finding mentions `needle`: the negative control of a rule.
fn assert_flagged(findings: &[String], needle: &str) {
    let hits = findings
        .iter()
        .filter(|finding| finding.contains(needle))
        .count();
    assert_eq!(
        hits, 1,
        "wanted one finding with {needle:?}, got {findings:#?}"
    );
}
