//! A session as it stands.

use tenure_core::decide::describe;
use tenure_core::generation::{Generation, Standing};
use tenure_core::history::Point;
use tenure_core::id::{DispatchNo, EnvelopeNo, Moment, SessionNo};
use tenure_core::state::{EnvelopeState, Session};

use super::{HolderView, Lens, shown};

/// A session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionView {
    /// Its number.
    pub number: SessionNo,
    /// Its name.
    pub name: String,
    /// Whether it is active; retired otherwise.
    pub active: bool,
    /// The current generation.
    pub generation: Generation,
    /// The current token, without a secret.
    pub token: String,
    /// Who writes as it; `None` when it is retired, or when nobody has adopted it since its tree changed hands or
    /// the incarnation was raised.
    pub holder: Option<HolderView>,
    /// Former holders that were never proven dead and may still be writing files.
    pub former: Vec<FormerView>,
    /// The root of its tree: its own name, unless it was delegated.
    pub tree: String,
    /// The session that delegated it.
    pub parent: Option<String>,
    /// Whether a token of it is current, so that somebody may write as it.
    pub writable: bool,
    /// Labels, sorted by key.
    pub labels: Vec<(String, String)>,
    /// The first grant ever.
    pub registered_at: Moment,
    /// The newest accepted event or refused contact.
    pub last_seen: Moment,
    /// Since when it is as it is: the newest grant, retirement or raise.
    pub since: Moment,
    /// What it last said it is doing.
    pub status: Option<String>,
    /// The checkout it said it works in.
    pub checkout: Option<String>,
    /// The top directories of the checkouts it is present in, by any source.
    pub tops: Vec<String>,
    /// The git directories of the superprojects of those that are submodules.
    pub superprojects: Vec<String>,
    /// Live dispatches.
    pub open: Vec<DispatchNo>,
    /// Envelopes waiting to be delivered.
    pub pending: usize,
    /// Envelopes delivered and not acknowledged.
    pub delivered: usize,
    /// The newest envelope that it acknowledged.
    pub cursor: Option<EnvelopeNo>,
    /// Names that it had before, oldest first.
    pub aliases: Vec<String>,
    /// How many records its history has.
    pub records: u64,
    /// Its newest record.
    pub tip: Option<Point>,
    /// Where it was branched, if it was.
    pub branch: Option<BranchView>,
    /// What it was called where it was imported from, and its parent there, which is attached to nothing.
    pub imported: Option<(String, Option<String>)>,
    /// What its records opened and did not close, `KIND:ID`.
    pub activities: Vec<String>,
}

/// Where a session was branched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchView {
    /// The name of the session whose history it begins with.
    pub source: String,
    /// Up to which point; `None`: it began empty.
    pub at: Option<Point>,
    /// When.
    pub taken: Moment,
}

/// A holder that was superseded without proof of death.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormerView {
    /// The generation it held.
    pub generation: Generation,
    /// Who it is.
    pub holder: HolderView,
}

impl Lens<'_> {
    /// The session of that number.
    #[must_use]
    pub fn session(&self, number: SessionNo) -> Option<SessionView> {
        let session = self.state.session(number)?;
        let envelopes = |state| {
            let rows = session.inbox.iter().filter_map(|e| self.state.envelope(*e));
            rows.filter(|row| row.state == state).count()
        };
        let (tops, superprojects) = self.places(number);
        let holder = self.state.writer(number);
        Some(SessionView {
            number,
            name: self.name(number),
            active: !session.retired,
            generation: session.generation,
            token: describe(self.state, number).unwrap_or_default(),
            holder: holder.map(|h| self.holder(&h)),
            former: session
                .formers
                .iter()
                .map(|f| FormerView {
                    generation: f.generation,
                    holder: self.holder(&f.holder),
                })
                .collect(),
            tree: self.name(session.root),
            parent: session.parent.map(|p| self.name(p)),
            writable: self.state.standing(number) == Some(Standing::Granted),
            labels: session
                .labels
                .iter()
                .map(|(k, v)| (self.text(*k), self.text(*v)))
                .collect(),
            registered_at: session.registered_at,
            last_seen: session.last_seen,
            since: self.state.since(number).unwrap_or_else(|| session.since()),
            status: session.status.as_ref().map(|s| shown(s.as_bytes())),
            checkout: session.checkout.as_ref().map(|c| self.text(c.path)),
            tops,
            superprojects,
            open: session.open.clone(),
            pending: envelopes(EnvelopeState::Pending),
            delivered: envelopes(EnvelopeState::Delivered),
            cursor: session.cursor,
            aliases: session.aliases.iter().map(|a| self.text(*a)).collect(),
            records: session.history.count(),
            tip: session.history.tip,
            branch: self.branch(session),
            imported: session
                .history
                .imported
                .map(|note| (self.text(note.from), note.parent.map(|p| self.text(p)))),
            activities: session
                .history
                .open
                .iter()
                .map(|a| format!("{}:{}", a.kind.as_str(), shown(a.id.as_bytes())))
                .collect(),
        })
    }

    /// The top directories where a session is present, and the repositories that those are submodules of.
    fn places(&self, number: SessionNo) -> (Vec<String>, Vec<String>) {
        let presence = || self.state.presence(number).map(|(_, _, scope)| scope);
        let sorted = |mut texts: Vec<String>| {
            texts.sort();
            texts.dedup();
            texts
        };
        let tops = presence().map(|scope| match &scope.repository {
            Some(repository) => self.text(repository.top),
            None => self.text(scope.path),
        });
        let superprojects = presence().filter_map(|scope| {
            let scope = scope.map(|s| self.state.pool.get(*s));
            Some(shown(scope.repository?.superproject()?))
        });
        (sorted(tops.collect()), sorted(superprojects.collect()))
    }

    /// Where a session was branched.
    pub(super) fn branch(&self, session: &Session) -> Option<BranchView> {
        session.history.origin.map(|origin| BranchView {
            source: self.name(origin.source),
            at: origin.at,
            taken: origin.taken,
        })
    }

    /// Every session that may be shown, in the order of registration.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView> {
        (0..self.state.sessions.len())
            .map(|n| SessionNo(n as u64))
            .filter(|n| self.state.is_published(*n))
            .filter_map(|n| self.session(n))
    }
}
