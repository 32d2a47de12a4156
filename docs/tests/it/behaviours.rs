//! `docs/behaviours.md`: every rule and case is listed once, with the tests that show it.
//!
//! A test says which rows it shows in its doc comment (`REG-4`, `F25`) or its name (`reg_4_...`, `f25_...`).
//! `UPDATE_EXPECT=1 cargo test -p tenure-docs` writes those tests into the page; what a person wrote stays.

use crate::tree::{self, Tree};
use crate::{assert_flagged, assert_none, markdown};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "docs/behaviours.md";

/// Rows by their prefix, numbered from 1 without gaps: 196.
const ROWS: &[(&str, usize)] = &[
    ("REG", 20),
    ("DIS", 17),
    ("BND", 5),
    ("OUT", 16),
    ("ADO", 13),
    ("NOT", 7),
    ("DSC", 13),
    ("TRE", 26),
    ("BRN", 24),
    ("ROL", 9),
    ("LIV", 20),
    ("GIT", 14),
    ("LOG", 9),
    ("AUD", 3),
];

/// Cases from public reports, by kind; numbers that are missing were never given.
const CASES: &[(&str, &[u8])] = &[
    (
        "A",
        &[1, 2, 4, 6, 8, 10, 11, 12, 14, 15, 16, 17, 18, 20, 21, 23],
    ),
    (
        "B",
        &[
            1, 3, 4, 5, 6, 8, 10, 11, 13, 15, 16, 18, 20, 22, 24, 25, 27, 28, 30,
        ],
    ),
    (
        "C",
        &[
            1, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16, 18, 20, 21, 23, 26, 27,
        ],
    ),
    ("D", &[1, 2, 4, 5, 7, 8, 9, 11, 12, 14, 15, 16, 17, 19]),
    (
        "E",
        &[
            1, 2, 4, 6, 7, 8, 11, 13, 14, 15, 17, 19, 21, 22, 24, 25, 26, 27,
        ],
    ),
    (
        "F",
        &[
            1, 2, 4, 5, 6, 7, 9, 11, 12, 14, 15, 17, 19, 21, 23, 25, 26, 27, 28, 29, 31, 33, 34,
            36, 38, 39, 40, 41, 43,
        ],
    ),
];

const OPEN: &str = "not built yet";
const NEVER: &str = "does not apply: ";

fn known_ids() -> Vec<String> {
    let rows = ROWS
        .iter()
        .flat_map(|(prefix, count)| (1..=*count).map(move |n| format!("{prefix}-{n}")));
    let cases = CASES
        .iter()
        .flat_map(|(kind, numbers)| numbers.iter().map(move |n| format!("{kind}{n:02}")));
    rows.chain(cases).collect()
}

/// The ids among the words of a text: `REG-4`, `F25`, and the same in a name, `reg_4` and `f25`.
fn ids_in(text: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let pairs = words
        .windows(2)
        .map(|pair| format!("{}-{}", pair[0], pair[1]));
    let single = words.iter().map(|word| (*word).to_owned());
    pairs
        .chain(single)
        .map(|word| word.to_ascii_uppercase())
        .filter(|word| known.contains(word))
        .collect()
}

/// Which tests say that they show which row: id to `crate::test`.
fn claims(tree: &Tree) -> BTreeMap<String, BTreeSet<String>> {
    let known: BTreeSet<String> = known_ids().into_iter().collect();
    let mut claims: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, source) in tree.sources() {
        let package = path.split(['/']).next().unwrap_or(path);
        for test in source.functions.iter().filter(|function| function.test) {
            let mut shown = ids_in(&test.name, &known);
            shown.extend(ids_in(&test.docs, &known));
            for id in shown {
                claims
                    .entry(id)
                    .or_default()
                    .insert(format!("{package}::{}", test.name));
            }
        }
    }
    claims
}

/// The last cell of a row, taken apart.
#[derive(Debug, PartialEq)]
enum Status<'a> {
    Open,
    Never,
    Tests {
        tests: BTreeSet<String>,
        note: &'a str,
    },
}

