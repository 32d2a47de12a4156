//! The tools: what each takes, which command it is, and what it answers.

use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::{Map, Value, json};
use tenure_projection::core::id::Token;

use super::desk::Answered;

/// A tool: a command of this program, with the arguments that an agent may choose.
pub struct Tool {
    /// Its name, as the protocol has it.
    pub name: &'static str,
    title: &'static str,
    about: &'static str,
    command: &'static str,
    /// Whether it appends to the log.
    pub writes: bool,
    /// Whether what it does cannot be taken back.
    ends: bool,
    takes: &'static [Take],
    answers: Answers,
}

/// An argument.
struct Take {
    name: &'static str,
    about: &'static str,
    is: Is,
    required: bool,
    goes: Goes,
}

/// What an argument is.
#[derive(Clone, Copy)]
enum Is {
    /// A word: a name, a number, a place.
    Word,
    /// A text, taken as it stands.
    Text,
    Flag,
    OneOf(&'static [&'static str]),
}

/// Where it goes on the command line.
#[derive(Clone, Copy)]
enum Goes {
    /// Behind the options.
    Behind,
    /// To this option.
    To(&'static str),
}

/// What a tool answers.
enum Answers {
    /// One object of this kind, with these fields.
    One(&'static str, &'static [&'static str]),
    /// One object of one of these kinds.
    OneOf(&'static [&'static str]),
    /// Any number of objects of this kind, with these fields.
    Many(&'static str, &'static [&'static str]),
}

const fn take(name: &'static str, about: &'static str, is: Is, goes: Goes) -> Take {
    Take {
        name,
        about,
        is,
        required: true,
        goes,
    }
}

const fn may(name: &'static str, about: &'static str, is: Is, goes: Goes) -> Take {
    Take {
        name,
        about,
        is,
        required: false,
        goes,
    }
}

const DISPATCH: Take = take(
    "dispatch",
    "The dispatch: d1, d2, ...",
    Is::Word,
    Goes::Behind,
);
const KEY: Take = may(
    "idempotency_key",
    "The same key with the same arguments is carried out once and answered the same ever after",
    Is::Word,
    Goes::To("--idempotency-key"),
);
const DONE: &[&str] = &["position", "receipt", "repeated"];

/// Every tool. What makes somebody act for another session (register, adopt, retire, branch, force) is not among them.
pub const ALL: &[Tool] = &[
    Tool {
        name: "check_authority",
        title: "Is this session still ours?",
        about: "Says whether the session that this server acts for is still held by it, what was lost if not, and notices \
                that it was not told yet. Ask before a longer piece of work, and whenever something was refused.",
        command: "check",
        writes: false,
        ends: false,
        takes: &[],
        answers: Answers::One(
            "check",
            &[
                "current",
                "token",
                "session",
                "generation",
                "holder",
                "lost",
            ],
        ),
    },
    Tool {
        name: "list_sessions",
        title: "Sessions",
        about: "Lists the sessions of the store with holder, verdict, checkout, last seen, and what is open.",
        command: "sessions",
        writes: false,
        ends: false,
        takes: &[may("all", "Retired ones too", Is::Flag, Goes::To("--all"))],
        answers: Answers::Many(
            "session",
            &["name", "state", "generation", "token", "holder"],
        ),
    },
    Tool {
        name: "show_session",
        title: "One session, dispatch, envelope or refusal",
        about: "Shows one thing whole: a session by its name, a dispatch (d1), an envelope (e1) or a recorded refusal (r1).",
        command: "show",
        writes: false,
        ends: false,
        takes: &[take(
            "subject",
            "NAME (or its first 6 characters or more), dN, eN, rN, or session:NAME",
            Is::Word,
            Goes::Behind,
        )],
        answers: Answers::OneOf(&["session", "dispatch", "envelope", "refusal"]),
    },
    Tool {
        name: "shared_checkout",
        title: "Who else works here",
        about: "Lists who else is changing files where this session works, or at a path, and what to do about it.",
        command: "shared",
        writes: false,
        ends: false,
        takes: &[may(
            "path",
            "At this path instead; it is located and never read",
            Is::Word,
            Goes::To("--path"),
        )],
        answers: Answers::Many("shared", &["session", "writes", "level", "source"]),
    },
    Tool {
        name: "list_work",
        title: "Dispatches",
        about: "Lists dispatches: work that sessions were given, with item, title, write scopes and state.",
        command: "work",
        writes: false,
        ends: false,
        takes: &[
            may("session", "Of this session only", Is::Word, Goes::Behind),
            may("item", "Of this item only", Is::Word, Goes::To("--item")),
            may(
                "all",
                "Those that have ended too",
                Is::Flag,
                Goes::To("--all"),
            ),
        ],
        answers: Answers::Many(
            "dispatch",
            &[
                "id",
                "item",
                "title",
                "session",
                "generation",
                "state",
                "writes",
            ],
        ),
    },
    Tool {
        name: "read_inbox",
        title: "Envelopes of this session",
        about: "Lists the envelopes of the session that this server acts for: work, notices, messages, reviews.",
        command: "inbox",
        writes: false,
        ends: false,
        takes: &[may(
            "pending",
            "Only what waits to be delivered",
            Is::Flag,
            Goes::To("--pending"),
        )],
        answers: Answers::Many("envelope", &["id", "kind", "session", "state", "body"]),
    },
    Tool {
        name: "ask_who",
        title: "Who holds it, now or then",
        about: "Says who holds a session, an item, a role, a tree or a path, now or at another time.",
        command: "who",
        writes: false,
        ends: false,
        takes: &[
            take(
                "subject",
                "NAME or session:NAME, item:ID, role:ROLE@SCOPE, tree:NAME, path:P",
                Is::Word,
                Goes::Behind,
            ),
            may(
                "at",
                "A position of the log, an RFC 3339 time, or an age (10m, 2h)",
                Is::Word,
                Goes::To("--at"),
            ),
        ],
        answers: Answers::Many(
            "who",
            &["subject", "session", "generation", "holder", "since"],
        ),
    },
    Tool {
        name: "accept_dispatch",
        title: "Take a dispatch on",
        about: "Takes a dispatch on, and says who else is changing files where it writes. Read that before you begin.",
        command: "accept",
        writes: true,
        ends: false,
        takes: &[DISPATCH, KEY],
        answers: Answers::One(
            "accepted",
            &[
                "dispatch",
                "binding",
                "shared_checkout",
                "instruction",
                "position",
                "receipt",
            ],
        ),
    },
    Tool {
        name: "decline_dispatch",
        title: "Turn a dispatch down",
        about: "Turns a dispatch down, once and for good. Its item can then be given to somebody else.",
        command: "decline",
        writes: true,
        ends: true,
        takes: &[
            DISPATCH,
            take("reason", "Why, in a line", Is::Text, Goes::To("--reason")),
            KEY,
        ],
        answers: Answers::One("done", DONE),
    },
    Tool {
        name: "report_dispatch",
        title: "End a dispatch",
        about: "Ends an accepted dispatch, once and for good: done, failed or blocked. What it carries is kept also when \
                it is refused.",
        command: "report",
        writes: true,
        ends: true,
        takes: &[
            DISPATCH,
            take(
                "outcome",
                "How it ended",
                Is::OneOf(&["done", "failed", "blocked"]),
                Goes::To("--outcome"),
            ),
            may("body", "What there is to say", Is::Text, Goes::To("--body")),
            KEY,
        ],
        answers: Answers::One("done", DONE),
    },
    Tool {
        name: "ack_envelope",
        title: "An envelope was read",
        about: "Says that an envelope of this session was read.",
        command: "ack",
        writes: true,
        ends: false,
        takes: &[
            take(
                "envelope",
                "The envelope: e1, e2, ...",
                Is::Word,
                Goes::Behind,
            ),
            KEY,
        ],
        answers: Answers::One("done", DONE),
    },
    Tool {
        name: "note_session",
        title: "Write something down",
        about: "Writes a note of this session into the log, about a dispatch or an envelope if one is named.",
        command: "note",
        writes: true,
        ends: false,
        takes: &[
            take("text", "The note", Is::Text, Goes::Behind),
            may("on", "What it is about: d1, e1", Is::Word, Goes::To("--on")),
            KEY,
        ],
        answers: Answers::One("done", DONE),
    },
];

/// The tool of that name.
///
/// # Errors
/// With the names that there are.
pub fn find(name: &str) -> Result<&'static Tool, String> {
    ALL.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|tool| tool.name).collect();
        format!("no tool is called {name:?}; there are {}", names.join(", "))
    })
}

