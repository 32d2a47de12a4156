//! Which crate may depend on which: two leaves, one join, one shell.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none};

/// Package and what it may use of ours. Packages that are not named may use everything in `LIBRARIES`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("tenure-core", &[]),
    ("tenure-log", &[]),
    ("tenure-projection", &["tenure-core", "tenure-log"]),
    ("tenure", &["tenure-projection"]),
    (
        "tenure-compare",
        &[
            "tenure-benches",
            "tenure-core",
            "tenure-log",
            "tenure-projection",
        ],
    ),
];

/// What fuzz, benches and docs may use, and the shell's tests. Nothing depends on anything else.
const LIBRARIES: &[&str] = &["tenure-core", "tenure-log", "tenure-projection"];

/// One dependency as a manifest states it.
struct Edge {
    line: usize,
    to: String,
    development: bool,
}

fn edges(manifest: &str) -> Vec<Edge> {
    let mut edges = Vec::new();
    let (mut listed, mut development) = (false, false);
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_matches(['[', ']']);
            // `[dependencies]`, `[dependencies.NAME]`, `[target.'...'.dependencies]`.
            let (before, named) = match section.rsplit_once("dependencies.") {
                Some((before, name)) => (format!("{before}dependencies"), Some(name)),
                None => (section.to_owned(), None),
            };
            development = before.ends_with("dev-dependencies");
            listed = before.ends_with("dependencies") && !before.starts_with("workspace");
            if let (true, Some(name)) = (listed, named) {
                edges.push(Edge {
                    line: at + 1,
                    to: name.to_owned(),
                    development,
                });
                listed = false;
            }
        } else if listed && let Some((name, _)) = line.split_once(['=', '.']) {
            edges.push(Edge {
                line: at + 1,
                to: name.trim().to_owned(),
                development,
            });
        }
    }
    edges
}

fn package(manifest: &str) -> Option<&str> {
    let name = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name"))?;
    name.split('"').nth(1)
}

fn against_the_direction(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, manifest) in tree.ending("Cargo.toml") {
        let Some(package) = package(manifest) else {
            continue;
        };
        let row = MAY_USE.iter().find(|(name, _)| *name == package);
        for edge in edges(manifest) {
            let to = edge.to.as_str();
            let ours = to == "tenure" || to.starts_with("tenure-");
            // A crate may name itself for its tests, to switch on a feature of its own.
            let allowed = match row {
                Some((_, uses)) => uses.contains(&to) || (edge.development && to == package),
                None => LIBRARIES.contains(&to),
            };
            let shell_test = package == "tenure" && edge.development && LIBRARIES.contains(&to);
            if ours && !allowed && !shell_test {
                findings.push(format!("{path}:{}: {package} may not use {to}", edge.line));
            }
        }
    }
    findings
}

#[test]
fn crates_depend_downwards_only() {
    let tree = Tree::repository();
    for (name, _) in MAY_USE {
        let found = tree
            .ending("Cargo.toml")
            .any(|(_, manifest)| package(manifest) == Some(name));
        assert!(
            found,
            "no package {name}: the table of directions names what is not there"
        );
    }
    assert_none("direction of the crates", against_the_direction(tree));
}

#[test]
fn a_wrong_direction_is_flagged() {
    let tree = Tree::sample(&[
        (
            "core/Cargo.toml",
            "[package]\nname = \"tenure-core\"\n[dependencies]\ntenure-log = { workspace = true }\n",
        ),
        (
            "log/Cargo.toml",
            "[package]\nname = \"tenure-log\"\n[dependencies.tenure-core]\npath = \"../core\"\n[dev-dependencies]\ntenure-log = { path = \".\", features = [\"testkit\"] }\n",
        ),
        (
            "projection/Cargo.toml",
            "[package]\nname = \"tenure-projection\"\n[dependencies]\ntenure-core.workspace = true\ntenure-log = \"1\"\n[target.'cfg(unix)'.dependencies]\ntenure-fuzz = \"1\"\n",
        ),
        (
            "cli/Cargo.toml",
            "[package]\nname = \"tenure\"\n[dependencies]\ntenure-core = \"1\"\ntenure-projection = \"1\"\n[dev-dependencies]\ntenure-log = \"1\"\n",
        ),
        (
            "fuzz/Cargo.toml",
            "[package]\nname = \"tenure-fuzz\"\n[dependencies]\ntenure-core = \"1\"\n[build-dependencies]\ntenure = \"1\"\n",
        ),
    ]);
    let findings = against_the_direction(&tree);
    assert_eq!(findings.len(), 5, "{findings:#?}");
    assert_flagged(&findings, "core/Cargo.toml:4");
    assert_flagged(&findings, "log/Cargo.toml:3");
    assert_flagged(&findings, "projection/Cargo.toml:7");
    assert_flagged(&findings, "cli/Cargo.toml:4");
    assert_flagged(&findings, "fuzz/Cargo.toml:6");
}
