//! Roles, hand-overs and policies: what their commands name, and what is found about those in their way.

use tenure_core::command::{
    Attend, CheckRole, CheckWrite, ClearRole, Command, HandOff, LapseRole, ReleaseRole, SetPolicy,
    TakeRole,
};
use tenure_core::holder::{Evidence, judge};
use tenure_core::limits;
use tenure_core::path::same_place;
use tenure_core::role::{self, ProcessEvidence, Requirement};
use tenure_core::text::{TextId, Texts};

use crate::call::{RoleAt, RoleScope, Verb};
use crate::error::Error;

use super::super::Store;
use super::{Writing, within};

impl Writing<'_> {
    /// A command about a role, a hand-over or a policy; `None` for any other verb.
    pub(super) fn about_rights(&mut self, verb: &Verb) -> Result<Option<Command>, Error> {
        Ok(Some(match verb {
            Verb::TakeRole { at, process } => {
                let Requirement { role, scope } = self.role(at)?;
                let bearing = process.map(|choice| self.store.host().bearing(choice));
                TakeRole {
                    role,
                    scope,
                    process: bearing.transpose()?,
                    found: None,
                }
                .into()
            }
            Verb::LapseRole { at } => {
                let Requirement { role, scope } = self.role(at)?;
                LapseRole {
                    role,
                    scope,
                    found: None,
                }
                .into()
            }
            Verb::ReleaseRole { at } => {
                let Requirement { role, scope } = self.role(at)?;
                ReleaseRole { role, scope }.into()
            }
            Verb::CheckRole { at, generation } => {
                let Requirement { role, scope } = self.role(at)?;
                CheckRole {
                    role,
                    scope,
                    generation: *generation,
                }
                .into()
            }
            Verb::ClearRole { at, reason } => {
                let Requirement { role, scope } = self.role(at)?;
                ClearRole {
                    role,
                    scope,
                    reason: self.reason(reason)?,
                }
                .into()
            }
            other => return self.about_work_and_places(other),
        }))
    }

    /// A command about a hand-over or a policy; `None` for any other verb.
    fn about_work_and_places(&mut self, verb: &Verb) -> Result<Option<Command>, Error> {
        Ok(Some(match verb {
            Verb::HandOff {
                dispatch,
                to,
                to_generation,
            } => HandOff {
                dispatch: *dispatch,
                to: self.name(to),
                to_generation: *to_generation,
            }
            .into(),
            Verb::SetPolicy {
                rule,
                scope,
                shared,
            } => {
                let scope = self.scope(scope)?;
                policies_fit(self.store, &scope.map(|t| self.texts.get(*t)))?;
                SetPolicy {
                    rule: *rule,
                    scope,
                    shared: *shared,
                }
                .into()
            }
            Verb::CheckWrite { writes } => CheckWrite {
                writes: self.scopes(writes)?,
            }
            .into(),
            Verb::Attend { dispatch, reason } => Attend {
                dispatch: *dispatch,
                reason: reason.as_deref().map(|r| self.reason(r)).transpose()?,
            }
            .into(),
            _ => return Ok(None),
        }))
    }

    /// A role with its scope, canonical where that is a path.
    pub(super) fn role(&mut self, at: &RoleAt) -> Result<Requirement<TextId>, Error> {
        let role = self.name(&at.role);
        let scope = match &at.scope {
            RoleScope::Name(name) => role::RoleScope {
                text: self.name(name),
                place: None,
            },
            RoleScope::Path(path) => {
                let place = self.scope(path)?;
                role::RoleScope {
                    text: place.path,
                    place: Some(place),
                }
            }
        };
        Ok(Requirement { role, scope })
    }
}

/// What the probe says about whoever holds a role that is to be taken or to lapse: of the session's holder, and in
/// `process` of the process that the role was recorded with.
pub(super) fn look_at_holder(
    store: &Store,
    (role, scope): (TextId, &role::RoleScope<TextId>),
    process: &mut Option<ProcessEvidence>,
    texts: &Texts,
) -> Result<Option<Evidence>, Error> {
    store.catch_up()?;
    let live = store.live.read();
    let state = &live.state;
    let text = |t: &TextId| texts.get(*t);
    let number = state.find_role(text(&role), &scope.map(text));
    let found = number.and_then(|n| state.role(n));
    let Some((role, holding)) = found.and_then(|role| Some((role, role.holding.as_ref()?))) else {
        return Ok(None);
    };
    *process = holding.process.map(|bearing| {
        let (verdict, proofs) = judge(&bearing, &store.host().sight(&bearing));
        ProcessEvidence {
            generation: role.generation,
            verdict,
            proofs,
        }
    });
    Ok(store.evidence(state, holding.session))
}

/// A place that has a policy already changes it; another one is one more.
fn policies_fit(store: &Store, place: &tenure_core::path::Scope<&[u8]>) -> Result<(), Error> {
    let live = store.live.read();
    let pool = &live.state.pool;
    let others = live
        .state
        .policies
        .iter()
        .filter(|p| !same_place(&p.scope.map(|s| pool.get(*s)), place));
    let count = others.count() + 1;
    within("the list of policies", count, limits::POLICIES_MAX)
}