/// A command line that was asked for.
#[derive(Default)]
pub struct Asked {
    options: Vec<String>,
    behind: Vec<String>,
    /// What an argument `-` reads.
    pub stdin: Vec<u8>,
    /// Whether it is asked for the session that the server acts for.
    pub bound: bool,
    of_session: bool,
}

impl Asked {
    /// The arguments behind the program's name, for the session of `token` where it is about that.
    pub fn args(&self, command: &str, token: Option<&Token>) -> Vec<String> {
        let own = token.filter(|_| self.of_session);
        let own = own.map(|token| token.name.to_string());
        std::iter::once(command.to_owned())
            .chain(self.options.iter().cloned())
            .chain(std::iter::once("--".to_owned()))
            .chain(self.behind.iter().cloned())
            .chain(own)
            .collect()
    }

    fn put(&mut self, goes: Goes, value: String) {
        match goes {
            Goes::Behind => self.behind.push(value),
            // In one word with its option, a value is never taken for an option of its own.
            Goes::To(option) => self.options.push(format!("{option}={value}")),
        }
    }

    /// A text as the command line has it: it names no file, and no standard input but its own.
    fn text(&mut self, goes: Goes, text: String) {
        if text == "-" {
            self.stdin = text.clone().into_bytes();
            self.put(goes, text);
        } else if text.starts_with('@') {
            self.put(goes, format!("@{text}"));
        } else {
            self.put(goes, text);
        }
    }
}

