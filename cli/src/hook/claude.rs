//! Claude Code: its events, its tools, its answers.

use serde_json::{Value, json};

use super::payload::{Kind, Touch, file, line};

/// Its events.
pub const EVENTS: &[(&str, Kind)] = &[
    ("SessionStart", Kind::Start),
    ("UserPromptSubmit", Kind::Prompt),
    ("PreToolUse", Kind::Before),
    ("PostToolUse", Kind::After),
    ("Stop", Kind::Stop),
    ("SubagentStart", Kind::ChildStart),
    ("SubagentStop", Kind::ChildStop),
    ("SessionEnd", Kind::End),
];

/// Where a tool goes.
pub fn touch(tool: &str, input: &Value) -> Touch {
    match tool {
        "Write" | "Edit" | "MultiEdit" => file(input, "file_path"),
        "NotebookEdit" => file(input, "notebook_path"),
        "Bash" => line(input, "cwd"),
        // A background task was checked when it began; what an agent below does is checked by its own calls.
        "Read" | "Grep" | "Glob" | "LS" | "NotebookRead" | "WebFetch" | "WebSearch"
        | "TodoWrite" | "Task" | "Agent" | "BashOutput" | "TaskOutput" | "AskUserQuestion"
        | "ExitPlanMode" | "ToolSearch" | "Skill" => Touch::Nothing,
        _ => Touch::Unknown,
    }
}

/// The tool does not run.
pub fn deny(word: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": word,
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }})
}

/// What the agent should know.
pub fn context(word: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": word, "additionalContext": text } })
}
