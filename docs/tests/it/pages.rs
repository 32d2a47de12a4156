//! The pages themselves: each is in the index, its code is compiled, and every code block says its language.

use crate::section::Section;
use crate::tree::Tree;
use crate::{assert_flagged, assert_none, markdown};

const COMPILED: &str = "docs/src/lib.rs";
const INDEX: Section = Section {
    page: "docs/README.md",
    begin: "<!-- index: written by the tidy test from the pages' titles -->\n",
    end: "<!-- end of the index -->\n",
};

/// Every page with its title.
fn index(tree: &Tree) -> String {
    let mut index = "\n| page | about |\n|---|---|\n".to_owned();
    for (path, text) in tree.ending(".md") {
        let Some(page) = path.strip_prefix("docs/").filter(|_| path != INDEX.page) else {
            continue;
        };
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.unwrap_or("(has no title)");
        index.push_str(&format!("| [{page}]({page}) | {title} |\n"));
    }
    index.push('\n');
    index
}

/// An untagged block is taken for Rust by some readers and for text by others.
fn blocks_without_language(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, language) in markdown::fences(text) {
            if language.is_empty() {
                findings.push(format!("{path}:{line}: a code block without a language"));
            }
        }
    }
    findings
}

/// A page with Rust in it is compiled by the docs crate.
fn not_compiled(tree: &Tree) -> Vec<String> {
    let compiled = tree.text(COMPILED).unwrap_or_default();
    tree.ending(".md")
        .filter(|(_, text)| {
            markdown::fences(text)
                .iter()
                .any(|(_, tag)| tag.starts_with("rust"))
        })
        .filter(|(path, _)| {
            let from_src = match path.strip_prefix("docs/") {
                Some(page) => format!("include_str!(\"../{page}\")"),
                None => format!("include_str!(\"../../{path}\")"),
            };
            !compiled.contains(&from_src)
        })
        .map(|(path, _)| format!("{path}: has Rust that {COMPILED} does not compile"))
        .collect()
}

#[test]
fn every_page_is_in_the_index() {
    let tree = Tree::repository();
    INDEX.settle(tree, &index(tree));
}

#[test]
fn every_code_block_names_its_language() {
    assert_none("code blocks", blocks_without_language(Tree::repository()));
}

#[test]
fn every_page_with_rust_is_compiled() {
    assert_none(
        "pages that are not compiled",
        not_compiled(Tree::repository()),
    );
}

#[test]
fn a_page_outside_the_index_is_flagged() {
    let listed = "\n| page | about |\n|---|---|\n| [a.md](a.md) | A |\n\n";
    let text = format!("{}{listed}{}", INDEX.begin, INDEX.end);
    let good = [(INDEX.page, text.as_str()), ("docs/a.md", "# A\n")];
    let check = |files: &[_]| {
        let tree = Tree::sample(files);
        INDEX.differences(&tree, &index(&tree))
    };
    assert_eq!(check(&good), Vec::<String>::new());
    let lost = check(&[good[0], good[1], ("docs/adr/b.md", "# B\n")]);
    assert_flagged(&lost, "lacks | [adr/b.md](adr/b.md) | B |");
    assert_flagged(&check(&good[..1]), "not in the tree: | [a.md](a.md)");
}

#[test]
fn untagged_and_uncompiled_pages_are_flagged() {
    let tree = Tree::sample(&[
        ("docs/a.md", "```rust\nlet a = 1;\n```\n```\nx\n```\n"),
        ("docs/adr/b.md", "```rust,no_run\nlet b = 1;\n```\n"),
        ("README.md", "```rust\nlet r = 1;\n```\n"),
        (
            COMPILED,
            "#[doc = include_str!(\"../a.md\")]\nstruct A;\n#[doc = include_str!(\"../../README.md\")]\nstruct R;",
        ),
    ]);
    assert_eq!(
        blocks_without_language(&tree),
        ["docs/a.md:4: a code block without a language"]
    );
    let open = not_compiled(&tree);
    assert_eq!(open.len(), 1, "{open:?}");
    assert_flagged(&open, "docs/adr/b.md");
}
