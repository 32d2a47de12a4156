//! Edits a JSON text where it has to change, and nowhere else: members and elements are put in and taken out, and every
//! other byte stays.

use std::ops::Range;

use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::handler::{Wanted, is_ours};

/// A member of an object, or an element of a list (with an empty key): where it stands.
#[derive(Clone, Debug)]
struct Item {
    key: String,
    whole: Range<usize>,
    value: Range<usize>,
}

/// The text with the handlers that are wanted, and no others of ours.
///
/// # Errors
/// Why the text cannot be edited.
pub fn edit(text: &str, comments: bool, wanted: &[Wanted]) -> Result<String, String> {
    let mut text = text.to_owned();
    if !wanted.is_empty() && ours(&parse(&text, comments)?) == wanted_pairs(wanted) {
        return Ok(text);
    }
    while let Some(range) = first_of_ours(&text, comments)? {
        text.replace_range(range, "");
    }
    for handler in wanted {
        text = put(&text, comments, handler)?;
    }
    Ok(text)
}

/// The command lines of every handler of an event.
pub fn commands(text: &str, event: &str) -> Vec<String> {
    let value = parse(text, true).unwrap_or_default();
    let entries = value["hooks"][event]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let handlers = entries.iter().filter_map(|entry| entry["hooks"].as_array());
    let commands = handlers
        .flatten()
        .filter_map(|handler| handler["command"].as_str());
    commands.map(ToOwned::to_owned).collect()
}

fn wanted_pairs(wanted: &[Wanted]) -> Vec<(String, Value)> {
    let mut pairs: Vec<_> = wanted
        .iter()
        .map(|w| (w.event.to_owned(), w.entry.clone()))
        .collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs
}

/// The entries with a handler of ours, by event.
fn ours(value: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (event, entries) in value["hooks"].as_object().into_iter().flatten() {
        let entries = entries.as_array().into_iter().flatten();
        let with = entries.filter(|entry| {
            let handlers = entry["hooks"].as_array().into_iter().flatten();
            handlers
                .into_iter()
                .any(|handler| handler["command"].as_str().is_some_and(is_ours))
        });
        found.extend(with.map(|entry| (event.clone(), entry.clone())));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The value of a text, whose comments count as blanks where the format has them.
fn parse(text: &str, comments: bool) -> Result<Value, String> {
    let bare = bare(text, comments);
    let value: Value = serde_json::from_str(&bare).map_err(|error| format!("no JSON: {error}"))?;
    match &value {
        Value::Object(_) => Ok(value),
        _ => Err("no JSON object".to_owned()),
    }
}

/// The text with every byte of a comment blanked, so that places stay what they are.
fn bare(text: &str, comments: bool) -> String {
    if !comments {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut bare = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => {
                at = string_end(bytes, at);
                continue;
            }
            (b'/', Some(b'/')) => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            (b'/', Some(b'*')) => find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2),
            _ => {
                at += 1;
                continue;
            }
        };
        let kept = |b: u8| matches!(b, b'\n' | b'\r');
        bare[at..end]
            .iter_mut()
            .filter(|b| !kept(**b))
            .for_each(|b| *b = b' ');
        at = end;
    }
    String::from_utf8(bare).unwrap_or_default()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len())
        .position(|w| w == what)
        .map(|at| from + at)
}

/// Behind the string that begins at `at`; the end where it has none.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// Behind the value that begins at `at`, in a text that is JSON.
fn value_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut end = at;
    while end < bytes.len() {
        match bytes[end] {
            b'"' => {
                end = string_end(bytes, end);
                if depth == 0 {
                    return end;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return end,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return end + 1;
                }
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return end,
            _ => {}
        }
        end += 1;
    }
    end
}

/// What stands in the object or list of that range.
fn items(bare: &str, outer: &Range<usize>) -> Vec<Item> {
    let bytes = bare.as_bytes();
    let is_object = bytes[outer.start] == b'{';
    let skip = |mut at: usize, what: &[u8]| {
        while at < outer.end - 1 && (bytes[at].is_ascii_whitespace() || what.contains(&bytes[at])) {
            at += 1;
        }
        at
    };
    let mut found = Vec::new();
    let mut at = skip(outer.start + 1, b",");
    while at < outer.end - 1 {
        let start = at;
        let key_end = if is_object { string_end(bytes, at) } else { at };
        let value = skip(key_end, b":");
        let end = value_end(bytes, value);
        found.push(Item {
            key: serde_json::from_str(&bare[start..key_end]).unwrap_or_default(),
            whole: start..end,
            value: value..end,
        });
        at = skip(end, b",");
    }
    found
}

fn root(bare: &str) -> Range<usize> {
    let start = bare.find('{').unwrap_or(0);
    start..value_end(bare.as_bytes(), start)
}

