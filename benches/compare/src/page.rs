//! A page that holds the tables of a run between two marks.

use std::io;
use std::path::Path;

/// Begins the part that is replaced.
pub const BEGIN: &str = "<!-- compare: begins -->";
/// Ends it.
pub const END: &str = "<!-- compare: ends -->";

/// Puts `tables` between the marks of a page.
///
/// # Errors
/// When the page has not both, in that order, or cannot be written.
pub fn replace(page: &Path, tables: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let replaced = between(&text, tables).ok_or_else(|| {
        let page = page.display();
        io::Error::other(format!("{page} has no part between {BEGIN} and {END}"))
    })?;
    std::fs::write(page, replaced)
}

fn between(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!(
        "{before}{BEGIN}\n\n{}\n\n{END}{after}",
        tables.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, between};

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let expected = format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n");
        assert_eq!(between(&page, "new\n"), Some(expected.clone()));
        assert_eq!(between(&expected, "new"), Some(expected));
        assert_eq!(between("no marks", "new"), None);
        assert_eq!(between(END, "new"), None);
    }
}
