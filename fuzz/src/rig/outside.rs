//! What comes from outside of the program, changed by chance: arguments, payloads of hooks, requests over the socket and
//! over HTTP, on a store that holds texts which a terminal would obey.
//!
//! What must hold: the program ends in time with a documented exit code and never by a panic; what it prints, a terminal
//! shows and does not obey; what it prints as JSON is JSON; a hook answers nothing or an object; a server answers what is
//! asked for next.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{Figures, Order, Outcome, for_each_seed};
use crate::hammer::Dice;
use crate::mutate::change;

mod screen;
mod server;

use screen::obeyed;

/// Exit codes of the page on the command line (`docs/cli.md`), but for the one of a fault.
const EXITS: &[i32] = &[0, 1, 3, 10, 11, 12, 13, 64, 65, 66, 69, 73, 74, 75, 77, 78];

/// Longest that a process may take, in seconds.
const PATIENCE: &str = "60";

/// What a terminal obeys, and what could forge a line.
const BOMB: &str =
    "\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{7f}\u{202e}evil\u{2066}\r\nforged: line";

/// Commands that come to an end by themselves and touch nothing but the store and the checkout.
const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["sessions", "--all"],
    &["show"],
    &["work"],
    &["shared"],
    &["init"],
    &["register"],
    &["adopt"],
    &["retire"],
    &["check"],
    &["dispatch", "--to"],
    &["accept"],
    &["decline"],
    &["report", "--outcome"],
    &["cancel"],
    &["fail"],
    &["handoff"],
    &["policy", "list"],
    &["note"],
    &["observe", "--wrote"],
    &["outcome"],
    &["tree"],
    &["release"],
    &["role", "take"],
    &["role", "check"],
    &["role", "list"],
    &["send", "--to"],
    &["inbox"],
    &["deliver"],
    &["ack"],
    &["record"],
    &["history"],
    &["branch"],
    &["lineage"],
    &["revert"],
    &["rename"],
    &["who"],
    &["timeline"],
    &["why"],
    &["refusals"],
    &["log"],
    &["audit"],
    &["diff"],
    &["replay"],
    &["impact"],
    &["receipt"],
    &["verify"],
    &["inspect"],
    &["transcript"],
    &["doctor"],
    &["completions"],
];

/// Words behind a command.
const WORDS: &[&str] = &[
    "api",
    "web",
    "api@1",
    "web@1",
    "api@2",
    "web@0",
    "d1",
    "d2",
    "e1",
    "e2",
    "r1",
    "d0",
    "d18446744073709551615",
    "session:api",
    "run:1",
    "--as",
    "--to",
    "--json",
    "--force",
    "--reason",
    "--body",
    "--write",
    "--session",
    "--at",
    "--all",
    "--pid",
    "none",
    "1",
    "0",
    "-1",
    "120",
    "10m",
    "99999999999999999999d",
    "2026-01-01T00:00:00Z",
    "-",
    "@bomb",
    "@@x",
    "@missing",
    "../..",
    ".",
    "/",
    "src/a",
    "done",
    "--if-idle",
    "--expect",
    "--parent",
    "@api",
    "--label",
    "a=b",
    "--title",
    "--",
    "-q",
    "--color",
    "always",
    "--help",
    "bash",
    "--title=x",
    "--timeout",
    "1s",
    "",
    "--limit",
    "3",
    "--format",
    "lead",
    "--on",
    "--re",
    "--idempotency-key",
    "k",
];

/// Runs the rig.
///
/// # Errors
/// When a part of it panics.
pub fn run(order: &Order) -> Result<Outcome, Box<dyn Error>> {
    let tried = |seed: u64, figures: &mut Figures| -> Result<(), Box<dyn Error>> {
        let stage = Stage::new(order)?;
        stage.arguments(seed, figures)?;
        stage.payloads(seed, figures)?;
        server::socket(&stage, seed, figures)?;
        server::web(order, seed, figures)
    };
    let figures = for_each_seed(order.seeds(2, 10, 2_000), tried)?;
    Ok(Outcome::Ran(figures))
}

/// A store with texts in it that a terminal would obey, and a checkout beside it.
struct Stage {
    room: tempfile::TempDir,
    program: PathBuf,
}

impl Stage {
    fn empty(order: &Order) -> Result<Self, Box<dyn Error>> {
        let room = tempfile::tempdir()?;
        std::fs::create_dir(room.path().join("checkout"))?;
        std::fs::write(room.path().join("checkout/bomb"), BOMB)?;
        let program = order.program.clone();
        Ok(Self { room, program })
    }

    fn new(order: &Order) -> Result<Self, Box<dyn Error>> {
        let stage = Self::empty(order)?;
        let write = format!("src/{BOMB}");
        for words in [
            &["register", "api", "--pid", "none", "--label", "a=b"][..],
            &["register", "web", "--pid", "none"],
            &[
                "dispatch", "one", "--to", "web", "--title", BOMB, "--body", "@bomb", "--write",
                &write,
            ],
            &["accept", "d1", "--as", "web@1"],
            &["note", "@bomb", "--as", "web@1"],
            &["send", "@bomb", "--to", "api", "--as", "web@1"],
            &["record", "@bomb", "--as", "web@1"],
            &["dispatch", "two", "--to", "api"],
            &["fail", "d2", "--reason", BOMB],
            &["adopt", "web", "--force", "--reason", BOMB, "--pid", "none"],
        ] {
            let out = stage.ask(words, b"")?;
            if !out.status.success() {
                let err = String::from_utf8_lossy(&out.stderr).into_owned();
                return Err(format!("{words:?} ended with {}: {err}", out.status).into());
            }
        }
        // One that is refused, with what it carried.
        stage.ask(&["note", "@bomb", "--as", "web@1"], b"")?;
        Ok(stage)
    }

