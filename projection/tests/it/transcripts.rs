//! Transcripts of agent hosts: what is read of any bytes, and which records make a branch.

use std::io::{self, Read};

use tenure_projection::transcript::{
    Branches, Findings, Host, Kind, Origin, Reading, Weight, read, separate,
};

mod branches;
mod bytes;
mod page;
mod writers;

/// A source that gives so many bytes at a time.
struct Drops<'a>(&'a [u8], usize);

impl Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.len().min(self.1).min(into.len());
        into[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}

fn reading(bytes: &[u8]) -> Reading {
    read(bytes, None, |_| {}).expect("a slice reads")
}

/// Reads and takes apart; whatever the bytes are, they are all accounted for, and every record is in one place.
#[track_caller]
fn taken(bytes: &[u8]) -> (Reading, Branches) {
    let reading = reading(bytes);
    let branches = separate(&reading);
    accounted(bytes, &reading, &branches);
    (reading, branches)
}

#[track_caller]
fn accounted(bytes: &[u8], reading: &Reading, branches: &Branches) {
    assert_eq!(reading.bytes(), bytes.len() as u64, "every byte is counted");
    let mut end = 0;
    let mut inside = 0;
    for record in &reading.records {
        assert!(record.span.offset >= end, "no byte is in two records");
        end = record.span.end();
        inside += record.span.bytes;
        let text = &bytes[record.span.offset as usize..end as usize];
        assert!(text.starts_with(b"{") && text.ends_with(b"}"));
        assert_eq!(blake3::hash(text).as_bytes()[..16], record.digest);
    }
    assert_eq!(inside, reading.shares.records);
    let damaged = reading.findings.listed();
    let damaged: u64 = damaged
        .iter()
        .filter(|f| DAMAGE.contains(&f.kind))
        .map(|f| f.bytes)
        .sum();
    if DAMAGE.iter().all(|k| reading.findings.count(*k) < 1000) {
        assert_eq!(damaged, reading.shares.damage, "all damage is listed");
    }
    let mut places = vec![0; reading.records.len()];
    let own = branches.branches.iter().flat_map(|b| &b.records);
    for number in own.chain(&branches.repeated) {
        places[*number] += 1;
    }
    assert!(
        places.iter().all(|n| *n == 1),
        "every record is in one place: {places:?}"
    );
    for (number, branch) in branches.branches.iter().enumerate() {
        if let Origin::Fork { of, at } = branch.origin {
            assert!(of < number, "a branch comes behind its source");
            assert!(branches.branches[of].records.contains(&at));
        }
    }
}

const DAMAGE: [Kind; 5] = [
    Kind::TornLine,
    Kind::TornTail,
    Kind::NulBlock,
    Kind::NotJson,
    Kind::StrayBom,
];

/// `kind@offset+bytes` of every fault, and `kind` of every oddity.
fn told(findings: &Findings) -> String {
    let faults = findings.listed();
    let faults = faults
        .iter()
        .map(|f| format!("{}@{}+{}", f.kind.as_str(), f.offset, f.bytes));
    let odd = findings
        .tallies()
        .filter(|(kind, _)| kind.weight() == Weight::Oddity);
    let odd = odd.map(|(kind, _)| kind.as_str().to_owned());
    faults.chain(odd).collect::<Vec<_>>().join(" ")
}

/// A record of Claude's: its id, the one that it continues (`-`: nothing), and what it is: `u` a prompt, `a` an
/// answer, `r` a result; `s` before it makes it a subagent's.
fn claude(id: &str, parent: &str, what: &str) -> String {
    let parent = match parent {
        "-" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    let sidechain = what.starts_with('s');
    let (kind, content) = match what.trim_start_matches('s') {
        "u" => ("user", "\"ask\"".to_owned()),
        "r" => (
            "user",
            "[{\"type\":\"tool_result\",\"tool_use_id\":\"t\"}]".to_owned(),
        ),
        "n" => ("attachment", "\"\"".to_owned()),
        answer => ("assistant", format!("\"say {answer}\"")),
    };
    let message = match what.trim_start_matches('s').strip_prefix('a') {
        Some(part) if !part.is_empty() => format!("\"id\":\"m{part}\","),
        _ => String::new(),
    };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":{sidechain},\"type\":\"{kind}\",\"message\":{{{message}\"role\":\"{kind}\",\"content\":{content}}},\"uuid\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"sessionId\":\"s\",\"extra\":{{\"deep\":[1,2.5e-3,true,null]}}}}"
    )
}

/// A record of Codex's with a turn, and an ordinal where it has one.
fn codex(ordinal: Option<u64>, kind: &str, turn: Option<&str>, text: &str) -> String {
    let ordinal = ordinal
        .map(|n| format!("\"ordinal\":{n},"))
        .unwrap_or_default();
    let turn = turn
        .map(|t| format!("\"turn_id\":\"{t}\","))
        .unwrap_or_default();
    format!(
        "{{\"timestamp\":\"2026-01-01T00:00:00.000Z\",{ordinal}\"type\":\"{kind}\",\"payload\":{{{turn}\"type\":\"message\",\"text\":\"{text}\"}}}}"
    )
}

#[test]
fn hosts_are_told_by_their_records() {
    let gemini = r#"{"sessionId":"g","projectHash":"h","startTime":"t","kind":"main"}"#;
    let cases = [
        (claude("a", "-", "u"), Some(Host::Claude)),
        (codex(None, "session_meta", None, ""), Some(Host::Codex)),
        (gemini.to_owned(), Some(Host::Gemini)),
        (r#"{"$set":{"summary":"x"}}"#.to_owned(), Some(Host::Gemini)),
        (
            r#"{"id":"m","timestamp":"t","type":"user","content":[]}"#.to_owned(),
            Some(Host::Gemini),
        ),
        (r#"{"n":1}"#.to_owned(), None),
        (String::new(), None),
    ];
    for (line, host) in cases {
        assert_eq!(taken(line.as_bytes()).0.host, host, "{line}");
    }
    let asked = read(&b"{\"n\":1}\n"[..], Some(Host::Codex), |_| {}).expect("a slice reads");
    assert_eq!(asked.host, Some(Host::Codex));
    assert_eq!(asked.kind(&asked.records[0]), "unknown");
}
