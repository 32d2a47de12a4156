//! No path of anybody's machine stands in the repository.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none};

/// Beginnings of paths that exist on one machine only. Put together, so that this file is not a finding.
const MACHINE: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/tm", "p/wt"),
    concat!("/tm", "p/t-"),
];

fn machine_paths(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (at, line) in text.lines().enumerate() {
            for prefix in MACHINE {
                // Only where a path begins: `/srv/...` may go through a directory of the same name.
                let begins = line.match_indices(prefix).any(|(start, _)| {
                    let before = line[..start].chars().next_back();
                    before.is_none_or(|c| {
                        !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_' | '-' | '~' | '}')
                    })
                });
                if begins {
                    findings.push(format!("{path}:{}: {prefix}", at + 1));
                }
            }
        }
    }
    findings
}

#[test]
fn no_path_of_a_machine_stands_in_the_repository() {
    assert_none("paths of a machine", machine_paths(Tree::repository()));
}

#[test]
fn paths_of_a_machine_are_flagged() {
    let text = format!(
        "see {}ada/notes\ncd '{}x'\nsrv{}y is fine\n~/x too\n",
        MACHINE[0], MACHINE[3], MACHINE[3]
    );
    let findings = machine_paths(&Tree::sample(&[("docs/a.md", &text)]));
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert_flagged(&findings, "docs/a.md:1");
    assert_flagged(&findings, "docs/a.md:2");
}
