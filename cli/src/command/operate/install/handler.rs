//! The handlers that a host's settings get, and how ours are known among others.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::fault::{quoted, shell_word};
use crate::hook::{Host, OnError};

/// A handler for one event.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// The event.
    pub event: &'static str,
    /// The entry in the event's list: an object with a `hooks` list of one.
    pub entry: Value,
}

/// Our hook, as settings have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Installed {
    /// The file.
    pub file: PathBuf,
    /// The program that it runs.
    pub program: PathBuf,
    /// What follows when nothing can be asked.
    pub on_error: OnError,
}

/// An event that is installed: what tools it is for, and how long the host waits, in seconds.
type Row = (&'static str, Option<&'static str>, u64);

const CLAUDE: &[Row] = &[
    ("SessionStart", None, 10),
    ("UserPromptSubmit", None, 5),
    (
        "PreToolUse",
        Some("Bash|Edit|MultiEdit|Write|NotebookEdit|mcp__.*"),
        5,
    ),
    ("PostToolUse", Some("Edit|MultiEdit|Write|NotebookEdit"), 5),
    ("Stop", None, 5),
    ("SubagentStart", None, 5),
    ("SubagentStop", None, 5),
    ("SessionEnd", None, 1),
];
// Older versions do not know the other events.
const CODEX: &[Row] = &[
    ("SessionStart", None, 10),
    ("UserPromptSubmit", None, 5),
    ("PreToolUse", Some("Bash|apply_patch|Edit|Write|mcp__.*"), 5),
    ("PostToolUse", Some("apply_patch|Edit|Write"), 5),
    ("Stop", None, 5),
];
const GEMINI: &[Row] = &[
    ("SessionStart", None, 10),
    ("BeforeAgent", None, 5),
    (
        "BeforeTool",
        Some("run_shell_command|write_file|replace|mcp_.*"),
        5,
    ),
    ("AfterTool", Some("write_file|replace"), 5),
    ("AfterAgent", None, 5),
    ("SessionEnd", None, 2),
];

/// The handlers of a host, in the order of its events.
pub fn wanted(host: Host, command: &str, on_error: OnError) -> Vec<Wanted> {
    let rows = match host {
        Host::Claude => CLAUDE,
        Host::Codex => CODEX,
        Host::Gemini => GEMINI,
    };
    let entry = |(event, matcher, seconds): &Row| {
        let mut handler = Map::new();
        if host == Host::Gemini {
            handler.insert("name".to_owned(), json!("tenure"));
        }
        handler.insert("type".to_owned(), json!("command"));
        handler.insert("command".to_owned(), json!(command));
        let unit = if host == Host::Gemini { 1000 } else { 1 };
        handler.insert("timeout".to_owned(), json!(seconds * unit));
        // That the program does not start is the host's to judge.
        let blocks = host == Host::Claude && *event == "PreToolUse" && on_error == OnError::Deny;
        if blocks {
            handler.insert("onFailure".to_owned(), json!("block"));
        }
        let mut entry = Map::new();
        if let Some(matcher) = matcher {
            entry.insert("matcher".to_owned(), json!(matcher));
        }
        entry.insert("hooks".to_owned(), json!([handler]));
        Wanted {
            event,
            entry: entry.into(),
        }
    };
    rows.iter().map(entry).collect()
}

/// The command line of a handler.
pub fn command(program: &Path, store: Option<&Path>, host: Host, on_error: OnError) -> String {
    let store = store
        .map(|dir| format!(" --store {}", shell_word(dir)))
        .unwrap_or_default();
    let policy = match on_error {
        OnError::Allow => "",
        OnError::Deny => " --on-error deny",
    };
    let (program, host) = (quoted(&program.to_string_lossy()), host.as_str());
    format!("{program}{store} hook --host {host}{policy}")
}

/// Whether a command line is one of ours: it runs a program called `tenure` with `hook`.
pub fn is_ours(command: &str) -> bool {
    parse(command, Path::new("")).is_some()
}

/// What a command line of ours says.
pub fn parse(command: &str, file: &Path) -> Option<Installed> {
    let (before, behind) = command.split_once(" hook")?;
    if !(behind.is_empty() || behind.starts_with(' ')) {
        return None;
    }
    let program = match before.strip_prefix('\'') {
        Some(quoted) => {
            let end = quoted
                .find("' --store ")
                .unwrap_or_else(|| quoted.rfind('\'').unwrap_or(0));
            quoted[..end].replace(r"'\''", "'")
        }
        None => before.split_whitespace().next()?.to_owned(),
    };
    let program = PathBuf::from(program);
    let named = program.file_name().is_some_and(|name| name == "tenure");
    named.then(|| Installed {
        file: file.to_owned(),
        program,
        on_error: match behind.contains("--on-error deny") {
            true => OnError::Deny,
            false => OnError::Allow,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_back_as_it_was_written() {
        for program in ["/opt/tenure", "/my tools/o'brien/tenure"] {
            for store in [None, Some(Path::new("/st ore/x"))] {
                for host in Host::ALL {
                    for on_error in [OnError::Allow, OnError::Deny] {
                        let line = command(Path::new(program), store, host, on_error);
                        let file = Path::new("settings.json");
                        let read = parse(&line, file).unwrap_or_else(|| panic!("{line}"));
                        let expected = Installed {
                            file: file.to_owned(),
                            program: program.into(),
                            on_error,
                        };
                        assert_eq!(read, expected, "{line}");
                    }
                }
            }
        }
        for other in [
            "tenure status",
            "echo tenure hook",
            "/x/guard hook",
            "tenure hooks",
            "",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
