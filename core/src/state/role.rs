//! Roles as they stand: who holds each, and who held it before.

use alloc::vec::Vec;

use bincode::{Decode, Encode};

use crate::generation::Generation;
use crate::holder::Bearing;
use crate::id::{Moment, RoleNo, SessionNo};
use crate::role::RoleScope;
use crate::text::Symbol;

use super::State;

/// Somebody holds a role.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Holding {
    /// The session; the role follows it through an adopt.
    pub session: SessionNo,
    /// Since when.
    pub since: Moment,
    /// The process whose end ends it too (`role run`).
    pub process: Option<Bearing>,
}

/// A role.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Role {
    /// Its name.
    pub name: Symbol,
    /// Where it is exclusive.
    pub scope: RoleScope<Symbol>,
    /// Its number: grows at every take, release by proof and clear.
    pub generation: Generation,
    /// Who holds it.
    pub holding: Option<Holding>,
    /// Sessions that held it and lost or gave it up, each once, the newest last.
    pub past: Vec<SessionNo>,
}

impl State {
    /// The role of that name and scope, if it was ever taken.
    #[must_use]
    pub fn find_role(&self, name: &[u8], scope: &RoleScope<&[u8]>) -> Option<RoleNo> {
        let is = |number: &&RoleNo| {
            self.role(**number).is_some_and(|role| {
                let known = role.scope.map(|symbol| self.pool.get(*symbol));
                known.is(scope)
            })
        };
        self.roles_named(name).iter().find(is).copied()
    }

    /// The role of that number.
    #[must_use]
    pub fn role(&self, number: RoleNo) -> Option<&Role> {
        self.roles.get(number.index())
    }

    /// The roles that a session holds.
    pub fn roles_of(&self, session: SessionNo) -> impl Iterator<Item = RoleNo> {
        let all = self.roles.iter().enumerate();
        all.filter(move |(_, role)| role.holding.as_ref().is_some_and(|h| h.session == session))
            .map(|(number, _)| RoleNo(number as u64))
    }
}
