//! `docs/cli.md`, written from the definition of the command line: `UPDATE_EXPECT=1 cargo test -p tenure` writes
//! it anew, every other run compares it.

use std::fmt::Write;
use std::path::Path;

use crate::app;
use crate::exit;

const BEGIN: &str = "\
# The command line

<!-- written from the code by `UPDATE_EXPECT=1 cargo test -p tenure`; changes by hand are lost -->

`tenure` alone is `tenure status`. `tenure COMMAND --help` says what stands here.

- The store is `--store DIR`, else `$TENURE_STORE`, else `$XDG_STATE_HOME/tenure` (`~/.local/state/tenure`). It is made by
  `init`, or by the first `register` or `exec`.
- A TOKEN is `NAME@GENERATION`, or `@FILE` that holds one; where none is named, `$TENURE_TOKEN_FILE`, else `$TENURE_TOKEN`. A
  token with a secret, as sealed stores have them, may not stand in an argument.
- A TEXT is taken as it stands; `-` reads standard input, `@FILE` a file, and `@@...` is a text that begins with `@`.
- A WHEN is a position (`120`), an RFC 3339 time, or an age (`10m`, `2h`, `3d`).
- Where a command only looks, a session's name may be cut to its beginning of at least 6 characters, if only one begins so.
- Control characters of the log are written out wherever people read (`\\x1b`), and as `\\u001b` in JSON.
";

const JSON: &str = "
## JSON

`--json` prints one object, or one object a line for lists and streams; nothing else goes to standard output. Errors and
refusals are objects on standard output too. Every object names its kind: `\"schema\": \"tenure.<kind>.v1\"`. Times are RFC 3339
in UTC with microseconds. Fields may be added; none is removed or changes its meaning within v1.

A change answers its own kind (`grant`, `dispatch`, `accepted`, `envelope`, `record`, `branch`), else `done`; always with `position` and
`receipt`.

| kind | fields that are always there |
|---|---|
";

/// The contract. The tests of the command line read it from the page and hold every answer against it.
const KINDS: &[(&str, &str)] = &[
    (
        "grant",
        "token, session, generation, incarnation, position, receipt, chain, holder, former, labels, open, pending, repeated",
    ),
    (
        "session",
        "name, state, generation, incarnation, token, holder, tree, parent, branch_of, branch_at, labels, registered_at, last_seen, since, status, checkout, former, open, pending, delivered, cursor, aliases, records, tip, activities, imported",
    ),
    (
        "record",
        "position, index, time, session, origin, generation, incarnation, actor, kind, body, opens, closes, hidden",
    ),
    ("revert", "position, time, session, origin, to"),
    (
        "branch",
        "token, session, generation, incarnation, position, receipt, chain, holder, former, labels, open, pending, repeated, source, at, prefix_hash",
    ),
    (
        "lineage",
        "session, kinship, depth, state, records, source, at, prefix_hash, taken",
    ),
    (
        "export",
        "session, store, records, hash, branch_of, parent, labels",
    ),
    ("export-end", "records"),
    (
        "transcript",
        "file, host, session, bytes, record_bytes, separator_bytes, damaged_bytes, digest, records, kinds, branches, repeated, unreachable, faults, oddities",
    ),
    (
        "transcript-branch",
        "number, origin, of, at_offset, at_line, at_id, sidechain, records, first_offset, last_offset",
    ),
    (
        "transcript-finding",
        "kind, weight, count, offset, bytes, line, about, meaning",
    ),
    (
        "activity",
        "activity, session, origin, state, opened, ended",
    ),
    (
        "holder",
        "host, host_id, boot, pid, start, pidns, uid, engine, actor, label, chosen, ancestor, recorded, verdict, evidence",
    ),
    (
        "dispatch",
        "id, item, title, from, session, generation, incarnation, state, writes, reason, report, body, opened, since",
    ),
    (
        "accepted",
        "dispatch, binding, shared_checkout, instruction, position, receipt",
    ),
    (
        "shared",
        "session, engine, actor, status, writes, items, titles, level, source, former, holder",
    ),
    (
        "envelope",
        "id, kind, notice, session, generation, incarnation, from, dispatch, item, re, state, reason, body, position",
    ),
    ("tree", "tree, standing, epoch, holder, since, sessions"),
    (
        "role",
        "role, scope, session, generation, incarnation, role_generation, role_incarnation, holder, since",
    ),
    ("policy", "rule, scope, shared, since"),
    ("done", "position, receipt, repeated"),
    ("outcome", "outcome"),
    (
        "who",
        "subject, at, session, generation, incarnation, holder, since, until",
    ),
    (
        "event",
        "position, index, time, kind, actor, session, generation, incarnation",
    ),
    (
        "check",
        "current, token, session, generation, incarnation, holder, since, relation, lost",
    ),
    (
        "refusal",
        "code, message, subject, presented, current, holder, since, relation, evidence, lost, next, recorded_at, body_kept",
    ),
    ("error", "code, message, next"),
    (
        "status",
        "store, dir, position, incarnation, health, findings, sessions, checkouts, needs",
    ),
    ("demo", "held, broken, story"),
    ("doctor", "claims, counts, locks, leftovers, hooks"),
    (
        "guard",
        "repository, enforced, hooks, locks, locks_cut, uids",
    ),
    ("guard-files", "what, files"),
    (
        "guard-shell",
        "verb, changes, directory, paths, sweeping, others, instruction",
    ),
    ("guard-test", "tried, expected, holds, said"),
    ("install", "host, what, file, changed, diff"),
    ("bundle", "store, position, receipt, redacted"),
    (
        "verify",
        "verdict, row, store, coverage, findings, findings_omitted, receipts",
    ),
    ("stretch", "segment, what"),
];

