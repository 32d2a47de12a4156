//! One word per idea: the glossary has every word of the model, names what is there, and the code keeps to it.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none, markdown};

const PAGE: &str = "docs/glossary.md";

/// The words of the model: each needs a row.
const WORDS: &[&str] = &[
    "adopt",
    "binding",
    "branch",
    "disclosure",
    "dispatch",
    "envelope",
    "epoch",
    "frame",
    "generation",
    "grant",
    "holder",
    "incarnation",
    "item",
    "position",
    "receipt",
    "record",
    "refusal",
    "role",
    "session",
    "store",
    "token",
    "tree",
    "verdict",
];

/// Rows of the table whose head begins so.
fn table<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    page.lines()
        .skip_while(|line| markdown::cells(line).is_none_or(|cells| cells[0] != head))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .filter_map(markdown::cells)
        .collect()
}

fn code_names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn bad_words(tree: &Tree) -> Vec<String> {
    let rows = table(tree.text(PAGE).unwrap_or_default(), "word");
    let words: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('*')).collect();
    let mut findings = Vec::new();
    for word in WORDS {
        let times = words.iter().filter(|known| *known == word).count();
        if times != 1 {
            findings.push(format!("{PAGE}: {word} stands {times} times"));
        }
    }
    for pair in words.windows(2).filter(|pair| pair[0] >= pair[1]) {
        findings.push(format!("{PAGE}: {} stands behind {}", pair[1], pair[0]));
    }
    for row in &rows {
        for name in code_names(row.last().copied().unwrap_or_default()) {
            let found = tree.sources().filter(|(path, _)| path.contains("/src/"));
            if !found
                .into_iter()
                .any(|(_, source)| source.named.iter().any(|word| word.text == name))
            {
                findings.push(format!(
                    "{PAGE}: {} names {name}, which is not in the code",
                    row[0]
                ));
            }
        }
    }
    findings
}

/// Splits `FencingToken` and `fencing_token` into lower-case words.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words
                .last_mut()
                .expect("never empty")
                .extend(c.to_lowercase());
        }
    }
    words
}

/// Names in the rules, the join and the shell that use a word the glossary replaces.
fn avoided_words(tree: &Tree) -> Vec<String> {
    let rows = table(tree.text(PAGE).unwrap_or_default(), "not");
    let mut findings = Vec::new();
    if rows.is_empty() {
        findings.push(format!("{PAGE}: has no table of words that are not used"));
    }
    for (path, source) in tree.sources() {
        if !["core/src/", "projection/src/", "cli/src/"]
            .iter()
            .any(|room| path.starts_with(room))
        {
            continue;
        }
        for name in &source.named {
            for row in rows
                .iter()
                .filter(|row| words_of(&name.text).iter().any(|word| word == row[0]))
            {
                findings.push(format!(
                    "{path}:{}: {}: say {}",
                    name.line, name.text, row[1]
                ));
            }
        }
    }
    findings
}

#[test]
fn the_glossary_has_every_word_once_and_names_what_is_there() {
    assert_none("the glossary", bad_words(Tree::repository()));
}

#[test]
fn names_in_the_code_keep_to_the_glossary() {
    assert_none("words that are not used", avoided_words(Tree::repository()));
}

#[test]
fn wrong_words_are_flagged() {
    let rows: String = WORDS
        .iter()
        .map(|word| format!("| **{word}** | meaning | |\n"))
        .collect();
    let rows = rows.replace(
        "| **grant** | meaning | |",
        "| **grant** | meaning | `Grant`, `Gone` |",
    );
    let page = format!(
        "| word | meaning | in code |\n|---|---|---|\n{rows}\n\n| not | but |\n|---|---|\n| lease | grant |\n"
    );
    let code = "struct Grant;\nfn take_lease() {}\nstruct LeaseHold;\nfn please() {}";
    let tree = Tree::sample(&[
        (PAGE, &page),
        ("core/src/a.rs", code),
        ("log/src/a.rs", code),
    ]);
    assert_eq!(
        bad_words(&tree),
        ["docs/glossary.md: **grant** names Gone, which is not in the code"]
    );
    let avoided = avoided_words(&tree);
    assert_eq!(avoided.len(), 2, "{avoided:?}");
    assert_flagged(&avoided, "core/src/a.rs:2: take_lease: say grant");
    assert_flagged(&avoided, "core/src/a.rs:3: LeaseHold");
    let without = page
        .replace("| **item** | meaning | |\n", "")
        .replace("| **role**", "| **zrole**");
    let findings = bad_words(&Tree::sample(&[
        (PAGE, &without),
        ("core/src/a.rs", "struct Grant; struct Gone;"),
    ]));
    for needle in [
        "item stands 0 times",
        "role stands 0 times",
        "session stands behind zrole",
    ] {
        assert_flagged(&findings, needle);
    }
    assert_flagged(&avoided_words(&Tree::sample(&[(PAGE, "")])), "no table");
}
