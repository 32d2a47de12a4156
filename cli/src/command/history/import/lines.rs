//! The lines of an export. They come from anywhere: whatever they are, they are read or named as wrong, never
//! believed.

use std::io::{BufRead, Read};
use std::path::Path;

use serde_json::Value;
use tenure_projection::call::{Activity, Label};
use tenure_projection::core::history::HistoryHash;
use tenure_projection::core::limits::RECORD_BYTES_MAX;

use crate::exit::Cause;
use crate::fault::{Fault, Stop};
use crate::input;
use crate::output::json::unbase64;

/// One line at most: a record of the greatest size, every byte of it written as `\u00NN`.
const LINE_BYTES_MAX: usize = 6 * RECORD_BYTES_MAX + (1 << 20);

/// What the first line says.
pub struct Head {
    /// What the session is called there.
    pub session: String,
    /// What it was branched or delegated from there.
    pub parent: Option<String>,
    /// Its labels.
    pub labels: Vec<Label>,
    /// The digest of its history.
    pub hash: HistoryHash,
}

/// A record as it was exported.
pub struct Record {
    /// Its kind.
    pub kind: String,
    /// Its bytes.
    pub body: Vec<u8>,
    /// What began with it.
    pub opens: Option<Activity>,
    /// What ended with it.
    pub closes: Option<Activity>,
}

/// A line behind the head.
pub enum Line {
    /// A record.
    Record(Record),
    /// The end: how many records there were.
    End {
        /// That number.
        records: u64,
    },
}

/// Lines that are read one by one. They end at a line feed and at nothing else (B10).
pub struct Lines<'p> {
    source: Box<dyn BufRead>,
    what: &'p Path,
    number: u64,
}

impl<'p> Lines<'p> {
    /// Of a source, which is called `what` in errors.
    pub fn new(source: Box<dyn BufRead>, what: &'p Path) -> Self {
        Self {
            source,
            what,
            number: 0,
        }
    }

    /// The head.
    ///
    /// # Errors
    /// When the first line is none.
    pub fn head(&mut self) -> Result<Head, Stop> {
        let value = self.object()?;
        if value["schema"] != "tenure.export.v1" {
            return Err(self.fault("it is not the head of an export (tenure.export.v1)"));
        }
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let hash = text("hash").and_then(|h| hash(&h));
        let (Some(session), Some(hash)) = (text("session"), hash) else {
            return Err(self.fault("the head names no session or no digest"));
        };
        let labels = value["labels"].as_object().into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| {
            Some(Label {
                key: key.clone(),
                value: value.as_str()?.to_owned(),
            })
        });
        Ok(Head {
            session,
            parent: text("branch_of").or_else(|| text("parent")),
            labels: labels.collect(),
            hash,
        })
    }

    /// The next line.
    ///
    /// # Errors
    /// When it is neither a record nor the end, or there is none.
    pub fn next(&mut self) -> Result<Line, Stop> {
        let value = self.object()?;
        match value["schema"].as_str() {
            Some("tenure.record.v1") => self.record(&value).map(Line::Record),
            Some("tenure.export-end.v1") => {
                let records = value["records"].as_u64();
                let records = records.ok_or_else(|| self.fault("the end counts no records"))?;
                Ok(Line::End { records })
            }
            _ => Err(self.fault("it is neither a record nor the end of an export")),
        }
    }

    fn record(&self, value: &Value) -> Result<Record, Stop> {
        let coded = value["body_base64"].as_str();
        let body = match (value["body"].as_str(), coded) {
            (Some(text), None) => Some(text.as_bytes().to_vec()),
            (None, Some(coded)) => unbase64(coded),
            _ => None,
        };
        let Some(body) = body else {
            return Err(self.fault("the record has no body, or more than one"));
        };
        let Some(kind) = value["kind"].as_str() else {
            return Err(self.fault("the record has no kind"));
        };
        let activity = |key: &str| value[key].as_str().map(input::activity).transpose();
        Ok(Record {
            kind: kind.to_owned(),
            body,
            opens: activity("opens")?,
            closes: activity("closes")?,
        })
    }

    fn object(&mut self) -> Result<Value, Stop> {
        self.number += 1;
        let mut bytes = Vec::new();
        let mut within = (&mut self.source).take(LINE_BYTES_MAX as u64);
        let read = within.read_until(b'\n', &mut bytes);
        read.map_err(|source| Fault::file("read", self.what, source))?;
        if bytes.is_empty() {
            return Err(self.fault("it is missing: the export was cut off"));
        }
        if bytes.pop_if(|last| *last == b'\n').is_none() {
            return Err(self.fault("it does not end, or is longer than any record"));
        }
        bytes.pop_if(|last| *last == b'\r');
        // Some editors put a mark before the first line (B16).
        let line = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        serde_json::from_slice(line).map_err(|error| self.fault(&format!("it is no JSON: {error}")))
    }

    /// What is wrong with the line just read.
    pub fn fault(&self, message: &str) -> Stop {
        let (what, number) = (self.what.display(), self.number);
        Fault::new(
            Cause::Damaged,
            format!("line {number} of {what}: {message}; nothing was imported"),
        )
        .then("tenure export NAME", "prints what can be imported")
        .into()
    }
}

fn hash(text: &str) -> Option<HistoryHash> {
    let mut bytes = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(HistoryHash(bytes))
}