fn page() -> String {
    let mut root = app::plain();
    root.build();
    let mut page = BEGIN.to_owned();
    page.push_str("\n## Options of every command\n\n");
    let global = root.get_arguments().filter(|arg| arg.is_global_set());
    global.for_each(|arg| argument(&mut page, arg));
    for (group, names) in app::GROUPS {
        let _ = write!(page, "\n## {group}\n");
        for name in *names {
            if let Some(command) = root.find_subcommand(name) {
                section(&mut page, command);
            }
        }
    }
    page.push_str(JSON);
    for (kind, fields) in KINDS {
        let fields: Vec<String> = fields.split(", ").map(|f| format!("`{f}`")).collect();
        let _ = writeln!(page, "| `{kind}` | {} |", fields.join(" "));
    }
    page.push_str(
        "\n## Exit codes\n\n2 is never used: agent hosts read it as \"block this tool\".\n\n",
    );
    page.push_str("| exit | codes | meaning |\n|---|---|---|\n");
    for row in exit::table() {
        let codes: Vec<String> = row.codes.iter().map(|c| format!("`{c}`")).collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            row.exit,
            codes.join(" "),
            row.meaning
        );
    }
    page
}

fn section(page: &mut String, command: &clap::Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let aliases: Vec<String> = command
        .get_visible_aliases()
        .map(|a| format!("`{a}`"))
        .collect();
    let also = if aliases.is_empty() {
        String::new()
    } else {
        format!(" Also {}.", aliases.join(", "))
    };
    let _ = write!(page, "\n### {name}\n\n{about}.{also}\n\n");
    let inner: Vec<&clap::Command> = command.get_subcommands().collect();
    if inner.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let _ = write!(
            page,
            "```text\n{}\n```\n\n",
            usage.trim_start_matches("Usage: ").trim()
        );
    }
    let own = command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
    own.for_each(|arg| argument(page, arg));
    inner.into_iter().for_each(|command| section(page, command));
}

fn argument(page: &mut String, arg: &clap::Arg) {
    if matches!(arg.get_id().as_str(), "help" | "version") {
        return;
    }
    let values: Vec<String> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    let value = if arg.get_action().takes_values() {
        values.join(" ")
    } else {
        String::new()
    };
    let named = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long} {value}"),
        (None, Some(long)) => format!("--{long} {value}"),
        (Some(short), None) => format!("-{short} {value}"),
        (None, None) => value,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "- `{}`: {help}", named.trim());
}

#[test]
fn the_page_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let page = page();
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|v| v == "1") {
        std::fs::write(&path, page).expect("the page can be written");
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    for (line, (have, want)) in found.lines().zip(page.lines()).enumerate() {
        assert_eq!(
            have,
            want,
            "docs/cli.md:{} (UPDATE_EXPECT=1 writes it anew)",
            line + 1
        );
    }
    assert_eq!(found, page, "docs/cli.md (UPDATE_EXPECT=1 writes it anew)");
}
