//! The page's table of findings is that of the code.

use tenure_projection::transcript::Kind;

const PAGE: &str = include_str!("../../../../docs/transcripts.md");

#[test]
fn the_page_lists_every_kind_with_its_weight_and_meaning() {
    let rows = PAGE
        .split("<!-- kinds:")
        .nth(1)
        .expect("the page marks the table");
    let rows = rows
        .split("<!-- end of the kinds -->")
        .next()
        .expect("it ends");
    let rows: Vec<&str> = rows.lines().filter(|l| l.starts_with("| `")).collect();
    let of_code = Kind::ALL.iter().map(|kind| {
        let weight = kind.weight().as_str();
        format!("| `{}` | {weight} | {} |", kind.as_str(), kind.meaning())
    });
    assert_eq!(rows, of_code.collect::<Vec<_>>());
}
