//! What notices about roles, and about sessions that were met by what they write, say.

use tenure_core::disclosure::{INSTRUCTION_REPOSITORY, INSTRUCTION_TREE};
use tenure_core::event::Event;
use tenure_core::path::Level;
use tenure_core::state::EnvelopeRow;

use super::super::{Lens, shown};
use crate::error::Error;

impl Lens<'_> {
    /// Who began to write where the one who is told does, and what to mind.
    pub(super) fn newcomer_by_writing(
        &self,
        row: &EnvelopeRow,
        who: &str,
    ) -> Result<String, Error> {
        let frame = self.frame(row.position)?;
        let met = frame.iter().flat_map(|(entry, _)| &entry.events);
        let met = met.filter_map(|event| match event {
            Event::Shown(e) => Some((&e.writes, &e.peers)),
            Event::Warned(e) => Some((&e.writes, &e.peers)),
            _ => None,
        });
        let (mut places, mut level) = (String::new(), Level::Tree);
        for (writes, peers) in met {
            let texts = frame.as_ref().map(|(entry, _)| &entry.texts);
            let path = |t| texts.map_or(String::new(), |texts| shown(texts.get(t)));
            let paths: Vec<String> = writes.iter().map(|w| path(w.path)).collect();
            places = format!(" at {}", paths.join(", "));
            let own = peers.iter().find(|p| p.session == row.session);
            level = own.map_or(level, |p| p.level);
        }
        let instruction = match level {
            Level::Tree => INSTRUCTION_TREE,
            Level::Repository => INSTRUCTION_REPOSITORY,
        };
        Ok(format!("{who} writes where you do{places}. {instruction}"))
    }

    /// Which role was lost, to whom or by whom, and why.
    pub(super) fn role_lost(&self, row: &EnvelopeRow) -> Result<String, Error> {
        let Some((entry, request)) = self.frame(row.position)? else {
            return Ok("You lost a role.".to_owned());
        };
        let actor = shown(request.texts.get(request.input.origin.actor));
        let mut text = String::new();
        for event in &entry.events {
            match event {
                Event::RoleCleared(e) => {
                    let reason = shown(entry.texts.get(e.reason));
                    text = format!(
                        "{} was taken from you by {actor}: {reason}. What you do in it from now on is refused.",
                        self.role_name(e.role)
                    );
                }
                Event::RoleLapsed(e) => {
                    text = format!(
                        "{} was released because its holder was provably dead",
                        self.role_name(e.role)
                    );
                }
                Event::RoleTaken(e) => {
                    text.push_str(&format!(
                        ", and taken by {} for {actor}.",
                        self.name(e.session)
                    ));
                }
                _ => {}
            }
        }
        Ok(text)
    }
}
