//! A host: a process of its own that runs its hooks as hosts do, through a shell, and hands on what they say.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::terminal::Terminal;

/// What a host does: each line is a payload; what the hook prints follows, then its exit code on a line of its own.
const SCRIPT: &str = r#"#!/bin/sh
while IFS= read -r line; do
    printf '%s' "$line" | sh -c "$HOOK"
    echo "rc=$?"
done
"#;

/// A host that is played.
pub struct Played {
    child: Child,
    into: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Played {
    /// Starts one that calls itself so; a name that is no host's finds out which one it plays.
    pub fn start(user: &Terminal, name: &str, env: &[(&str, &str)]) -> Self {
        let known = ["claude", "codex", "gemini"].contains(&name);
        let told = if known {
            format!(" --host {name}")
        } else {
            String::new()
        };
        let hook = format!("'{}' hook{told}", env!("CARGO_BIN_EXE_tenure"));
        Self::running(user, name, &hook, env)
    }

    /// Starts one that runs this hook.
    pub fn running(user: &Terminal, name: &str, hook: &str, env: &[(&str, &str)]) -> Self {
        let script = user.file(name);
        if !script.exists() {
            std::fs::write(&script, SCRIPT).expect("it writes");
            let may_run = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&script, may_run).expect("it may run");
        }
        let mut command = Command::new(&script);
        for (key, value) in user.command(&[]).get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        let mut child = command
            .current_dir(user.path())
            .env_remove("GEMINI_SESSION_ID")
            .env("HOOK", hook)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it runs");
        let into = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, into, from }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Sends a text, and gives what the hook printed.
    pub fn sends_text(&mut self, text: &str) -> String {
        assert!(!text.contains('\n'));
        writeln!(self.into, "{text}").expect("it listens");
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.from.read_line(&mut line).expect("it reads");
            assert!(read > 0, "the host ended: {all}");
            match line.strip_prefix("rc=") {
                Some(code) => {
                    assert_eq!(code.trim(), "0", "{all}");
                    return all;
                }
                None => all.push_str(&line),
            }
        }
    }

    /// Sends a payload; the object that was answered, if one was.
    #[track_caller]
    pub fn sends(&mut self, payload: &Value) -> Option<Value> {
        let said = self.sends_text(&payload.to_string());
        (!said.is_empty())
            .then(|| serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}")))
    }

    /// The tool may run, and nothing is said.
    #[track_caller]
    pub fn allows(&mut self, payload: &Value) {
        assert_eq!(self.sends(payload), None, "{payload}");
    }

    /// The tool may run, whatever is said.
    #[track_caller]
    pub fn runs(&mut self, payload: &Value) {
        if let Some(answer) = self.sends(payload) {
            let specific = &answer["hookSpecificOutput"];
            assert!(specific["additionalContext"].is_string(), "{answer}");
            assert_eq!(specific["permissionDecision"], Value::Null, "{answer}");
        }
    }

    /// The reason for which a tool may not run, in the form of Claude Code and Codex.
    #[track_caller]
    pub fn denies(&mut self, payload: &Value) -> String {
        let answer = self
            .sends(payload)
            .unwrap_or_else(|| panic!("{payload} is allowed"));
        let specific = &answer["hookSpecificOutput"];
        assert_eq!(specific["permissionDecision"], "deny", "{answer}");
        text(&specific["permissionDecisionReason"])
    }

    /// The context that the agent gets.
    #[track_caller]
    pub fn context(&mut self, payload: &Value) -> String {
        let answer = self
            .sends(payload)
            .unwrap_or_else(|| panic!("{payload} is not answered"));
        assert_eq!(
            answer["hookSpecificOutput"]["hookEventName"], payload["hook_event_name"],
            "{answer}"
        );
        text(&answer["hookSpecificOutput"]["additionalContext"])
    }

    /// The word to the person.
    #[track_caller]
    pub fn says(&mut self, payload: &Value) -> String {
        let answer = self
            .sends(payload)
            .unwrap_or_else(|| panic!("{payload} is not answered"));
        text(&answer["systemMessage"])
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"));
    assert!(text.starts_with("tenure: ") && text.len() > 10, "{text}");
    text.to_owned()
}
