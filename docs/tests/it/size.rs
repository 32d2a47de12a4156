//! Lengths of files and functions. Thresholds only tighten, and an exemption that is no longer needed is a finding.

use crate::tree::Tree;
use crate::{assert_flagged, assert_none};

const FILE_LINES_SOFT: usize = 400;
const FILE_LINES_HARD: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, each with its reason: tables that are read as one, and tests over them.
const LONG_FILES: &[(&str, &str)] = &[];

/// Functions that may be longer: (file, function, reason).
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    (
        "cli/tests/it/agents/golden.rs",
        "every_documented_payload_is_answered_in_the_hosts_own_form",
        "one table: a row for every payload",
    ),
    (
        "cli/tests/it/agents/policy.rs",
        "another_live_engine_is_told_warned_about_or_refused",
        "one story under each policy, told once",
    ),
    (
        "cli/tests/it/bundles.rs",
        "a_copy_is_looked_at_with_every_command",
        "one table: a row for every command",
    ),
    (
        "cli/tests/it/histories.rs",
        "two_live_branches_are_isolated_both_ways_and_reopen_with_their_histories",
        "one story, told once",
    ),
    (
        "projection/src/guards/shell/verbs.rs",
        "classify",
        "one table: a row for every command of git",
    ),
    (
        "projection/tests/it/guards/shell.rs",
        "changing_commands_are_found_in_compound_lines",
        "one table: a row for every form of a line",
    ),
    (
        "projection/tests/it/guards/shell.rs",
        "commands_are_classified_as_the_table_says",
        "one table: a row for every command of git",
    ),
    (
        "core/tests/it/meeting.rs",
        "a_meeting_is_as_certain_as_what_proves_it",
        "one table: every combination",
    ),
    (
        "projection/tests/it/rules/tree/forged.rs",
        "cases",
        "one table: every forged event of a tree",
    ),
    (
        "projection/tests/it/rules/tree/forged.rs",
        "never",
        "one table: every fence that no event of a tree stands on",
    ),
    (
        "projection/tests/it/rules/forged.rs",
        "each_kind_of_event_is_honoured_under_its_own_fence_only",
        "one table: a line for every kind of event",
    ),
    (
        "projection/tests/it/rules/forged/lists.rs",
        "bad",
        "one table: every forged event",
    ),
    (
        "projection/tests/it/rules/idempotency.rs",
        "a_key_used_for_another_call_is_refused",
        "one table: a pair of calls for every argument",
    ),
    (
        "projection/tests/it/rules/limits.rs",
        "texts_are_limited",
        "one table: a row for every text",
    ),
    (
        "projection/tests/it/transcripts/bytes.rs",
        "damage_is_named_and_what_is_healthy_is_not",
        "one table: a row for every form of damage",
    ),
];

fn code(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.texts().filter(|(path, _)| {
        path.ends_with(".rs") || path.ends_with(".py") || path.starts_with(".ci/")
    })
}

/// Files above the soft limit: to be split soon, no reason to fail.
fn long_files(tree: &Tree) -> Vec<String> {
    code(tree)
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES_SOFT)
        .map(|(path, lines)| format!("{path}: {lines} lines, wanted {FILE_LINES_SOFT}"))
        .collect()
}

fn too_long_files(tree: &Tree, exempt: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in code(tree) {
        let lines = text.lines().count();
        if lines > FILE_LINES_HARD && !exempt.iter().any(|(file, _)| *file == path) {
            findings.push(format!("{path}: {lines} lines, at most {FILE_LINES_HARD}"));
        }
    }
    for (path, _) in exempt {
        if tree
            .text(path)
            .is_none_or(|text| text.lines().count() <= FILE_LINES_HARD)
        {
            findings.push(format!(
                "{path}: needs no exemption from the length of files"
            ));
        }
    }
    findings
}

fn too_long_functions(tree: &Tree, exempt: &[(&str, &str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for (path, source) in tree.sources() {
        for function in source
            .functions
            .iter()
            .filter(|function| function.lines > FUNCTION_LINES_MAX)
        {
            let key = (path, function.name.as_str());
            if exempt.iter().any(|(file, name, _)| (*file, *name) == key) {
                used.push(key);
                continue;
            }
            let (line, name, lines) = (function.line, &function.name, function.lines);
            findings.push(format!(
                "{path}:{line}: {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"
            ));
        }
    }
    for (path, name, _) in exempt {
        if !used.contains(&(path, name)) {
            findings.push(format!(
                "{path}: {name} needs no exemption from the length of functions"
            ));
        }
    }
    findings
}

#[test]
fn files_are_short() {
    for line in long_files(Tree::repository()) {
        eprintln!("warning: {line}");
    }
    assert_none(
        "files that are too long",
        too_long_files(Tree::repository(), LONG_FILES),
    );
}

#[test]
fn functions_are_short() {
    assert_none(
        "functions that are too long",
        too_long_functions(Tree::repository(), LONG_FUNCTIONS),
    );
}

#[test]
fn a_long_file_is_flagged_one_past_the_limit() {
    let at = |lines: usize| Tree::sample(&[("core/src/a.rs", &"//\n".repeat(lines))]);
    assert!(long_files(&at(FILE_LINES_SOFT)).is_empty());
    assert_flagged(&long_files(&at(FILE_LINES_SOFT + 1)), "core/src/a.rs");
    assert!(too_long_files(&at(FILE_LINES_HARD), &[]).is_empty());
    assert_flagged(
        &too_long_files(&at(FILE_LINES_HARD + 1), &[]),
        "core/src/a.rs",
    );
    assert!(too_long_files(&at(FILE_LINES_HARD + 1), &[("core/src/a.rs", "a table")]).is_empty());
    assert_flagged(
        &too_long_files(&at(1), &[("core/src/a.rs", "a table")]),
        "needs no exemption",
    );
}

#[test]
fn a_long_function_is_flagged_one_past_the_limit() {
    let at = |lines: usize| {
        let text = format!(
            "fn short() {{}}\nfn long() {{\n{}}}\n",
            "f();\n".repeat(lines - 2)
        );
        Tree::sample(&[("core/src/a.rs", &text)])
    };
    let exempt = [("core/src/a.rs", "long", "a table")];
    assert!(too_long_functions(&at(FUNCTION_LINES_MAX), &[]).is_empty());
    assert_flagged(
        &too_long_functions(&at(FUNCTION_LINES_MAX + 1), &[]),
        "core/src/a.rs:2: long",
    );
    assert!(too_long_functions(&at(FUNCTION_LINES_MAX + 1), &exempt).is_empty());
    assert_flagged(
        &too_long_functions(&at(FUNCTION_LINES_MAX), &exempt),
        "needs no exemption",
    );
}