fn status(cell: &str) -> Option<Status<'_>> {
    if cell == OPEN
        || cell
            .strip_prefix(OPEN)
            .is_some_and(|why| why.starts_with(": "))
    {
        return Some(Status::Open);
    }
    if cell.strip_prefix(NEVER).is_some_and(|why| why.len() > 3) {
        return Some(Status::Never);
    }
    let (listed, note) = cell.split_once("; ").unwrap_or((cell, ""));
    let tests: Option<BTreeSet<String>> = listed
        .split(", ")
        .map(|name| Some(name.strip_prefix('`')?.strip_suffix('`')?.to_owned()))
        .collect();
    tests.map(|tests| Status::Tests { tests, note })
}

fn is_id(cell: &str) -> bool {
    let letters = cell.chars().take_while(char::is_ascii_uppercase).count();
    let number = cell[letters..].trim_start_matches('-');
    letters > 0 && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Rows of the page: line number from 1, id and last cell.
fn page_rows(page: &str) -> Vec<(usize, &str, &str)> {
    page.lines()
        .enumerate()
        .filter_map(|(at, line)| {
            let cells = markdown::cells(line)?;
            let (id, last) = (*cells.first()?, *cells.last()?);
            is_id(id).then_some((at + 1, id, last))
        })
        .collect()
}

fn listed_wrongly(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let known = known_ids();
    let mut count: BTreeMap<&str, usize> = known.iter().map(|id| (id.as_str(), 0)).collect();
    let mut findings = Vec::new();
    for (line, id, _) in page_rows(page) {
        match count.get_mut(id) {
            Some(count) => *count += 1,
            None => findings.push(format!("{PAGE}:{line}: {id} is no row")),
        }
    }
    findings.extend(
        count
            .iter()
            .filter(|(_, n)| **n != 1)
            .map(|(id, n)| format!("{PAGE}: {id} stands {n} times")),
    );
    findings
}

fn shown_wrongly(tree: &Tree) -> Vec<String> {
    let claims = claims(tree);
    let none = BTreeSet::new();
    let mut findings = Vec::new();
    for (line, id, cell) in page_rows(tree.text(PAGE).unwrap_or_default()) {
        let claimed = claims.get(id).unwrap_or(&none);
        let listed = match status(cell) {
            Some(Status::Tests { tests, .. }) => tests,
            Some(Status::Open | Status::Never) => BTreeSet::new(),
            None => {
                findings.push(format!(
                    "{PAGE}:{line}: {id}: {cell:?} is neither tests nor a reason"
                ));
                continue;
            }
        };
        findings.extend(
            claimed
                .difference(&listed)
                .map(|test| format!("{PAGE}:{line}: {id}: lacks {test}")),
        );
        findings.extend(
            listed
                .difference(claimed)
                .map(|test| format!("{PAGE}:{line}: {id}: no test {test} shows it")),
        );
    }
    findings
}

/// The page with the tests of the tree in its last column.
fn filled(tree: &Tree) -> String {
    let claims = claims(tree);
    let page = tree.text(PAGE).unwrap_or_default();
    let mut out = String::with_capacity(page.len());
    let rows: BTreeMap<usize, (&str, &str)> = page_rows(page)
        .into_iter()
        .map(|(line, id, cell)| (line, (id, cell)))
        .collect();
    for (at, line) in page.lines().enumerate() {
        match rows.get(&(at + 1)) {
            Some((id, cell)) => {
                let new = fill(cell, claims.get(*id));
                let kept = line.trim_end().strip_suffix('|').unwrap_or(line).trim_end();
                let kept = kept.strip_suffix(cell).unwrap_or(kept);
                out.push_str(&format!("{kept}{new} |"));
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

fn fill(cell: &str, claimed: Option<&BTreeSet<String>>) -> String {
    let parsed = status(cell);
    let Some(claimed) = claimed else {
        return if matches!(parsed, Some(Status::Tests { .. })) {
            OPEN.into()
        } else {
            cell.into()
        };
    };
    let tests = claimed
        .iter()
        .map(|test| format!("`{test}`"))
        .collect::<Vec<_>>()
        .join(", ");
    match parsed {
        Some(Status::Tests { note, .. }) if !note.is_empty() => format!("{tests}; {note}"),
        _ => tests,
    }
}

#[test]
fn every_row_is_listed_once() {
    assert_eq!(ROWS.iter().map(|(_, count)| count).sum::<usize>(), 196);
    assert_none("rows and cases", listed_wrongly(Tree::repository()));
}

#[test]
fn every_row_names_the_tests_that_show_it() {
    let tree = Tree::repository();
    if tree::update() {
        std::fs::write(tree::root().join(PAGE), filled(tree)).expect("the page can be written");
        return;
    }
    assert_none(
        "what shows the rows (UPDATE_EXPECT=1 writes it)",
        shown_wrongly(tree),
    );
}

/// A page with every row, except what the caller says of one.
fn page_but(id: &str, row: &str) -> String {
    let lines = known_ids().into_iter().map(|known| {
        if known == id {
            format!("{row}\n")
        } else {
            format!("| {known} | text | {OPEN} |\n")
        }
    });
    lines.collect()
}

#[test]
fn a_missing_doubled_or_unknown_row_is_flagged() {
    let listed = |page: &str| listed_wrongly(&Tree::sample(&[(PAGE, page)]));
    assert_eq!(listed(&page_but("", "")), Vec::<String>::new());
    assert_flagged(&listed(&page_but("REG-4", "")), "REG-4 stands 0 times");
    let row = "| F25 | text | not built yet |";
    assert_flagged(
        &listed(&page_but("F25", &format!("{row}\n{row}"))),
        "F25 stands 2 times",
    );
    assert_flagged(
        &listed(&format!("{}| REG-99 | text | x |\n", page_but("", ""))),
        "REG-99 is no row",
    );
}

/// A test's source, put together so that this file claims no row.
fn test_file(docs: &str, name: &str) -> String {
    format!("{docs}\n#[test]\nfn {name}() {{}}\nfn reg_5() {{}}\n")
}

#[test]
fn a_row_that_names_the_wrong_tests_is_flagged() {
    let check = |cell: &str, file: &str| {
        let page = page_but("REG-4", &format!("| REG-4 | text | {cell} |"));
        shown_wrongly(&Tree::sample(&[
            (PAGE, &page),
            ("core/tests/it/a.rs", file),
        ]))
    };
    let in_docs = test_file("/// Rows REG-4.", "stale");
    assert_eq!(check("`core::stale`", &in_docs), Vec::<String>::new());
    assert_eq!(
        check("`core::stale`; the library only", &in_docs),
        Vec::<String>::new()
    );
    assert_eq!(
        check("`core::reg_4_stale`", &test_file("", "reg_4_stale")),
        Vec::<String>::new()
    );
    assert_flagged(&check(OPEN, &in_docs), "REG-4: lacks core::stale");
    assert_flagged(
        &check("does not apply: it is old", &in_docs),
        "REG-4: lacks core::stale",
    );
    assert_flagged(
        &check("`core::stale`", &test_file("", "stale")),
        "no test core::stale shows it",
    );
    assert_flagged(&check("`core::gone`", ""), "no test core::gone shows it");
    assert_flagged(&check("soon", ""), "neither tests nor a reason");
    assert_flagged(&check("does not apply: ", ""), "neither tests nor a reason");
}

#[test]
fn filling_keeps_what_a_person_wrote() {
    let one: BTreeSet<String> = ["core::a".to_owned()].into();
    assert_eq!(fill(OPEN, Some(&one)), "`core::a`");
    assert_eq!(
        fill("`core::b`, `core::c`; no roles yet", Some(&one)),
        "`core::a`; no roles yet"
    );
    assert_eq!(
        fill("not built yet: comes with trees", None),
        "not built yet: comes with trees"
    );
    assert_eq!(fill("`core::b`", None), OPEN);
    let page = page_but("REG-4", "| REG-4 | a \\| b | not built yet |");
    let file = test_file("/// REG-4", "stale");
    let tree = Tree::sample(&[(PAGE, &page), ("core/tests/it/a.rs", &file)]);
    assert!(filled(&tree).contains("| REG-4 | a \\| b | `core::stale` |\n"));
    assert_eq!(filled(&tree).lines().count(), page.lines().count());
}
