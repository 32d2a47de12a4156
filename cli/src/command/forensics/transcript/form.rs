//! Transcripts that are healthy and in another form than lines of JSON: they are named as what they are, with the command
//! that makes lines of them, and never called damaged.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::exit::Cause;
use crate::fault::{Fault, shell_word};

/// How the compressed forms begin, and what unpacks them.
const COMPRESSED: &[(&[u8], &str, &str)] = &[
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstd -dc"),
    (&[0x1f, 0x8b], "gzip", "gzip -dc"),
];

/// The whole conversation in one object, as Gemini CLI wrote it before it wrote lines.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneObject {
    #[serde(rename = "sessionId")]
    _session_id: IgnoredAny,
    #[serde(rename = "messages")]
    _messages: Vec<IgnoredAny>,
}

/// What a file in another form is told; `None` for one that may be lines. The file is at its beginning before and after.
///
/// # Errors
/// When it cannot be read.
pub fn other(file: &mut File, path: &Path) -> io::Result<Option<Fault>> {
    // What a pipe holds is read once, as lines.
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut head = [0; 4];
    let read = file.read(&mut head)?;
    file.rewind()?;
    let (shown, word) = (path.display(), shell_word(path));
    for (magic, name, unpack) in COMPRESSED {
        if head[..read].starts_with(magic) {
            let message =
                format!("{shown} is compressed ({name}); its records cannot be read as they are");
            let way = format!("{unpack} {word} > transcript.jsonl");
            let fault = Fault::new(Cause::Unsupported, message);
            return Ok(Some(fault.then(
                way,
                "unpacks it beside the original, which stays as it is",
            )));
        }
    }
    // Whole files are one object each only in that form: a line that is one ends the search at once.
    let whole = serde_json::from_reader::<_, OneObject>(BufReader::new(&*file));
    file.rewind()?;
    match whole {
        Err(error) if error.is_io() => Err(error.into()),
        Err(_) => Ok(None),
        Ok(_) => {
            let message = format!(
                "{shown} is one JSON object for the whole conversation, the older form of Gemini CLI; \
                 records are read from lines"
            );
            let way = format!("jq -c 'del(.messages), .messages[]' {word} > transcript.jsonl");
            let fault = Fault::new(Cause::Unsupported, message);
            Ok(Some(fault.then(
                way,
                "makes lines of it, as Gemini CLI does when the conversation is resumed",
            )))
        }
    }
}
