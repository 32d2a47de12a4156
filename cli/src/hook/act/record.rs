//! What an agent did, on the record: where it wrote, which agents it had below it, and that it went.

use std::path::Path;

use tenure_projection::call::{Bearer, Label, ProcessChoice, Verb};
use tenure_projection::core::id::{Name, Token};
use tenure_projection::core::limits::{LABEL_BYTES_MAX, STATUS_BYTES_MAX};
use tenure_projection::core::path::contains;
use tenure_projection::core::state::Session;
use tenure_projection::error::Error;
use tenure_projection::reader::Reader;
use tenure_projection::store::Answer as Told;

use crate::fault::Stop;
use crate::kept;

use super::super::hold::labels;
use super::super::payload::{Answer, Tool};
use super::{Act, PARTED, Who};

impl Act<'_> {
    /// Records the files that a tool named, unless that is on the record.
    pub(super) fn observe(&self, token: &Token, tool: &Tool) -> Result<Answer, Stop> {
        let mut new = Vec::new();
        for path in self.located(self.targets(tool))? {
            if !self.looking(|reader| is_observed(reader, token, &path))? {
                new.push(path);
            }
        }
        let Some(first) = new.first() else {
            return Ok(Answer::Silence);
        };
        let file = first.file_name().unwrap_or_default().to_string_lossy();
        let mut status = format!("{} {file}", tool.name);
        let mut end = status.len().min(STATUS_BYTES_MAX);
        while !status.is_char_boundary(end) {
            end -= 1;
        }
        status.truncate(end);
        match self.execute(Verb::Observe { status, wrote: new }, Some(token)) {
            Ok(done) => self.met(&done),
            // It was superseded while the tool ran; the next one is denied.
            Err(Stop::Refused(_)) => Ok(Answer::Silence),
            Err(stop) => Err(stop),
        }
    }

    /// Registers an agent below, as a session of the tree.
    pub(super) fn begin_child(
        &self,
        who: &Who,
        token: &Token,
        id: &str,
        role: &str,
    ) -> Result<Answer, Stop> {
        let Some(name) = child(who, id) else {
            return Ok(Answer::Silence);
        };
        let engine = self.payload.host.as_str().to_owned();
        let mut labels = labels(&engine);
        if !role.is_empty() && role.len() <= LABEL_BYTES_MAX {
            labels.push(Label {
                key: "agent".to_owned(),
                value: role.to_owned(),
            });
        }
        let verb = Verb::RegisterChild {
            name,
            bearer: Bearer {
                process: ProcessChoice::Pid(who.pid),
                engine: Some(engine),
            },
            labels,
            checkout: None,
        };
        self.note(verb, token)
    }

    /// Retires an agent below.
    pub(super) fn end_child(&self, who: &Who, id: &str) -> Result<Answer, Stop> {
        let Some(name) = child(who, id) else {
            return Ok(Answer::Silence);
        };
        let current = self.looking(|reader| {
            reader.view(|state| {
                let number = state.find(name.as_str().as_bytes())?;
                let active = state.is_active(number);
                state
                    .session(number)
                    .map(|s| s.generation)
                    .filter(|_| active)
            })
        })?;
        let Some(generation) = current else {
            return Ok(Answer::Silence);
        };
        let token = kept::token_at(self.ctx, &name, generation);
        let verb = Verb::Retire {
            name,
            if_idle: false,
            reason: Some("its agent ended".to_owned()),
        };
        self.note(verb, &token)
    }

    /// Gives the session back; a blank one is retired (REG-19). What `exec` holds it gives back itself.
    pub(super) fn part(&self, who: &Who, token: &Token) -> Result<Answer, Stop> {
        if who.shown.is_some() {
            return Ok(Answer::Silence);
        }
        let verb = self.looking(|reader| parting(reader, &who.name))?;
        self.note(verb, token)
    }

    /// What is recorded if it can be: nobody waits for it, and a refusal of it stops nothing.
    fn note(&self, verb: Verb, token: &Token) -> Result<Answer, Stop> {
        match self.execute(verb, Some(token)) {
            Ok(done) => {
                if let Told::Granted(grant) = &done.answer {
                    kept::keep(self.ctx, &grant.token)?;
                }
                Ok(Answer::Silence)
            }
            Err(Stop::Refused(_)) => Ok(Answer::Silence),
            Err(stop) => Err(stop),
        }
    }
}

/// The call that gives a session back; a blank one is retired (REG-19).
///
/// # Errors
/// When the log cannot be read.
pub fn parting(reader: &Reader, name: &Name) -> Result<Verb, Error> {
    let blank = reader.view(|state| {
        let number = state.find(name.as_str().as_bytes());
        number.and_then(|n| state.session(n)).is_some_and(is_blank)
    })?;
    let (name, reason) = (name.clone(), Some(PARTED.to_owned()));
    Ok(match blank {
        true => Verb::Retire {
            name,
            if_idle: true,
            reason,
        },
        false => Verb::Release {
            name,
            epoch: None,
            reason,
        },
    })
}

/// The name of an agent below; `None` where its id makes no name.
fn child(who: &Who, id: &str) -> Option<Name> {
    Name::parse(&format!("{}/{id}", who.name)).ok()
}

fn is_observed(
    reader: &Reader,
    token: &Token,
    path: &Path,
) -> Result<bool, tenure_projection::error::Error> {
    let place = reader.locate(path)?;
    reader.view(|state| {
        let number = state.find(token.name.as_str().as_bytes());
        let session = number.and_then(|n| state.session(n));
        let place = place.map(|path| path.as_slice());
        session.is_some_and(|session| {
            session.observed.iter().any(|seen| {
                let seen = seen.map(|text| state.pool.get(*text));
                contains(&seen, &place).is_some()
            })
        })
    })
}

/// Whether nothing but its start is known of a session.
fn is_blank(session: &Session) -> bool {
    session.open.is_empty()
        && session.inbox.is_empty()
        && session.observed.is_empty()
        && session.told.is_empty()
        && session.cursor.is_none()
        && session.history.count() == 0
        && session.tree.members.is_empty()
}
