//! Refusals: of the command in hand, and those the log keeps.

use tenure_core::command::Command;
use tenure_core::generation::Generation;
use tenure_core::holder::Proof;
use tenure_core::id::{Moment, Position, RefusalNo, SessionNo};
use tenure_core::limits::REFUSAL_OPEN_FRAMES;
use tenure_core::refusal::{Code, Next, Refusal, Relation};
use tenure_core::state::RefusalRecord;
use tenure_log::journal::CounterTag;

use super::{HolderView, Lens, LossView};
use crate::error::Error;

/// A command that was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusalView {
    /// Why; the recorded number where this program has no word for it.
    pub code: Result<Code, u16>,
    /// One sentence.
    pub message: String,
    /// What it was about.
    pub subject: String,
    /// The token or object presented.
    pub presented: Option<String>,
    /// What is current instead.
    pub current: Option<String>,
    /// Who holds it.
    pub holder: Option<HolderView>,
    /// Since when.
    pub since: Option<Moment>,
    /// How the asker stands to it.
    pub relation: Option<Relation>,
    /// Why the verdict on the holder is what it is, where it mattered.
    pub evidence: Vec<Proof>,
    /// What happened behind the asker's back, oldest first.
    pub lost: Vec<LossView>,
    /// What may be done.
    pub next: Vec<Next>,
    /// Where an equal command stands recorded already.
    pub recorded_at: Option<Position>,
    /// The record that keeps it.
    pub stored: Option<Stored>,
}

impl RefusalView {
    /// The code as printed.
    #[must_use]
    pub fn word(&self) -> String {
        word(self.code)
    }
}

fn word(code: Result<Code, u16>) -> String {
    match code {
        Ok(code) => code.as_str().to_owned(),
        Err(number) => format!("code-{number}"),
    }
}

/// A recorded code as printed: `code-N` where this program has no word for it.
pub(crate) fn code_word(number: u16) -> String {
    word(Code::from_number(number).ok_or(number))
}

/// A refusal as the log keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its number.
    pub id: RefusalNo,
    /// The command refused, as typed.
    pub command: &'static str,
    /// How often: as far as the log says, and what was counted beside it since.
    pub count: u64,
    /// When it was first refused.
    pub first: Moment,
    /// When it was last refused, as far as the log says.
    pub last: Moment,
    /// Whether the refused command carried a body.
    pub carried: bool,
    /// Whether what the refused command carried is kept. A command that carried nothing lost nothing.
    pub body_kept: bool,
    /// What the refused commands carried, oldest first.
    pub bodies: Vec<Vec<u8>>,
}

