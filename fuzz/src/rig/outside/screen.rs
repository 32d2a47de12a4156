//! A terminal that shows what it is told and says what it would obey: the oracle of everything that is printed.

use vte::{Params, Parser, Perform};

/// What it met first that is not a letter, a line end, or, where colour was asked for, a colour.
#[derive(Default)]
struct Screen {
    is_plain: bool,
    obeyed: Option<String>,
}

impl Screen {
    fn obeys(&mut self, what: String) {
        self.obeyed.get_or_insert(what);
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if turns || matches!(c, '\u{7f}'..='\u{9f}') {
            self.obeys(format!("the character {}", c.escape_unicode()));
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte != b'\n' {
            self.obeys(format!("the control {byte:#04x}"));
        }
    }

    fn hook(&mut self, _: &Params, _: &[u8], _: bool, action: char) {
        self.obeys(format!("a device string {action:?}"));
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        self.obeys(format!("a command {params:?}"));
    }

    fn csi_dispatch(&mut self, _: &Params, _: &[u8], _: bool, action: char) {
        if self.is_plain || action != 'm' {
            self.obeys(format!("the sequence that ends with {action:?}"));
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, byte: u8) {
        self.obeys(format!("the escape {byte:#04x}"));
    }
}

/// What a terminal would obey of these bytes; nothing is plain text.
pub fn obeyed(bytes: &[u8], is_plain: bool) -> Option<String> {
    let mut screen = Screen {
        is_plain,
        obeyed: None,
    };
    Parser::new().advance(&mut screen, bytes);
    screen.obeyed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_sees_what_a_terminal_obeys() {
        assert_eq!(
            obeyed("plain text: \u{e9} \u{1f600}\n".as_bytes(), true),
            None
        );
        assert_eq!(obeyed(b"\x1b[31mred\x1b[0m", false), None);
        for bomb in [
            "\u{1b}[2J",
            "\u{1b}[31m",
            "\u{1b}]0;x\u{7}",
            "\r",
            "\u{7}",
            "\u{202e}",
            "\u{9b}31m",
            "\u{7f}",
            "\u{1b}c",
        ] {
            assert!(obeyed(bomb.as_bytes(), true).is_some(), "{bomb:?}");
        }
    }
}
