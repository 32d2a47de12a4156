//! A program that is spoken to line by line, over its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use serde_json::Value;

/// Such a program, ended with its test.
pub struct Lines {
    pub child: Child,
    /// Its input, until it is closed.
    pub into: Option<ChildStdin>,
    pub from: Box<dyn BufRead>,
    /// Everything that it said, as it came.
    pub heard: String,
}

impl Lines {
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        Self {
            into: child.stdin.take(),
            from: Box::new(BufReader::new(child.stdout.take().expect("a pipe"))),
            child,
            heard: String::new(),
        }
    }

    pub fn says(&mut self, line: &str) {
        let into = self.into.as_mut().expect("it was not closed");
        writeln!(into, "{line}").expect("it listens");
    }

    pub fn hears(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it reads");
        assert!(!line.is_empty(), "nothing more is said");
        self.heard.push_str(&line);
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Closes its input; how it ended.
    pub fn ends(&mut self) -> ExitStatus {
        self.into.take();
        self.child.wait().expect("it ends")
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
