//! Codex CLI: its events and tools. It takes the answers of Claude Code, and none with a key more: an answer that it does
//! not understand makes a failed hook, and the tool runs.

use std::path::PathBuf;

use serde_json::Value;

use super::claude;
use super::payload::{Kind, Touch, line, text};

/// Its events.
pub const EVENTS: &[(&str, Kind)] = claude::EVENTS;

/// What stands before a path in a patch.
const HEADS: &[&str] = &[
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Where a tool goes.
pub fn touch(tool: &str, input: &Value) -> Touch {
    match tool {
        "Bash" | "shell" | "local_shell" | "shell_command" | "exec_command" => {
            line(input, "workdir")
        }
        "apply_patch" => ["command", "input", "patch"]
            .into_iter()
            .find_map(|key| text(input, key))
            .or_else(|| input.as_str().map(ToOwned::to_owned))
            .map_or(Touch::Unknown, |patch| patched(&patch)),
        "read_file" | "list_dir" | "grep_files" | "view_image" | "update_plan" | "web_search" => {
            Touch::Nothing
        }
        other => claude::touch(other, input),
    }
}

/// The files that a patch names.
fn patched(patch: &str) -> Touch {
    let files: Vec<PathBuf> = patch
        .lines()
        .filter_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head)))
        .map(str::trim)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect();
    match files.is_empty() {
        true => Touch::Unknown,
        false => Touch::Files(files),
    }
}
