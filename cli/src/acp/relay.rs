//! What goes on between a client and its agent, and what does not. `docs/acp.md` has the tables.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tenure_projection::core::id::{Name, Token};

use crate::fault::Stop;
use crate::hook::OnError;
use crate::output::escape;
use crate::output::json as shapes;

use super::desk::{Asked, Denial, Desk, REFUSED, name};
use super::message::{Message, Params, Unreadable, error};

/// The longest message, in bytes (64 MiB): a prompt with pictures in it.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// What the agent's answer to a request of the client means.
#[derive(Debug)]
enum Awaited {
    New { cwd: Option<PathBuf> },
    Fork { source: Name, cwd: Option<PathBuf> },
    Load { token: Token, taken: bool },
    Close(Name),
    Delete(Name),
}

/// Where a message goes.
#[derive(PartialEq, Eq, Debug)]
enum Way {
    /// On, as it is.
    On,
    /// On, changed.
    Changed(String),
    /// Back, with this answer; nothing where none is wanted.
    Back(Option<String>),
}

/// Stands between a client and an agent.
pub struct Relay<'a> {
    desk: &'a Desk<'a>,
    on_error: OnError,
    /// What the client asked and the agent has not answered, by the id as it is written.
    awaited: Mutex<HashMap<String, Awaited>>,
    /// What the agent writes through the client.
    written: Mutex<HashMap<String, (Token, PathBuf)>>,
}

impl<'a> Relay<'a> {
    /// Between the two, for the sessions of the agent.
    #[must_use]
    pub fn new(desk: &'a Desk<'a>, on_error: OnError) -> Self {
        Self {
            desk,
            on_error,
            awaited: Mutex::default(),
            written: Mutex::default(),
        }
    }

    /// Hands on what the client says, until it says nothing more or the agent does not listen.
    pub fn hear_client(
        &self,
        client: impl BufRead,
        mut agent: impl FnMut(&[u8]) -> std::io::Result<()>,
        mut back: impl FnMut(&str) -> std::io::Result<()>,
    ) {
        lines(client, |line| {
            let way = match line {
                Some(line) => self.asked(line),
                None => Way::Back(Some(error(None, -32600, &too_long(), None))),
            };
            match way {
                Way::On => agent(line.unwrap_or_default()),
                Way::Changed(text) => agent(text.as_bytes()),
                Way::Back(answer) => answer.map_or(Ok(()), |answer| back(&answer)),
            }
        });
    }

    /// Hands on what the agent says. What it may not do is answered through `back`, by whoever writes to it.
    pub fn hear_agent(
        &self,
        agent: impl BufRead,
        mut client: impl FnMut(&[u8]) -> std::io::Result<()>,
        back: &Sender<String>,
    ) {
        lines(agent, |line| {
            let Some(line) = line else {
                say(&format!("the agent: {}", too_long()));
                return Ok(());
            };
            match self.said(line) {
                Way::On => client(line),
                Way::Changed(text) => client(text.as_bytes()),
                Way::Back(answer) => {
                    if let Some(answer) = answer {
                        // An agent that has ended needs no answer.
                        let _ = back.send(answer);
                    }
                    Ok(())
                }
            }
        });
    }

