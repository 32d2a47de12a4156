//! Where `unsafe` may stand, and that the core is blind: no std, no unsafe code.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none};

/// The rooms that map memory, and the allocator of the rigs, which counts what is asked for; each use there says why it is sound. A room
/// is `path.rs` and `path/`. What is measured beside the store maps memory too.
const MAY_MAP_MEMORY: &[&str] = &[
    "log/src/control",
    "log/src/reader",
    "fuzz/src/allocator",
    "benches/compare/src/limits",
    "benches/compare/src/peers/lmdb",
];

fn in_room(path: &str, room: &str) -> bool {
    path.strip_prefix(room)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn unsafe_elsewhere(tree: &Tree, rooms: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        if !rooms.iter().any(|room| in_room(path, room)) {
            findings.extend(
                source
                    .unsafe_lines
                    .iter()
                    .map(|line| format!("{path}:{line}: unsafe")),
            );
        }
    }
    for room in rooms {
        let mut inside = tree
            .sources()
            .filter(|(path, _)| in_room(path, room))
            .peekable();
        if inside.peek().is_some() && inside.all(|(_, source)| source.unsafe_lines.is_empty()) {
            findings.push(format!("{room}: has no unsafe code and needs no exemption"));
        }
    }
    findings
}

fn core_not_blind(tree: &Tree) -> Vec<String> {
    let Some(source) = tree.source("core/src/lib.rs") else {
        return vec!["core/src/lib.rs: missing".into()];
    };
    ["no_std", "forbid(unsafe_code)"]
        .into_iter()
        .filter(|wanted| {
            !source
                .inner_attributes
                .iter()
                .any(|attribute| attribute == wanted)
        })
        .map(|wanted| format!("core/src/lib.rs: without #![{wanted}]"))
        .collect()
}

#[test]
fn unsafe_stands_only_where_memory_is_mapped() {
    assert_none(
        "unsafe",
        unsafe_elsewhere(Tree::repository(), MAY_MAP_MEMORY),
    );
}

#[test]
fn the_core_is_blind() {
    assert_none("the core", core_not_blind(Tree::repository()));
}

#[test]
fn unsafe_elsewhere_and_a_seeing_core_are_flagged() {
    let tree = Tree::sample(&[
        ("core/src/lib.rs", "#![no_std]\n#![deny(unsafe_code)]\n"),
        ("log/src/control.rs", "fn a() { unsafe { b() } }"),
        ("log/src/controller.rs", "fn a() {\n unsafe { b() } }"),
        (
            "log/src/macros.rs",
            "macro_rules! m { () => { unsafe { b() } } }",
        ),
        ("log/src/reader/map.rs", "fn a() {}"),
        ("log/src/text.rs", "// unsafe\nconst A: &str = \"unsafe\";"),
    ]);
    let findings = unsafe_elsewhere(&tree, MAY_MAP_MEMORY);
    assert_eq!(findings.len(), 3, "{findings:?}");
    assert_flagged(&findings, "log/src/controller.rs:2");
    assert_flagged(&findings, "log/src/macros.rs:1");
    assert_flagged(&findings, "log/src/reader: has no unsafe code");
    assert_eq!(
        core_not_blind(&tree),
        ["core/src/lib.rs: without #![forbid(unsafe_code)]"]
    );
}
