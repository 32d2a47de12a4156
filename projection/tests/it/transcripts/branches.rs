//! Which records make a branch: the tables of the page, row by row.

use tenure_projection::transcript::{Branches, Origin, Reading};

use super::{claude, codex, taken, told};

/// A transcript of Claude's: `ID PARENT WHAT` for each record, `note` for a note of the host, `about ID` for a note about
/// a record.
fn file(script: &str) -> String {
    let lines = script.split(',').map(str::trim).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["note"] => r#"{"type":"mode","mode":"x","sessionId":"s"}"#.to_owned(),
            ["about", id] => format!(r#"{{"type":"summary","summary":"x","leafUuid":"{id}"}}"#),
            ["snapshot", id] => format!(r#"{{"type":"file-history-snapshot","messageId":"{id}"}}"#),
            [id, parent, what] => claude(id, parent, what),
            _ => panic!("no record: {line}"),
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// Every branch: its origin, and its own records by id, those without one by their number.
fn shown(reading: &Reading, branches: &Branches) -> String {
    let name = |n: &usize| {
        reading.records[*n]
            .id
            .map_or(format!("#{n}"), |id| id.to_string())
    };
    let each = branches.branches.iter().map(|branch| {
        let origin = match branch.origin {
            Origin::Fork { of, at } => format!("{}/{}", of + 1, name(&at)),
            other => other.as_str().to_owned(),
        };
        let side = if branch.sidechain { "!" } else { "" };
        let records: Vec<String> = branch.records.iter().map(name).collect();
        format!("{origin}{side}:{}", records.join(" "))
    });
    each.collect::<Vec<_>>().join(" | ")
}

#[track_caller]
fn comes_apart(bytes: &str, expected: &str, findings: &str) {
    let (reading, branches) = taken(bytes.as_bytes());
    assert_eq!(shown(&reading, &branches), expected);
    let kinds = told(&branches.findings.clone().and(&reading.findings));
    let kinds: Vec<&str> = kinds
        .split(' ')
        .map(|f| f.split('@').next().unwrap_or(f))
        .collect();
    assert_eq!(kinds.join(" "), findings);
}

/// A01, A02, A20: what continues one record, as the table says; two that overwrote each other come apart, and a turn
/// with several calls stays whole.
#[test]
fn what_continues_a_record_is_a_branch_as_the_table_says() {
    let cases = [
        ("a - u, b a a, c b u", "start:a b c", ""),
        // Calls side by side: answers of one message, each with its result.
        (
            "a - u, b a a1, r b r, c b a1, s c r, d s a2",
            "start:a b r c s d",
            "parallel-calls",
        ),
        (
            "a - u, b a a1, c b a1, s c r, r b r, d r a2",
            "start:a b c s r d",
            "parallel-calls",
        ),
        (
            "a - u, n a n, b a a, m a n, c b u",
            "start:a n b m c",
            "parallel-calls",
        ),
        // A rewind: what was left, then what went on.
        (
            "a - u, b a a, c b u, d c a, e b u, f e a",
            "start:a b e f | 1/b:c d",
            "fork",
        ),
        (
            "a - u, b a a, c a u, d a u",
            "start:a d | 1/a:b | 1/a:c",
            "fork",
        ),
        // Two writers.
        (
            "a - u, b a a, c b u, e b u, d c a, f e a",
            "start:a b e f | 1/b:c d",
            "two-writers",
        ),
        (
            "a - u, b a a, c b u, e b u, f e a, d c a",
            "start:a b c d | 1/b:e f",
            "two-writers",
        ),
        (
            "a - u, b a a, c b u, e b u, x b u, d c a, f e a, y x a",
            "start:a b x y | 1/b:c d | 1/b:e f",
            "two-writers two-writers",
        ),
        // A fork of a branch.
        (
            "a - u, b a a, c b u, d c a, e c a, f b u",
            "start:a b f | 1/b:c e | 2/c:d",
            "fork",
        ),
        // What only a result or a note says is no branch.
        (
            "a - u, b a a, r b r, c b u, q b r",
            "start:a b r c q",
            "parallel-calls",
        ),
    ];
    for (script, expected, findings) in cases {
        comes_apart(&file(script), expected, findings);
    }
}

/// B22, B24, A16: records without a beginning of their own, doubled ids, circles: each as the table says, nothing is
/// joined over a gap, and ids of other kinds of records are other ids.
#[test]
fn what_does_not_hang_together_is_told_and_not_stitched() {
    let cases = [
        (
            "a - u, b a a, c - u, d c a",
            "start:c d | start:a b",
            "second-root",
        ),
        (
            "a - u, b a a, c gone u, d c a",
            "lost:c d | start:a b",
            "dangling-id",
        ),
        ("b gone a, c b u", "lost:b c", "dangling-id"),
        (
            "a - u, b b a, c b u",
            "start:a | unplaced:b c",
            "cycle unplaced unplaced",
        ),
        ("b c a, c b u", "unplaced:b c", "cycle unplaced unplaced"),
        (
            "b c a, note, c b u",
            "start:#1 | unplaced:b c",
            "cycle unplaced unplaced",
        ),
        ("b a a, a - u", "start:a b", "out-of-order"),
        (
            "c b u, b a a, a - u, d c a",
            "start:a b c d",
            "out-of-order",
        ),
        ("snapshot a, a - u, b a a", "start:#0 a b", ""),
        // A subagent's thread has its own branch, whoever says the last word.
        (
            "a - u, b a a, x b su, y x sa, c b u",
            "start:a b c | 1/b!:x y",
            "sidechain",
        ),
        (
            "a - u, x - su, y x sa, b a a, z y sa",
            "start:a b | start!:x y z",
            "sidechain",
        ),
    ];
    for (script, expected, findings) in cases {
        comes_apart(&file(script), expected, findings);
    }
    let again = file("a - u, b a a") + &file("b a a, c b u");
    let (reading, branches) = taken(again.as_bytes());
    assert_eq!(shown(&reading, &branches), "start:a b c");
    assert_eq!(branches.repeated, [2]);
    let other = file("a - u, b a a")
        + &claude("b", "a", "a").replace("say", "sing")
        + "\n"
        + &file("c b u");
    comes_apart(&other, "start:a b c | unplaced:b", "duplicate-id unplaced");
    let compacted = file("a - u, b a a")
        + &claude("c", "-", "n").replace(
            "\"parentUuid\":null",
            "\"parentUuid\":null,\"logicalParentUuid\":\"b\"",
        )
        + "\n"
        + &file("d c u");
    comes_apart(&compacted, "start:a b c d", "");
    let session = file("a - u")
        + &claude("b", "a", "a").replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\"")
        + "\n";
    comes_apart(&session, "start:a b", "second-session");
}

/// Notes stand in the branch that they name, else in the only one that was being written around them.
#[test]
fn notes_stand_where_the_table_says() {
    let cases = [
        ("note, a - u, note, b a a, note", "start:#0 a #2 b #4", ""),
        ("note", "start:#0", ""),
        (
            "about d, a - u, b a a, c b u, d c a, e b u",
            "start:a b e | 1/b:#0 c d",
            "fork",
        ),
        (
            "a - u, b a a, c b u, note, d c a, e b u",
            "start:a b e | 1/b:c #3 d",
            "fork",
        ),
        (
            "a - u, b a a, note, c b u, d c a, e b u",
            "start:a b e | 1/b:#2 c d",
            "fork",
        ),
        (
            "a - u, b a a, c b u, d c a, note, e b u",
            "start:a b e | 1/b:c d | unplaced:#4",
            "unplaced fork",
        ),
        (
            "a - u, b a a, c b u, d c a, e b u, note",
            "start:a b e #5 | 1/b:c d",
            "fork",
        ),
        // Two wrote at the same time: either may have written it, and only a name tells.
        (
            "a - u, note, b a a, c b u, e b u, note, d c a, f e a, note, about c",
            "start:a #1 b e f | 1/b:c d #9 | unplaced:#5 #8",
            "two-writers unplaced unplaced",
        ),
        // What a subagent wrote around it says nothing.
        (
            "a - u, x a su, note, y x sa, b a a",
            "start:a #2 b | 1/a!:x y",
            "sidechain",
        ),
    ];
    for (script, expected, findings) in cases {
        comes_apart(&file(script), expected, findings);
    }
}

/// Numbers of Codex's: `N` or `N:TURN` for each record.
fn numbered(script: &str) -> String {
    let lines = script.split(' ').enumerate().map(|(n, word)| {
        let (ordinal, turn) = word
            .split_once(':')
            .map_or((word, None), |(o, t)| (o, Some(t)));
        codex(ordinal.parse().ok(), "response_item", turn, &n.to_string()) + "\n"
    });
    lines.collect()
}

/// A02: numbers that come again, are left out or missing, each as the table says.
#[test]
fn numbers_that_come_again_are_a_second_writer() {
    let cases = [
        ("0 1 2 3", "start:#0 #1 #2 #3", ""),
        ("0 1 3", "start:#0 #1 #2", "ordinal-gap"),
        ("0 1 - 2", "start:#0 #1 #2 #3", "ordinal-missing"),
        (
            "0 1 2 1 2",
            "start:#0 #1 #2 | 1/#0:#3 #4",
            "ordinal-repeated",
        ),
        (
            "0 1 2 3 2 3",
            "start:#0 #1 #2 #3 | 1/#1:#4 #5",
            "ordinal-repeated",
        ),
        ("0 1 0 1", "start:#0 #1 | start:#2 #3", "ordinal-repeated"),
        // Written in turn: without a turn that is one writer's, either may have written the next.
        (
            "0 1 1 2 2 3",
            "start:#0 #1 | 1/#0:#2 | unplaced:#3 #4 #5",
            "ordinal-repeated unplaced unplaced unplaced",
        ),
        (
            "0 1:x 1:y 2:y 2:x 3 3 4:x 4:y",
            "start:#0 #1 #4 #7 | 1/#0:#2 #3 #8 | unplaced:#5 #6",
            "ordinal-repeated two-writers unplaced unplaced ordinal-gap ordinal-gap two-writers",
        ),
        // A turn that both inherited says nothing.
        (
            "0:x 1 1 2:x",
            "start:#0 #1 | 1/#0:#2 | unplaced:#3",
            "ordinal-repeated unplaced",
        ),
    ];
    for (script, expected, findings) in cases {
        comes_apart(&numbered(script), expected, findings);
    }
}

/// Without numbers nothing is taken apart, and turns that overlap are told.
#[test]
fn a_rollout_without_numbers_is_one_branch() {
    let turn = |turn| codex(None, "turn_context", Some(turn), "");
    let item = codex(None, "response_item", None, "x");
    let head = codex(None, "session_meta", None, "");
    let healthy = [
        &head,
        &turn("a"),
        &item,
        &turn("a"),
        &turn("b"),
        &item,
        &head,
    ];
    let join = |lines: &[&String]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    comes_apart(
        &join(&healthy),
        "start:#0 #1 #2 #3 #4 #5 #6",
        "second-header",
    );
    let overlapping = join(&[&head, &turn("a"), &turn("b"), &item, &turn("a")]);
    comes_apart(&overlapping, "start:#0 #1 #2 #3 #4", "two-writers");
}

/// Gemini's own habits are no faults: messages written again, rewinds, a head at each resume.
#[test]
fn a_chat_of_gemini_is_one_branch() {
    let head = r#"{"sessionId":"g","projectHash":"h","startTime":"t","kind":"main"}"#;
    let message = |id| format!(r#"{{"id":"{id}","timestamp":"t","type":"gemini","content":"x"}}"#);
    let set = r#"{"$set":{"lastUpdated":"t"}}"#;
    let (a, b) = (message("a"), message("b"));
    let back = r#"{"$rewindTo":"b"}"#;
    let file = [head, &a, set, &a, &b, back, head, &b]
        .map(|l| format!("{l}\n"))
        .concat();
    comes_apart(
        &file,
        "start:#0 a #2 a b #5 #6 b",
        "second-header rewritten rewind",
    );
    let lost = [head, &a, back].map(|l| format!("{l}\n")).concat();
    comes_apart(&lost, "start:#0 a #2", "dangling-id");
}
