//! The map of the code in `docs/architecture.md`: every room of every crate with the first sentence of its head
//! comment. The comment is the truth; `UPDATE_EXPECT=1 cargo test -p tenure-docs` writes the map anew.

use crate::tree::{self, Tree};
use crate::{assert_flagged, assert_none};
use std::collections::BTreeSet;
use std::fmt::Write;

const PAGE: &str = "docs/architecture.md";
const BEGIN: &str = "<!-- code map: written by the tidy test from the head comments -->\n";
const END: &str = "<!-- end of the code map -->\n";

/// Crates in the order a reader meets them; others follow by name.
const ORDER: &[&str] = &[
    "core",
    "log",
    "projection",
    "cli",
    "fuzz",
    "benches",
    "docs",
];

/// The first sentence of a file's head comment.
fn purpose(text: &str) -> String {
    let head = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim);
    let paragraph = head
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let sentence = match paragraph.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => paragraph,
    };
    // Links of rustdoc mean nothing on a page, and a bar would end the cell.
    sentence
        .replace("[`", "`")
        .replace("`]", "`")
        .replace('|', "\\|")
}

/// A room is a file directly under `src`, with the directory of its name; other directories give a room per file.
fn rooms(tree: &Tree, name: &str) -> BTreeSet<String> {
    let src = format!("{name}/src/");
    let mut rooms = BTreeSet::new();
    for (path, _) in tree.sources() {
        let Some(inside) = path.strip_prefix(&src) else {
            continue;
        };
        let room = match inside.split_once('/') {
            Some((directory, _)) => format!("{directory}.rs"),
            None => inside.to_owned(),
        };
        rooms.insert(if tree.has(&format!("{src}{room}")) {
            room
        } else {
            inside.to_owned()
        });
    }
    rooms
}

fn crates(tree: &Tree) -> Vec<&str> {
    let found: BTreeSet<&str> = tree
        .sources()
        .filter_map(|(path, _)| path.split_once("/src/"))
        .map(|(name, _)| name)
        .collect();
    let mut crates: Vec<&str> = found.into_iter().collect();
    crates.sort_by_key(|name| {
        ORDER
            .iter()
            .position(|known| known == name)
            .unwrap_or(ORDER.len())
    });
    crates
}

fn map(tree: &Tree) -> String {
    let mut map = String::new();
    for name in crates(tree) {
        let rooms = rooms(tree, name);
        let _ = write!(
            map,
            "\n### `{name}`\n\n| room | what it is for |\n|---|---|\n"
        );
        for room in rooms {
            let path = format!("{name}/src/{room}");
            let purpose = purpose(tree.text(&path).unwrap_or_default());
            let shown = room.trim_end_matches(".rs");
            let _ = writeln!(map, "| [`{shown}`](../{path}) | {purpose} |");
        }
    }
    map.push('\n');
    map
}

/// The page with its map replaced, or `None` when the page has no place for one.
fn with_map(page: &str, map: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{map}{END}{after}"))
}

fn differences(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let Some(wanted) = with_map(page, &map(tree)) else {
        return vec![format!("{PAGE}: has no place for the map of the code")];
    };
    let (have, want): (BTreeSet<&str>, BTreeSet<&str>) =
        (page.lines().collect(), wanted.lines().collect());
    let mut findings: Vec<String> = Vec::new();
    findings.extend(
        want.difference(&have)
            .map(|line| format!("{PAGE}: lacks {line}")),
    );
    findings.extend(
        have.difference(&want)
            .map(|line| format!("{PAGE}: not in the tree: {line}")),
    );
    if findings.is_empty() && page != wanted {
        findings.push(format!("{PAGE}: the map is out of order"));
    }
    findings
}

#[test]
fn the_map_names_every_room_once() {
    let tree = Tree::repository();
    if tree::update() {
        let page = tree.text(PAGE).expect("the page is there");
        let page = with_map(page, &map(tree)).expect("the page has a place for the map");
        std::fs::write(tree::root().join(PAGE), page).expect("the page can be written");
        return;
    }
    assert_none(
        "the code map (UPDATE_EXPECT=1 writes it anew)",
        differences(tree),
    );
}

#[test]
fn a_room_that_is_missing_dead_or_misdescribed_is_flagged() {
    let page = |rows: &str| {
        format!(
            "# A\n{BEGIN}\n### `core`\n\n| room | what it is for |\n|---|---|\n{rows}\n{END}z\n"
        )
    };
    let files = |page: &str| {
        Tree::sample(&[
            ("core/src/lib.rs", "//! Rules. More.\n"),
            (
                "core/src/decide.rs",
                "//! Decides [`A`],\n//! purely.\n//!\n//! Other.\n",
            ),
            ("core/src/decide/same.rs", "//! Below decide.\n"),
            ("core/src/bin/a.rs", "//! Alone.\n"),
            (PAGE, page),
        ])
    };
    let (bin, decide, lib) = (
        "| [`bin/a`](../core/src/bin/a.rs) | Alone. |\n",
        "| [`decide`](../core/src/decide.rs) | Decides `A`, purely. |\n",
        "| [`lib`](../core/src/lib.rs) | Rules. |\n",
    );
    let good = page(&[bin, decide, lib].concat());
    assert_eq!(differences(&files(&good)), Vec::<String>::new());
    assert_flagged(
        &differences(&files(&page(&[bin, lib].concat()))),
        "lacks | [`decide`]",
    );
    let dead = "| [`gone`](../core/src/gone.rs) | Gone. |\n";
    assert_flagged(
        &differences(&files(&page(&[bin, decide, dead, lib].concat()))),
        "not in the tree: | [`gone`]",
    );
    assert_flagged(
        &differences(&files(&good.replace("Rules.", "Bytes."))),
        "lacks | [`lib`]",
    );
    assert_flagged(
        &differences(&files(&page(&[bin, decide, lib, lib].concat()))),
        "out of order",
    );
    assert_flagged(&differences(&files("# A\n")), "no place");
}
