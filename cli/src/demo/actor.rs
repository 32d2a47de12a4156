//! An actor: a process of its own with a store handle that it opened when it started, driven by one JSON object
//! a line.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tenure_projection::call::{Bearer, Call, ProcessChoice, Verb};
use tenure_projection::core::command::{Outcome, Ref};
use tenure_projection::core::id::{DispatchNo, EnvelopeNo, Name, Token};
use tenure_projection::error::Failure;
use tenure_projection::host::System;
use tenure_projection::store::{Answer, Done, OpenOptions, Store};

use crate::exit::Cause;

/// The environment variable that makes `tenure` an actor on the store that it names.
pub const ACTOR_STORE: &str = "TENURE_DEMO_ACTOR_STORE";

/// Serves orders if this process was started as an actor.
#[must_use]
pub fn serve_if_asked() -> Option<ExitCode> {
    let dir = std::env::var_os(ACTOR_STORE)?;
    Some(match serve(Path::new(&dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("a demo actor failed: {error}");
            ExitCode::from(Cause::Io.exit().number())
        }
    })
}

/// Serves orders until standard input ends.
fn serve(dir: &Path) -> io::Result<()> {
    let host = Arc::new(System::of_this_user());
    let store = Store::open(&OpenOptions::new(dir), host).map_err(io::Error::other)?;
    let mut actor = Actor { store, token: None };
    let mut out = io::stdout().lock();
    writeln!(out, "{}", json!({ "ready": std::process::id() }))?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let order: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", actor.obey(&order))?;
        out.flush()?;
    }
    Ok(())
}

struct Actor {
    store: Store,
    token: Option<Token>,
}

fn text(order: &Value, key: &str) -> Option<String> {
    order.get(key).and_then(Value::as_str).map(str::to_owned)
}

impl Actor {
    fn obey(&mut self, order: &Value) -> Value {
        let Some(verb) = verb(order) else {
            return json!({ "failed": format!("not an order: {order}") });
        };
        let mut call = Call::new(verb).by(text(order, "actor").unwrap_or_else(|| "demo".into()));
        call.token.clone_from(&self.token);
        call.force = text(order, "force");
        if matches!(call.verb, Verb::Register { .. } | Verb::Adopt { .. }) {
            call.token = None;
        }
        match self.store.execute(call) {
            Ok(done) => self.done(&done),
            Err(Failure::Refused(refusal)) => json!({
                "refused": refusal.code.as_str(),
                "message": refusal.message,
                "holder": refusal.holder.and_then(|h| h.bearing.process).map(|p| p.pid),
                "since": refusal.since.map(|s| s.position.0),
            }),
            Err(other) => json!({ "failed": other.to_string() }),
        }
    }

    fn done(&mut self, done: &Done) -> Value {
        let position = done.receipt.position.0;
        match &done.answer {
            Answer::Granted(grant) => {
                self.token = Some(grant.token.clone());
                let former = grant.former.len();
                json!({ "done": position, "token": grant.token.to_string(), "former": former })
            }
            Answer::Accepted {
                shared,
                instruction,
                ..
            } => {
                let named = self.store.view(|state| {
                    shared
                        .iter()
                        .map(|s| state.name(s.session))
                        .collect::<Vec<_>>()
                });
                json!({ "done": position, "shared": named.unwrap_or_default(), "instruction": instruction })
            }
            Answer::Sent { envelope } => {
                json!({ "done": position, "envelope": envelope.to_string() })
            }
            _ => json!({ "done": position }),
        }
    }
}

/// The verb of an order; `None` when it is none.
fn verb(order: &Value) -> Option<Verb> {
    let name = |key| text(order, key).and_then(|n| Name::parse(&n).ok());
    let dispatch = || text(order, "dispatch").and_then(|d| DispatchNo::parse(&d));
    let bearer = || Bearer {
        process: ProcessChoice::Itself,
        engine: text(order, "engine"),
    };
    let body = || text(order, "body").map(String::into_bytes);
    Some(match order.get("do")?.as_str()? {
        "register" => Verb::Register {
            name: name("name")?,
            bearer: bearer(),
            labels: Vec::new(),
            checkout: text(order, "checkout").map(PathBuf::from),
        },
        "adopt" => Verb::Adopt {
            name: name("name")?,
            bearer: bearer(),
            labels: Vec::new(),
        },
        "retire" => Verb::Retire {
            name: name("name")?,
            if_idle: false,
            reason: None,
        },
        "accept" => Verb::Accept {
            dispatch: dispatch()?,
        },
        "report" => Verb::Report {
            dispatch: dispatch()?,
            outcome: Outcome::Done,
            body: body(),
        },
        "observe" => Verb::Observe {
            status: text(order, "status")?,
            wrote: text(order, "wrote")
                .map(PathBuf::from)
                .into_iter()
                .collect(),
        },
        "send" => Verb::Send {
            to: name("to")?,
            body: body()?,
            re: dispatch().map(Ref::Dispatch),
        },
        "ack" => Verb::Acknowledge {
            envelope: text(order, "envelope").and_then(|e| EnvelopeNo::parse(&e))?,
        },
        _ => return None,
    })
}
