//! Everything that is printed: people's text or JSON, never both.
//!
//! Texts of the log reach a terminal only through [`Output::say`] and [`Output::body`], which write out what a
//! terminal would obey.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use tenure_projection::core::redaction;

use crate::fault::{Fault, Stop};

pub mod escape;
pub mod human;
pub mod json;
pub mod progress;

pub use human::Line;
pub use json::Object;
pub use progress::{Progress, replaying, watched};

/// Heads of lists.
pub const HEAD: Style = Style::new().bold();
/// What went wrong.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What asks for attention.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What is less important.
pub const DIM: Style = Style::new().dimmed();
/// As it comes.
pub const PLAIN: Style = Style::new();

/// Where answers go.
pub struct Output {
    json: bool,
    quiet: bool,
    out: BufWriter<Stream>,
    err: Stream,
}

/// Where text goes, with colour or without.
type Stream = AutoStream<Box<dyn Write + Send + Sync>>;

/// What was printed by a command that somebody else asked for.
#[derive(Default)]
pub struct Captured([Arc<Mutex<Vec<u8>>>; 2]);

impl Captured {
    /// What was printed on standard output, and on standard error.
    #[must_use]
    pub fn taken(self) -> [String; 2] {
        self.0.map(|printed| {
            let bytes =
                std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
}

/// One of two streams that are captured.
struct Capturing(Arc<Mutex<Vec<u8>>>);

impl Write for Capturing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    /// Standard output, in JSON or for people; `quiet` keeps what is only said to people back.
    #[must_use]
    pub fn new(json: bool, quiet: bool) -> Self {
        // What the options, the environment and the terminal come to is asked of the streams themselves.
        let [out, err] = [
            AutoStream::choice(&io::stdout()),
            AutoStream::choice(&io::stderr()),
        ];
        Self {
            json,
            quiet,
            out: BufWriter::new(AutoStream::new(Box::new(io::stdout()), out)),
            err: AutoStream::new(Box::new(io::stderr()), err),
        }
    }

    /// Nowhere: what is printed can be taken afterwards. `color` says whether either stream may have colour.
    #[must_use]
    pub fn captured(json: bool, quiet: bool, color: [bool; 2]) -> (Self, Captured) {
        let captured = Captured::default();
        let stream = |n: usize| -> Stream {
            let choice = match color[n] {
                true => ColorChoice::AlwaysAnsi,
                false => ColorChoice::Never,
            };
            AutoStream::new(Box::new(Capturing(Arc::clone(&captured.0[n]))), choice)
        };
        let out = Self {
            json,
            quiet,
            out: BufWriter::new(stream(0)),
            err: stream(1),
        };
        (out, captured)
    }

    /// Whether standard output and standard error may have colour.
    #[must_use]
    pub fn colors(&self) -> [bool; 2] {
        let colored = |choice| !matches!(choice, ColorChoice::Never);
        [
            colored(self.out.get_ref().current_choice()),
            colored(self.err.current_choice()),
        ]
    }

    /// Whether answers are JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Says something besides the answer, to people on standard error.
    pub fn aside(&mut self, text: impl Display) {
        // Whoever does not read it loses nothing of the answer.
        let _ = self.flush();
        let text = text.to_string();
        let _ = writeln!(self.err, "{WARN}{}{WARN:#}", escape::line(&text));
    }

    /// Whether only what a script needs is printed.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints one JSON object on a line of its own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn object(&mut self, object: &Object) -> Result<(), Stop> {
        json::write(&mut self.out, object)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// One line for people. What a terminal would obey in `text` is written out, line breaks too.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn say(&mut self, text: impl Display) -> Result<(), Stop> {
        self.styled(PLAIN, text)
    }

    /// As [`Output::say`], in a style.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn styled(&mut self, style: Style, text: impl Display) -> Result<(), Stop> {
        if self.quiet {
            return Ok(());
        }
        let text = text.to_string();
        Ok(writeln!(
            self.out,
            "{style}{}{style:#}",
            escape::line(&text)
        )?)
    }

    /// What a script needs; printed also when quiet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn essential(&mut self, text: impl Display) -> Result<(), Stop> {
        let text = text.to_string();
        Ok(writeln!(self.out, "{HEAD}{}{HEAD:#}", escape::line(&text))?)
    }

    /// Lines for people.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = human::Line>) -> Result<(), Stop> {
        lines
            .into_iter()
            .try_for_each(|(style, text)| self.styled(style, text))
    }

    /// A text of several lines, each behind a bar, so that none can pass for a line of this program.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn body(&mut self, text: &str) -> Result<(), Stop> {
        if let Some(told) = redaction::told(text.as_bytes()) {
            return self.styled(DIM, format_args!("  | {told}").to_string());
        }
        for line in text.lines() {
            self.styled(PLAIN, format_args!("  | {line}"))?;
        }
        Ok(())
    }

    /// An empty line for people.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn gap(&mut self) -> Result<(), Stop> {
        self.say("")
    }

    /// Bytes as they are: completions, man pages, a hex dump.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Sends on what was printed so far.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), Stop> {
        Ok(self.out.flush()?)
    }

    /// Says why a command stopped: JSON on standard output, people's text on standard error.
    pub fn stopped(&mut self, stop: &Stop) {
        if matches!(stop, Stop::OutputClosed) {
            return;
        }
        // Nothing can be told when even this cannot be written; the exit code still says it.
        let _ = if self.json {
            let object = match stop {
                Stop::Refused(refusal) => json::refusal(refusal),
                Stop::Failed(fault) => json::error(fault),
                Stop::OutputClosed => return,
            };
            self.object(&object).and_then(|()| self.flush())
        } else {
            self.flush().and_then(|()| self.complain(stop))
        };
    }

    fn complain(&mut self, stop: &Stop) -> Result<(), Stop> {
        let lines = match stop {
            Stop::Refused(refusal) => human::refusal(refusal),
            Stop::Failed(fault) => failed(fault),
            Stop::OutputClosed => return Ok(()),
        };
        let mut err = BufWriter::new(&mut self.err);
        for (style, line) in lines {
            writeln!(err, "{style}{}{style:#}", escape::line(&line))?;
        }
        Ok(err.flush()?)
    }

    /// What a server printed there on this process's behalf.
    pub fn beside(&mut self, text: &str) {
        // Whoever does not read it loses nothing of the answer.
        let _ = self.err.write_all(text.as_bytes());
    }
}

fn failed(fault: &Fault) -> Vec<(Style, String)> {
    let mut lines = vec![(BAD, format!("{}: {}", fault.cause.as_str(), fault.message))];
    lines.extend(human::next(&fault.next));
    lines
}
