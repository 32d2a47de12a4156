//! Messages of the Agent Client Protocol: what they ask, and how something is added to them. Only what is asked about is
//! taken apart, so that every number and text goes on as it was written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The fields of an object, as they stand there.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// One message.
#[derive(Debug)]
pub struct Message<'a> {
    fields: Fields<'a>,
    /// What it asks; `None` for an answer.
    pub method: Option<String>,
}

/// What is read of the parameters.
#[derive(Default, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Params {
    /// The session that is named.
    pub session_id: Option<String>,
    /// The directory in which a session works.
    pub cwd: Option<PathBuf>,
    /// The file that is written.
    pub path: Option<PathBuf>,
}

/// Why a message cannot be read: a code of JSON-RPC and what is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable {
    pub code: i32,
    pub message: String,
}

impl Unreadable {
    fn new(code: i32, message: impl ToString) -> Self {
        Self {
            code,
            message: message.to_string(),
        }
    }
}

impl<'a> Message<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is no JSON object.
    pub fn read(line: &'a [u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(line).map_err(|error| Unreadable::new(-32700, error))?;
        if text.trim_start().starts_with('[') {
            return Err(Unreadable::new(
                -32600,
                "batches are no part of the protocol",
            ));
        }
        let fields: Fields<'a> =
            serde_json::from_str(text).map_err(|error| Unreadable::new(-32700, error))?;
        let method = match fields.get("method") {
            None => None,
            Some(raw) => Some(
                serde_json::from_str(raw.get())
                    .map_err(|_| Unreadable::new(-32600, "the method is no text"))?,
            ),
        };
        Ok(Self { fields, method })
    }

    /// What tells an answer from others: the id as it is written; `None` where no answer is wanted.
    #[must_use]
    pub fn id(&self) -> Option<&'a RawValue> {
        let id = self.fields.get("id").copied();
        id.filter(|id| id.get() != "null")
    }

    /// Whether it is an answer that says that it was not done.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.fields.get("error").is_some_and(|e| e.get() != "null")
    }

    /// The parameters, as far as they are asked about.
    ///
    /// # Errors
    /// When one of them is of another type.
    pub fn params(&self) -> Result<Params, Unreadable> {
        self.part("params")
    }

    /// The session that an answer names.
    #[must_use]
    pub fn new_session(&self) -> Option<String> {
        self.part("result").ok()?.session_id
    }

    fn part(&self, of: &str) -> Result<Params, Unreadable> {
        let Some(raw) = self.fields.get(of).filter(|raw| is_object(raw)) else {
            return Ok(Params::default());
        };
        serde_json::from_str(raw.get()).map_err(|error| Unreadable::new(-32602, error))
    }

    /// The same message with `_meta.tenure` in its parameters or its result.
    #[must_use]
    pub fn with_meta(&self, tenure: &Value) -> String {
        let place = match self.method {
            Some(_) => "params",
            None => "result",
        };
        let raw = |value: &BTreeMap<String, &RawValue>| to_raw_value(value).expect("JSON it is");
        let mut inner: Fields<'_> = self.fields_of(place);
        let mut meta: Fields<'_> = inner
            .get("_meta")
            .filter(|meta| is_object(meta))
            .and_then(|meta| serde_json::from_str(meta.get()).ok())
            .unwrap_or_default();
        let tenure = to_raw_value(tenure).expect("JSON it is");
        meta.insert("tenure".to_owned(), &tenure);
        let meta = raw(&meta);
        inner.insert("_meta".to_owned(), &meta);
        let inner = raw(&inner);
        let mut fields = self.fields.clone();
        fields.insert(place.to_owned(), &inner);
        raw(&fields).get().to_owned()
    }

    fn fields_of(&self, place: &str) -> Fields<'a> {
        let raw = self.fields.get(place).filter(|raw| is_object(raw));
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }
}

fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// The answer that something was not done.
#[must_use]
pub fn error(id: Option<&RawValue>, code: i32, message: &str, data: Option<Value>) -> String {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    let id = id.map_or("null", RawValue::get);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Message<'_> {
        Message::read(line.as_bytes()).expect("it is readable")
    }

    /// What is added stands beside what was there, and nothing else changes: numbers that no float holds, and fields
    /// that nobody knows.
    #[test]
    fn what_is_added_changes_nothing_else() {
        let tenure = json!({"generation": 3});
        let line = r#"{"jsonrpc":"2.0","id":"a\"b","method":"session/prompt","x":1e400,"params":
            {"sessionId":"s","n":12345678901234567890123,"_meta":{"y":[1.50],"tenure":{"generation":1}}}}"#;
        let line = line.replace('\n', " ");
        let added = read(&line).with_meta(&tenure);
        for part in [
            r#""x":1e400"#,
            r#""n":12345678901234567890123"#,
            r#""y":[1.50]"#,
            r#""id":"a\"b""#,
            r#""tenure":{"generation":3}"#,
        ] {
            assert!(added.contains(part), "{part}: {added}");
        }
        assert!(!added.contains(r#""generation":1"#) && !added.contains('\n'));
        // An answer without anything in it gets a place for it.
        for empty in ["null", "{}", r#"{"_meta":null}"#] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{empty}}}"#);
            let added: Value = serde_json::from_str(&read(&line).with_meta(&tenure)).expect("JSON");
            let expected =
                json!({"jsonrpc": "2.0", "id": 7, "result": {"_meta": {"tenure": tenure}}});
            assert_eq!(added, expected);
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_with_the_code_of_json_rpc() {
        let code = |line: &[u8]| Message::read(line).err().map(|e| e.code);
        assert_eq!(code(b"{"), Some(-32700));
        assert_eq!(code(b"\xff"), Some(-32700));
        assert_eq!(code(b"7"), Some(-32700));
        assert_eq!(code(br#" [{"method":"session/prompt"}]"#), Some(-32600));
        assert_eq!(code(br#"{"method":7}"#), Some(-32600));
        let odd = read(r#"{"method":"session/prompt","params":{"sessionId":7}}"#);
        assert_eq!(odd.params().expect_err("no text").code, -32602);
    }

    #[test]
    fn an_id_of_null_is_none() {
        assert!(read(r#"{"id":null,"method":"x"}"#).id().is_none());
        assert_eq!(
            read(r#"{"id":0,"method":"x"}"#).id().map(RawValue::get),
            Some("0")
        );
        assert!(read(r#"{"id":1,"error":{"code":1}}"#).is_error());
        assert!(!read(r#"{"id":1,"error":null,"result":{}}"#).is_error());
    }
}