    /// A message of the client.
    fn asked(&self, line: &[u8]) -> Way {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(Unreadable { code, message }) => {
                return Way::Back(Some(error(None, code, &message, None)));
            }
        };
        let Some(method) = message.method.as_deref() else {
            self.client_answered(&message);
            return Way::On;
        };
        if !method.starts_with("session/") || method == "session/cancel" {
            return Way::On;
        }
        let params = match message.params() {
            Ok(params) => params,
            Err(unreadable) => return refused(&message, &unreadable),
        };
        self.decided(&message, self.before(method, &message, params))
    }

    /// What is asked before a request about a session goes on, and the token that goes with it.
    fn before(&self, method: &str, message: &Message<'_>, params: Params) -> Asked<Option<Token>> {
        let Params {
            session_id, cwd, ..
        } = params;
        let await_answer = |awaited| {
            if let Some(id) = message.id() {
                self.awaited.lock().insert(id.get().to_owned(), awaited);
            }
        };
        if method == "session/new" {
            await_answer(Awaited::New { cwd });
            return Ok(None);
        }
        let Some(session) = session_id else {
            return Ok(None);
        };
        let session = name(&session)?;
        match method {
            "session/load" | "session/resume" => {
                let (token, taken) = self.desk.load(&session, cwd)?;
                await_answer(Awaited::Load {
                    token: token.clone(),
                    taken,
                });
                Ok(Some(token))
            }
            "session/close" => {
                await_answer(Awaited::Close(session));
                Ok(None)
            }
            _ => {
                let token = self.desk.fence(&session)?;
                match method {
                    "session/fork" => await_answer(Awaited::Fork {
                        source: session,
                        cwd,
                    }),
                    "session/delete" => await_answer(Awaited::Delete(session)),
                    _ => {}
                }
                Ok(Some(token))
            }
        }
    }

    /// A message of the agent.
    fn said(&self, line: &[u8]) -> Way {
        // What is no message is the client's to judge.
        let Ok(message) = Message::read(line) else {
            return Way::On;
        };
        let Some(method) = message.method.as_deref() else {
            return self.agent_answered(&message);
        };
        let fenced = [
            "fs/write_text_file",
            "terminal/create",
            "session/request_permission",
        ];
        if !fenced.contains(&method) {
            return Way::On;
        }
        let params = match message.params() {
            Ok(params) => params,
            Err(unreadable) => return refused(&message, &unreadable),
        };
        let Some(session) = params.session_id else {
            return Way::On;
        };
        let path = params.path.filter(|_| method == "fs/write_text_file");
        let asked = name(&session).and_then(|session| {
            let token = self.desk.fence(&session)?;
            let warning = match &path {
                Some(path) => self.desk.write(&token, path)?,
                None => None,
            };
            Ok((token, warning))
        });
        if let (Ok((_, Some(warning))), Some(id)) = (&asked, message.id()) {
            return Way::Back(Some(error(Some(id), REFUSED, warning, None)));
        }
        if let (Ok((token, _)), Some(path), Some(id)) = (&asked, path, message.id()) {
            let written = (token.clone(), path);
            self.written.lock().insert(id.get().to_owned(), written);
        }
        self.decided(&message, asked.map(|(token, _)| Some(token)))
    }

    /// Where a message goes after the ledger was asked.
    fn decided(&self, message: &Message<'_>, asked: Asked<Option<Token>>) -> Way {
        match asked {
            Ok(None) => Way::On,
            Ok(Some(token)) => Way::Changed(message.with_meta(&Desk::meta(&token))),
            Err(stop) => match self.denied(&stop) {
                None => Way::On,
                Some(denial) => Way::Back(message.id().map(|id| answer(id, denial))),
            },
        }
    }

    /// A refusal; where nothing could be asked, what the policy says. `None` lets the message go on.
    fn denied(&self, stop: &Stop) -> Option<Denial> {
        if let Some(denial) = self.desk.denial(stop) {
            return Some(denial);
        }
        let why = match stop {
            Stop::Failed(fault) => fault.message.as_str(),
            Stop::Refused(_) | Stop::OutputClosed => "nobody answers",
        };
        match self.on_error {
            OnError::Allow => {
                say(&format!("nothing was checked: {why} (on-error allow)"));
                None
            }
            OnError::Deny => Some(Denial {
                message: format!("tenure: nothing could be checked: {why} (on-error deny)"),
                data: match stop {
                    Stop::Failed(fault) => Some(shapes::error(fault).into_value()),
                    Stop::Refused(_) | Stop::OutputClosed => None,
                },
            }),
        }
    }

    /// What an answer of the agent means for the ledger.
    fn agent_answered(&self, message: &Message<'_>) -> Way {
        let Some(id) = message.id() else {
            return Way::On;
        };
        let Some(awaited) = self.awaited.lock().remove(id.get()) else {
            return Way::On;
        };
        let done = !message.is_error();
        match awaited {
            Awaited::New { cwd } if done => {
                self.began(message, |session| self.desk.take(&session, cwd))
            }
            Awaited::Fork { source, cwd } if done => {
                self.began(message, |session| self.desk.branch(&source, &session, cwd))
            }
            Awaited::Load { token, .. } if done => {
                Way::Changed(message.with_meta(&Desk::meta(&token)))
            }
            Awaited::Load { token, taken: true } => self.noted(self.desk.part(&token.name)),
            Awaited::Close(session) if done => self.noted(self.desk.part(&session)),
            Awaited::Delete(session) if done => self.noted(self.desk.retire(&session)),
            _ => Way::On,
        }
    }

    /// A session of the agent that is new.
    fn began(&self, message: &Message<'_>, take: impl FnOnce(Name) -> Asked<Token>) -> Way {
        match message.new_session() {
            Some(session) => self.decided(message, name(&session).and_then(take).map(Some)),
            // An agent that names none has begun none.
            None => Way::On,
        }
    }

    fn client_answered(&self, message: &Message<'_>) {
        let written = message
            .id()
            .and_then(|id| self.written.lock().remove(id.get()));
        if let Some((token, path)) = written.filter(|_| !message.is_error()) {
            self.noted(self.desk.wrote(&token, path));
        }
    }

    /// What is only recorded stops nobody.
    fn noted(&self, noted: Asked<()>) -> Way {
        if let Err(Stop::Failed(fault)) = noted {
            say(&format!("not recorded: {}", fault.message));
        }
        Way::On
    }
}

fn answer(id: &RawValue, denial: Denial) -> String {
    let data = denial
        .data
        .map(|data| serde_json::json!({ "tenure": data }));
    error(Some(id), REFUSED, &denial.message, data)
}

fn refused(message: &Message<'_>, unreadable: &Unreadable) -> Way {
    let Unreadable { code, message: why } = unreadable;
    Way::Back(message.id().map(|id| error(Some(id), *code, why, None)))
}

fn too_long() -> String {
    format!("a message of more than {MESSAGE_BYTES_MAX} bytes was not handed on")
}

/// Says something to whoever reads the agent's errors.
fn say(text: &str) {
    eprintln!("tenure: {}", escape::line(text));
}

/// Every line without its end, until there is none or `each` fails; `None` for one that is too long.
fn lines(mut from: impl BufRead, mut each: impl FnMut(Option<&[u8]>) -> std::io::Result<()>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = from
            .by_ref()
            .take(MESSAGE_BYTES_MAX + 1)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(bytes) if bytes > 0) {
            return;
        }
        let ended = line.pop_if(|last| *last == b'\n').is_some();
        if !ended && line.len() as u64 > MESSAGE_BYTES_MAX {
            if from.skip_until(b'\n').is_err() || each(None).is_err() {
                return;
            }
            continue;
        }
        if !line.iter().all(u8::is_ascii_whitespace) && each(Some(&line)).is_err() {
            return;
        }
    }
}

/// Writes a message.
///
/// # Errors
/// When nobody reads it.
pub fn write(to: &mut impl Write, message: &[u8]) -> std::io::Result<()> {
    to.write_all(message)?;
    to.write_all(b"\n")?;
    to.flush()
}