/// What has to be cut so that an item is gone: with the comma before it, or the one behind it, or the blanks around it.
fn cut(items: &[Item], at: usize, outer: &Range<usize>) -> Range<usize> {
    let item = &items[at].whole;
    match (
        at.checked_sub(1).map(|before| &items[before]),
        items.get(at + 1),
    ) {
        (Some(before), _) => before.whole.end..item.end,
        (None, Some(behind)) => item.start..behind.whole.start,
        (None, None) => outer.start + 1..outer.end - 1,
    }
}

/// The largest range that holds a handler of ours and nothing else.
fn first_of_ours(text: &str, comments: bool) -> Result<Option<Range<usize>>, String> {
    parse(text, comments)?;
    let bare = bare(text, comments);
    let within = |range: &Range<usize>, open: u8| match bare.as_bytes()[range.start] == open {
        true => items(&bare, range),
        false => Vec::new(),
    };
    let top = root(&bare);
    let members = items(&bare, &top);
    for (m, member) in members
        .iter()
        .enumerate()
        .filter(|(_, member)| member.key == "hooks")
    {
        let events = within(&member.value, b'{');
        for (e, event) in events.iter().enumerate() {
            let entries = within(&event.value, b'[');
            for (n, entry) in entries.iter().enumerate() {
                let parts = within(&entry.value, b'{');
                let Some(list) = parts.iter().find(|part| part.key == "hooks") else {
                    continue;
                };
                let handlers = within(&list.value, b'[');
                let found = handlers.iter().position(|handler| {
                    let value: Value =
                        serde_json::from_str(&bare[handler.value.clone()]).unwrap_or_default();
                    value["command"].as_str().is_some_and(is_ours)
                });
                let Some(found) = found else { continue };
                return Ok(Some(if handlers.len() > 1 {
                    cut(&handlers, found, &list.value)
                } else if entries.len() > 1 {
                    cut(&entries, n, &event.value)
                } else if events.len() > 1 {
                    cut(&events, e, &member.value)
                } else {
                    cut(&members, m, &top)
                }));
            }
        }
    }
    Ok(None)
}

/// Puts a handler behind the others of its event.
fn put(text: &str, comments: bool, wanted: &Wanted) -> Result<String, String> {
    parse(text, comments)?;
    let bare = bare(text, comments);
    let style = Style::of(&bare);
    let top = root(&bare);
    let list = || Value::Array(vec![wanted.entry.clone()]);
    let member = items(&bare, &top)
        .into_iter()
        .find(|member| member.key == "hooks");
    let Some(member) = member else {
        let hooks = Value::Object([(wanted.event.to_owned(), list())].into_iter().collect());
        return Ok(style.append(text, &bare, &top, 1, Some("hooks"), &hooks));
    };
    if bare.as_bytes()[member.value.start] != b'{' {
        return Err("`hooks` is no object".to_owned());
    }
    let event = items(&bare, &member.value)
        .into_iter()
        .find(|event| event.key == wanted.event);
    let Some(event) = event else {
        return Ok(style.append(text, &bare, &member.value, 2, Some(wanted.event), &list()));
    };
    if bare.as_bytes()[event.value.start] != b'[' {
        return Err(format!("`hooks.{}` is no list", wanted.event));
    }
    Ok(style.append(text, &bare, &event.value, 3, None, &wanted.entry))
}

/// How a text is laid out.
struct Style {
    /// One step of indentation.
    step: String,
    /// How a line ends.
    end: &'static str,
    /// Everything stands on one line.
    flat: bool,
}

impl Style {
    fn of(bare: &str) -> Self {
        let top = root(bare);
        let inner = &bare[top.start + 1..];
        let blank = &inner[..inner.len() - inner.trim_start().len()];
        let step = blank.rsplit('\n').next().filter(|_| blank.contains('\n'));
        let lines = bare[top].contains('\n');
        let empty = inner.trim_start().starts_with('}');
        Self {
            step: step
                .filter(|s| !s.is_empty() && !empty)
                .unwrap_or("  ")
                .to_owned(),
            end: if bare.contains("\r\n") { "\r\n" } else { "\n" },
            flat: !lines && !empty,
        }
    }

