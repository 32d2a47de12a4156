//! Envelopes. What a notice or a review says is written here from fixed templates: it is not in the log.

use tenure_core::command::Ref;
use tenure_core::disclosure::{INSTRUCTION_REPOSITORY, INSTRUCTION_TREE, shared};
use tenure_core::generation::Generation;
use tenure_core::id::{EnvelopeNo, Position, SessionNo, Time};
use tenure_core::path::Level;
use tenure_core::state::{CancelReason, EnvelopeKind, EnvelopeRow, EnvelopeState, NoticeKind};

use super::{DispatchView, Lens, shown};
use crate::error::Error;

mod rights;

/// An envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvelopeView {
    /// Its number.
    pub id: EnvelopeNo,
    /// What it carries.
    pub kind: EnvelopeKind,
    /// What it says, if it is a notice.
    pub notice: NoticeKind,
    /// To whom.
    pub session: String,
    /// The generation it is of: where it was issued, or carried to.
    pub generation: Generation,
    /// By which session; `None`: by an operator, or by the store itself.
    pub from: Option<String>,
    /// The dispatch it is about, with what the log has of it.
    pub dispatch: Option<DispatchView>,
    /// What it answers, or the reply it asks to review.
    pub re: Option<Ref>,
    /// Where it stands.
    pub state: EnvelopeState,
    /// Why it was cancelled.
    pub reason: Option<CancelReason>,
    /// What it says.
    pub body: Option<Vec<u8>>,
    /// The frame that issued it.
    pub position: Position,
    /// When that was, by the clock of who wrote it.
    pub issued: Time,
}

