//! S3: what the log holds may be hostile. Nothing that a terminal obeys reaches one, by any command.

use crate::terminal::Terminal;

const BOMB: &str =
    "\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{7f}\u{202e}evil\u{2066}\r\nforged: line\u{0}";

/// The text as an argument can carry it.
fn bomb() -> String {
    BOMB.trim_end_matches('\0').to_owned()
}

fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[track_caller]
fn harmless(what: &str, text: &str) {
    if let Some(at) = text.find(is_obeyed) {
        panic!(
            "{what} prints {:?}",
            &text[at..].chars().take(8).collect::<String>()
        );
    }
}

fn mined() -> Terminal {
    let user = Terminal::new();
    let bomb = bomb();
    std::fs::write(user.file("bomb"), BOMB).expect("it writes");
    user.play("register api\nregister web");
    for args in [
        &[
            "dispatch",
            "login",
            "--to",
            "api",
            "--title",
            &bomb,
            "--body",
            "@bomb",
            "--write",
            &format!("src/{bomb}"),
        ][..],
        &["accept", "d1", "--as", "api@1"],
        &["note", "@bomb", "--as", "api@1"],
        &[
            "observe",
            &bomb,
            "--as",
            "api@1",
            "--wrote",
            &format!("lib/{bomb}"),
        ],
        &["send", "@bomb", "--to", "api"],
        &["dispatch", "style", "--to", "web"],
        &["fail", "d2", "--reason", &bomb],
        &[
            "adopt",
            "api",
            "--force",
            "--reason",
            &bomb,
            "--engine",
            &bomb,
            "--label",
            &format!("k={bomb}"),
        ],
        &["--actor", &bomb, "note", "x", "--as", "api@2"],
    ] {
        let ran = user.args(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        harmless(&format!("{args:?}"), &ran.out);
    }
    user.args(&[
        "report",
        "d1",
        "--as",
        "api@1",
        "--outcome",
        "done",
        "--body",
        "@bomb",
    ])
    .ended(10);
    user
}

#[test]
fn nothing_a_terminal_obeys_is_printed() {
    let user = mined();
    for line in [
        "status",
        "sessions --all",
        "show api",
        "show d1",
        "show d2",
        "show e1",
        "show r1",
        "work --all",
        "shared --path .",
        "shared --path lib",
        "inbox api",
        "inbox web",
        "check api@1",
        "who api",
        "who item:login",
        "who ./lib",
        "log",
        "refusals",
        "verify",
        "inspect store",
        "inspect store --hex",
    ] {
        for line in [
            line.to_owned(),
            format!("--json {line}"),
            format!("--color always {line}"),
        ] {
            let ran = user.run(&line);
            let text = ran.out + &ran.err;
            assert!(!text.is_empty(), "{line}");
            // Colour is this program's own; nothing else may look like it.
            let text = if line.contains("always") {
                without_style(&text)
            } else {
                text
            };
            harmless(&line, &text);
        }
    }
}

/// Takes out select-graphic-rendition sequences, which are all that this program sends.
fn without_style(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = behind
            .find(|c: char| !c.is_ascii_digit() && c != ';')
            .unwrap_or(behind.len());
        let is_style = behind[end..].starts_with('m');
        assert!(
            is_style,
            "a sequence that is no style: {:?}",
            &behind[..end]
        );
        rest = &behind[end + 1..];
    }
    plain + rest
}

/// A line break in a field is data: it cannot begin a line that looks like this program's.
#[test]
fn a_field_cannot_forge_a_line() {
    let user = mined();
    for line in [
        "show d1",
        "log",
        "work --all",
        "status",
        "inbox api",
        "refusals",
        "show api",
    ] {
        let ran = user.run(line).ended(0);
        for printed in ran.out.lines() {
            assert!(
                !printed.trim_start().starts_with("forged:"),
                "{line}: {printed:?}"
            );
        }
    }
    // Bodies keep their lines, each behind a bar.
    assert!(
        user.run("show d1")
            .out
            .lines()
            .any(|l| l.starts_with("  | forged: line"))
    );
}

/// Errors too: what the user typed comes back, and may have come from anywhere.
#[test]
fn errors_are_harmless_too() {
    let user = mined();
    let bomb = bomb();
    for args in [
        &["show", &bomb][..],
        &["register", &bomb],
        &["note", "x", "--as", &bomb],
        &[&bomb],
        &["who", "api", "--at", &bomb],
        &["--store", &bomb, "status"],
        &["report", "d1", "--as", "api@2", "--outcome", &bomb],
        &["exec", "--session", "job", "--", &bomb],
        &["adopt", "api"],
        &["--timeout", &bomb, "note", "x", "--as", "api@2"],
    ] {
        for json in [false, true] {
            let args = if json {
                [&["--json"], args].concat()
            } else {
                args.to_vec()
            };
            let ran = user.args(&args);
            assert_ne!(ran.code, 0, "{args:?}");
            assert_ne!(ran.code, 2, "{args:?}");
            harmless(&format!("{args:?}"), &ran.out);
            harmless(&format!("{args:?}"), &ran.err);
        }
    }
}

/// What comes out as JSON is what went in.
#[test]
fn json_gives_back_what_was_written() {
    let user = mined();
    let note = &user.list("log --kind noted")[0];
    assert_eq!(note["body"], BOMB);
    assert_eq!(user.json("show d1")["title"], bomb().as_str());
}