    fn store(&self) -> PathBuf {
        self.room.path().join("store")
    }

    fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", PATIENCE]).arg(&self.program);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        for name in [
            "TENURE_TOKEN",
            "TENURE_TOKEN_FILE",
            "TENURE_SESSION",
            "NO_COLOR",
        ] {
            command.env_remove(name);
        }
        command
            .env("RUST_BACKTRACE", "0")
            .env("TENURE_STORE", self.store())
            .env("XDG_STATE_HOME", self.room.path().join("state"))
            .env("HOME", self.room.path())
            .current_dir(self.room.path().join("checkout"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn ask(&self, words: &[&str], input: &[u8]) -> std::io::Result<Output> {
        let mut child = self.command().args(words).spawn()?;
        let mut into = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        // Whoever does not read its input closes it.
        let _ = into.write_all(input);
        drop(into);
        child.wait_with_output()
    }

    fn arguments(&self, seed: u64, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
        let mut dice = Dice::new(seed);
        for _ in 0..60 {
            let command = COMMANDS[dice.roll(COMMANDS.len() as u64) as usize];
            let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            for _ in 0..dice.roll(7) {
                words.push(word(&mut dice));
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let out = self.ask(&words, BOMB.as_bytes())?;
            figures.count("arguments", 1);
            let named = judge(&words, &out).map(|line| format!("seed {seed}, {words:?}: {line}"));
            figures.violations.extend(named);
        }
        Ok(())
    }

    fn payloads(&self, seed: u64, figures: &mut Figures) -> Result<(), Box<dyn Error>> {
        let mut dice = Dice::new(seed);
        let cwd = self.room.path().join("checkout");
        let known: Vec<Vec<u8>> = payloads(&cwd.display().to_string());
        for _ in 0..40 {
            let mut bytes = known[dice.roll(known.len() as u64) as usize].clone();
            change(&mut bytes, &known, &mut dice);
            let host = ["claude", "codex", "gemini"][dice.roll(3) as usize];
            let words = [
                &["hook"][..],
                &["--host", host][..2 * dice.roll(2) as usize],
            ]
            .concat();
            let out = self.ask(&words, &bytes)?;
            figures.count("payloads of hooks", 1);
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            let is_answer = said.is_empty()
                || serde_json::from_str::<Value>(&said).is_ok_and(|value| value.is_object());
            let mut broken: Vec<String> = judge(&words, &out).into_iter().collect();
            if !is_answer || said.contains("this program is wrong") {
                broken.push(format!("it answers {said:?}"));
            }
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            let named = broken
                .into_iter()
                .map(|line| format!("seed {seed}, {words:?} {shown:?}: {line}"));
            figures.violations.extend(named);
        }
        Ok(())
    }
}

/// A word that is known, or one changed by chance.
fn word(dice: &mut Dice) -> String {
    let known = WORDS[dice.roll(WORDS.len() as u64) as usize];
    match dice.roll(6) {
        0 => BOMB.to_owned(),
        1 => {
            let mut bytes = known.as_bytes().to_vec();
            change(&mut bytes, &[BOMB.as_bytes().to_vec()], dice);
            // An argument has no zeros in it.
            bytes.retain(|byte| *byte != 0);
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => known.to_owned(),
    }
}

/// What hosts send.
fn payloads(cwd: &str) -> Vec<Vec<u8>> {
    let session = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";
    let event = |name: &str, more: &str| {
        let known =
            format!(r#""session_id":"{session}","cwd":"{cwd}","transcript_path":"/t.jsonl""#);
        format!(r#"{{{known},"hook_event_name":"{name}"{more}}}"#).into_bytes()
    };
    let tool = r#","tool_name":"Write","tool_input":{"file_path":"src/a","content":"x"}"#;
    let shell = r#","tool_name":"Bash","tool_input":{"command":"git commit -m x && rm -rf src"}"#;
    vec![
        event("SessionStart", r#","source":"startup""#),
        event("SessionEnd", r#","reason":"exit""#),
        event("UserPromptSubmit", r#","prompt":"do it""#),
        event("PreToolUse", tool),
        event("PostToolUse", tool),
        event("PreToolUse", shell),
        event(
            "BeforeTool",
            r#","tool_name":"write_file","tool_input":{"file_path":"src/a"}"#,
        ),
        event("Stop", r#","stop_hook_active":false"#),
        event("SubagentStop", ""),
    ]
}

/// What does not hold of an end: the first of it.
fn judge(words: &[&str], out: &Output) -> Option<String> {
    let err = String::from_utf8_lossy(&out.stderr);
    match (out.status.code(), out.status.signal()) {
        (Some(137), _) | (None, Some(9)) => return Some("it does not end".to_owned()),
        (Some(code), _) if EXITS.contains(&code) => {}
        _ => return Some(format!("it ends with {}: {err}", out.status)),
    }
    if err.contains("panicked") {
        return Some(format!("it panics: {err}"));
    }
    // Colour is obeyed where it was asked for.
    let is_plain = !words.contains(&"always");
    for bytes in [&out.stdout, &out.stderr] {
        if let Some(what) = obeyed(bytes, is_plain) {
            return Some(format!("a terminal obeys {what}"));
        }
    }
    let asks_json = words
        .iter()
        .take_while(|word| **word != "--")
        .any(|word| *word == "--json");
    let is_script = matches!(words[0], "completions" | "man") || words.contains(&"--help");
    if asks_json && out.status.success() && !is_script {
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        if let Some(Err(error)) = values.find(Result::is_err) {
            return Some(format!("no JSON: {error}: {text}"));
        }
    }
    None
}

/// Reads what a connection gives until it ends, or for some seconds.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // One that is cut gives what it gave.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}
