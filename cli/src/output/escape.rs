//! Texts of the log are untrusted: what a terminal would obey is shown, never sent (S3).

use std::borrow::Cow;

use crate::zoo::planted;

/// Whether a terminal, or the order in which text is laid out, obeys this character: C0 and C1 controls, DEL,
/// and the bidirectional controls.
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// One line of text, with everything that is obeyed written out. A line break in it is data, and is written out
/// too: a title cannot forge a line of its own.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) || planted("raw-to-the-terminal") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if is_obeyed(c) && u32::from(c) < 0x100 => {
                shown.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            c if is_obeyed(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        assert_eq!(line("plain ünïcode 漢字 ✓"), "plain ünïcode 漢字 ✓");
        assert_eq!(line("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
        assert_eq!(line("a\nb\rc\td\0"), "a\\nb\\rc\\td\\x00");
        assert_eq!(line("\u{7f}\u{9b}2J"), "\\x7f\\x9b2J");
        assert_eq!(line("gpj.\u{202e}exe"), "gpj.\\u{202e}exe");
        assert_eq!(
            line("\u{2066}x\u{2069}\u{2028}"),
            "\\u{2066}x\\u{2069}\\u{2028}"
        );
    }

    #[test]
    fn nothing_that_is_obeyed_is_left() {
        let all: String = (0..0x1_0000).filter_map(char::from_u32).collect();
        assert!(!line(&all).contains(is_obeyed));
    }
}
