//! The map of the code in `docs/architecture.md`: every room of every crate with the first sentence of its head
//! comment. The comment is the truth; `UPDATE_EXPECT=1 cargo test -p tenure-docs` writes the map anew.

use crate::assert_flagged;
use crate::section::Section;
use crate::tree::Tree;
use std::collections::BTreeSet;
use std::fmt::Write;

const MAP: Section = Section {
    page: "docs/architecture.md",
    begin: "<!-- code map: written by the tidy test from the head comments -->\n",
    end: "<!-- end of the code map -->\n",
};

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
    let plain = sentence.replace("[`", "`").replace('|', "\\|");
    let mut pieces = plain.split("`]");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let target_end = piece.strip_prefix('(').and_then(|rest| rest.find(')'));
        shown.push('`');
        shown.push_str(&piece[target_end.map_or(0, |end| end + 2)..]);
    }
    shown
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

fn differences(tree: &Tree) -> Vec<String> {
    MAP.differences(tree, &map(tree))
}

#[test]
fn the_map_names_every_room_once() {
    let tree = Tree::repository();
    MAP.settle(tree, &map(tree));
}

#[test]
fn a_room_that_is_missing_dead_or_misdescribed_is_flagged() {
    let (begin, end) = (MAP.begin, MAP.end);
    let page = |rows: &str| {
        format!(
            "# A\n{begin}\n### `core`\n\n| room | what it is for |\n|---|---|\n{rows}\n{end}z\n"
        )
    };
    let files = |page: &str| {
        Tree::sample(&[
            ("core/src/lib.rs", "//! Rules. More.\n"),
            (
                "core/src/decide.rs",
                "//! Decides [`A`](x::A) or [`B`],\n//! purely.\n//!\n//! Other.\n",
            ),
            ("core/src/decide/same.rs", "//! Below decide.\n"),
            ("core/src/bin/a.rs", "//! Alone.\n"),
            (MAP.page, page),
        ])
    };
    let (bin, decide, lib) = (
        "| [`bin/a`](../core/src/bin/a.rs) | Alone. |\n",
        "| [`decide`](../core/src/decide.rs) | Decides `A` or `B`, purely. |\n",
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
