//! What a host sends, whichever host it is, and what it can be answered.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::Value;

use super::{claude, codex, gemini};

/// An agent host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Host {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
}

/// The kinds of events: the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A session begins, or goes on.
    Start,
    /// Somebody says something to the agent.
    Prompt,
    /// A tool is about to run.
    Before,
    /// A tool has run.
    After,
    /// The agent has ended its turn.
    Stop,
    /// An agent below it begins.
    ChildStart,
    /// An agent below it ends.
    ChildStop,
    /// The session ends.
    End,
}

impl Kind {
    /// Every kind.
    #[cfg(test)]
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::Prompt,
        Self::Before,
        Self::After,
        Self::Stop,
        Self::ChildStart,
        Self::ChildStop,
        Self::End,
    ];
}

/// An event with what it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A session begins or, `compacted`, goes on with a shorter memory.
    Start {
        /// Whether nobody has begun anything: the running session was shortened.
        compacted: bool,
    },
    /// Somebody says something to the agent.
    Prompt,
    /// A tool is about to run.
    Before(Tool),
    /// A tool has run.
    After(Tool),
    /// The agent has ended its turn.
    Stop,
    /// An agent below it begins.
    ChildStart {
        /// Its id.
        id: String,
        /// What it is for.
        role: String,
    },
    /// An agent below it ends.
    ChildStop {
        /// Its id.
        id: String,
    },
    /// The session ends.
    End,
}

impl Event {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Start { .. } => Kind::Start,
            Self::Prompt => Kind::Prompt,
            Self::Before(_) => Kind::Before,
            Self::After(_) => Kind::After,
            Self::Stop => Kind::Stop,
            Self::ChildStart { .. } => Kind::ChildStart,
            Self::ChildStop { .. } => Kind::ChildStop,
            Self::End => Kind::End,
        }
    }
}

/// A tool, and where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Where it goes.
    pub touch: Touch,
}

/// Where a tool goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Touch {
    /// It only reads.
    Nothing,
    /// The files that it names.
    Files(Vec<PathBuf>),
    /// A line for a shell.
    Line {
        /// The line.
        line: String,
        /// The directory that the tool names, if it does.
        directory: Option<PathBuf>,
    },
    /// Nobody knows.
    Unknown,
}

/// What a host is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Nothing: whatever it is about goes on.
    Silence,
    /// The tool may not run, for this reason.
    Deny(String),
    /// Something that the agent should know.
    Context(String),
    /// Something that the person should know.
    Say(String),
}

/// A payload that was understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// Who sent it.
    pub host: Host,
    /// The event, as the host calls it.
    pub word: String,
    /// What happened.
    pub event: Event,
    /// The host's id of the session.
    pub session: Option<String>,
    /// Where the session works.
    pub cwd: Option<PathBuf>,
}

impl Payload {
    /// Reads what a host sent; `None` for an event that means nothing here. Fields that are not known are passed over.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8], told: Option<Host>) -> Result<Option<Self>, String> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| format!("the payload is no JSON: {error}"))?;
        if !value.is_object() {
            return Err("the payload is no JSON object".to_owned());
        }
        let Some(word) = text(&value, "hook_event_name") else {
            return Err("the payload names no event (hook_event_name)".to_owned());
        };
        let host = told.unwrap_or_else(|| Host::of(&value, &word));
        let event = match host.kind(&word) {
            Some(kind) => host.event(kind, &value),
            None => return Ok(None),
        };
        Ok(event.map(|event| Self {
            host,
            word,
            event,
            session: text(&value, "session_id"),
            cwd: text(&value, "cwd").map(PathBuf::from),
        }))
    }
}

