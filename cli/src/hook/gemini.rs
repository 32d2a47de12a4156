//! Gemini CLI: its events, its tools, its answers.

use serde_json::{Value, json};

use super::payload::{Kind, Touch, file, line};

/// Its events.
pub const EVENTS: &[(&str, Kind)] = &[
    ("SessionStart", Kind::Start),
    ("BeforeAgent", Kind::Prompt),
    ("BeforeTool", Kind::Before),
    ("AfterTool", Kind::After),
    ("AfterAgent", Kind::Stop),
    ("SessionEnd", Kind::End),
];

/// Whether no other host has an event of that name.
pub fn is_its_own(word: &str) -> bool {
    ["Before", "After"]
        .iter()
        .any(|begin| word.starts_with(begin))
        || word == "PreCompress"
}

/// Where a tool goes.
pub fn touch(tool: &str, input: &Value) -> Touch {
    match tool {
        "write_file" | "replace" | "edit" => file(input, "file_path"),
        "run_shell_command" => {
            let named = ["dir_path", "directory"]
                .into_iter()
                .find(|key| input.get(key).is_some());
            line(input, named.unwrap_or("dir_path"))
        }
        "read_file"
        | "read_many_files"
        | "list_directory"
        | "glob"
        | "grep_search"
        | "search_file_content"
        | "google_web_search"
        | "web_fetch"
        | "save_memory"
        | "write_todos" => Touch::Nothing,
        _ => Touch::Unknown,
    }
}

/// The tool does not run.
pub fn deny(reason: &str) -> Value {
    json!({ "decision": "deny", "reason": reason })
}