impl Lens<'_> {
    /// The envelope of that number; `None` when it was never given.
    ///
    /// # Errors
    /// When its frames cannot be read.
    pub fn envelope(&self, id: EnvelopeNo) -> Result<Option<EnvelopeView>, Error> {
        let Some(row) = self.state.envelope(id) else {
            return Ok(None);
        };
        let dispatch = match row.dispatch {
            Some(dispatch) => self.dispatch(dispatch)?,
            None => None,
        };
        let body = match (row.kind, row.notice) {
            (EnvelopeKind::Notice, NoticeKind::AssignmentFailed) => {
                Some(assignment_failed(dispatch.as_ref()).into_bytes())
            }
            (EnvelopeKind::Notice, NoticeKind::Newcomer) => {
                Some(self.newcomer(&row, dispatch.as_ref())?.into_bytes())
            }
            (EnvelopeKind::Notice, NoticeKind::RoleCleared | NoticeKind::RoleLapsed) => {
                Some(self.role_lost(&row)?.into_bytes())
            }
            // Handed over: what there is to do stands where the dispatch was given.
            (EnvelopeKind::Work, _) if row.body.is_none() => {
                dispatch.as_ref().and_then(|d| d.body.clone())
            }
            (EnvelopeKind::Notice, NoticeKind::Branched) => Some(self.branched(&row)?.into_bytes()),
            (EnvelopeKind::Review, _) => self.review(&row)?,
            _ => self.body(row.located())?,
        };
        Ok(Some(EnvelopeView {
            id,
            kind: row.kind,
            notice: row.notice,
            session: self.name(row.session),
            generation: row.generation,
            from: row.from.map(|s| self.name(s)),
            dispatch,
            re: row.re,
            state: row.state,
            reason: (row.reason != CancelReason::None).then_some(row.reason),
            body,
            position: row.position,
            issued: self.issued(row.position)?,
        }))
    }

    /// The time of a frame that issued an envelope.
    fn issued(&self, at: Position) -> Result<Time, Error> {
        let frame = self.frame(at)?;
        Ok(frame.map_or(Time(0), |(entry, _)| entry.at.time))
    }

    /// Numbers of every envelope of a session, oldest first; only the open ones when `open`.
    #[must_use]
    pub fn envelopes_of(&self, session: SessionNo, open: bool) -> Vec<EnvelopeNo> {
        if open {
            return self
                .state
                .session(session)
                .map(|s| s.inbox.clone())
                .unwrap_or_default();
        }
        (1..self.state.envelopes.len() as u64)
            .map(EnvelopeNo)
            .filter(|e| {
                self.state
                    .envelope(*e)
                    .is_some_and(|row| row.session == session)
            })
            .collect()
    }

    /// Who joined, where, and what to mind.
    fn newcomer(
        &self,
        row: &EnvelopeRow,
        dispatch: Option<&DispatchView>,
    ) -> Result<String, Error> {
        let name = row.from.map(|s| self.name(s)).unwrap_or_default();
        let holder = row
            .from
            .and_then(|s| self.state.session(s))
            .and_then(|s| s.holder);
        let who = match holder.map(|h| self.holder(&h).label()) {
            Some(label) => format!("{name} ({label})"),
            None => name,
        };
        let Some(dispatch) = dispatch else {
            return self.newcomer_by_writing(row, &who);
        };
        let title = match &dispatch.title {
            Some(title) => format!("{} ({title})", dispatch.item),
            None => dispatch.item.clone(),
        };
        let places = dispatch.writes.join(", ");
        let ended = if dispatch.state.is_live() {
            String::new()
        } else {
            format!(
                " That dispatch has ended since: {}.",
                dispatch.state.as_str()
            )
        };
        let instruction = match self.level(row) {
            Level::Tree => INSTRUCTION_TREE,
            Level::Repository => INSTRUCTION_REPOSITORY,
        };
        Ok(format!(
            "{who} joined you at {places}: it works on {title}, {}.{ended} {instruction}",
            dispatch.id
        ))
    }

    /// Who was branched from whom, where, and on whose behalf.
    fn branched(&self, row: &EnvelopeRow) -> Result<String, Error> {
        let branch = row.from.map(|s| self.name(s)).unwrap_or_default();
        let source = self.name(row.session);
        let origin = row
            .from
            .and_then(|s| self.state.session(s))
            .and_then(|s| s.history.origin);
        let actor = match self.frame(row.position)? {
            Some((_, request)) => shown(request.texts.get(request.input.origin.actor)),
            None => "somebody".to_owned(),
        };
        let place = match origin.and_then(|o| o.at) {
            Some(at) => format!("behind the record at position {}", at.position),
            None => "from its beginning".to_owned(),
        };
        Ok(format!(
            "{actor} branched {branch} from {source}, {place}. What {source} has and does stays its own; \
             acknowledging this notice is all it asks for."
        ))
    }

    /// How near the newcomer is now; the nearest when its dispatch has ended.
    fn level(&self, row: &EnvelopeRow) -> Level {
        let live = row.dispatch.and_then(|d| self.state.live.get(&d));
        let meetings = live
            .map(|d| shared(self.state, None, &d.writes))
            .unwrap_or_default();
        meetings
            .iter()
            .filter(|m| m.session == row.session && m.former.is_none())
            .map(|m| m.level)
            .min()
            .unwrap_or(Level::Tree)
    }

    /// The reply that was not read, in words and as it was sent.
    fn review(&self, row: &EnvelopeRow) -> Result<Option<Vec<u8>>, Error> {
        let Some(Ref::Envelope(number)) = row.re else {
            return Ok(None);
        };
        let Some(reply) = self.state.envelope(number) else {
            return Ok(None);
        };
        let from = reply
            .from
            .map_or_else(|| "an operator".into(), |s| self.name(s));
        let about = reply.re.map(|r| format!(" about {r}")).unwrap_or_default();
        let mut text = format!(
            "A reply from {from}{about} ({number}) was not read before this session was registered again:\n"
        )
        .into_bytes();
        text.extend(self.body(reply.located())?.unwrap_or_default());
        Ok(Some(text))
    }
}

fn assignment_failed(dispatch: Option<&DispatchView>) -> String {
    let (what, reason) = match dispatch {
        Some(d) => (
            format!("{} ({})", d.item, d.id),
            d.reason.as_deref().unwrap_or("no reason given"),
        ),
        None => ("an item".to_owned(), "no reason given"),
    };
    format!(
        "The assignment of {what} failed: {reason}. Nothing was claimed. Wait for the next one; \
         acknowledging this notice is all it asks for."
    )
}
