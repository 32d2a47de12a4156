//! Links between pages, and to files and headings of the repository, lead somewhere.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none, markdown};

/// Joins a link to the directory of the page it stands in; `None` when it leaves the repository.
fn resolve(page: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn broken_links(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (page, text) in tree.ending(".md") {
        for (line, link) in markdown::links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = match link.split_once('#') {
                Some((file, anchor)) => (file, Some(anchor)),
                None => (link.as_str(), None),
            };
            let target = if file.is_empty() {
                Some(page.to_owned())
            } else {
                resolve(page, file)
            };
            let Some(target) = target.filter(|target| target.is_empty() || tree.has(target)) else {
                findings.push(format!("{page}:{line}: {link} leads nowhere"));
                continue;
            };
            if let (Some(anchor), Some(text)) = (anchor, tree.text(&target))
                && target.ends_with(".md")
                && !markdown::anchors(text).iter().any(|known| known == anchor)
            {
                findings.push(format!("{page}:{line}: {link} names no heading"));
            }
        }
    }
    findings
}

#[test]
fn links_lead_somewhere() {
    assert_none("broken links", broken_links(Tree::repository()));
}

#[test]
fn broken_links_are_flagged() {
    let tree = Tree::sample(&[
        (
            "README.md",
            "[a](docs/a.md) [b](docs/a.md#head-one) [c](docs) [d](https://example.org/x)\n[e](docs/none.md)",
        ),
        (
            "docs/a.md",
            "# Head one\n[up](../README.md) [here](#head-one)\n[f](#head-two)\n[g](../../out.md)\n",
        ),
    ]);
    let findings = broken_links(&tree);
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert_flagged(&findings, "README.md:2: docs/none.md");
    assert_flagged(&findings, "docs/a.md:3: #head-two");
    assert_flagged(&findings, "docs/a.md:4: ../../out.md");
}
