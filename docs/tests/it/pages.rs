//! The pages themselves: each is in the index, its code is compiled, and every code block says its language.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none, markdown};

const INDEX: &str = "docs/README.md";
const COMPILED: &str = "docs/src/lib.rs";

fn pages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.ending(".md")
        .filter(|(path, _)| path.starts_with("docs/") && *path != INDEX)
}

fn not_in_the_index(tree: &Tree) -> Vec<String> {
    let links = markdown::links(tree.text(INDEX).unwrap_or_default());
    pages(tree)
        .filter(|(path, _)| {
            !links
                .iter()
                .any(|(_, link)| format!("docs/{link}") == *path)
        })
        .map(|(path, _)| format!("{path}: no line in {INDEX} leads to it"))
        .collect()
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
    assert_none(
        "pages outside the index",
        not_in_the_index(Tree::repository()),
    );
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
fn lost_untagged_and_uncompiled_pages_are_flagged() {
    let tree = Tree::sample(&[
        (INDEX, "[a](a.md) [b](adr/b.md)"),
        ("docs/a.md", "```rust\nlet a = 1;\n```\n```\nx\n```\n"),
        ("docs/adr/b.md", "```rust,no_run\nlet b = 1;\n```\n"),
        ("docs/lost.md", "text"),
        ("README.md", "```rust\nlet r = 1;\n```\n"),
        (
            COMPILED,
            "#[doc = include_str!(\"../a.md\")]\nstruct A;\n#[doc = include_str!(\"../../README.md\")]\nstruct R;",
        ),
    ]);
    assert_flagged(&not_in_the_index(&tree), "docs/lost.md");
    assert_eq!(
        blocks_without_language(&tree),
        ["docs/a.md:4: a code block without a language"]
    );
    let open = not_compiled(&tree);
    assert_eq!(open.len(), 1, "{open:?}");
    assert_flagged(&open, "docs/adr/b.md");
}
