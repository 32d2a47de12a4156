//! Roles and policies, and what a holder was shown.

use tenure_core::disclosure::Rule;
use tenure_core::generation::Generation;
use tenure_core::id::{Moment, RoleNo, SessionNo};
use tenure_core::state::Holder;

use super::{HolderView, Lens, PointView, WhoView};

/// A role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleView {
    /// Its name.
    pub role: String,
    /// Where it is exclusive: a name or a path.
    pub scope: String,
    /// The session that holds it; `None` when nobody does.
    pub session: Option<String>,
    /// That session's current generation.
    pub generation: Option<Generation>,
    /// Its own generation.
    pub role_generation: Generation,
    /// The process it was recorded with, else who holds that session.
    pub holder: Option<HolderView>,
    /// Since when it is held.
    pub since: Option<Moment>,
}

/// A policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyView {
    /// What applies.
    pub rule: Rule,
    /// In this path and below it.
    pub scope: String,
    /// Whether the path is one place on every host.
    pub shared: bool,
    /// Since when.
    pub since: Moment,
}

/// Somebody whom the current holder of a session was shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToldView {
    /// The session shown.
    pub session: String,
    /// Its generation then.
    pub generation: Generation,
    /// Where that stands in the log.
    pub at: Moment,
}

impl Lens<'_> {
    /// The role of that number.
    #[must_use]
    pub fn role(&self, number: RoleNo) -> Option<RoleView> {
        let role = self.state.role(number)?;
        let holding = role.holding.as_ref();
        let session = holding.and_then(|h| self.state.session(h.session));
        let writer = holding.and_then(|h| self.state.writer(h.session));
        let holder = writer.map(|holder| Holder {
            bearing: holding.and_then(|h| h.process).unwrap_or(holder.bearing),
            ..holder
        });
        Some(RoleView {
            role: self.text(role.name),
            scope: self.text(role.scope.text),
            session: holding.map(|h| self.name(h.session)),
            generation: session.map(|s| s.generation),
            role_generation: role.generation,
            holder: holder.map(|h| self.holder(&h)),
            since: holding.map(|h| h.since),
        })
    }

    /// `ROLE@SCOPE`.
    pub(super) fn role_name(&self, number: RoleNo) -> String {
        let role = self.state.role(number);
        role.map(|r| format!("{}@{}", self.text(r.name), self.text(r.scope.text)))
            .unwrap_or_default()
    }

    /// Every role that was ever taken.
    pub fn roles(&self) -> impl Iterator<Item = RoleView> {
        (0..self.state.roles.len()).filter_map(|n| self.role(RoleNo(n as u64)))
    }

    /// Every policy, the oldest first.
    pub fn policies(&self) -> impl Iterator<Item = PolicyView> {
        self.state.policies.iter().map(|p| PolicyView {
            rule: p.rule,
            scope: self.text(p.scope.path),
            shared: p.shared,
            since: p.at,
        })
    }

    /// Whom the current holder of a session was shown, and where that stands in the log.
    #[must_use]
    pub fn told(&self, session: SessionNo) -> Vec<ToldView> {
        let told = self.state.session(session).map_or(&[][..], |s| &s.told);
        told.iter()
            .map(|t| ToldView {
                session: self.name(t.peer),
                generation: t.generation,
                at: t.at,
            })
            .collect()
    }

    /// Who holds a role now, without looking at the log.
    #[must_use]
    pub fn who_role(&self, subject: &str, number: Option<RoleNo>) -> WhoView {
        let nobody = WhoView::nobody(subject, self.state.at);
        let role = number.and_then(|n| Some((self.role(n)?, self.state.role(n)?)));
        let Some((view, role)) = role else {
            return nobody;
        };
        let Some(holding) = &role.holding else {
            return nobody;
        };
        // A role that followed its session through an adopt is held under a new generation from there, and one whose
        // session's token lapsed with its tree has no holder from there.
        let session = self.state.session(holding.session);
        let granted = session.and_then(|s| s.grants.last()).map(|note| note.at);
        let lapsed = self.state.tree_note_of(holding.session);
        let carried = lapsed.map(|note| note.at).or(granted);
        let (since, holder) = match carried.filter(|at| at.position > holding.since.position) {
            // The process that took it was the former holder's.
            Some(at) => (
                PointView {
                    at,
                    event: "carried",
                },
                self.state.writer(holding.session).map(|h| self.holder(&h)),
            ),
            None => (
                PointView {
                    at: holding.since,
                    event: "role-taken",
                },
                view.holder,
            ),
        };
        WhoView {
            session: view.session,
            generation: view.generation,
            holder,
            since: Some(since),
            ..nobody
        }
    }
}
