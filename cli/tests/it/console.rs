//! Pages with `console` blocks: their commands are run, and what they print is what the page shows.

use std::path::Path;
use std::process::{Command, Stdio};

/// A command of a page and what it prints.
pub struct Step {
    pub command: String,
    pub shown: Vec<String>,
}

/// The steps in the `console` blocks of a page.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            steps.push(Step {
                command: command.into(),
                shown: Vec::new(),
            });
        } else if inside {
            steps
                .last_mut()
                .expect("a block begins with a command")
                .shown
                .push(line.into());
        }
    }
    steps
}

/// Runs the steps in one shell behind `prelude`, so that its process lives through all of them, and gives what each printed.
pub fn run(steps: &[Step], room: &Path, prelude: &str) -> Vec<Vec<String>> {
    let mut script = format!("exec 2>&1\n{prelude}\n");
    for step in steps {
        script.push_str(&step.command);
        script.push_str("\necho '--- next'\n");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure"));
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = binary
        .parent()
        .expect("a binary is in a directory")
        .display();
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .current_dir(room)
        .env("PATH", format!("{bin}:{path}"))
        .env("TENURE_STORE", room.join("store"))
        .env("XDG_STATE_HOME", room.join("state"))
        .env("TENURE_ACTOR", "you@laptop")
        .env_remove("TENURE_TOKEN")
        .env_remove("TENURE_TOKEN_FILE")
        .stdin(Stdio::null())
        .output()
        .expect("a shell runs");
    let text = String::from_utf8(output.stdout).expect("output is text");
    let mut printed = vec![Vec::new()];
    for line in text.lines() {
        if line == "--- next" {
            printed.push(Vec::new());
        } else {
            printed
                .last_mut()
                .expect("never empty")
                .push(line.to_owned());
        }
    }
    printed
}

/// The line with what differs from run to run replaced: times, ages, processes, hosts, ids, directories.
pub fn plain(line: &str, room: &Path) -> String {
    let line = line
        .replace(&room.display().to_string(), "/you/project")
        // Kernels before 6.9 know a process by its start time.
        .replace("same pidfd inode", "same start time");
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let before = words.last().map(String::as_str).unwrap_or_default();
        let core = word.trim_end_matches([',', ';', ')', ':']);
        let rest = &word[core.len()..];
        let opened = core.trim_start_matches('(');
        let digits = !opened.is_empty() && opened.bytes().all(|b| b.is_ascii_digit());
        let replaced = match before {
            "pid" | "start" if digits => Some("N"),
            "on" if !core.contains('=') => Some("HOST"),
            _ if opened.len() == 27 && opened.starts_with("20") && opened.ends_with('Z') => {
                Some("TIME")
            }
            _ if opened.ends_with('s')
                && opened.len() < 5
                && opened.as_bytes()[0].is_ascii_digit() =>
            {
                Some("AGE")
            }
            _ if core.len() > 60 && core.split(':').count() == 3 => Some("RECEIPT"),
            _ if core.len() == 32 && core.bytes().all(|b| b.is_ascii_hexdigit()) => Some("ID"),
            _ => None,
        };
        words.push(replaced.map_or_else(|| word.to_owned(), |r| format!("{r}{rest}")));
    }
    words.join(" ").trim_end().to_owned()
}
