//! What goes over the socket: one line of JSON each way.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The longest request, in bytes: a body of the greatest length, each byte written as `\u0000`, with room for the
/// rest.
pub const REQUEST_BYTES_MAX: usize = 8 << 20;
/// How long a whole request may take to come, and an answer to go.
pub const LINE_TIME: Duration = Duration::from_secs(10);

/// What a server says first: that it reads a request.
#[derive(Serialize, Deserialize)]
pub struct Greeting {
    /// [`VERSION`].
    pub v: u32,
}

/// A command, and on whose behalf it is carried out.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub v: u32,
    /// The arguments behind the program's name.
    pub args: Vec<String>,
    /// The store's directory, as the asker spells it.
    #[serde(default)]
    pub store: Option<String>,
    /// The directory that relative paths begin at; none are taken without it.
    #[serde(default)]
    pub cwd: Option<String>,
    /// On whose behalf, where the arguments do not say.
    #[serde(default)]
    pub actor: Option<String>,
    /// The token, where the arguments name none.
    #[serde(default)]
    pub token: Option<String>,
    /// The file that holds it, where neither does.
    #[serde(default)]
    pub token_file: Option<String>,
    /// What an argument `-` reads.
    #[serde(default)]
    pub stdin: Option<String>,
    /// The same in hexadecimal digits: it may be any bytes.
    #[serde(default)]
    pub stdin_hex: Option<String>,
    /// The process that a grant is made to, as `tenure_core::codec` encodes a `Bearing`, in hexadecimal digits.
    #[serde(default)]
    pub bearing: Option<String>,
    /// The session that a hook is told of.
    #[serde(default)]
    pub session: Option<String>,
    /// Where the asker's user keeps state.
    #[serde(default)]
    pub state: Option<String>,
    /// Whether the answer and the errors may have colour.
    #[serde(default)]
    pub color: [bool; 2],
}

/// What a command came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// It was carried out.
    Ran {
        /// What the process would end with.
        exit: u8,
        /// What it would print.
        stdout: String,
        /// And on standard error.
        stderr: String,
    },
    /// It was not, and nothing happened: the asker carries it out itself, on the files.
    Unserved {
        /// Why.
        unserved: String,
    },
}

impl Answer {
    /// Not carried out, for that reason.
    pub fn unserved(why: impl Into<String>) -> Self {
        Self::Unserved {
            unserved: why.into(),
        }
    }
}

/// Reads a line of at most `bytes_max` bytes, all of it before `deadline`.
///
/// # Errors
/// `InvalidData` for a line that is too long or has no end, `TimedOut` for one that comes too slowly.
pub fn read_line(
    stream: &mut UnixStream,
    bytes_max: usize,
    deadline: Option<Instant>,
) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
        }
        let read = match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::InvalidData.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        };
        let end = chunk[..read].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&chunk[..end.unwrap_or(read)]);
        if line.len() > bytes_max {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// Writes a value as one line.
///
/// # Errors
/// When it cannot be written in time.
pub fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.set_write_timeout(Some(LINE_TIME))?;
    stream.write_all(&line)
}

/// Bytes in hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from hexadecimal digits.
pub fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let byte = |pair: &[u8; 2]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    pairs.iter().map(byte).collect()
}