impl Host {
    /// Every host.
    pub const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    /// Its word: on the command line, as an engine, and as a program calls itself.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Who sends such a payload.
    fn of(value: &Value, word: &str) -> Self {
        let transcript = text(value, "transcript_path").unwrap_or_default();
        let file = Path::new(&transcript).file_name().unwrap_or_default();
        let codex =
            value.get("turn_id").is_some() || file.to_string_lossy().starts_with("rollout-");
        let gemini = gemini::is_its_own(word)
            || value.get("timestamp").is_some()
            || std::env::var_os("GEMINI_SESSION_ID").is_some();
        match (codex, gemini) {
            (true, _) => Self::Codex,
            (_, true) => Self::Gemini,
            _ => Self::Claude,
        }
    }

    /// The events of the host, each with its kind.
    #[must_use]
    pub fn events(self) -> &'static [(&'static str, Kind)] {
        match self {
            Self::Claude => claude::EVENTS,
            Self::Codex => codex::EVENTS,
            Self::Gemini => gemini::EVENTS,
        }
    }

    /// What the host calls the event before a tool.
    #[must_use]
    pub fn before(self) -> &'static str {
        let before = self.events().iter().find(|(_, kind)| *kind == Kind::Before);
        before.map_or("", |(word, _)| word)
    }

    fn kind(self, word: &str) -> Option<Kind> {
        let known = self.events().iter().find(|(known, _)| *known == word);
        known.map(|(_, kind)| *kind)
    }

    /// The event in a payload; `None` where the payload lacks what makes it one.
    fn event(self, kind: Kind, value: &Value) -> Option<Event> {
        let tool = || {
            let name = text(value, "tool_name")?;
            let input = value.get("tool_input").unwrap_or(&Value::Null);
            let touch = match self {
                Self::Claude => claude::touch(&name, input),
                Self::Codex => codex::touch(&name, input),
                Self::Gemini => gemini::touch(&name, input),
            };
            Some(Tool { name, touch })
        };
        Some(match kind {
            Kind::Start => Event::Start {
                compacted: text(value, "source").as_deref() == Some("compact"),
            },
            Kind::Prompt => Event::Prompt,
            Kind::Before => Event::Before(tool()?),
            Kind::After => Event::After(tool()?),
            Kind::Stop => Event::Stop,
            Kind::ChildStart => Event::ChildStart {
                id: text(value, "agent_id")?,
                role: text(value, "agent_type").unwrap_or_default(),
            },
            Kind::ChildStop => Event::ChildStop {
                id: text(value, "agent_id")?,
            },
            Kind::End => Event::End,
        })
    }

    /// The answer as the host takes it; `None`: nothing is printed.
    #[must_use]
    pub fn answer(self, kind: Kind, word: &str, answer: &Answer) -> Option<Value> {
        match (answer, kind) {
            (Answer::Silence, _) | (_, Kind::End) => None,
            (Answer::Deny(text), Kind::Before) => Some(match self {
                Self::Claude | Self::Codex => claude::deny(word, text),
                Self::Gemini => gemini::deny(text),
            }),
            (Answer::Context(text), Kind::Start | Kind::Prompt | Kind::After) => {
                Some(claude::context(word, text))
            }
            (Answer::Context(text), Kind::Before) if self != Self::Gemini => {
                Some(claude::context(word, text))
            }
            (Answer::Deny(text) | Answer::Context(text) | Answer::Say(text), _) => {
                Some(serde_json::json!({ "systemMessage": text }))
            }
        }
    }
}

/// A text in an object, if it is one and not empty.
pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// The files that an input names under a key.
pub(super) fn file(input: &Value, key: &str) -> Touch {
    text(input, key).map_or(Touch::Unknown, |path| Touch::Files(vec![path.into()]))
}

/// The shell line of an input: a text, or the words of a command.
pub(super) fn line(input: &Value, directory: &str) -> Touch {
    let line = match input.get("command") {
        Some(Value::String(line)) => line.clone(),
        Some(Value::Array(words)) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            let words: Vec<String> = words.into_iter().map(crate::fault::quoted).collect();
            words.join(" ")
        }
        _ => return Touch::Unknown,
    };
    Touch::Line {
        line,
        directory: text(input, directory).map(PathBuf::from),
    }
}