impl Tool {
    /// The command line for these arguments.
    ///
    /// # Errors
    /// When one is missing, unknown, or not what it has to be.
    pub fn asked(&self, mut given: JsonObject) -> Result<Asked, String> {
        let mut asked = Asked {
            of_session: self.command == "inbox",
            ..Asked::default()
        };
        for take in self.takes {
            let (tool, name) = (self.name, take.name);
            let value = given.remove(name).filter(|value| !value.is_null());
            match (value, take.is) {
                (None, _) if take.required => return Err(format!("{tool} needs {name:?}")),
                (None, _) => {}
                (Some(Value::Bool(set)), Is::Flag) => {
                    if let (true, Goes::To(option)) = (set, take.goes) {
                        asked.options.push(option.to_owned());
                    }
                }
                (Some(_), Is::Flag) => {
                    return Err(format!("{name:?} of {tool} has to be true or false"));
                }
                (Some(Value::String(text)), Is::Text) => asked.text(take.goes, text),
                (Some(Value::String(word)), Is::Word) => asked.put(take.goes, word),
                (Some(Value::String(word)), Is::OneOf(words)) if words.contains(&&*word) => {
                    asked.put(take.goes, word);
                }
                (Some(_), Is::OneOf(words)) => {
                    let words = words.join(", ");
                    return Err(format!("{name:?} of {tool} has to be one of {words}"));
                }
                (Some(_), _) => return Err(format!("{name:?} of {tool} has to be a text")),
            }
        }
        if let Some(name) = given.keys().next() {
            return Err(format!("{} takes no {name:?}", self.name));
        }
        let elsewhere = asked.options.iter().any(|arg| arg.starts_with("--path="));
        let about_own = ["check", "inbox", "shared"].contains(&self.command);
        asked.bound = self.writes || (about_own && !elsewhere);
        Ok(asked)
    }

    /// The command that it is.
    pub fn command(&self) -> &'static str {
        self.command
    }

    /// The result: the object of the command, or all of them where it prints a list.
    pub fn structured(&self, mut answered: Answered) -> Value {
        if let (Answers::Many(..), false) = (&self.answers, answered.is_refused()) {
            return json!({ "items": answered.objects });
        }
        answered.objects.pop().unwrap_or_default()
    }

    /// As the protocol describes it.
    pub fn described(&self) -> rmcp::model::Tool {
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(!self.writes)
            .destructive(self.ends)
            .idempotent(!self.writes || self.ends)
            .open_world(false);
        rmcp::model::Tool::new(self.name, self.about, object(self.input()))
            .with_title(self.title)
            .with_annotations(annotations)
            .with_raw_output_schema(object(self.output()))
    }

    fn input(&self) -> Value {
        let mut properties = Map::new();
        for take in self.takes {
            let mut property = json!({ "description": take.about });
            match take.is {
                Is::Word | Is::Text => property["type"] = "string".into(),
                Is::Flag => property["type"] = "boolean".into(),
                Is::OneOf(words) => property["enum"] = words.to_vec().into(),
            }
            properties.insert(take.name.to_owned(), property);
        }
        let required = self.takes.iter().filter(|take| take.required);
        let required: Vec<&str> = required.map(|take| take.name).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    fn output(&self) -> Value {
        let schema = |kind: &&str| format!("tenure.{kind}.v1");
        let one = |kind: &str, fields: &[&str]| {
            let required = [&["schema"], fields].concat();
            json!({
                "type": "object",
                "properties": { "schema": { "const": schema(&kind) } },
                "required": required,
            })
        };
        match &self.answers {
            Answers::One(kind, fields) => one(kind, fields),
            Answers::OneOf(kinds) => {
                let schemas: Vec<String> = kinds.iter().map(schema).collect();
                json!({
                    "type": "object",
                    "properties": { "schema": { "enum": schemas } },
                    "required": ["schema"],
                })
            }
            Answers::Many(kind, fields) => json!({
                "type": "object",
                "properties": { "items": { "type": "array", "items": one(kind, fields) } },
                "required": ["items"],
            }),
        }
    }
}

/// A schema is an object.
fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}