    /// Appends to the object or list of a range, whose items stand `level` steps in.
    fn append(
        &self,
        text: &str,
        bare: &str,
        outer: &Range<usize>,
        level: usize,
        key: Option<&str>,
        value: &Value,
    ) -> String {
        let key = key
            .map(|key| format!("{}: ", Value::from(key)))
            .unwrap_or_default();
        let all = items(bare, outer);
        let before = all.last().map(|last| last.whole.end);
        if self.flat {
            let (at, comma) = before.map_or((outer.start + 1, ""), |end| (end, ", "));
            return format!("{}{comma}{key}{value}{}", &text[..at], &text[at..]);
        }
        let line = |level: usize| format!("{}{}", self.end, self.step.repeat(level));
        let value = self.pretty(value).replace('\n', &line(level));
        match before {
            Some(at) => {
                let (head, tail) = text.split_at(at);
                format!("{head},{}{key}{value}{tail}", line(level))
            }
            None => {
                let (head, tail) = (&text[..=outer.start], &text[outer.end - 1..]);
                let (inner, end) = (line(level), line(level - 1));
                format!("{head}{inner}{key}{value}{end}{tail}")
            }
        }
    }

    fn pretty(&self, value: &Value) -> String {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.step.as_bytes());
        let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
        let written = serde::Serialize::serialize(value, &mut serializer);
        written.expect("a value is written into memory");
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::super::handler::wanted;
    use super::*;
    use crate::hook::{Host, OnError};

    const COMMAND: &str = "/opt/tenure hook --host claude";

    fn ours_of(host: Host) -> Vec<Wanted> {
        wanted(host, COMMAND, OnError::Allow)
    }

    const TEXTS: &[&str] = &[
        "{}",
        "{\n}\n",
        "{\"a\":1}",
        "{\n  \"z\": 1.0,\n  \"a\": [ 1,2 , 123456789012345678901234567890 ]\n}\n",
        "{\n\t\"hooks\": {},\n\t\"b\": \"\\u00e9\\/\"\n}",
        "{\n    \"hooks\": {\n        \"Stop\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"x\" } ] } ]\n    }\n}\n",
        "{\r\n  \"hooks\": {\r\n    \"PreToolUse\": []\r\n  }\r\n}\r\n",
        "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"y ] } \\\" {\"}]}]}}",
    ];

    /// C: whatever is there stays byte for byte, a second run changes nothing, and taking out restores.
    #[test]
    fn what_is_there_stays_and_comes_back() {
        for host in Host::ALL {
            for text in TEXTS {
                let with = edit(text, false, &ours_of(host)).expect("it is JSON");
                let value = parse(&with, false).expect("it still is");
                assert_eq!(ours(&value), wanted_pairs(&ours_of(host)), "{with}");
                assert_eq!(edit(&with, false, &ours_of(host)).as_deref(), Ok(&*with));
                let without = edit(&with, false, &[]).expect("it is JSON");
                // A list or object that held nothing is not told from one that is not there.
                let bare = |text: &str| {
                    let mut value = parse(text, false).expect("it is JSON");
                    let hooks = value.get_mut("hooks").and_then(Value::as_object_mut);
                    let kept = hooks.map(|hooks| {
                        hooks.retain(|_, list| list.as_array().is_none_or(|l| !l.is_empty()));
                        hooks.len()
                    });
                    if kept == Some(0) {
                        value
                            .as_object_mut()
                            .expect("an object")
                            .shift_remove("hooks");
                    }
                    value
                };
                assert_eq!(bare(&without), bare(text), "{text}");
                if !text.contains("{}") && !text.contains("[]") && text.len() > 4 {
                    assert_eq!(without, *text);
                }
            }
        }
    }

    #[test]
    fn an_older_handler_of_ours_is_replaced_and_others_stay() {
        let text = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\"type\":\"command\",\"command\":\"mine\"},\n          {\"type\":\"command\",\"command\":\"/old/tenure hook --host claude\"}\n        ]\n      }\n    ]\n  }\n}\n";
        let with = edit(text, false, &ours_of(Host::Claude)).expect("it is JSON");
        assert!(
            !with.contains("/old/") && with.contains("\"command\":\"mine\""),
            "{with}"
        );
        let without = edit(&with, false, &[]).expect("it is JSON");
        assert_eq!(without.matches("command").count(), 2, "{without}");
    }

    #[test]
    fn comments_stay_where_the_format_has_them() {
        let text =
            "{\n  // why \"not\" {\n  \"a\": 1, /* , } */\n  \"b\": \"// no comment\" // end\n}\n";
        assert!(edit(text, false, &ours_of(Host::Gemini)).is_err());
        let with = edit(text, true, &ours_of(Host::Gemini)).expect("comments are passed over");
        for kept in [
            "// why \"not\" {",
            "/* , } */",
            "\"// no comment\"",
            "// end",
        ] {
            assert!(with.contains(kept), "{with}");
        }
        assert_eq!(edit(&with, true, &[]).as_deref(), Ok(text));
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in [
            "",
            "[]",
            "{",
            "{\"hooks\": 1}",
            "{\"hooks\": {\"Stop\": {}}}",
            "{\"a\":1}}",
            "{,}",
        ] {
            assert!(edit(text, false, &ours_of(Host::Claude)).is_err(), "{text}");
        }
    }
}
