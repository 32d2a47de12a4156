//! How a presented token stands, and what its bearer lost.

use tenure_core::generation::{Generation, Lapse, Standing};
use tenure_core::id::{Moment, SessionNo, Token};
use tenure_core::refusal::Relation;
use tenure_core::state::Granted;

use super::{HolderView, Lens};

/// The answer to "is this token current?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckView {
    /// Why it is not current; `None` when it is.
    pub lapse: Option<Lapse>,
    /// The token asked about, without a secret.
    pub token: String,
    /// Its session.
    pub session: String,
    /// Whether it is the newest token of its session, and lapsed with its tree.
    pub lapsed: bool,
    /// The generation that is current.
    pub generation: Generation,
    /// Who holds it.
    pub holder: Option<HolderView>,
    /// Since when it is as it is.
    pub since: Moment,
    /// What happened to the session behind the token's back, oldest first.
    pub lost: Vec<LossView>,
}

impl CheckView {
    /// Whether a write under the token would pass.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.lapse.is_none()
    }

    /// How the token stands to what is current; `None` when it is.
    #[must_use]
    pub fn relation(&self) -> Option<Relation> {
        self.lapse.map(|lapse| match lapse {
            Lapse::Stale => Relation::Superseded,
            Lapse::NeverIssued => Relation::NeverIssued,
            Lapse::Retired => Relation::Retired,
        })
    }
}

/// One change of who is current, told to whoever lost by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossView {
    /// What it was.
    pub how: Granted,
    /// When.
    pub at: Moment,
    /// The generation after it.
    pub generation: Generation,
    /// By whom.
    pub actor: Option<String>,
    /// Why, where a reason was given.
    pub reason: Option<String>,
}

impl LossView {
    /// The word of the event, as the log has it.
    #[must_use]
    pub fn event(&self) -> &'static str {
        match self.how {
            Granted::Forced => Granted::Adopted.as_str(),
            other => other.as_str(),
        }
    }

    /// Whether it was done by force.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.how == Granted::Forced
    }
}

impl Lens<'_> {
    /// How a token stands; `None` when no session has its name.
    #[must_use]
    pub fn check(&self, token: &Token) -> Option<CheckView> {
        let number = self.state.find(token.name.as_str().as_bytes())?;
        let session = self.state.session(number)?;
        let holder = self.state.holder(number).filter(|_| !session.retired);
        Some(CheckView {
            lapse: self.lapse(number, token),
            token: token.to_string(),
            session: self.name(number),
            lapsed: session.generation == token.generation
                && self.state.standing(number) == Some(Standing::Lapsed),
            generation: session.generation,
            holder: holder.map(|h| self.holder(&h)),
            since: self.state.since(number).unwrap_or_else(|| session.since()),
            lost: self.losses(number, token.generation),
        })
    }

    /// Why a token is not current. One without its secret was never granted.
    fn lapse(&self, session: SessionNo, token: &Token) -> Option<Lapse> {
        if let Err(lapse) = self.state.check(session, token.generation) {
            return Some(lapse);
        }
        let matched = token.secret.map(|secret| {
            let seal = secret.seal();
            self.state.is_sealed_with(session, token.generation, seal)
        });
        (!self.state.opens(matched)).then_some(Lapse::NeverIssued)
    }

    /// What happened to a session after `presented` was granted, oldest first.
    #[must_use]
    pub fn losses(&self, session: SessionNo, presented: Generation) -> Vec<LossView> {
        let grants = self.state.grants_of(session).into_iter();
        let mut lost: Vec<LossView> = grants
            .filter(|note| {
                let ended = matches!(note.how, Granted::Retired | Granted::Raised);
                note.generation > presented || (note.generation == presented && ended)
            })
            .map(|note| LossView {
                how: note.how,
                at: note.at,
                generation: note.generation,
                actor: note.actor.map(|a| self.text(a)),
                reason: note.reason.map(|r| self.text(r)),
            })
            .collect();
        lost.extend(self.losses_of_tree(session, presented));
        lost.sort_by_key(|loss| loss.at.position);
        lost
    }

    /// What happened to the tree of a session since its current generation was granted, where that is the one
    /// presented or a later one.
    fn losses_of_tree(
        &self,
        session: SessionNo,
        presented: Generation,
    ) -> impl Iterator<Item = LossView> {
        let record = self.state.session(session);
        let tree = record.and_then(|r| self.state.session(r.root));
        let notes = tree.map_or(&[][..], |root| &root.tree.notes);
        let record = record.filter(|r| presented <= r.generation);
        record.into_iter().flat_map(move |record| {
            let later = notes.iter().filter(|note| note.epoch > record.epoch);
            later.map(|note| LossView {
                how: note.how,
                at: note.at,
                generation: record.generation,
                actor: note.actor.map(|a| self.text(a)),
                reason: note.reason.map(|r| self.text(r)),
            })
        })
    }
}
