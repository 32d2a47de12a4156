//! Help, usage errors, completions, man pages, and what is never done.

use crate::terminal::Terminal;

const COMMANDS: &[&str] = &[
    "status",
    "sessions",
    "show",
    "work",
    "shared",
    "demo",
    "init",
    "register",
    "adopt",
    "retire",
    "check",
    "exec",
    "dispatch",
    "accept",
    "decline",
    "report",
    "cancel",
    "fail",
    "note",
    "observe",
    "outcome",
    "send",
    "inbox",
    "deliver",
    "ack",
    "wait",
    "who",
    "refusals",
    "log",
    "verify",
    "inspect",
    "store",
    "completions",
    "man",
];

#[test]
fn help_has_every_command_in_groups_and_the_exit_codes() {
    let user = Terminal::new();
    for line in ["--help", "-h"] {
        let help = user.run(line).ended(0).out;
        for group in [
            "Look:",
            "Sessions:",
            "Work:",
            "Mail:",
            "Audit:",
            "Forensics:",
            "Operate:",
        ] {
            assert!(help.contains(group), "{group} is not in {help}");
        }
        for command in COMMANDS {
            assert!(
                help.lines()
                    .any(|l| l.trim_start().split(' ').next() == Some(command)),
                "{command}"
            );
        }
        assert!(
            help.contains("Exit codes:")
                && help.contains("stale-generation, never-issued, retired")
        );
        assert!(help.contains("2 is never used"));
    }
}

#[test]
fn every_command_has_help() {
    let user = Terminal::new();
    for command in COMMANDS {
        let help = user.run(&format!("{command} --help")).ended(0).out;
        assert!(help.contains(&format!("Usage: tenure {command}")), "{help}");
    }
    assert!(user.run("--version").ended(0).out.starts_with("tenure "));
}

/// Trap 2 of the hosts: whatever is wrong with a command line is 64.
#[test]
fn usage_errors_are_64_and_never_2() {
    let user = Terminal::new();
    user.play("register api");
    for line in [
        "nonsense",
        "--nonsense",
        "register",
        "register a b",
        "dispatch x",
        "decline d1 --as api@1",
        "log -n x",
        "report d1 --as api@1 --outcome great",
        "accept 1 --as api@1",
        "accept e1 --as api@1",
        "ack x1 --as api@1",
        "note x --as api",
        "note x --as api@01",
        "note x --as @",
        "register b --label nothing",
        "log --since soon",
        "inspect",
        "completions klingon",
        "man nonsense",
        "retire",
        "send x --to api --re x1",
        "dispatch x --to api@0",
        "--timeout soon note x --as api@1",
        "check --as api@1",
    ] {
        let ran = user.run(line);
        let expected = if line == "note x --as @" {
            [74, 74]
        } else {
            [64, 64]
        };
        assert!(
            expected.contains(&ran.code),
            "{line}: {} {}",
            ran.code,
            ran.err
        );
        assert!(ran.out.is_empty() && !ran.err.is_empty(), "{line}");
        let json = user.run(&format!("--json {line}"));
        let object = json.objects().pop().expect("an object");
        assert_eq!(json.code, ran.code, "{line}");
        assert!(
            object["schema"] == "tenure.error.v1" || object["schema"] == "tenure.refusal.v1",
            "{line}"
        );
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let user = Terminal::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = user.run(&format!("completions {shell}")).ended(0).out;
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} lacks {command}");
        }
        assert!(!script.contains("...gate"), "{shell}");
    }
    let root = user.run("man").ended(0).out;
    assert!(
        root.starts_with(".ie") && root.contains(".TH tenure 1"),
        "{root}"
    );
    assert!(
        user.run("man register")
            .ended(0)
            .out
            .contains(".TH tenure-register 1")
    );
    user.play("man --dir pages");
    for command in COMMANDS {
        assert!(
            user.file(&format!("pages/tenure-{command}.1")).is_file(),
            "{command}"
        );
    }
    assert!(user.file("pages/tenure.1").is_file());
}

/// A reader that goes away is no error, and nothing panics.
#[test]
fn a_closed_pipe_is_quiet() {
    let user = Terminal::new();
    user.play("register api");
    let binary = env!("CARGO_BIN_EXE_tenure");
    let script = format!(
        "'{binary}' log -f -n 100 | head -n 1 >/dev/null; '{binary}' man | true; '{binary}' log | true"
    );
    let output = std::process::Command::new("timeout")
        .args(["20", "sh", "-c", &script])
        .env("TENURE_STORE", user.store())
        .env("HOME", user.path())
        .stdin(std::process::Stdio::null())
        .output();
    // `log -f` learns of it when it next has something to say; only what is said until then counts.
    let said = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
    assert!(
        !said.contains("panicked") && !said.contains("io:"),
        "{said}"
    );
}

/// Colour only where it is asked for, or at a terminal.
#[test]
fn colour_is_for_terminals() {
    let user = Terminal::new();
    user.play("register api");
    assert!(!user.run("show api").out.contains('\u{1b}'));
    assert!(user.run("--color always show api").out.contains('\u{1b}'));
    assert!(!user.run("--color never show api").out.contains('\u{1b}'));
    assert!(
        !user
            .run("--color always --json show api")
            .out
            .contains('\u{1b}')
    );
}
