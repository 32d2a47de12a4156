//! Nothing stands for code that is not written, and no test is switched off in silence.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none};

fn stubs(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        findings.extend(
            source
                .stubs
                .iter()
                .map(|stub| format!("{path}:{}: {}", stub.line, stub.text)),
        );
    }
    findings
}

#[test]
fn nothing_is_left_for_later() {
    assert_none("stubs", stubs(Tree::repository()));
}

#[test]
fn stubs_are_flagged() {
    // Put together here, so that a search of the tree for stubs does not find this file.
    let text = [
        "fn a() { to",
        "do!() }\nfn b() { unimp",
        "lemented!(\"x\") }\n#[test]\n#[ig",
        "nore]\nfn c() {}\n",
    ]
    .concat()
        + "#[test]\n#[ignore = \"needs root\"]\nfn d() {}\nfn todo() { todo(); }\n";
    let findings = stubs(&Tree::sample(&[("core/src/a.rs", &text)]));
    assert_eq!(findings.len(), 3, "{findings:?}");
    for needle in ["a.rs:1", "a.rs:2", "a.rs:4"] {
        assert_flagged(&findings, needle);
    }
}
