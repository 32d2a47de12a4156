//! What an agent is told: who it is, whom it meets, what is new, what was lost.

use tenure_projection::core::id::{EnvelopeNo, Token};
use tenure_projection::core::state::EnvelopeState;
use tenure_projection::views::Lens;

use crate::context::Mutation;
use crate::fault::Stop;
use crate::input::Keyed;

use tenure_projection::call::Verb;

use super::super::payload::{Answer, Kind};
use super::super::said;
use super::{Act, Who};

/// Envelopes told at a time; the rest is told at the next prompt.
const ENVELOPES_MAX: usize = 10;

impl Act<'_> {
    /// Who the session is, and whom it meets where it works.
    pub(super) fn greet(&self, who: &Who, token: &Token) -> Result<Answer, Stop> {
        let dir = self.ctx.dir()?;
        let mut lines = vec![format!(
            "this session is {token} in the ledger {}",
            dir.display()
        )];
        let open = self.looking(|reader| {
            reader.view(|state| {
                let session = state
                    .find(who.name.as_str().as_bytes())
                    .and_then(|n| state.session(n));
                session.map(|s| s.open.clone()).unwrap_or_default()
            })
        })?;
        if !open.is_empty() {
            let open: Vec<String> = open.iter().map(ToString::to_string).collect();
            lines.push(format!("open dispatches: {}", open.join(" ")));
        }
        let here = self.located(self.payload.cwd.iter().cloned().collect())?;
        if !here.is_empty() {
            let meeting = self.meeting(who, &here)?;
            lines.extend(said::meeting(
                &self.views(&meeting.living)?,
                meeting.instruction,
            ));
            lines.extend(said::gone(&self.views(&meeting.stale)?));
        }
        lines.extend(self.news(who, token)?);
        Ok(Answer::Context(said::text(lines)))
    }

    /// What is new since the last time, if anything is.
    pub(super) fn news_answer(&self, who: &Who, token: &Token) -> Result<Answer, Stop> {
        let lines = self.news(who, token)?;
        Ok(match lines.is_empty() {
            true => Answer::Silence,
            false => Answer::Context(said::text(lines)),
        })
    }

    /// The envelopes that wait for the session; each is delivered by being told, and so is told once.
    fn news(&self, who: &Who, token: &Token) -> Result<Vec<String>, Stop> {
        let (told, left) = self.looking(|reader| {
            let pending = |lens: Lens<'_>| {
                let number = lens.state.find(who.name.as_str().as_bytes());
                let waiting = |id: &EnvelopeNo| {
                    let row = lens.state.envelope(*id);
                    row.is_some_and(|row| row.state == EnvelopeState::Pending)
                };
                let all = number.into_iter().flat_map(|n| lens.envelopes_of(n, true));
                let all: Vec<EnvelopeNo> = all.filter(waiting).collect();
                let mut told = Vec::new();
                for id in all.iter().take(ENVELOPES_MAX) {
                    told.extend(lens.envelope(*id)?);
                }
                Ok((told, all.len().saturating_sub(ENVELOPES_MAX)))
            };
            let looked = reader.view(|state| {
                pending(Lens {
                    state,
                    host: reader.host(),
                    shelf: reader,
                })
            });
            looked?
        })?;
        if told.is_empty() {
            return Ok(Vec::new());
        }
        let deliver = |envelope: EnvelopeNo| {
            Mutation::new(Verb::Deliver { envelope }, &Keyed::default()).under(Some(token.clone()))
        };
        let deliveries = told.iter().map(|view| deliver(view.id)).collect();
        // What somebody else delivered meanwhile is told twice rather than not at all.
        match self.ctx.execute_all(self.store()?, deliveries) {
            Ok(_) | Err(Stop::Refused(_)) => {}
            Err(stop) => return Err(stop),
        }
        let mut lines: Vec<String> = told.iter().flat_map(said::envelope).collect();
        if left > 0 {
            lines.push(format!(
                "{left} more wait: tenure inbox {} --pending",
                who.name
            ));
        }
        Ok(lines)
    }

    /// What was lost behind the agent's back: to the agent where it listens, else to the person.
    pub(super) fn tell(&self, who: &Who, token: &Token) -> Result<Answer, Stop> {
        let view = self.looking(|reader| {
            reader.view(|state| {
                Lens {
                    state,
                    host: reader.host(),
                    shelf: reader,
                }
                .check(token)
            })
        })?;
        let Some(view) = view.filter(|view| !view.is_current()) else {
            return Ok(Answer::Silence);
        };
        let text = said::lost(&view, self.ctx.store_word().as_deref(), who.pid);
        Ok(match self.payload.event.kind() {
            Kind::Stop => Answer::Say(text),
            _ => Answer::Context(text),
        })
    }
}
