//! What a refused command asked for, as a call that can be made again under a token that is current.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use tenure_core::command::{Command, Request};
use tenure_core::id::{Name, Position, RefusalNo};
use tenure_core::path::Scope;
use tenure_core::text::{BodyId, TextId};

use crate::call::Verb;
use crate::error::Error;
use crate::views::{Lens, shown};

/// A refused command that the log keeps whole.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The frame that keeps it.
    pub position: Position,
    /// The word of the command.
    pub command: &'static str,
    /// The call; `None` for a command that means something only at its time, as a grant does.
    pub verb: Option<Verb>,
}

impl Lens<'_> {
    /// The refused commands that a record keeps, oldest first: each one that carried something new, or the first.
    ///
    /// # Errors
    /// When their frames cannot be read.
    pub fn kept(&self, id: RefusalNo) -> Result<Vec<Kept>, Error> {
        let Some(record) = self.state.refusal(id) else {
            return Ok(Vec::new());
        };
        let mut positions: Vec<Position> = record.bodies.iter().map(|(_, at)| *at).collect();
        if positions.is_empty() {
            positions.push(record.first.position);
        }
        let mut all = Vec::new();
        for position in positions {
            if let Some((_, request)) = self.frame(position)? {
                all.push(Kept {
                    position,
                    command: request.input.command.word(),
                    verb: verb(&request),
                });
            }
        }
        Ok(all)
    }
}

/// The call that a request was made of. `None` for a grant, for what the store writes itself, and where a name in
/// it is none.
#[must_use]
pub fn verb(request: &Request) -> Option<Verb> {
    let told = Told(request);
    Some(match &request.input.command {
        Command::Dispatch(c) => Verb::Dispatch {
            item: told.name(c.item)?,
            to: told.name(c.to)?,
            to_generation: c.to_generation,
            title: c.title.map(|t| told.text(t)),
            writes: told.paths(&c.writes),
            body: told.body(c.body),
        },
        Command::Accept(c) => Verb::Accept {
            dispatch: c.dispatch,
        },
        Command::Decline(c) => Verb::Decline {
            dispatch: c.dispatch,
            reason: told.text(c.reason),
        },
        Command::Report(c) => Verb::Report {
            dispatch: c.dispatch,
            outcome: c.outcome,
            body: told.body(c.body),
        },
        Command::Cancel(c) => Verb::Cancel {
            dispatch: c.dispatch,
            reason: told.text(c.reason),
        },
        Command::Fail(c) => Verb::Fail {
            dispatch: c.dispatch,
            reason: told.text(c.reason),
        },
        Command::Note(c) => Verb::Note {
            body: told.body(Some(c.body))?,
            on: c.on,
        },
        Command::Observe(c) => Verb::Observe {
            status: told.text(c.status),
            wrote: told.paths(&c.wrote),
        },
        Command::Send(c) => Verb::Send {
            to: told.name(c.to)?,
            body: told.body(Some(c.body))?,
            re: c.re,
        },
        Command::Deliver(c) => Verb::Deliver {
            envelope: c.envelope,
        },
        Command::Acknowledge(c) => Verb::Acknowledge {
            envelope: c.envelope,
        },
        _ => return None,
    })
}

/// A request's texts and bodies.
struct Told<'r>(&'r Request);

impl Told<'_> {
    fn text(&self, id: TextId) -> String {
        shown(self.0.texts.get(id))
    }

    fn name(&self, id: TextId) -> Option<Name> {
        Name::parse(&self.text(id)).ok()
    }

    fn body(&self, id: Option<BodyId>) -> Option<Vec<u8>> {
        self.0.bodies.get(id?).map(<[u8]>::to_vec)
    }

    fn paths(&self, scopes: &[Scope<TextId>]) -> Vec<PathBuf> {
        let path = |scope: &Scope<TextId>| {
            PathBuf::from(OsString::from_vec(self.0.texts.get(scope.path).to_vec()))
        };
        scopes.iter().map(path).collect()
    }
}
