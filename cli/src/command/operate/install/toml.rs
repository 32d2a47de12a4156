//! The same in TOML, where Codex keeps hooks in `config.toml`.

use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::handler::{Wanted, is_ours};

/// Whether a text has hooks.
pub fn has_hooks(text: &str) -> bool {
    text.parse::<DocumentMut>()
        .is_ok_and(|document| document.contains_key("hooks"))
}

/// The command lines of every handler of an event.
pub fn commands(text: &str, event: &str) -> Vec<String> {
    let Ok(document) = text.parse::<DocumentMut>() else {
        return Vec::new();
    };
    let entries = document.get("hooks").and_then(|hooks| hooks.get(event));
    let mut found = Vec::new();
    for entry in entries.map(tables).unwrap_or_default() {
        for handler in entry.get("hooks").map(tables).unwrap_or_default() {
            found.extend(command_of(handler).map(ToOwned::to_owned));
        }
    }
    found
}

/// The text with the handlers that are wanted, and no others of ours.
///
/// # Errors
/// Why the text cannot be edited.
pub fn edit(text: &str, wanted: &[Wanted]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("no TOML: {error}"))?;
    let mut clean = document.clone();
    take_out(&mut clean);
    if !wanted.is_empty() {
        let mut again = clean.clone();
        put_all(&mut again, wanted)?;
        // What is there is what would be put there, wherever in the file it stands.
        if same(&again, &document) {
            return Ok(document.to_string());
        }
    }
    document = clean;
    put_all(&mut document, wanted)?;
    Ok(document.to_string())
}

fn same(a: &DocumentMut, b: &DocumentMut) -> bool {
    let lines = |document: &DocumentMut| {
        let text = document.to_string();
        let mut lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    };
    lines(a) == lines(b)
}

fn tables(item: &Item) -> Vec<&dyn TableLike> {
    match item {
        Item::ArrayOfTables(tables) => tables.iter().map(|t| t as &dyn TableLike).collect(),
        Item::Value(Value::Array(values)) => {
            let tables = values.iter().filter_map(Value::as_inline_table);
            tables.map(|t| t as &dyn TableLike).collect()
        }
        _ => Vec::new(),
    }
}

fn command_of(handler: &dyn TableLike) -> Option<&str> {
    handler.get("command")?.as_str()
}

/// Keeps those tables of a list that `keep` says yes to; whether any were taken out.
fn retain(item: &mut Item, mut keep: impl FnMut(&mut dyn TableLike) -> bool) -> bool {
    let before = tables(item).len();
    match item {
        Item::ArrayOfTables(list) => {
            let all = std::mem::take(list);
            for mut table in all {
                if keep(&mut table) {
                    list.push(table);
                }
            }
        }
        Item::Value(Value::Array(list)) => list.retain(|value| {
            let mut value = value.clone();
            value.as_inline_table_mut().is_none_or(|table| keep(table))
        }),
        _ => {}
    }
    tables(item).len() < before
}

fn take_out(document: &mut DocumentMut) {
    let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_like_mut) else {
        return;
    };
    let events: Vec<String> = hooks.iter().map(|(event, _)| event.to_owned()).collect();
    let mut taken = false;
    for event in events {
        let Some(entries) = hooks.get_mut(&event) else {
            continue;
        };
        let out = retain(entries, |entry| {
            let Some(handlers) = entry.get_mut("hooks") else {
                return true;
            };
            let ours = |handler: &dyn TableLike| command_of(handler).is_some_and(is_ours);
            let out = retain(handlers, |handler| !ours(handler));
            !(out && tables(handlers).is_empty())
        });
        taken |= out;
        if out && tables(entries).is_empty() {
            hooks.remove(&event);
        }
    }
    // A table that somebody wrote out stays, also when nothing is in it.
    let ours = taken && hooks.is_empty();
    let written = document["hooks"]
        .as_table()
        .is_some_and(|table| !table.is_implicit());
    if ours && !written {
        document.remove("hooks");
    }
}

fn put_all(document: &mut DocumentMut, wanted: &[Wanted]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.set_implicit(true);
    let hooks = document.entry("hooks").or_insert(Item::Table(table));
    let hooks = hooks.as_table_like_mut().ok_or("`hooks` is no table")?;
    for handler in wanted {
        let entries = hooks
            .entry(handler.event)
            .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        match entries {
            Item::ArrayOfTables(list) => list.push(table_of(&handler.entry)),
            Item::Value(Value::Array(list)) => list.push(inline_of(&handler.entry)),
            _ => return Err(format!("`hooks.{}` is no list", handler.event)),
        }
    }
    Ok(())
}

/// An entry as tables of its own.
fn table_of(entry: &Json) -> Table {
    let mut table = Table::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        match value.as_array() {
            Some(list) => {
                let mut tables = ArrayOfTables::new();
                list.iter().for_each(|inner| tables.push(table_of(inner)));
                table.insert(key, Item::ArrayOfTables(tables));
            }
            None => {
                table.insert(key, Item::Value(scalar(value)));
            }
        }
    }
    table
}

fn inline_of(entry: &Json) -> InlineTable {
    let mut table = InlineTable::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        let value = match value.as_array() {
            Some(list) => Value::Array(list.iter().map(inline_of).collect::<Array>()),
            None => scalar(value),
        };
        table.insert(key, value);
    }
    table
}

fn scalar(value: &Json) -> Value {
    match value {
        Json::Number(number) => Value::from(number.as_i64().unwrap_or_default()),
        other => Value::from(other.as_str().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::handler::wanted;
    use super::*;
    use crate::hook::{Host, OnError};

    const TEXTS: &[&str] = &[
        "",
        "# mine\nmodel = \"x\" # the best\n\n[hooks]\n# nothing yet\n",
        "model = \"x\"\n\n[[hooks.PreToolUse]]\nmatcher = \"Bash\" # why\n\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"mine\"\n\n[tools]\na = 1\n",
        "[hooks]\nStop = [{ hooks = [{ type = \"command\", command = \"mine\" }] }]\n",
    ];

    #[test]
    fn comments_and_order_stay_and_come_back() {
        let ours = wanted(Host::Codex, "/opt/tenure hook --host codex", OnError::Allow);
        for text in TEXTS {
            let with = edit(text, &ours).expect("it is TOML");
            assert_eq!(
                commands(&with, "PreToolUse")
                    .iter()
                    .filter(|c| is_ours(c))
                    .count(),
                1
            );
            assert_eq!(
                commands(&with, "Stop")
                    .iter()
                    .filter(|c| is_ours(c))
                    .count(),
                1
            );
            for line in text.lines() {
                assert!(
                    with.contains(line.trim_end_matches("}] }]")),
                    "{line}\n{with}"
                );
            }
            assert_eq!(edit(&with, &ours).as_deref(), Ok(&*with));
            assert_eq!(edit(&with, &[]).as_deref(), Ok(*text));
        }
        assert!(edit("a = ", &ours).is_err());
        assert!(edit("hooks = 1", &ours).is_err());
    }
}
