//! Calls about histories.

use tenure_core::command::{Command, Record};
use tenure_core::history;
use tenure_core::limits;

use super::{Writing, within};
use crate::call::{Activity, Verb};
use crate::error::Error;

impl Writing<'_> {
    /// What a call about a history asks; `None` for any other call.
    pub(super) fn about_a_history(&mut self, verb: &Verb) -> Result<Option<Command>, Error> {
        Ok(Some(match verb {
            Verb::Record {
                kind,
                body,
                expect,
                opens,
                closes,
            } => Record {
                kind: self.record_kind(kind)?,
                body: {
                    within("the record", body.len(), limits::RECORD_BYTES_MAX)?;
                    self.bodies.add(body)
                },
                expect: *expect,
                opens: opens.as_ref().map(|a| self.activity(a)),
                closes: closes.as_ref().map(|a| self.activity(a)),
            }
            .into(),
            _ => return Ok(None),
        }))
    }

    fn record_kind(&mut self, kind: &str) -> Result<tenure_core::text::TextId, Error> {
        if kind.is_empty() {
            return Err(Error::Empty("the kind of a record"));
        }
        self.text("the kind of a record", kind, limits::LABEL_BYTES_MAX)
    }

    fn activity(&mut self, activity: &Activity) -> history::Activity {
        history::Activity {
            kind: activity.kind,
            id: self.name(&activity.id),
        }
    }
}