impl Lens<'_> {
    /// A refusal just received. `carried` is the body of the refused command.
    #[must_use]
    pub fn refused(&self, refusal: &Refusal, carried: Option<&[u8]>) -> RefusalView {
        let (verdict, evidence) = match &refusal.evidence {
            Some((verdict, proofs)) => (Some(*verdict), proofs.clone()),
            None => (None, Vec::new()),
        };
        let mut holder = refusal.holder.map(|h| self.holder(&h));
        if let (Some(holder), Some(verdict)) = (&mut holder, verdict) {
            holder.verdict = verdict;
            holder.evidence.clone_from(&evidence);
        }
        let lost = match (refusal.session, refusal.key.presented) {
            (Some(session), Some(presented)) if refusal.relation != Some(Relation::Foreign) => {
                self.losses(session, presented)
            }
            _ => Vec::new(),
        };
        let stored = self.state.refusal_record(&refusal.key).and_then(|id| {
            let kept = carried.is_none_or(|body| self.keeps(id, body));
            self.stored(id, carried.is_some(), kept, Vec::new())
        });
        RefusalView {
            code: Ok(refusal.code),
            message: refusal.message.clone(),
            subject: refusal.subject.clone(),
            presented: refusal.presented.clone(),
            current: refusal.current.clone(),
            holder,
            since: refusal.since,
            relation: refusal.relation,
            evidence,
            lost,
            next: refusal.next.clone(),
            recorded_at: refusal.recorded_at,
            stored,
        }
    }

    fn keeps(&self, id: RefusalNo, body: &[u8]) -> bool {
        let digest = blake3::hash(body);
        let kept = self.state.refusal(id).map_or(&[][..], |r| &r.bodies);
        kept.iter()
            .any(|(known, _)| digest.as_bytes().starts_with(known))
    }

    fn stored(
        &self,
        id: RefusalNo,
        carried: bool,
        body_kept: bool,
        bodies: Vec<Vec<u8>>,
    ) -> Option<Stored> {
        let record = self.state.refusal(id)?;
        Some(Stored {
            id,
            command: command_word(record.command),
            count: record.count.max(self.repeats(record)),
            first: record.first,
            last: record.last,
            carried,
            body_kept,
            bodies,
        })
    }

    /// What is counted beside the log for a record. The counter is its own while it is open; what cannot be read
    /// was not counted.
    fn repeats(&self, record: &RefusalRecord) -> u64 {
        let newest = self.state.at.position.0;
        let open = newest.saturating_sub(record.last.position.0) < REFUSAL_OPEN_FRAMES;
        if record.slot == 0 || !open {
            return 0;
        }
        self.shelf
            .counted(CounterTag(u64::from(record.slot)))
            .unwrap_or(0)
    }

    /// A refusal that the log keeps; `None` when there is none of that number.
    ///
    /// # Errors
    /// When the frames that keep its bodies cannot be read.
    pub fn refusal(&self, id: RefusalNo) -> Result<Option<RefusalView>, Error> {
        let Some(record) = self.state.refusal(id) else {
            return Ok(None);
        };
        let mut bodies = Vec::new();
        for (_, position) in &record.bodies {
            let Some((_, request)) = self.frame(*position)? else {
                continue;
            };
            bodies.extend(request.bodies.iter().next().map(<[u8]>::to_vec));
        }
        let kept = bodies.len() == record.bodies.len();
        let session = record.session.and_then(|s| self.state.session(s));
        let active = record
            .session
            .filter(|_| session.is_some_and(|s| !s.retired));
        let holder = active.and_then(|s| self.state.holder(s));
        let named = |g: Option<Generation>| {
            g.map(|g| match record.session {
                Some(s) => format!("{}@{g}", self.name(s)),
                None => g.to_string(),
            })
        };
        let code = Code::from_number(record.code).ok_or(record.code);
        let subject = self.text(record.subject);
        let (presented, current) = (named(record.presented), named(record.current));
        Ok(Some(RefusalView {
            code,
            message: message(
                command_word(record.command),
                &subject,
                presented.as_deref(),
                &word(code),
            ),
            subject,
            presented,
            current,
            holder: holder.map(|h| self.holder(&h)),
            since: session.map(tenure_core::state::Session::since),
            relation: code.ok().and_then(relation),
            evidence: Vec::new(),
            lost: match (record.session, record.presented) {
                (Some(session), Some(presented)) => self.losses(session, presented),
                _ => Vec::new(),
            },
            next: vec![Next {
                command: format!("tenure show {id}"),
                effect: "shows what it carried",
            }],
            recorded_at: None,
            stored: self.stored(id, !record.bodies.is_empty(), kept, bodies),
        }))
    }

    /// Numbers of the refusals that the log keeps, oldest first; of one session where one is named.
    pub fn refusals(&self, of: Option<SessionNo>) -> impl Iterator<Item = RefusalNo> {
        let records = self.state.refusals.iter().enumerate().skip(1);
        records
            // A row that stands for a lost one says nothing.
            .filter(move |(_, record)| record.count > 0 && (of.is_none() || record.session == of))
            .map(|(number, _)| RefusalNo(number as u64))
    }
}

fn command_word(kind: u16) -> &'static str {
    let known = Command::KINDS.iter().find(|(number, _)| *number == kind);
    known.map_or("several commands", |(_, word)| word)
}

fn message(command: &str, subject: &str, presented: Option<&str>, code: &str) -> String {
    let under = presented.map(|p| format!(" under {p}")).unwrap_or_default();
    format!("{command} of {subject}{under} was refused: {code}")
}

fn relation(code: Code) -> Option<Relation> {
    match code {
        Code::StaleGeneration => Some(Relation::Superseded),
        Code::NeverIssued => Some(Relation::NeverIssued),
        Code::Retired => Some(Relation::Retired),
        Code::AlreadyActive | Code::DuplicateItem => Some(Relation::Taken),
        Code::Held | Code::NotYourEnvelope | Code::RoleHeld => Some(Relation::Foreign),
        Code::RoleStale => Some(Relation::Superseded),
        _ => None,
    }
}
