//! Lines about histories.

use tenure_core::history::ActivityKind;
use tenure_core::id::{Name, Position};
use tenure_projection::call::{Activity, Verb};

use super::{Words, name};

/// The activity that a word names, `KIND:ID`.
pub fn activity(text: &str) -> Activity {
    let (kind, id) = text.split_once(':').expect("KIND:ID");
    Activity {
        kind: ActivityKind::from_word(kind).expect("a kind of activity"),
        id: Name::parse(id).expect("an id"),
    }
}

fn position(text: &str) -> Position {
    Position(text.parse().expect("a position"))
}

/// The call that a line about a history asks for.
pub fn verb(words: &Words<'_>, first: &str) -> Verb {
    let second = words.plain.get(2).copied().unwrap_or_default();
    let named = |key| words.named.get(key).copied();
    match words.plain[0] {
        "record" => Verb::Record {
            kind: words.text("kind").unwrap_or_else(|| "text".into()),
            body: first.into(),
            expect: named("expect").map(position),
            opens: named("opens").map(activity),
            closes: named("closes").map(activity),
        },
        "revert" => Verb::Revert {
            to: position(first),
        },
        "branch" => Verb::Branch {
            source: name(first),
            name: name(second),
            at: named("at").map(position),
            bearer: words.bearer(),
            labels: words.labels(),
            checkout: None,
            in_tree: words.plain.get(3) == Some(&"in-tree"),
        },
        "import" => Verb::Import {
            from: first.into(),
            parent: words.text("origin"),
            hash: tenure_core::history::HistoryHash([7; 16]),
        },
        "rename" => Verb::Rename {
            name: name(first),
            to: name(second),
        },
        other => panic!("the scene knows no {other}"),
    }
}
