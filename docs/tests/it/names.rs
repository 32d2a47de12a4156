//! Names of files and modules: a room says what it is for, and has one place on the disk.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none};

/// Words that say nothing about what is inside.
const EMPTY_WORDS: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "manager", "managers", "misc",
];

fn empty_names(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    let is_empty = |name: &str| name.split('_').any(|word| EMPTY_WORDS.contains(&word));
    for (path, source) in tree.sources() {
        if path.trim_end_matches(".rs").split('/').any(is_empty) {
            findings.push(format!(
                "{path}: the name says nothing about what is inside"
            ));
        }
        for module in source
            .modules
            .iter()
            .filter(|module| is_empty(&module.text))
        {
            findings.push(format!(
                "{path}:{}: module {} says nothing",
                module.line, module.text
            ));
        }
    }
    findings
}

fn mod_files(tree: &Tree) -> Vec<String> {
    tree.ending("/mod.rs")
        .map(|(path, _)| format!("{path}: write foo.rs beside foo/"))
        .collect()
}

/// One integration test binary per crate: each further one links the whole crate again.
fn more_test_binaries(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for path in tree.paths() {
        let parts: Vec<&str> = path.split('/').collect();
        let [.., "tests", last] = parts[..] else {
            continue;
        };
        if last.ends_with(".rs") {
            findings.push(format!("{path}: tests belong to tests/it"));
        }
    }
    findings
}

/// Each file of the sources begins by saying what it is for.
fn without_head_comment(tree: &Tree) -> Vec<String> {
    tree.ending(".rs")
        .filter(|(path, text)| path.contains("/src/") && !text.starts_with("//!"))
        .map(|(path, _)| format!("{path}: begins without a head comment (//!)"))
        .collect()
}

#[test]
fn names_say_what_is_inside() {
    assert_none("empty names", empty_names(Tree::repository()));
}

#[test]
fn modules_are_files_beside_their_directory() {
    assert_none("mod.rs", mod_files(Tree::repository()));
}

#[test]
fn each_crate_has_one_test_binary() {
    assert_none("test binaries", more_test_binaries(Tree::repository()));
}

#[test]
fn each_source_file_says_what_it_is_for() {
    assert_none("head comments", without_head_comment(Tree::repository()));
}

#[test]
fn bad_names_are_flagged() {
    let tree = Tree::sample(&[
        ("core/src/path_utils.rs", "//! x"),
        ("core/src/common/a.rs", "//! x"),
        ("core/src/state/mod.rs", "//! x"),
        ("core/src/b.rs", "mod helpers {}\nmod commonly_used {}"),
        ("core/tests/late.rs", ""),
        ("core/tests/it/main.rs", ""),
    ]);
    let empty = empty_names(&tree);
    assert_eq!(empty.len(), 3, "{empty:?}");
    assert_flagged(&empty, "core/src/path_utils.rs");
    assert_flagged(&empty, "core/src/common/a.rs");
    assert_flagged(&empty, "core/src/b.rs:1");
    assert_eq!(
        mod_files(&tree),
        ["core/src/state/mod.rs: write foo.rs beside foo/"]
    );
    assert_eq!(
        more_test_binaries(&tree),
        ["core/tests/late.rs: tests belong to tests/it"]
    );
    assert_eq!(
        without_head_comment(&tree),
        ["core/src/b.rs: begins without a head comment (//!)"]
    );
}
