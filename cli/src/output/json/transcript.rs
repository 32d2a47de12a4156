//! The kinds of transcripts.

use serde_json::{Map, Value};
use tenure_projection::transcript::{
    About, Branch, Branches, Finding, Findings, Kind, Origin, Reading, Tally, Weight,
};

use super::Object;

/// A digest in hexadecimal.
#[must_use]
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How often each kind was found.
fn counts(findings: &Findings, weight: Weight) -> Value {
    let of_weight = findings
        .tallies()
        .filter(|(kind, _)| kind.weight() == weight);
    let counts = of_weight.map(|(kind, tally)| (kind.as_str().to_owned(), tally.count.into()));
    Value::Object(counts.collect::<Map<_, _>>())
}

/// Kind `transcript`: the whole of it.
#[must_use]
pub fn transcript(
    file: &str,
    reading: &Reading,
    branches: &Branches,
    findings: &Findings,
) -> Object {
    let mut kinds: Map<String, Value> = Map::new();
    for record in &reading.records {
        let count = kinds.entry(reading.kind(record)).or_insert(0.into());
        *count = (count.as_u64().unwrap_or(0) + 1).into();
    }
    Object::new("transcript")
        .with("file", file)
        .with("host", reading.host.map(|h| h.as_str()))
        .with("session", reading.session.map(|s| s.to_string()))
        .with("bytes", reading.bytes())
        .with("record_bytes", reading.shares.records)
        .with("separator_bytes", reading.shares.separators)
        .with("damaged_bytes", reading.shares.damage)
        .with("digest", hex(&reading.digest))
        .with("records", reading.records.len())
        .with("kinds", kinds)
        .with("branches", branches.branches.len())
        .with("repeated", branches.repeated.len())
        .with("unreachable", branches.unreachable())
        .with("faults", counts(findings, Weight::Fault))
        .with("oddities", counts(findings, Weight::Oddity))
}

/// Kind `transcript-branch`: one line of descent; numbers count from 1.
#[must_use]
pub fn branch(number: usize, branch: &Branch, reading: &Reading) -> Object {
    let (of, at) = match branch.origin {
        Origin::Fork { of, at } => (Some(of + 1), Some(&reading.records[at])),
        _ => (None, None),
    };
    let end = |record: Option<&usize>| record.map(|n| reading.records[*n].span.offset);
    Object::new("transcript-branch")
        .with("number", number)
        .with("origin", branch.origin.as_str())
        .with("of", of)
        .with("at_offset", at.map(|r| r.span.offset))
        .with("at_line", at.map(|r| r.line))
        .with("at_id", at.and_then(|r| r.id).map(|id| id.to_string()))
        .with("sidechain", branch.sidechain)
        .with("records", branch.records.len())
        .with("first_offset", end(branch.records.first()))
        .with("last_offset", end(branch.records.last()))
}

/// Kind `transcript-finding`: one fault, or all oddities of a kind with the place of the first.
#[must_use]
pub fn finding(finding: &Finding, count: u64) -> Object {
    let about = match finding.about {
        About::Place => None,
        about => Some(about.to_string()),
    };
    Object::new("transcript-finding")
        .with("kind", finding.kind.as_str())
        .with("weight", finding.kind.weight().as_str())
        .with("count", count)
        .with("offset", finding.offset)
        .with("bytes", finding.bytes)
        .with("line", finding.line)
        .with("about", about)
        .with("meaning", finding.kind.meaning())
}

/// What is printed of findings: every fault that is listed, what of a kind is not listed as one, oddities by kind.
#[must_use]
pub fn told(findings: &Findings) -> Vec<(Finding, u64)> {
    let mut told: Vec<(Finding, u64)> = findings.listed().into_iter().map(|f| (f, 1)).collect();
    let listed = |kind: Kind| told.iter().filter(|(f, _)| f.kind == kind).count() as u64;
    let rest = |(kind, tally): (Kind, Tally)| {
        let more = tally.count - listed(kind);
        (more > 0).then_some((tally.first, more))
    };
    let rest: Vec<_> = findings.tallies().filter_map(rest).collect();
    told.extend(rest);
    told
}
