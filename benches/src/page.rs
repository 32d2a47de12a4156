//! A page that holds the tables of a run between two marks.

use std::io;
use std::path::Path;

/// Puts `tables` between the marks of a page, `<!-- NAME: begins -->` and `<!-- NAME: ends -->`.
///
/// # Errors
/// When the page has not both, in that order, or cannot be written.
pub fn replace(page: &Path, name: &str, tables: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let replaced = between(&text, name, tables).ok_or_else(|| {
        let page = page.display();
        io::Error::other(format!("{page} has no part between the marks of {name}"))
    })?;
    std::fs::write(page, replaced)
}

fn between(text: &str, name: &str, tables: &str) -> Option<String> {
    let (begin, end) = (
        format!("<!-- {name}: begins -->"),
        format!("<!-- {name}: ends -->"),
    );
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!(
        "{before}{begin}\n\n{}\n\n{end}{after}",
        tables.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let page = |inside| format!("a\n<!-- x: begins -->{inside}<!-- x: ends -->\nb\n");
        let expected = Some(page("\n\nnew\n\n"));
        assert_eq!(between(&page("\nold\n"), "x", "new\n"), expected);
        assert_eq!(between(&page("\n\nnew\n\n"), "x", "new"), expected);
        assert_eq!(between(&page(""), "y", "new"), None);
        assert_eq!(
            between("<!-- x: ends --><!-- x: begins -->", "x", "new"),
            None
        );
    }
}
